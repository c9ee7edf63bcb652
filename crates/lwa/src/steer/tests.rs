//! Each policy by its rule.

use proptest::prelude::*;

use super::*;

const DEMAND: Demand = Demand {
    packet_bytes: 1500,
    waiting_bytes: 1500,
};

fn view() -> LinkView {
    LinkView {
        usable: true,
        room: true,
        desired_bytes: u64::MAX / 2,
        ..LinkView::default()
    }
}

/// A link of which delivery told rate and delay.
fn known(mbps: f64, delay_ms: u64) -> LinkView {
    LinkView {
        delivery_rate: Some(Rate::from_mbps(mbps)),
        min_delay: Some(Duration::from_millis(delay_ms)),
        ..view()
    }
}

fn rtts(lte_ms: u64, wlan_ms: u64) -> [LinkView; 2] {
    [lte_ms, wlan_ms].map(|ms| LinkView {
        slrtt: Some(Duration::from_millis(ms)),
        ..view()
    })
}

/// Links of `n` packets, `L` or `W` each.
fn links(steering: &mut dyn Steering, views: &[LinkView; 2], n: usize) -> String {
    (0..n)
        .map(|_| match steering.choose(Time::ZERO, views, DEMAND) {
            Some(link) => {
                steering.sent(Time::ZERO, views, link);
                if link == Link::Lte { 'L' } else { 'W' }
            }
            None => '-',
        })
        .collect()
}

fn count(text: &str, letter: char) -> usize {
    text.chars().filter(|&c| c == letter).count()
}

#[test]
fn names_are_read_and_others_are_refused() {
    for entry in REGISTRY {
        let example = if entry.argument.is_empty() {
            ""
        } else {
            ":1:4"
        };
        parse(&format!("{}{example}", entry.name)).unwrap();
    }
    for bad in [
        "",
        "static",
        "static:1",
        "static:0:0",
        "static:-1:2",
        "rtt:3",
        "lte:1",
        "fast",
    ] {
        let error = parse(bad).unwrap_err().to_string();
        assert!(error.contains("static:LTE:WIFI, phy, rtt"), "{error}");
    }
}

#[test]
fn static_spreads_packets_in_its_ratio() {
    let mut s = parse("static:1:4").unwrap();
    let text = links(&mut *s, &[view(); 2], 500);
    assert_eq!(count(&text, 'L'), 100);
    assert!(!text.contains("LL") && !text.contains("WWWWW"), "{text}");
    let mut s = parse("static:1:0").unwrap();
    assert_eq!(count(&links(&mut *s, &[view(); 2], 50), 'L'), 50);
}

#[test]
fn phy_follows_the_rates() {
    let mut s = parse("phy").unwrap();
    let mut views = [view(); 2];
    assert_eq!(count(&links(&mut *s, &views, 100), 'L'), 50);
    views[0].phy_rate = Some(Rate::from_mbps(17.0));
    views[1].phy_rate = Some(Rate::from_mbps(51.0));
    assert_eq!(count(&links(&mut *s, &views, 400), 'L'), 100);
}

#[test]
fn rtt_shares_in_the_inverse_ratio_of_the_round_trips() {
    let mut s = parse("rtt").unwrap();
    assert_eq!(s.probe_interval(), Some(Duration::from_millis(3)));
    // LTE 20 ms, Wi-Fi 13 ms: 13 packets to 20 in a cycle of 33.
    let text = links(&mut *s, &rtts(20, 13), 330);
    assert_eq!(count(&text, 'L'), 130);
    assert!(!text.contains("LL") && !text.contains("WWWW"), "{text}");
    // The window varies: a new ratio holds from the next cycle on.
    let text = links(&mut *s, &rtts(10, 30), 40);
    assert_eq!(count(&text, 'L'), 30);
}

#[test]
fn the_authors_code_sends_bursts_wifi_first() {
    let mut s = parse("rtt-code").unwrap();
    assert_eq!(s.probe_interval(), Some(Duration::from_secs(1)));
    assert_eq!(links(&mut *s, &rtts(4, 2), 12), "WWWWLLWWWWLL");
}

