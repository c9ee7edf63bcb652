//! Additions of eBPF to a stock kernel: weighted round robin ([`braid_mptcp::bpf::Wrr`]),
//! congestion controls ([`braid_mptcp::bpf::NamespaceDefault`]) and short queues
//! ([`braid_mptcp::bpf::bound_queues`]).

#[cfg(feature = "bpf")]
pub(crate) use braid_mptcp::bpf::{
    CongestionControl, NOTE_MAX, NamespaceDefault, Pins, ShortQueues, Wrr, bound_queues, notes,
    orphans,
};
#[cfg(not(feature = "bpf"))]
pub(crate) use without::{
    CongestionControl, NOTE_MAX, NamespaceDefault, Pins, ShortQueues, Wrr, bound_queues, notes,
    orphans,
};

/// Without eBPF there is nothing of it.
#[cfg(not(feature = "bpf"))]
mod without {
    use std::collections::BTreeMap;
    use std::path::Path;

    use braid_mptcp::weights::Rule;
    use braid_mptcp::{Error, Result};

    pub(crate) const NOTE_MAX: usize = 0;

    pub(crate) enum ShortQueues {}

    pub(crate) fn bound_queues() -> Result<ShortQueues> {
        Err(lacking())
    }

    #[derive(Debug)]
    pub(crate) enum Pins {}

    impl Pins {
        pub(crate) fn left(_: &str) -> Result<Option<Self>> {
            Ok(None)
        }

        pub(crate) fn make(_: &str) -> Result<Self> {
            Err(lacking())
        }

        pub(crate) fn directory(&self) -> &Path {
            match *self {}
        }
    }

    pub(crate) fn orphans() -> Result<Vec<Orphan>> {
        Ok(vec![])
    }

    pub(crate) enum Orphan {}

    impl Orphan {
        pub(crate) fn directory(&self) -> &Path {
            match *self {}
        }

        pub(crate) fn remove(&self) -> Result<()> {
            match *self {}
        }
    }

    pub(crate) fn notes(pins: &Pins) -> Vec<Vec<u8>> {
        match *pins {}
    }

    #[derive(Clone, Copy)]
    pub(crate) enum CongestionControl {}

    impl CongestionControl {
        pub(crate) fn beside_kernels(_: &str) -> Option<Self> {
            None
        }

        pub(crate) fn name(self) -> &'static str {
            match self {}
        }
    }

    pub(crate) enum NamespaceDefault {}

    impl NamespaceDefault {
        pub(crate) fn register(of: CongestionControl, _: &str, _: &str) -> Result<Self> {
            match of {}
        }

        pub(crate) fn adopt(of: CongestionControl, _: Pins) -> Result<Self> {
            match of {}
        }

        pub(crate) fn pin(&mut self, _: Pins) -> Result<()> {
            match *self {}
        }

        pub(crate) fn is_pinned(&self) -> bool {
            match *self {}
        }

        pub(crate) fn unpin(&mut self) {
            match *self {}
        }

        pub(crate) fn name(&self) -> &str {
            match *self {}
        }
    }

    #[derive(Debug)]
    pub(crate) enum Wrr {}

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
        pub(crate) fn register(_: &str, _: &str) -> Result<Self> {
            Err(lacking())
        }

        pub(crate) fn adopt(pins: Pins) -> Result<(Self, Vec<u8>)> {
            match pins {}
        }

        pub(crate) fn pin(&mut self, _: Pins, _: &[u8]) -> Result<()> {
            match *self {}
        }

        pub(crate) fn is_pinned(&self) -> bool {
            match *self {}
        }

        pub(crate) fn set_note(&mut self, _: &[u8]) -> Result<()> {
            match *self {}
        }

        pub(crate) fn name(&self) -> &str {
            match *self {}
        }

        pub(crate) fn is_strict(&self) -> bool {
            match *self {}
        }

        pub(crate) fn set_strict(&mut self, _: bool) -> Result<()> {
            match *self {}
        }

        pub(crate) fn set_weights(
            &mut self,
            _: &[Rule],
            _: &BTreeMap<u32, Vec<Rule>>,
        ) -> Result<()> {
            match *self {}
        }
    }
}
