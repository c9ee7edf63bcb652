//! Offloads, and the sizes and times that connections are bound to.

use braid_mptcp::buffers::{self, Sizes, TCP_WMEM};

use super::{Row, Verdict, lacks, ok};
use crate::doctor::facts::{Arp, Buffers, Facts, Interface};

pub(super) fn rows(f: &Facts) -> Vec<Row> {
    let mut rows: Vec<Row> = f.interfaces.iter().filter_map(offloads).collect();
    rows.extend(arp(&f.arp));
    rows.extend(source_check(&f.arp));
    rows.extend(f.receive.map(|(now, wanted)| receive(now, wanted)));
    rows.extend(f.send.map(send));
    rows.extend(f.stale_loss_cnt.map(stale));
    rows.extend(f.rto_max_ms.map(|ms| rto_max(ms, f.retries2.unwrap_or(15))));
    rows
}

/// `None` for an interface that does not tell.
fn offloads(i: &Interface) -> Option<Row> {
    let o = i.offloads?;
    let what = format!("offloads of {}", i.name);
    let all = [("gro", o.gro), ("gso", o.gso), ("tso", o.tso)];
    let names = |on: bool| -> Vec<&str> {
        all.iter()
            .filter(|(_, is)| *is == on)
            .map(|(n, _)| *n)
            .collect()
    };
    let off = names(false);
    if off.is_empty() {
        return Some(ok(&what, names(true).join(" ")));
    }
    let switches: Vec<String> = off.iter().map(|n| format!("{n} on")).collect();
    Some(lacks(
        &what,
        Verdict::Weak,
        format!("{}; {} off", names(true).join(" "), off.join(" "))
            .trim_start_matches("; ")
            .to_owned(),
        "more processor time for each packet",
        // tso cannot be had of every driver, and gso stands in for it.
        &format!("ethtool -K {} {}", i.name, switches.join(" ")),
    ))
}

/// `None` for a single interface, which answers for all of the host by right.
fn arp(all: &[Arp]) -> Option<Row> {
    const WHAT: &str = "ARP of several interfaces";
    if all.len() < 2 {
        return None;
    }
    let flaw = all.iter().filter(|a| a.ignore == 0 || a.announce < 2);
    let names: Vec<&str> = flaw.map(|a| a.interface.as_str()).collect();
    Some(match &names[..] {
        [] => ok(WHAT, "each answers for its own addresses"),
        some => lacks(
            WHAT,
            Verdict::Weak,
            format!("{} answer for others' addresses", some.join(", ")),
            "where two are in one LAN, all that is sent to both arrives on one of them; braid up \
             sets it for its accesses",
            "sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2",
        ),
    })
}

/// `None` for a single interface: what arrives there has no other to come by.
fn source_check(all: &[Arp]) -> Option<Row> {
    const WHAT: &str = "check of sources";
    if all.len() < 2 {
        return None;
    }
    let strict = all.iter().filter(|a| a.source_check == 1);
    let names: Vec<&str> = strict.map(|a| a.interface.as_str()).collect();
    let loose = names
        .iter()
        .map(|n| format!("net.ipv4.conf.{n}.rp_filter=2"));
    Some(match &names[..] {
        [] => ok(WHAT, "replies arrive by any interface"),
        some => lacks(
            WHAT,
            Verdict::Weak,
            format!("{} take only what the routes lead back", some.join(", ")),
            "replies to what a rule sends directly by an access that is not the default are dropped",
            &format!("sysctl -w {}", loose.collect::<Vec<_>>().join(" ")),
        ),
    })
}

/// `docs/mptcp.md`, Buffers.
const INITIAL_SEND: u64 = TCP_WMEM[1] as u64;
const MOST_SEND: u64 = TCP_WMEM[2] as u64;

fn set(name: &str, to: Sizes) -> String {
    format!("sysctl -w {name}=\"{}\"", buffers::write(to))
}

fn sizes(b: Buffers) -> String {
    format!(
        "{} kB at first, {} kB at most",
        b.initial >> 10,
        b.most >> 10
    )
}

fn receive(b: Buffers, wanted: Sizes) -> Row {
    let [_, initial, most] = wanted.map(u64::from);
    if b.initial >= initial && b.most >= most {
        return ok("receive buffers", sizes(b));
    }
    lacks(
        "receive buffers",
        Verdict::Weak,
        sizes(b),
        "a slow access holds up fast ones, and connections may stall after losses",
        &set(buffers::RECEIVE, wanted),
    )
}

fn send(b: Buffers) -> Row {
    if b.initial >= INITIAL_SEND && b.most <= MOST_SEND {
        return ok("send buffers", sizes(b));
    }
    lacks(
        "send buffers",
        Verdict::Weak,
        sizes(b),
        match b.initial < INITIAL_SEND {
            true => "connections start slowly on several accesses",
            false => "a sender may go beyond its peer's window, and stall",
        },
        &set(buffers::SEND, TCP_WMEM),
    )
}

