//! Durations and rates against the standard.

use std::time::Duration;

use crate::model::wifi::modes::{rounded, us};
use crate::model::wifi::phy::{Phy, Psdu};
use crate::model::wifi::{Band, Standard, WifiSpec};

fn full(spec: &WifiSpec, mbps: Option<f64>) -> (Duration, Duration) {
    let phy = Phy::new(spec).unwrap();
    let mode = phy.mode(mbps);
    let psdu = phy.append(mode, Psdu::default(), 1500).unwrap();
    (phy.air(mode, psdu), phy.reply(mode, 1))
}

#[test]
fn durations_are_those_of_the_standard() {
    let b = WifiSpec::new(Standard::B);
    // 1536 bytes: 1117.1 us at 11 Mbit/s; acknowledgements at 2 Mbit/s.
    assert_eq!(full(&b, None), (us(192 + 1118), us(10 + 192 + 56)));
    assert_eq!(full(&b, Some(1.0)), (us(192 + 12_288), us(10 + 192 + 112)));
    let short = WifiSpec {
        short_preamble: true,
        ..b
    };
    assert_eq!(full(&short, None), (us(96 + 1118), us(10 + 96 + 56)));
    let g = WifiSpec::new(Standard::G);
    // 12310 bits in 57 symbols of 216; 134 bits in 2 of 96.
    assert_eq!(full(&g, None), (us(20 + 228 + 6), us(10 + 20 + 8 + 6)));
    assert_eq!(
        full(&g, Some(6.0)),
        (us(20 + 2052 + 6), us(10 + 20 + 24 + 6))
    );
    let n = WifiSpec::new(Standard::N);
    // 1538 bytes: 12326 bits in 48 symbols of 260.
    assert_eq!(full(&n, None), (us(36 + 192), us(16 + 28)));
    let n2 = WifiSpec {
        band: Some(Band::Ghz2),
        ..n
    };
    assert_eq!(full(&n2, None), (us(36 + 192 + 6), us(10 + 34)));
    let ac = WifiSpec::new(Standard::Ac);
    // 1542 bytes with the delimiter: 12358 bits in 8 symbols of 1560.
    assert_eq!(full(&ac, None), (us(40 + 32), us(16 + 28)));
    let times = |spec: &WifiSpec| Phy::new(spec).map(|p| (p.difs, p.eifs)).unwrap();
    assert_eq!(
        times(&WifiSpec::new(Standard::B)),
        (us(50), us(10 + 304 + 50))
    );
    assert_eq!(times(&g), (us(28), us(10 + 50 + 28)));
    assert_eq!(times(&n2), (us(37), us(10 + 50 + 37)));
    assert_eq!(times(&ac), (us(43), us(16 + 44 + 43)));
}

#[test]
fn aggregates_end_at_each_limit() {
    let fill = |spec: &WifiSpec, bytes| {
        let phy = Phy::new(spec).unwrap();
        let mode = phy.mode(None);
        let mut psdu = Psdu::default();
        while let Some(longer) = phy.append(mode, psdu, bytes) {
            psdu = longer;
        }
        (psdu.packets, phy.air(mode, psdu))
    };
    let n = WifiSpec::new(Standard::N);
    assert_eq!(fill(&n, 100).0, 64, "packets");
    assert_eq!(
        fill(
            &WifiSpec {
                max_ampdu: Some(8),
                ..n.clone()
            },
            1500
        )
        .0,
        8,
        "packets"
    );
    let fast = WifiSpec {
        streams: Some(4),
        ..n.clone()
    };
    // 1544 bytes each, 65535 in all.
    assert_eq!(fill(&fast, 1500).0, 42, "bytes");
    let (packets, air) = fill(&n, 1500);
    assert!(
        air <= us(5484) && air > us(5484 - 200),
        "{packets}, {air:?}"
    );
    assert_eq!(
        fill(
            &WifiSpec {
                max_ampdu_us: Some(1),
                ..n
            },
            1500
        )
        .0,
        1,
        "one always fits"
    );
    assert_eq!(fill(&WifiSpec::new(Standard::G), 1500).0, 1);
}

