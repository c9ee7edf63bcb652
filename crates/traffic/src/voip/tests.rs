use proptest::prelude::*;

use super::*;

fn ms(v: u64) -> Option<Duration> {
    Some(Duration::from_millis(v))
}

fn call(codec: VoiceCodec) -> Voip {
    Voip {
        codec,
        jitter_buffer_ms: 60,
    }
}

#[test]
fn a_call_without_harm_is_as_good_as_its_codec() {
    let delays = vec![ms(10); 1000];
    let v = call(VoiceCodec::G711).judge(&delays);
    assert_eq!((v.unplayed, v.late), (0, 0));
    // 10 ms on the way, 60 ms in the buffer, 20 ms of speech.
    assert!((v.mouth_to_ear_ms - 90.0).abs() < 1e-9, "{v:?}");
    assert!(v.mos > 4.3 && v.mos == v.worst_mos, "{v:?}");
    let g729 = call(VoiceCodec::G729).judge(&delays);
    assert!(g729.mos > 4.0 && g729.mos < 4.2, "{g729:?}");
}

#[test]
fn what_comes_after_its_turn_is_not_played() {
    let mut delays = vec![ms(10); 1000];
    delays[7] = ms(70);
    delays[8] = ms(71);
    delays[9] = None;
    let v = call(VoiceCodec::G711).judge(&delays);
    assert_eq!((v.unplayed, v.late), (2, 1));
}

#[test]
fn the_worst_stretch_is_where_the_losses_are() {
    let mut delays = vec![ms(10); 1500];
    // Stretches of 400 packets; the last has the 300 that are left over, too.
    for d in &mut delays[1300..1400] {
        *d = None;
    }
    let v = call(VoiceCodec::G711Plc).judge(&delays);
    let of = |loss| emodel::mos(emodel::rating(90.0, VoiceCodec::G711Plc.equipment(), loss));
    assert_eq!(v.unplayed, 100);
    assert!((v.mos - of(100.0 / 1500.0)).abs() < 1e-9, "{v:?}");
    assert!((v.worst_mos - of(100.0 / 700.0)).abs() < 1e-9, "{v:?}");
}

#[test]
fn a_call_of_which_nothing_comes_is_bad() {
    let v = call(VoiceCodec::G711Plc).judge(&[None; 100]);
    assert_eq!((v.unplayed, v.late), (100, 0));
    assert!(v.mos < 1.5, "{v:?}");
}

#[test]
fn packets_are_those_of_the_codec() {
    let of = |codec| (call(codec).packet_bytes(), call(codec).rate().as_mbps());
    assert_eq!(of(VoiceCodec::G711), (172, 0.0688));
    assert_eq!(of(VoiceCodec::G729), (32, 0.0128));
    for codec in VoiceCodec::ALL {
        let text = serde_json::to_string(&codec).unwrap();
        assert_eq!(text, format!("\"{}\"", codec.as_str()));
    }
}

proptest! {
    #[test]
    fn stretches_have_every_packet_once(n in 1usize..3000) {
        let delays: Vec<_> = (0..n as u64).map(ms).collect();
        let all: Vec<_> = stretches(&delays).flatten().copied().collect();
        prop_assert_eq!(&all, &delays);
        let lengths: Vec<usize> = stretches(&delays).map(<[_]>::len).collect();
        prop_assert!(lengths.iter().all(|l| *l >= STRETCH.min(n) && *l < 2 * STRETCH));
    }

    #[test]
    fn no_stretch_is_better_than_said(
        lost in proptest::collection::vec(any::<bool>(), 1..2000),
    ) {
        let delays: Vec<_> = lost.iter().map(|l| if *l { None } else { ms(20) }).collect();
        let v = call(VoiceCodec::G711Plc).judge(&delays);
        prop_assert_eq!(v.unplayed, lost.iter().filter(|l| **l).count() as u64);
        prop_assert!(v.worst_mos <= v.mos && v.worst_mos >= 1.0);
    }
}
