//! Numbers as people read them: three significant digits, units that fit.

/// Three significant digits, no exponent, whole from 100 up: `0.123`, `4.56`,
/// `78.9`, `1431`.
pub(crate) fn short(v: f64) -> String {
    let a = v.abs();
    let digits = match a {
        _ if !v.is_finite() => return "-".to_owned(),
        _ if a >= 99.95 || v == 0.0 => 0,
        _ if a >= 9.995 => 1,
        _ if a >= 0.9995 => 2,
        _ => 3,
    };
    format!("{v:.digits$}")
}

/// A fraction as a percentage: `96.4 %`; whole where `coarse`, but never a
/// rounded-away trace: `<1 %`.
pub(crate) fn percent(fraction: f64, coarse: bool) -> String {
    let p = fraction * 100.0;
    if !p.is_finite() {
        "-".to_owned()
    } else if !coarse {
        format!("{p:.1} %")
    } else if p > 0.0 && p < 0.5 {
        "<1 %".to_owned()
    } else {
        format!("{p:.0} %")
    }
}

/// Goodput over what the wire allows, as a percentage. What of it is above 1, by no more
/// than noise, is data that had arrived before the measured time and was read in it.
pub(crate) fn of_wire(efficiency: f64) -> String {
    percent(if is_over(efficiency) { 1.0 } else { efficiency }, false)
}

/// Whether an efficiency is above 1 by no more than noise (1 %).
pub(crate) fn is_over(efficiency: f64) -> bool {
    efficiency > 1.0 && efficiency <= 1.01
}

/// Text of others without control characters, which could move the cursor or
/// recolour the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_well() {
        for (v, s) in [
            (0.0, "0"),
            (0.0123, "0.012"),
            (0.9996, "1.00"),
            (4.656, "4.66"),
            (9.996, "10.0"),
            (41.1, "41.1"),
            (99.96, "100"),
            (1431.4, "1431"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(short(v), s);
        }
        assert_eq!(percent(0.9636, false), "96.4 %");
        assert_eq!(of_wire(0.9636), "96.4 %");
        assert_eq!(of_wire(1.0012), "100.0 %");
        // No noise is that large: it is shown.
        assert_eq!(of_wire(1.2), "120.0 %");
        assert_eq!(percent(0.0028, true), "<1 %");
        assert_eq!(percent(0.0, true), "0 %");
        assert_eq!(plain("a\u{1b}[31mb\n"), "a\u{fffd}[31mb\u{fffd}");
    }
}
