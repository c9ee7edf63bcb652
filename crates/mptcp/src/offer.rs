//! Packet schedulers and congestion controls that an end of this machine can have: the kernel's
//! own, and those that Braid brings as eBPF programs.

use std::fmt;

use braid_api::diagnostic::nearest;

use crate::support::Support;

/// Packet schedulers that pacing rates by eBPF stand in for (`bpf::Wrr`).
pub const SCHEDULERS: [&str; 2] = ["rr", "wrr"];
/// Congestion controls that Braid has as eBPF programs (`bpf::CongestionControl`).
pub const CONGESTION_CONTROLS: [&str; 5] = ["lia", "olia", "balia", "wvegas", "swing"];
/// Packet schedulers of Braid's own kernel (`kernel/mptcp`), which runs in the virtual clock.
pub const BRAIDS_KERNEL: [&str; 8] = [
    "minrtt",
    "rr",
    "wrr",
    "redundant",
    ACTIVE_STANDBY,
    "priority-based",
    "blest",
    "ecf",
];
/// Packet scheduler by which accesses of lower priority wait until no other works. On a kernel
/// without it the path manager does so, by MP_PRIO.
pub const ACTIVE_STANDBY: &str = "active-standby";
/// Packet schedulers that can be had on a stock kernel: its own, and those that Braid brings.
pub const ON_STOCK_KERNELS: [&str; 4] = ["default", SCHEDULERS[0], SCHEDULERS[1], ACTIVE_STANDBY];
/// Congestion controls of mainline kernels (`net/ipv4/tcp_NAME.c`), which a kernel may lack.
const MAINLINE: [&str; 17] = [
    "bbr",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

/// Returns the packet schedulers that Multipath TCP has on some kernel, or by Braid: those of a
/// stock kernel first.
pub fn schedulers() -> impl Iterator<Item = &'static str> {
    let patched = BRAIDS_KERNEL.into_iter();
    let patched = patched.filter(|s| !ON_STOCK_KERNELS.contains(s));
    ON_STOCK_KERNELS.into_iter().chain(patched)
}

/// Returns the name of a congestion control in a configuration. One that a process of Braid's
/// has registered is `PREFIX_PID`, with more behind it, in the kernel; weights are none (`None`).
pub fn configured_name(in_kernel: &str) -> Option<&str> {
    match in_kernel.split_once('_') {
        Some(("wrr", _)) => None,
        Some((name, _)) if CONGESTION_CONTROLS.contains(&name) => Some(name),
        _ => Some(in_kernel),
    }
}

/// Whether a process of Braid's has registered the congestion control `in_kernel`.
pub fn is_registered(in_kernel: &str) -> bool {
    configured_name(in_kernel) != Some(in_kernel)
}

/// Names that can be had here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Names that the kernel lists, without those that processes of Braid's have registered.
    pub kernel: Vec<String>,
    /// Names beyond these that Braid brings.
    pub by_ebpf: Vec<&'static str>,
}

impl Offer {
    /// Returns the packet schedulers; `ebpf` tells whether Braid's programs can be loaded.
    pub fn schedulers(support: &Support, ebpf: bool) -> Self {
        // Before Linux 6.8 nothing lists the one and only.
        let kernel = match &support.schedulers[..] {
            [] => vec!["default".to_owned()],
            all => all.to_vec(),
        };
        Self::of(kernel, &SCHEDULERS, ebpf)
    }

    /// Returns the congestion controls; `ebpf` tells whether Braid's programs can be loaded.
    pub fn congestion_controls(support: &Support, ebpf: bool) -> Self {
        let all = support.congestion_controls.iter();
        let kernel = all.filter(|c| !is_registered(c)).cloned().collect();
        Self::of(kernel, &CONGESTION_CONTROLS, ebpf)
    }

    fn of(kernel: Vec<String>, ours: &[&'static str], ebpf: bool) -> Self {
        let mut by_ebpf: Vec<&'static str> = if ebpf { ours.to_vec() } else { vec![] };
        by_ebpf.retain(|o| !kernel.iter().any(|k| k == o));
        Self { kernel, by_ebpf }
    }

    /// Whether `name` is among them.
    pub fn has(&self, name: &str) -> bool {
        self.kernel.iter().any(|k| k == name) || self.by_ebpf.contains(&name)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let kernel = self.kernel.iter().map(String::as_str);
        kernel.chain(self.by_ebpf.iter().copied())
    }

    /// Returns the name that was meant by the packet scheduler `given`, of these and of those
    /// that Braid's kernel has.
    pub fn nearest_scheduler(&self, given: &str) -> Option<String> {
        nearest(given, self.names().chain(BRAIDS_KERNEL)).map(str::to_owned)
    }

    /// Returns the name that was meant by the congestion control `given`.
    pub fn nearest_congestion_control(&self, given: &str) -> Option<String> {
        let known = self.names().chain(CONGESTION_CONTROLS).chain(MAINLINE);
        nearest(given, known).map(str::to_owned)
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kernel.join(", "))?;
        match &self.by_ebpf[..] {
            [] => Ok(()),
            ours => write!(f, ", and by eBPF {}", ours.join(", ")),
        }
    }
}

