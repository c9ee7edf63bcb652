use super::*;
use braid_core::Rate;

#[test]
fn an_event_is_flat_json() {
    let e = Event {
        seq: 7,
        t_ns: 1,
        unix_ms: 1_767_225_600_000,
        access: Some("wifi".into()),
        what: EventKind::LinkDown {
            interface: "wlan0".into(),
        },
    };
    let v = serde_json::to_value(&e).unwrap();
    assert_eq!(v["event"], "link_down");
    assert_eq!(v["interface"], "wlan0");
    assert_eq!(serde_json::from_value::<Event>(v).unwrap(), e);
}

#[test]
fn what_is_expected_is_bits_per_second() {
    let c: AccessChange = serde_json::from_str("{\"expected\": {\"down_bps\": 7000}}").unwrap();
    let expected = Expected {
        down: Some(Rate::from_bps(7000)),
        up: None,
    };
    assert_eq!(c.expected, Some(expected));
    let back = serde_json::to_string(&c).unwrap();
    assert_eq!(back, "{\"expected\":{\"down_bps\":7000}}");
    assert!(Expected::default().is_unknown() && !expected.is_unknown());
    let of = |bps| Expected {
        up: Some(Rate::from_bps(bps)),
        ..expected
    };
    assert!(of(1000).check().is_ok() && of(1_000_000_000_000).check().is_ok());
    let refused = of(999).check().unwrap_err();
    assert!(
        refused.starts_with("up: 999 bit/s is not from"),
        "{refused}"
    );
    assert!(of(u64::MAX).check().is_err());
}

#[test]
fn an_unknown_change_is_an_error() {
    assert!(serde_json::from_str::<AccessChange>("{\"bakup\": true}").is_err());
    let c: AccessChange = serde_json::from_str("{\"backup\": true}").unwrap();
    assert_eq!(
        c,
        AccessChange {
            backup: Some(true),
            ..AccessChange::default()
        }
    );
}