#[test]
fn rates_are_those_of_the_standard() {
    let rates =
        |spec: &WifiSpec| -> Vec<String> { Phy::new(spec).unwrap().rates().map(rounded).collect() };
    let n = WifiSpec::new(Standard::N);
    let expected = ["6.5", "13", "19.5", "26", "39", "52", "58.5", "65"];
    assert_eq!(rates(&n), expected);
    let widest = WifiSpec {
        width_mhz: Some(40),
        streams: Some(4),
        short_gi: true,
        ..n.clone()
    };
    assert_eq!(rates(&widest).last().unwrap(), "600");
    let ac = WifiSpec {
        width_mhz: Some(20),
        ..WifiSpec::new(Standard::Ac)
    };
    assert_eq!(rates(&ac).last().unwrap(), "78");
    let ac = WifiSpec {
        short_gi: true,
        ..WifiSpec::new(Standard::Ac)
    };
    assert_eq!(rates(&ac).last().unwrap(), "433.3");
    let ac = WifiSpec {
        short_gi: false,
        ..ac
    };
    assert_eq!(rates(&ac).last().unwrap(), "390");
    let phy = Phy::new(&WifiSpec { mcs: Some(3), ..n }).unwrap();
    assert_eq!(phy.mode(None).mbps, 26.0);
    assert_eq!(phy.mode(Some(57.0)).mbps, 52.0);
    assert_eq!(phy.mode(Some(1.0)).mbps, 6.5);
    assert_eq!(phy.mode(Some(1e9)).mbps, 65.0);
}

#[test]
fn impossible_settings_name_the_possible_ones() {
    let error = |spec: WifiSpec| Phy::new(&spec).unwrap_err().to_string();
    let g = || WifiSpec::new(Standard::G);
    let n = || WifiSpec::new(Standard::N);
    assert_eq!(
        error(WifiSpec {
            phy_mbps: Some(11.0),
            ..g()
        }),
        "802.11g: phy_mbps = 11 is not possible: \
         expected one of 6, 9, 12, 18, 24, 36, 48, 54 Mbit/s"
    );
    assert_eq!(
        error(WifiSpec {
            mcs: Some(8),
            ..n()
        }),
        "802.11n: mcs = 8 is not possible: \
         expected one of 0, 1, 2, 3, 4, 5, 6, 7 at 20 MHz with 1 streams"
    );
    for (key, spec) in [
        (
            "mcs",
            WifiSpec {
                mcs: Some(1),
                ..g()
            },
        ),
        (
            "mcs",
            WifiSpec {
                mcs: Some(9),
                width_mhz: Some(20),
                ..WifiSpec::new(Standard::Ac)
            },
        ),
        (
            "phy_mbps",
            WifiSpec {
                mcs: Some(1),
                phy_mbps: Some(65.0),
                ..n()
            },
        ),
        (
            "phy_mbps",
            WifiSpec {
                phy_mbps: Some(f64::NAN),
                ..g()
            },
        ),
        (
            "width_mhz",
            WifiSpec {
                width_mhz: Some(80),
                ..n()
            },
        ),
        (
            "streams",
            WifiSpec {
                streams: Some(5),
                ..n()
            },
        ),
        (
            "streams",
            WifiSpec {
                streams: Some(0),
                ..n()
            },
        ),
        (
            "short_preamble",
            WifiSpec {
                short_preamble: true,
                ..g()
            },
        ),
        (
            "band",
            WifiSpec {
                band: Some(Band::Ghz5),
                ..g()
            },
        ),
        (
            "max_ampdu",
            WifiSpec {
                max_ampdu: Some(4),
                ..g()
            },
        ),
        (
            "max_ampdu",
            WifiSpec {
                max_ampdu: Some(65),
                ..n()
            },
        ),
        (
            "max_ampdu_bytes",
            WifiSpec {
                max_ampdu_bytes: Some(70_000),
                ..n()
            },
        ),
        (
            "max_ampdu_us",
            WifiSpec {
                max_ampdu_us: Some(0),
                ..n()
            },
        ),
        (
            "retry_limit",
            WifiSpec {
                retry_limit: 0,
                ..g()
            },
        ),
        (
            "cw_min",
            WifiSpec {
                cw_min: Some(16),
                ..g()
            },
        ),
        (
            "cw_max",
            WifiSpec {
                cw_max: Some(u32::MAX),
                ..g()
            },
        ),
        (
            "cw_max",
            WifiSpec {
                cw_max: Some(7),
                ..g()
            },
        ),
    ] {
        let error = Phy::new(&spec).unwrap_err();
        assert_eq!(error.key, key, "{error}");
    }
}

#[test]
fn a_spec_is_read_strictly() {
    let read = |text: &str| serde_json::from_str::<WifiSpec>(text);
    let spec = read(r#"{"standard": "802.11ac", "streams": 2, "width_mhz": 40}"#).unwrap();
    assert_eq!(spec.retry_limit, 7);
    assert_eq!(Phy::new(&spec).unwrap().mode(None).mbps, 360.0);
    assert_eq!(read(&serde_json::to_string(&spec).unwrap()).unwrap(), spec);
    for bad in [
        "{}",
        r#"{"standard": "802.11x"}"#,
        r#"{"standard": "802.11g", "rate": 6}"#,
    ] {
        assert!(read(bad).is_err(), "{bad}");
    }
}
