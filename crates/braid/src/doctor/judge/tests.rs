use braid_mptcp::support::Support;

use super::*;
use crate::doctor::facts::{Arp, Managers, Orphans};

/// A machine that has everything.
fn all() -> Facts {
    Facts {
        support: Support {
            kernel: "6.12.48+deb13-amd64".into(),
            compiled: true,
            enabled: true,
            path_managers: vec!["kernel".into(), "userspace".into()],
            schedulers: vec!["default".into()],
            scheduler: Some("default".into()),
            congestion_controls: vec!["reno".into(), "cubic".into()],
            default_congestion_control: "cubic".into(),
        },
        btf: true,
        capabilities: u64::MAX,
        struct_ops: Trial::Works,
        queues: Trial::Works,
        sockops: Trial::Works,
        fmod_ret: Trial::Works,
        bpffs: true,
        orphans: Orphans::Known(vec![]),
        cgroup: Trial::Works,
        tun: Trial::Works,
        user_namespaces: UserNamespaces::Allowed,
        interfaces: vec![],
        arp: vec![],
        receive: None,
        send: None,
        stale_loss_cnt: Some(4),
        rto_max_ms: None,
        retries2: None,
        managers: Managers {
            network_manager: Some(false),
            networkd: Some(false),
        },
        daemon: Daemon::Serves(2, vec![]),
    }
}

/// The rows of `facts` that are not as they should be.
fn flaws(facts: &Facts) -> Vec<Row> {
    let rows = judge(facts).into_iter();
    rows.filter(|r| r.verdict != Verdict::Ok).collect()
}

#[test]
fn a_machine_with_everything_has_no_flaws() {
    assert_eq!(flaws(&all()), []);
    assert!(can_work(&all()));
}

#[test]
fn what_braid_brings_is_listed_where_its_programs_load() {
    let found = |f: &Facts, what: &str| {
        let rows = judge(f);
        let row = rows.iter().find(|r| r.what == what).unwrap();
        row.found.clone()
    };
    let mut f = all();
    f.support.congestion_controls.push("wrr_752f_0".into());
    assert_eq!(
        found(&f, "packet schedulers"),
        "default, and by eBPF rr, wrr"
    );
    let controls = "reno, cubic, and by eBPF lia, olia, balia, wvegas, swing";
    assert_eq!(found(&f, "congestion controls"), controls);
    f.struct_ops = Trial::fails("no", None);
    assert_eq!(found(&f, "packet schedulers"), "default");
    assert_eq!(found(&f, "congestion controls"), "reno, cubic");
}

#[test]
fn several_interfaces_are_to_answer_for_themselves() {
    let arp = |interface: &str, ignore, announce| Arp {
        interface: interface.into(),
        ignore,
        announce,
        source_check: 0,
    };
    let mut f = all();
    f.arp = vec![arp("wlan0", 0, 0)];
    assert_eq!(flaws(&f), []);
    f.arp = vec![arp("wlan0", 1, 2), arp("lifi0", 0, 2)];
    let all = flaws(&f);
    assert_eq!(all.len(), 1);
    assert!(all[0].found.starts_with("lifi0 answer"), "{all:?}");
    f.arp[1].ignore = 1;
    assert_eq!(flaws(&f), []);
}

#[test]
fn strict_checks_of_sources_are_told_where_there_are_several_interfaces() {
    let interface = |interface: &str, source_check| Arp {
        interface: interface.into(),
        ignore: 1,
        announce: 2,
        source_check,
    };
    let mut f = all();
    f.arp = vec![interface("wlan0", 1)];
    assert_eq!(flaws(&f), []);
    f.arp = vec![
        interface("wlan0", 1),
        interface("lifi0", 2),
        interface("wwan0", 1),
    ];
    let all = flaws(&f);
    assert_eq!(all.len(), 1);
    assert!(
        all[0].found.starts_with("wlan0, wwan0 take only"),
        "{all:?}"
    );
    let remedy = "sysctl -w net.ipv4.conf.wlan0.rp_filter=2 net.ipv4.conf.wwan0.rp_filter=2";
    assert_eq!(all[0].remedy, remedy);
    f.arp.retain(|a| a.interface == "lifi0");
    f.arp.push(interface("eth0", 0));
    assert_eq!(flaws(&f), []);
}

