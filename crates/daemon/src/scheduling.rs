//! Scheduling in force, in the words of a configuration: what acts, by the names that a user
//! knows, whether the kernel has it, eBPF brings it or Multipath QUIC does it.

use braid_api::config::WEIGHTED;
use braid_api::{SchedulerChange, Scheduling};
use braid_core::sched::WrrMode;
use braid_mptcp::offer;

/// Returns that of the kernel's MPTCP, which schedules by `now`. `weights` tells that weights are
/// the congestion control (pacing rates by eBPF), `asked` is the one of the configuration, and
/// `default` what the kernel calls the one of new sockets.
pub(super) fn of_kernel(
    now: SchedulerChange,
    weights: bool,
    asked: Option<&str>,
    default: &str,
) -> Scheduling {
    // Kernels from before 6.8 name none.
    let name = now.name.unwrap_or_else(|| "default".to_owned());
    let control = asked.or_else(|| offer::configured_name(default));
    Scheduling {
        wrr_mode: now.wrr_mode.filter(|_| has_mode(&name)),
        weights_act: weights || name == WEIGHTED,
        congestion_control: control.filter(|_| !weights).map(str::to_owned),
        name,
    }
}

/// Returns that of Multipath QUIC.
pub(super) fn of_quic(name: &str, mode: WrrMode, congestion_control: &str) -> Scheduling {
    Scheduling {
        name: name.to_owned(),
        wrr_mode: has_mode(name).then_some(mode),
        weights_act: name == WEIGHTED,
        congestion_control: Some(congestion_control.to_owned()),
    }
}

/// Whether round robin's treatment of full windows means something for the scheduler.
fn has_mode(scheduler: &str) -> bool {
    offer::SCHEDULERS.contains(&scheduler)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(name: Option<&str>, wrr_mode: Option<WrrMode>) -> SchedulerChange {
        SchedulerChange {
            name: name.map(str::to_owned),
            wrr_mode,
            ..SchedulerChange::default()
        }
    }

    #[test]
    fn weights_by_ebpf_are_told_as_they_were_asked_for() {
        let wrr = now(Some("wrr"), Some(WrrMode::Strict));
        let s = of_kernel(wrr, true, Some("lia"), "wrr_752f_0");
        assert_eq!((&*s.name, s.wrr_mode), ("wrr", Some(WrrMode::Strict)));
        assert!(s.weights_act);
        assert_eq!(s.congestion_control, None);
    }

    #[test]
    fn without_them_weights_do_not_act_and_the_control_has_its_own_name() {
        let of = |asked, default| of_kernel(now(Some("default"), None), false, asked, default);
        let s = of(None, "cubic");
        assert_eq!((&*s.name, s.weights_act), ("default", false));
        assert_eq!(s.congestion_control.as_deref(), Some("cubic"));
        let lia = of(Some("lia"), "lia_752f_0");
        assert_eq!(lia.congestion_control.as_deref(), Some("lia"));
        // What another daemon of the namespace has registered.
        let others = of(None, "olia_1_0");
        assert_eq!(others.congestion_control.as_deref(), Some("olia"));
        assert_eq!(of(None, "wrr_1_0").congestion_control, None);
        assert_eq!(of_kernel(now(None, None), false, None, "").name, "default");
    }

    #[test]
    fn braids_kernel_and_multipath_quic_have_weights_under_one_scheduler() {
        for (name, act, mode) in [
            ("wrr", true, true),
            ("rr", false, true),
            ("minrtt", false, false),
        ] {
            let kernel = now(Some(name), Some(WrrMode::WorkConserving));
            for s in [
                of_kernel(kernel.clone(), false, None, "cubic"),
                of_quic(name, WrrMode::WorkConserving, "cubic"),
            ] {
                let told = (s.weights_act, s.wrr_mode.is_some());
                assert_eq!(told, (act, mode), "{name}");
            }
        }
    }
}
