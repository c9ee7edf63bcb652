//! Judgement of the facts: one row each, with what it costs and what enables it.

mod ebpf;
mod managers;
mod network;

use braid_mptcp::offer::Offer;
use serde::Serialize;

use super::facts::{Daemon, Facts, Trial, UserNamespaces};
use ebpf::{NET_ADMIN, rights};

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    /// As it should be.
    Ok,
    /// There, and not as it should be.
    Weak,
    /// Not there.
    Missing,
}

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    /// Subject of the row.
    pub(super) what: String,
    pub(super) verdict: Verdict,
    /// Finding.
    pub(super) found: String,
    /// Loss caused by the finding; empty where nothing is lost.
    pub(super) costs: String,
    /// The line that enables it; empty where nothing has to be done, or can be.
    pub(super) remedy: String,
}

fn ok(what: &str, found: impl Into<String>) -> Row {
    Row {
        what: what.into(),
        verdict: Verdict::Ok,
        found: found.into(),
        costs: String::new(),
        remedy: String::new(),
    }
}

fn lacks(what: &str, verdict: Verdict, found: impl Into<String>, costs: &str, remedy: &str) -> Row {
    Row {
        what: what.into(),
        verdict,
        found: found.into(),
        costs: costs.into(),
        remedy: remedy.into(),
    }
}

/// All rows, the most needed first.
pub(super) fn judge(f: &Facts) -> Vec<Row> {
    let mut rows = vec![kernel(&f.support.kernel)];
    rows.extend(mptcp(f));
    rows.push(rights(f.capabilities, "right to configure", &[NET_ADMIN]));
    rows.extend(ebpf::rows(f));
    rows.extend(network::rows(f));
    rows.extend(managers::rows(&f.managers).into_iter().flatten());
    rows.extend([
        tun(&f.tun),
        namespaces(f.user_namespaces),
        daemon(&f.daemon),
    ]);
    rows.extend(noted(&f.daemon));
    rows
}

/// Whether Braid can work with these: with or without weights. What `braid up` switches on is
/// not missing.
pub(super) fn can_work(f: &Facts) -> bool {
    f.support.compiled
}

const KERNEL: &str = "install a kernel of 6.6 or later, such as that of Debian 13";

fn kernel(release: &str) -> Row {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || numbers.next().and_then(|n| n.parse::<u32>().ok());
    let old = match (number(), number()) {
        (Some(major), Some(minor)) => (major, minor) < (6, 6),
        _ => false,
    };
    match old {
        true => lacks(
            "kernel",
            Verdict::Weak,
            release,
            "before 6.6: no MPTCP by cgroup; before 6.4: no weights, short queues and congestion controls of Braid's",
            KERNEL,
        ),
        false => ok("kernel", release),
    }
}

fn mptcp(f: &Facts) -> Vec<Row> {
    let s = &f.support;
    if !s.compiled {
        return vec![lacks(
            "MPTCP",
            Verdict::Missing,
            "not built into this kernel",
            "Braid cannot work: nothing is carried over several accesses",
            KERNEL,
        )];
    }
    let mut rows = vec![match s.enabled {
        true => ok("MPTCP", "built in, switched on"),
        false => lacks(
            "MPTCP",
            Verdict::Weak,
            "built in, off here; braid up switches it on",
            "connections that begin before that stay plain TCP",
            "braid up, or: sysctl -w net.mptcp.enabled=1",
        ),
    }];
    rows.push(match s.path_managers.iter().any(|p| p == "kernel") {
        true => ok("path manager", s.path_managers.join(", ")),
        false => lacks(
            "path manager",
            Verdict::Missing,
            s.path_managers.join(", "),
            "no further subflows are opened",
            KERNEL,
        ),
    });
    let ebpf = f.struct_ops == Trial::Works;
    let schedulers = Offer::schedulers(s, ebpf).to_string();
    let controls = Offer::congestion_controls(s, ebpf).to_string();
    rows.push(ok("packet schedulers", schedulers));
    rows.push(ok("congestion controls", controls));
    rows
}

fn trial(what: &str, trial: &Trial, found: &str, costs: &str) -> Row {
    match trial {
        Trial::Works => ok(what, found),
        Trial::Fails { what: why, remedy } => lacks(
            what,
            Verdict::Missing,
            why,
            costs,
            remedy.as_deref().unwrap_or_default(),
        ),
    }
}

fn tun(t: &Trial) -> Row {
    trial(
        "TUN",
        t,
        "/dev/net/tun can be used",
        "the lab joins namespaces by veth, which takes more processor time",
    )
}

fn namespaces(n: UserNamespaces) -> Row {
    const WHAT: &str = "user namespaces";
    let costs = "the lab runs for root alone";
    match n {
        UserNamespaces::Allowed => ok(WHAT, "can be made"),
        UserNamespaces::None => lacks(
            WHAT,
            Verdict::Missing,
            "none can be made",
            costs,
            "sysctl -w user.max_user_namespaces=10000",
        ),
        UserNamespaces::SwitchedOff(why, remedy) => {
            lacks(WHAT, Verdict::Missing, why, costs, remedy)
        }
    }
}

fn daemon(d: &Daemon) -> Row {
    const WHAT: &str = "daemon";
    match d {
        Daemon::Serves(n, _) => ok(WHAT, format!("runs, with {n} accesses")),
        Daemon::NotRunning => lacks(
            WHAT,
            Verdict::Missing,
            "does not run",
            "connections use one access only, and none that comes back",
            "systemctl start braid (a proxy: braid-proxy)",
        ),
        Daemon::Unknown(why) => lacks(
            WHAT,
            Verdict::Weak,
            why,
            "it cannot be asked",
            "run it as root: sudo braid doctor",
        ),
    }
}

/// Rows of the daemon's notes on its accesses, which say themselves what can be done.
fn noted(d: &Daemon) -> Vec<Row> {
    let Daemon::Serves(_, notes) = d else {
        return vec![];
    };
    let row = |(name, note): &(String, String)| {
        let what = format!("access {name}");
        lacks(&what, Verdict::Weak, note, "", "")
    };
    notes.iter().map(row).collect()
}

#[cfg(test)]
mod tests;
