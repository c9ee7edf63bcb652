//! Choice of the address range that a topology takes, given what the host routes.
//!
//! The namespaces are isolated, so an overlap breaks nothing inside. But a
//! user's command in a lab would reach the lab where it meant the host's
//! network: a range that the user chose must be free, the default one moves.

use ipnet::IpNet;

use super::addressing::{Family, default_prefixes, overlap};
use crate::error::LabError;

/// The range to use, and a note for the user if it is not the usual one.
///
/// # Errors
/// [`LabError::BadInput`] when the wanted range, or every default one, is busy.
pub(super) fn choose_prefix(
    wanted: Option<IpNet>,
    family: Family,
    routes: &[(IpNet, String)],
) -> Result<(IpNet, Option<String>), LabError> {
    let busy = |net: &IpNet| routes.iter().find(|(route, _)| overlap(net, route));
    let defaults = default_prefixes(family);
    let free = defaults.iter().copied().find(|net| busy(net).is_none());
    if let Some(net) = wanted {
        if Family::of(net.addr()) != family {
            let (other, like) = match family {
                Family::Ipv4 => ("IPv4", "10.77.0.0/16"),
                Family::Ipv6 => ("IPv6", "fd77::/48"),
            };
            return Err(LabError::BadInput(format!(
                "{net} is no {other} range: choose one like {like}"
            )));
        }
        return match busy(&net) {
            None => Ok((net, None)),
            Some((route, interface)) => {
                let hint = free.map_or_else(|| "another range".into(), |net| net.to_string());
                Err(LabError::BadInput(format!(
                    "address range {net} is busy: this host routes {route} by {interface}; use {hint}"
                )))
            }
        };
    }
    let usual = defaults[0];
    match (busy(&usual), free) {
        (None, _) => Ok((usual, None)),
        (Some((route, interface)), Some(net)) => {
            let note = format!(
                "this host routes {route} by {interface}: addresses are from {net} instead of {usual}"
            );
            Ok((net, Some(note)))
        }
        (Some((route, interface)), None) => Err(LabError::BadInput(format!(
            "every default address range is busy ({usual}: this host routes {route} by {interface}): name a free one"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routes(list: &[(&str, &str)]) -> Vec<(IpNet, String)> {
        list.iter()
            .map(|(net, name)| (net.parse().unwrap(), (*name).into()))
            .collect()
    }

    fn choose(
        wanted: Option<&str>,
        list: &[(&str, &str)],
    ) -> Result<(String, Option<String>), String> {
        choose_prefix(
            wanted.map(|w| w.parse().unwrap()),
            Family::Ipv4,
            &routes(list),
        )
        .map(|(net, note)| (net.to_string(), note))
        .map_err(|e| {
            assert_eq!(e.exit_code(), 2);
            e.to_string()
        })
    }

    #[test]
    fn the_usual_range_is_taken_when_it_is_free() {
        let list = [
            ("192.168.1.0/24", "wlan0"),
            ("127.0.0.0/8", "lo"),
            ("fd77::/32", "tun0"),
        ];
        assert_eq!(choose(None, &list), Ok(("10.77.0.0/16".into(), None)));
    }

    #[test]
    fn the_usual_range_moves_to_the_next_free_one() {
        let (net, note) =
            choose(None, &[("10.77.3.0/24", "eth0"), ("10.78.1.1/32", "eth1")]).unwrap();
        assert_eq!(net, "10.79.0.0/16");
        let note = note.unwrap();
        assert!(
            note.contains("10.77.3.0/24 by eth0") && note.contains("instead of 10.77.0.0/16"),
            "{note}"
        );
        assert_eq!(
            choose(None, &[("10.0.0.0/8", "vpn0")]).unwrap().0,
            "172.16.0.0/16"
        );
    }

    #[test]
    fn a_chosen_range_that_is_busy_is_an_error_with_a_free_one() {
        let list = [("10.0.0.0/8", "vpn0")];
        let error = choose(Some("10.9.0.0/16"), &list).unwrap_err();
        assert_eq!(
            error,
            "address range 10.9.0.0/16 is busy: this host routes 10.0.0.0/8 by vpn0; use 172.16.0.0/16"
        );
        assert_eq!(
            choose(Some("172.20.0.0/16"), &list),
            Ok(("172.20.0.0/16".into(), None))
        );
        // The route inside the range, not only around it.
        assert!(
            choose(Some("172.20.0.0/16"), &[("172.20.9.0/24", "br0")])
                .unwrap_err()
                .contains("172.20.9.0/24 by br0")
        );
    }

    #[test]
    fn a_range_of_the_other_family_is_refused() {
        assert!(
            choose(Some("fd00::/48"), &[])
                .unwrap_err()
                .contains("no IPv4 range")
        );
    }

    #[test]
    fn when_nothing_is_free_the_user_must_choose() {
        let list = [
            ("10.0.0.0/8", "a"),
            ("172.16.0.0/12", "b"),
            ("192.168.0.0/16", "c"),
            ("198.18.0.0/15", "d"),
        ];
        assert!(choose(None, &list).unwrap_err().contains("name a free one"));
        assert_eq!(
            choose(Some("100.64.0.0/16"), &list).unwrap().0,
            "100.64.0.0/16"
        );
    }
}
