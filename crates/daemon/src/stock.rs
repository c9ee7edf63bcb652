//! Additions of eBPF to a stock kernel: weighted round robin ([`braid_mptcp::bpf::Wrr`]), coupled
//! congestion control ([`braid_mptcp::bpf::CoupledDefault`]) and short queues
//! ([`braid_mptcp::bpf::bound_queues`]).

#[cfg(feature = "bpf")]
pub(super) use braid_mptcp::bpf::{
    Coupled, CoupledDefault, NOTE_MAX, Pins, ShortQueues, Wrr, bound_queues, notes, orphans,
};
#[cfg(not(feature = "bpf"))]
pub(super) use without::{
    Coupled, CoupledDefault, NOTE_MAX, Pins, ShortQueues, Wrr, bound_queues, notes, orphans,
};

/// Without eBPF there is nothing of it.
#[cfg(not(feature = "bpf"))]
mod without {
    use std::collections::BTreeMap;
    use std::path::Path;

    use braid_mptcp::weights::Rule;
    use braid_mptcp::{Error, Result};

    pub(in super::super) const NOTE_MAX: usize = 0;

    pub(in super::super) enum ShortQueues {}

    pub(in super::super) fn bound_queues() -> Result<ShortQueues> {
        Err(lacking())
    }

    #[derive(Debug)]
    pub(in super::super) enum Pins {}

    impl Pins {
        pub(in super::super) fn left(_: &str) -> Result<Option<Self>> {
            Ok(None)
        }

        pub(in super::super) fn make(_: &str) -> Result<Self> {
            Err(lacking())
        }

        pub(in super::super) fn directory(&self) -> &Path {
            match *self {}
        }
    }

    pub(in super::super) fn orphans() -> Result<Vec<Orphan>> {
        Ok(vec![])
    }

    pub(in super::super) enum Orphan {}

    impl Orphan {
        pub(in super::super) fn directory(&self) -> &Path {
            match *self {}
        }

        pub(in super::super) fn remove(&self) -> Result<()> {
            match *self {}
        }
    }

    pub(in super::super) fn notes(pins: &Pins) -> Vec<Vec<u8>> {
        match *pins {}
    }

    #[derive(Clone, Copy)]
    pub(in super::super) enum Coupled {}

    impl Coupled {
        pub(in super::super) fn beside_kernels(_: &str) -> Option<Self> {
            None
        }
    }

    pub(in super::super) enum CoupledDefault {}

    impl CoupledDefault {
        pub(in super::super) fn register(of: Coupled, _: &str, _: &str) -> Result<Self> {
            match of {}
        }

        pub(in super::super) fn adopt(of: Coupled, _: Pins) -> Result<Self> {
            match of {}
        }

        pub(in super::super) fn pin(&mut self, _: Pins) -> Result<()> {
            match *self {}
        }

        pub(in super::super) fn is_pinned(&self) -> bool {
            match *self {}
        }

        pub(in super::super) fn unpin(&mut self) {
            match *self {}
        }

        pub(in super::super) fn name(&self) -> &str {
            match *self {}
        }
    }

    #[derive(Debug)]
    pub(in super::super) enum Wrr {}

    fn lacking() -> Error {
        Error::Lacking {
            what:
                "this braid was built without eBPF, by which a stock kernel has weights and short \
                   queues"
                    .into(),
            remedy: "build it with the feature bpf".into(),
        }
    }

    impl Wrr {
        pub(in super::super) fn register(_: &str, _: &str) -> Result<Self> {
            Err(lacking())
        }

        pub(in super::super) fn adopt(pins: Pins) -> Result<(Self, Vec<u8>)> {
            match pins {}
        }

        pub(in super::super) fn pin(&mut self, _: Pins, _: &[u8]) -> Result<()> {
            match *self {}
        }

        pub(in super::super) fn is_pinned(&self) -> bool {
            match *self {}
        }

        pub(in super::super) fn set_note(&mut self, _: &[u8]) -> Result<()> {
            match *self {}
        }

        pub(in super::super) fn name(&self) -> &str {
            match *self {}
        }

        pub(in super::super) fn is_strict(&self) -> bool {
            match *self {}
        }

        pub(in super::super) fn set_strict(&mut self, _: bool) -> Result<()> {
            match *self {}
        }

        pub(in super::super) fn set_weights(
            &mut self,
            _: &[Rule],
            _: &BTreeMap<u32, Vec<Rule>>,
        ) -> Result<()> {
            match *self {}
        }
    }
}
