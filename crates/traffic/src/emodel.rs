//! Quality of a call by the E-model (ITU-T G.107, narrowband): what delay, loss and the codec leave
//! of the rating R, and the mean opinion score (MOS) that it stands for.
//!
//! Everything that no network changes has the default of G.107 Table 2: loudness, room noise, echo
//! losses (TELR 65 dB, WEPL 110 dB), and no advantage factor.

/// Basic signal-to-noise ratio (7.2), from the defaults.
const RO: f64 = 94.769;
/// Simultaneous impairments (7.3), from the defaults.
const IS: f64 = 1.414;
/// Noise sum (7-3), from the defaults, dBm0p.
const NO: f64 = -61.179;
/// Receive loudness rating, dB.
const RLR: f64 = 2.0;
/// Talker echo loudness rating, dB.
const TELR: f64 = 65.0;
/// Weighted echo path loss, dB.
const WEPL: f64 = 110.0;

/// Impairment by a codec, as ITU-T G.113 Appendix I lists it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Equipment {
    /// Without any loss (Ie).
    pub(crate) impairment: f64,
    /// Robustness against random loss (Bpl).
    pub(crate) robustness: f64,
}

/// Returns the rating R of a call whose one-way delay is `delay_ms` from mouth to ear, and of which
/// a fraction `loss` is not played.
pub(crate) fn rating(delay_ms: f64, equipment: Equipment, loss: f64) -> f64 {
    RO - IS - delay_impairment(delay_ms) - loss_impairment(equipment, loss)
}

/// Returns the impairment by delay: talker echo, listener echo, and too long a delay as such (7.4).
pub(crate) fn delay_impairment(delay_ms: f64) -> f64 {
    let t = delay_ms.max(0.0);
    let echo_ratio = (1.0 + t / 10.0) / (1.0 + t / 150.0);
    let masked = TELR - 40.0 * echo_ratio.log10() + 6.0 * (-0.3 * t * t).exp();
    let (roe, re) = (-1.5 * (NO - RLR), 80.0 + 2.5 * (masked - 14.0));
    let half = (roe - re) / 2.0;
    let talker = (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - (-t).exp());

    let rle = 10.5 * (WEPL + 7.0) * (2.0 * t + 1.0).powf(-0.25);
    let half = (RO - rle) / 2.0;
    let listener = half + (half * half + 169.0).sqrt();

    let absolute = if t <= 100.0 {
        0.0
    } else {
        let x = (t / 100.0).log2();
        let root = |v: f64| (1.0 + v.powi(6)).powf(1.0 / 6.0);
        25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
    };
    talker + listener + absolute
}

/// Returns the effective impairment by codec and random loss (7.5); `loss` from 0 to 1.
pub(crate) fn loss_impairment(equipment: Equipment, loss: f64) -> f64 {
    let percent = 100.0 * loss.clamp(0.0, 1.0);
    let Equipment {
        impairment,
        robustness,
    } = equipment;
    impairment + (95.0 - impairment) * percent / (percent + robustness)
}

/// Returns the MOS that a rating stands for (Annex B), 1 to 4.5.
pub(crate) fn mos(rating: f64) -> f64 {
    let r = rating.clamp(0.0, 100.0);
    // Just above 0 the polynomial lies below 1.
    (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const G711: Equipment = Equipment {
        impairment: 0.0,
        robustness: 4.3,
    };
    const G729A: Equipment = Equipment {
        impairment: 11.0,
        robustness: 19.0,
    };

    fn near(a: f64, b: f64, within: f64) -> bool {
        (a - b).abs() <= within
    }

    #[test]
    fn the_defaults_rate_as_the_recommendation_says() {
        let r = rating(0.0, G711, 0.0);
        assert!(near(r, 93.2, 0.05), "{r}");
        assert!(near(mos(93.2), 4.41, 0.005), "{}", mos(93.2));
    }

    /// G.107 Table B.1: lower limits of the ranges of users' satisfaction.
    #[test]
    fn ratings_stand_for_the_published_scores() {
        for (r, score) in [
            (90.0, 4.34),
            (80.0, 4.03),
            (70.0, 3.60),
            (60.0, 3.10),
            (50.0, 2.58),
            (0.0, 1.0),
            (-20.0, 1.0),
            (100.0, 4.5),
            (120.0, 4.5),
        ] {
            assert!(near(mos(r), score, 0.01), "{r}: {}", mos(r));
        }
    }

    /// Cole and Rosenbluth, Voice over IP performance monitoring, 2001: what G.107 takes off for a
    /// delay d is 0.024 d, and from 177.3 ms on 0.11 (d - 177.3) more.
    #[test]
    fn delays_cost_as_published() {
        for d in [50.0, 100.0, 150.0, 177.3, 200.0, 250.0, 300.0_f64] {
            let published = 0.024 * d + 0.11 * (d - 177.3).max(0.0);
            let own = delay_impairment(d);
            assert!(near(own, published, 1.1), "{d}: {own}, {published}");
        }
        // 7-28 of G.107 alone.
        for (d, absolute) in [(200.0, 3.04), (300.0, 14.76), (400.0, 24.07)] {
            let own = delay_impairment(d);
            assert!(own > absolute && own < absolute + 8.0, "{d}: {own}");
        }
    }

    /// G.113 Appendix I, Table I.2: G.729A with voice activity detection, by percent of random loss.
    #[test]
    fn losses_cost_as_published() {
        for (percent, impairment) in [
            (0.0, 11.0),
            (1.0, 15.0),
            (2.0, 19.0),
            (3.0, 23.0),
            (4.0, 26.0),
            (8.0, 36.0),
            (16.0, 49.0),
        ] {
            let own = loss_impairment(G729A, percent / 100.0);
            assert!(near(own, impairment, 0.6), "{percent}: {own}");
        }
        assert!(near(loss_impairment(G711, 1.0), 91.1, 0.1));
    }

    proptest! {
        #[test]
        fn more_delay_or_loss_never_sounds_better(
            delay in 0.0..1000.0f64, more in 0.0..100.0f64,
            loss in 0.0..1.0f64, worse in 0.0..0.5f64,
        ) {
            for codec in [G711, G729A] {
                let at = |d, l| mos(rating(d, codec, l));
                let here = at(delay, loss);
                prop_assert!((1.0..=4.5).contains(&here));
                // Below 2 ms the echo is taken for a sidetone, which does a little good.
                prop_assert!(at(delay + more, loss) <= here + 0.02);
                prop_assert!(at(delay, (loss + worse).min(1.0)) <= here + 1e-9);
            }
        }
    }
}