#[test]
fn backlog_takes_the_earlier_delivery() {
    let s = parse("backlog").unwrap();
    let choose = |views: [LinkView; 2], waiting_bytes| {
        s.choose(
            Time::ZERO,
            &views,
            Demand {
                waiting_bytes,
                ..DEMAND
            },
        )
    };
    // Idle: the shorter delay.
    let (lte, wlan) = (known(17.0, 20), known(24.0, 13));
    assert_eq!(choose([lte, wlan], 1500), Some(Link::Wlan));
    // 60,000 bytes in flight take 20 ms at 24 Mbit/s and then some: LTE is earlier.
    let busy = LinkView {
        in_flight_bytes: 60_000,
        ..wlan
    };
    assert_eq!(choose([lte, busy], 1500), Some(Link::Lte));
    // Fast link at its limit, slow link far behind: worth it only for a long queue.
    let full = LinkView {
        in_flight_bytes: 130_000,
        ..known(100.0, 5)
    };
    let slow = known(1.0, 100);
    assert_eq!(choose([slow, full], 1500), None);
    assert_eq!(choose([slow, full], 2_000_000), Some(Link::Lte));
    // A link of unknown rate is tried, up to the floor.
    assert_eq!(choose([view(), wlan], 1500), Some(Link::Lte));
    let tried = LinkView {
        in_flight_bytes: 48_000,
        ..view()
    };
    assert_eq!(choose([tried, wlan], 1500), Some(Link::Wlan));
}

#[test]
fn switched_bearers_use_one_link_while_they_can() {
    let mut s = parse("wifi").unwrap();
    let mut views = [view(); 2];
    assert_eq!(links(&mut *s, &views, 3), "WWW");
    views[1].room = false;
    assert_eq!(links(&mut *s, &views, 1), "-");
    views[1].usable = false;
    assert_eq!(links(&mut *s, &views, 2), "LL");
}

proptest! {
    /// No policy names a link that takes nothing, and each names one where it alone can carry.
    #[test]
    fn only_links_that_take_packets_are_named(
        which in 0..REGISTRY.len(),
        flags in prop::array::uniform4(any::<bool>()),
        in_flight in prop::array::uniform2(0u64..200_000),
        rates in prop::array::uniform2(prop::option::of(0u64..100_000_000)),
        delays in prop::array::uniform2(prop::option::of(0u64..500)),
        desired in prop::array::uniform2(0u64..200_000),
        waiting in 1500u64..1_000_000,
        rounds in 1usize..20,
    ) {
        let entry = &REGISTRY[which];
        let example = if entry.argument.is_empty() { "" } else { ":2:3" };
        let mut s = parse(&format!("{}{example}", entry.name)).unwrap();
        let views = [0, 1].map(|i| LinkView {
            usable: flags[i],
            room: flags[2 + i],
            phy_rate: rates[i].map(Rate::from_bps),
            slrtt: delays[i].map(Duration::from_millis),
            delivery_rate: rates[i].map(Rate::from_bps),
            min_delay: delays[i].map(Duration::from_millis),
            report_interval: Duration::from_millis(waiting % 50),
            draining: flags[i] ^ flags[2 + i],
            in_flight_bytes: in_flight[i],
            desired_bytes: desired[i],
        });
        let demand = Demand { packet_bytes: 1500, waiting_bytes: waiting };
        for _ in 0..rounds {
            if let Some(link) = s.choose(Time::ZERO, &views, demand) {
                prop_assert!(takes(&views[link.index()], demand));
                s.sent(Time::ZERO, &views, link);
            }
        }
        for link in Link::ALL {
            let mut alone = views;
            alone[link.other().index()].usable = false;
            alone[link.index()] = LinkView { usable: true, room: true, in_flight_bytes: 0,
                desired_bytes: 10_000, ..alone[link.index()] };
            prop_assert_eq!(s.choose(Time::ZERO, &alone, demand), Some(link));
        }
    }
}
