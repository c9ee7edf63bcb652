//! The interfaces that traffic leaves by: those of default routes, proc_net(5).

use std::collections::BTreeSet;

/// From `/proc/net/route` and `/proc/net/ipv6_route`.
pub(super) fn defaults(v4: &str, v6: &str) -> BTreeSet<String> {
    let v4 = v4.lines().skip(1).filter_map(default4);
    let v6 = v6.lines().filter_map(default6);
    v4.chain(v6)
        .filter(|name| *name != "lo")
        .map(str::to_owned)
        .collect()
}

/// Interface, destination, gateway, flags, three counters, mask.
fn default4(line: &str) -> Option<&str> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let is = |i: usize| fields.get(i).is_some_and(|f| *f == "00000000");
    fields.first().copied().filter(|_| is(1) && is(7))
}

/// Destination, its prefix, seven more, interface.
fn default6(line: &str) -> Option<&str> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let any = fields.first()?.bytes().all(|b| b == b'0') && *fields.get(1)? == "00";
    fields.get(9).copied().filter(|_| any)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn default_routes_name_their_interfaces() {
        let v4 = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\n\
            eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
            docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
            tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0\n";
        let v6 = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
            fe800000000000000000000000000001 00000400 00000001 00000000 00000003    wwan0\n\
            00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
            00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n\
            fe800000000000000000000000000000 40 00000000000000000000000000000000 00 \
            00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth1\n";
        let found: Vec<String> = defaults(v4, v6).into_iter().collect();
        assert_eq!(found, ["eth0", "wwan0"]);
        assert!(defaults("", "").is_empty());
    }

    proptest! {
        #[test]
        fn garbage_does_not_panic(a in "\\PC*", b in "[0 a-z\n]*") {
            let _ = defaults(&a, &b);
        }
    }
}
