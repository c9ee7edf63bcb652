//! Rows of other network managers: `docs/daemon.md`, Beside NetworkManager and systemd-networkd.

use super::{Row, Verdict, lacks, ok};
use crate::doctor::facts::Managers;

/// NetworkManager's row and systemd-networkd's, where they run.
pub(super) fn rows(m: &Managers) -> [Option<Row>; 2] {
    [
        m.network_manager.map(network_manager),
        m.networkd.map(networkd),
    ]
}

fn network_manager(sets_endpoints: bool) -> Row {
    const WHAT: &str = "NetworkManager";
    match sets_endpoints {
        false => ok(WHAT, "leaves MPTCP endpoints to others"),
        true => lacks(
            WHAT,
            Verdict::Weak,
            "sets MPTCP endpoints as well",
            "when an address comes or goes, accesses that wait lose their subflows for a moment",
            "printf '[connection-braid]\\nconnection.mptcp-flags=1\\n' > /etc/NetworkManager/conf.d/braid.conf && systemctl restart NetworkManager",
        ),
    }
}

fn networkd(removes_others: bool) -> Row {
    const WHAT: &str = "systemd-networkd";
    match removes_others {
        false => ok(WHAT, "leaves rules and routes of others alone"),
        true => lacks(
            WHAT,
            Verdict::Weak,
            "removes rules and routes that are not in its files",
            "when it sets an interface up anew, packets of others leave by a wrong one until braid up has put these back",
            "mkdir -p /etc/systemd/networkd.conf.d && printf '[Network]\\nManageForeignRoutingPolicyRules=no\\nManageForeignRoutes=no\\n' > /etc/systemd/networkd.conf.d/braid.conf && systemctl restart systemd-networkd",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::managers::{removes_others, sets_endpoints};

    #[test]
    fn what_is_advised_is_what_is_looked_for() {
        let advised = |row: Row| {
            let text = row.remedy.split('\'').nth(1).unwrap();
            [text.replace("\\n", "\n")]
        };
        assert!(!sets_endpoints(&advised(network_manager(true))));
        assert!(!removes_others(&advised(networkd(true))));
    }
}