fn stale(count: u32) -> Row {
    const WHAT: &str = "stale_loss_cnt";
    const REMEDY: &str = "sysctl -w net.mptcp.stale_loss_cnt=4";
    match count {
        0 => lacks(
            WHAT,
            Verdict::Weak,
            "0",
            "data on a path that fell silent is never sent on the others",
            REMEDY,
        ),
        1..=4 => ok(WHAT, count.to_string()),
        more => lacks(
            WHAT,
            Verdict::Weak,
            more.to_string(),
            &format!(
                "data on a path that fell silent waits for {:.1} s or more",
                0.2 * f64::from(more)
            ),
            REMEDY,
        ),
    }
}

/// RFC 1122 4.2.3.5: a connection is given up after 100 s at the earliest.
const PATIENCE_S: f64 = 100.0;

fn rto_max(ms: u64, retries: u32) -> Row {
    const WHAT: &str = "tcp_rto_max_ms";
    let seconds = gives_up_after(ms, retries);
    let found = format!("{ms}: TCP gives up after {seconds:.0} s of silence");
    match seconds < PATIENCE_S {
        true => lacks(
            WHAT,
            Verdict::Weak,
            found,
            "connections end in an outage of all accesses that is longer",
            "sysctl -w net.ipv4.tcp_rto_max_ms=120000 net.ipv4.tcp_retries2=15",
        ),
        false => ok(WHAT, found),
    }
}

/// Seconds until TCP has waited out `retries` retransmissions: the timeout doubles
/// from 200 ms to `ms` (`tcp_model_timeout` of the kernel).
fn gives_up_after(ms: u64, retries: u32) -> f64 {
    // The kernel takes no more, and a sum of them fits.
    let ms = ms.clamp(200, u64::from(u32::MAX));
    let (mut timeout, mut sum) = (200, 0u64);
    for _ in 0..=retries.min(255) {
        sum += timeout;
        timeout = (timeout * 2).min(ms);
    }
    sum as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_mptcp::buffers::TCP_RMEM;
    use proptest::prelude::*;

    const MB: u64 = 1 << 20;

    #[test]
    fn the_time_until_tcp_gives_up_is_the_kernels() {
        // ip-sysctl.rst: 15 retries are 924.6 seconds.
        assert_eq!(gives_up_after(120_000, 15), 924.6);
        // 0.2 + 0.4 + 0.8 and 13 times a second.
        assert_eq!(gives_up_after(1000, 15), 14.4);
        assert_eq!(rto_max(1000, 15).verdict, Verdict::Weak);
        assert_eq!(rto_max(120_000, 15).verdict, Verdict::Ok);
    }

    #[test]
    fn buffers_are_held_against_the_documentation() {
        let b = |initial, most| Buffers { initial, most };
        let receive = |b| receive(b, TCP_RMEM);
        assert_eq!(receive(b(64 * MB, 64 * MB)).verdict, Verdict::Ok);
        assert_eq!(receive(b(131_072, 64 * MB)).verdict, Verdict::Weak);
        assert_eq!(receive(b(4 * MB, 64 * MB)).verdict, Verdict::Weak);
        assert_eq!(send(b(4 * MB, 8 * MB)).verdict, Verdict::Ok);
        assert!(send(b(16_384, 4 * MB)).costs.contains("slowly"));
        assert!(send(b(4 * MB, 32 * MB)).costs.contains("beyond"));
        // The pages say the same, so that nobody has to choose whom to believe.
        let page = include_str!("../../../../../docs/mptcp.md");
        for b in [receive(b(0, 0)), send(b(0, 0))] {
            let sizes = b.remedy.strip_prefix("sysctl -w ").unwrap();
            assert!(page.contains(sizes), "docs/mptcp.md lacks {sizes}");
        }
    }

    #[test]
    fn offloads_that_are_off_are_named_with_their_switch() {
        let i = |offloads| Interface {
            name: "eth0".into(),
            offloads,
        };
        let all = crate::doctor::facts::Offloads {
            gro: true,
            gso: true,
            tso: true,
        };
        assert_eq!(offloads(&i(None)), None);
        assert_eq!(offloads(&i(Some(all))).unwrap().verdict, Verdict::Ok);
        let row = offloads(&i(Some(crate::doctor::facts::Offloads {
            gro: false,
            ..all
        })))
        .unwrap();
        assert_eq!(row.remedy, "ethtool -K eth0 gro on");
        assert_eq!(row.found, "gso tso; gro off");
    }

    proptest! {
        #[test]
        fn more_retries_are_never_a_shorter_wait(ms in any::<u64>(), n in any::<u32>()) {
            prop_assert!(gives_up_after(ms, n) <= gives_up_after(ms, n.saturating_add(1)));
        }

        #[test]
        fn every_flaw_has_a_price_and_a_remedy(
            initial in any::<u64>(), most in any::<u64>(), stale_count in any::<u32>(),
            ms in any::<u64>(), retries in any::<u32>(),
        ) {
            let b = Buffers { initial, most };
            for row in [receive(b, TCP_RMEM), send(b), stale(stale_count), rto_max(ms, retries)] {
                let flawless = row.verdict == Verdict::Ok;
                prop_assert_eq!(row.costs.is_empty(), flawless);
                prop_assert_eq!(row.remedy.is_empty(), flawless);
            }
        }
    }
}