#[test]
fn what_the_daemon_notes_on_accesses_is_told() {
    let mut f = all();
    let note = (
        "wifi".to_owned(),
        "packets of more than 1400 bytes do not pass".to_owned(),
    );
    f.daemon = Daemon::Serves(2, vec![note]);
    let all = flaws(&f);
    assert_eq!((all.len(), &*all[0].what), (1, "access wifi"));
    assert!(all[0].found.contains("1400"), "{all:?}");
}

#[test]
fn without_mptcp_braid_cannot_work() {
    let mut f = all();
    f.support.compiled = false;
    assert!(!can_work(&f));
    let flaws = flaws(&f);
    assert_eq!((flaws.len(), flaws[0].verdict), (1, Verdict::Missing));
}

#[test]
fn what_braid_up_switches_on_is_not_missing() {
    let mut f = all();
    f.support.enabled = false;
    assert!(can_work(&f));
    let flaws = flaws(&f);
    assert_eq!((flaws.len(), flaws[0].verdict), (1, Verdict::Weak));
    assert!(flaws[0].found.contains("off here; braid up switches it on"));
    assert!(flaws[0].remedy.ends_with("sysctl -w net.mptcp.enabled=1"));
}

#[test]
fn pins_that_nobody_can_go_on_with_are_told_one_by_one() {
    let one = |k: u8| (format!("/run/braid-bpf/up-{k}"), format!("umount {k}"));
    let mut f = all();
    f.orphans = Orphans::Known([1, 2].map(one).into());
    let told = flaws(&f);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told[1]
            .found
            .starts_with("/run/braid-bpf/up-2, whose network namespace is gone")
    );
    assert_eq!(
        (&*told[1].remedy, told[1].verdict),
        ("umount 2", Verdict::Weak)
    );
    f.orphans = Orphans::Unknown("no right".into());
    let told = flaws(&f);
    assert_eq!((told.len(), &*told[0].found), (1, "no right"));
    assert!(!told[0].costs.is_empty() && !told[0].remedy.is_empty());
}

#[test]
fn without_ebpf_it_works_without_weights_and_says_so() {
    let lacks = Trial::fails("no right", Some("run it as root: sudo braid ..."));
    let f = Facts {
        capabilities: 0,
        btf: false,
        struct_ops: lacks.clone(),
        queues: lacks.clone(),
        sockops: lacks.clone(),
        fmod_ret: lacks,
        ..all()
    };
    assert!(can_work(&f));
    let flaws = flaws(&f);
    assert_eq!(flaws.len(), 7, "{flaws:?}");
    assert!(flaws.iter().any(|r| r.costs.contains("without weights")));
    for row in flaws {
        assert!(!row.costs.is_empty() && !row.remedy.is_empty(), "{row:?}");
    }
}

#[test]
fn who_undoes_what_the_daemon_sets_is_told() {
    let mut f = all();
    f.managers = Managers::default();
    assert_eq!(flaws(&f), [], "neither runs");
    f.managers.network_manager = Some(true);
    f.managers.networkd = Some(true);
    let told = flaws(&f);
    let names: Vec<_> = told.iter().map(|r| (&*r.what, r.verdict)).collect();
    let weak = ["NetworkManager", "systemd-networkd"].map(|n| (n, Verdict::Weak));
    assert_eq!(names, weak);
}

#[test]
fn one_missing_right_is_named() {
    // All but CAP_BPF, then CAP_SYS_ADMIN, which has it within.
    let without = !(1 << 39 | 1 << 21);
    let f = Facts {
        capabilities: without,
        ..all()
    };
    let flaws_of = flaws(&f);
    assert_eq!(flaws_of.len(), 1);
    assert_eq!(flaws_of[0].found, "this process lacks CAP_BPF");
    let f = Facts {
        capabilities: without | 1 << 21,
        ..all()
    };
    assert_eq!(flaws(&f), []);
}

#[test]
fn old_kernels_and_absent_daemons_are_told() {
    let mut f = all();
    f.support.kernel = "6.1.0-48-amd64".into();
    f.daemon = Daemon::NotRunning;
    f.user_namespaces = UserNamespaces::SwitchedOff("a switch is off", "sysctl -w a.switch=1");
    let all = flaws(&f);
    let rows: Vec<_> = all.iter().map(|r| (&*r.what, r.verdict)).collect();
    assert_eq!(
        rows,
        [
            ("kernel", Verdict::Weak),
            ("user namespaces", Verdict::Missing),
            ("daemon", Verdict::Missing)
        ]
    );
}