/// Whether some kernel, or Braid, has a congestion control called `name`, though this machine
/// may lack it.
pub fn is_known_congestion_control(name: &str) -> bool {
    MAINLINE.contains(&name) || CONGESTION_CONTROLS.contains(&name)
}

/// Whether Braid's programs can be loaded here, as far as rights and the kernel's release tell.
pub fn ebpf() -> bool {
    #[cfg(feature = "bpf")]
    return crate::bpf::require().is_ok();
    #[cfg(not(feature = "bpf"))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn support(schedulers: &[&str], controls: &[&str]) -> Support {
        let owned = |all: &[&str]| all.iter().map(|s| (*s).to_owned()).collect();
        Support {
            kernel: "6.12.0".into(),
            compiled: true,
            enabled: true,
            path_managers: vec!["kernel".into()],
            schedulers: owned(schedulers),
            scheduler: Some("default".into()),
            congestion_controls: owned(controls),
            default_congestion_control: "cubic".into(),
        }
    }

    #[test]
    fn what_ebpf_brings_comes_after_what_the_kernel_has() {
        let of = |kernel: &[&str], ebpf| Offer::schedulers(&support(kernel, &[]), ebpf);
        assert_eq!(of(&[], false).to_string(), "default");
        let stock = of(&["default"], true);
        assert_eq!(stock.to_string(), "default, and by eBPF rr, wrr");
        assert!(stock.has("wrr") && !stock.has("blest"));
        // Braid's own kernel needs none.
        let own = of(&["default", "rr", "wrr"], true);
        assert_eq!(own.to_string(), "default, rr, wrr");
    }

    #[test]
    fn names_of_other_processes_are_not_offered() {
        let controls = ["reno", "cubic", "wrr_752f_0", "lia_1f3", "bbr_custom"];
        let offer = Offer::congestion_controls(&support(&[], &controls), true);
        let shown = "reno, cubic, bbr_custom, and by eBPF lia, olia, balia, wvegas, swing";
        assert_eq!(offer.to_string(), shown);
        assert_eq!(configured_name("lia_1f3_0"), Some("lia"));
        assert_eq!(configured_name("wrr_752f_0"), None);
        assert_eq!(configured_name("cubic"), Some("cubic"));
        assert!(is_registered("olia_9_a") && !is_registered("bbr_custom"));
    }

    #[test]
    fn a_name_that_is_mistyped_is_guessed() {
        let s = Offer::schedulers(&support(&["default"], &[]), true);
        assert_eq!(s.nearest_scheduler("wr").as_deref(), Some("wrr"));
        assert_eq!(s.nearest_scheduler("blesst").as_deref(), Some("blest"));
        assert_eq!(s.nearest_scheduler("fifo"), None);
        let c = Offer::congestion_controls(&support(&[], &["cubic"]), false);
        let guess = |name| c.nearest_congestion_control(name);
        assert_eq!(guess("cubik").as_deref(), Some("cubic"));
        assert_eq!(guess("ballia").as_deref(), Some("balia"));
        assert!(is_known_congestion_control("vegas") && !is_known_congestion_control("foo"));
    }

    #[test]
    fn whatever_can_be_had_is_a_scheduler_of_some_kernel() {
        let known = |name: &&str| schedulers().any(|s| s == *name);
        assert!(ON_STOCK_KERNELS.iter().all(known) && SCHEDULERS.iter().all(known));
        assert!(known(&"blest") && !ON_STOCK_KERNELS.contains(&"blest"));
        let all: std::collections::BTreeSet<_> = schedulers().collect();
        assert_eq!(all.len(), schedulers().count(), "each once");
    }

    #[cfg(feature = "bpf")]
    #[test]
    fn those_by_ebpf_are_the_ones_that_are_built_in() {
        let built = crate::bpf::CongestionControl::ALL.map(|c| c.name());
        assert_eq!(built, CONGESTION_CONTROLS);
    }

    proptest! {
        #[test]
        fn a_name_of_ours_is_never_shown(n in 0usize..5, pid: u32, number in 0u8..16) {
            let name = format!("{}_{pid:x}_{number:x}", CONGESTION_CONTROLS[n]);
            prop_assert_eq!(configured_name(&name), Some(CONGESTION_CONTROLS[n]));
        }
    }
}
