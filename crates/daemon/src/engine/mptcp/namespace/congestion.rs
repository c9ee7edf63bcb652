//! The default congestion control of the namespace: weights where they are pacing rates,
//! or what was asked for.

use braid_api::config::{MPTCP_CC, NAMESPACES_CC};
use braid_mptcp::{offer, support};

use super::congestion_control::{self, Congestion};
use super::{Namespace, programs};
use crate::DaemonError;
use crate::config::Config;
use crate::ebpf::{CongestionControl, NamespaceDefault, Pins, Wrr};
use crate::takeover::pins::{self, DEFAULT};

/// Congestion control of connections that begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted<'a> {
    /// Named by the configuration.
    Asked(&'a str),
    /// Default of Braid: the configuration names none.
    Usual(&'static str),
    /// Left to the namespace.
    Namespaces,
}

impl<'a> Wanted<'a> {
    /// Returns what `config` wants, where this machine can have it.
    pub(crate) fn of(config: &'a Config) -> Self {
        match config.cc.as_deref() {
            Some(NAMESPACES_CC) => Self::Namespaces,
            Some(name) => Self::Asked(name),
            // A kernel that has it itself would give it to plain TCP as well.
            None if offer::ebpf() && CongestionControl::beside_kernels(MPTCP_CC).is_some() => {
                Self::Usual(MPTCP_CC)
            }
            None => Self::Namespaces,
        }
    }

    /// Returns its name; `None`: the namespace's.
    pub(crate) fn name(self) -> Option<&'a str> {
        match self {
            Self::Asked(name) | Self::Usual(name) => Some(name),
            Self::Namespaces => None,
        }
    }
}

impl Namespace {
    /// Makes weighted round robin by pacing rates the congestion control of new sockets: that
    /// which is there, or `loaded`.
    pub(crate) fn stand_in(
        &mut self,
        scheduler: &str,
        loaded: &mut Option<Wrr>,
    ) -> Result<(), DaemonError> {
        let rr = scheduler == "rr";
        if self.wrr.is_some() && self.rr != rr {
            self.rr = rr;
            self.remember(self.kept.clone())?;
        }
        self.rr = rr;
        if self.wrr.is_none() {
            let mut wrr = loaded.take().ok_or_else(programs::not_loaded)?;
            if self.pin {
                self.pin_down(&mut wrr);
            }
            self.set_sysctl(DEFAULT, wrr.name())?;
            self.wrr = Some(wrr);
        }
        Ok(())
    }

    /// Works without, too.
    fn pin_down(&mut self, wrr: &mut Wrr) {
        let note = self.written().unwrap_or_default();
        let pinned = Pins::make(pins::owner(self.role)).and_then(|pins| wrr.pin(pins, &note));
        if let Err(e) = pinned {
            self.note(format!("the weights end with this process: {e}"));
        }
    }

    /// Pins it, to outlive this process, where it was asked for; nothing is left of what nobody has
    /// asked for. Works without, too.
    fn pin_asked(&mut self, wanted: Wanted<'_>) {
        let Some((name, cc)) = &mut self.cc else {
            return;
        };
        if !self.pin || !matches!(wanted, Wanted::Asked(_)) {
            return cc.unpin();
        }
        if let Err(e) = cc.pin(self.role) {
            let why = format!("the congestion control {name} ends with this process: {e}");
            self.note(why);
        }
    }

    /// Removes weighted round robin by pacing rates as the congestion control of new sockets.
    pub(crate) fn stand_down(&mut self) -> Result<(), DaemonError> {
        match self.wrr.take() {
            Some(_) => self.put_congestion(),
            None => Ok(()),
        }
    }

    /// Sets the congestion control of connections that begin afterwards. `loaded` is it where it
    /// was missing.
    pub(crate) fn set_congestion_control(
        &mut self,
        wanted: Wanted<'_>,
        loaded: Option<NamespaceDefault>,
    ) -> Result<(), DaemonError> {
        let name = wanted.name();
        // What a killed end left serves once, or goes.
        let left = self
            .left
            .take()
            .map(|pins| congestion_control::adopt(name, pins));
        if let Some(Err(why)) = &left {
            self.give_default_back();
            if let Some(why) = why {
                self.note_unused(why);
            }
        }
        if self.cc.as_ref().map(|(asked, _)| asked.as_str()) == name {
            self.pin_asked(wanted);
            self.tell_of_weights(wanted);
            return Ok(());
        }
        let new = match (name, left, loaded) {
            (Some(_), Some(Ok(left)), _) => Some(left),
            (Some(_), _, Some(loaded)) => Some(Congestion::Ours(loaded)),
            // At the start alone one of Braid's is loaded here, where a killed end's is no use:
            // nobody is answered yet.
            (Some(name), ..) => Some(congestion_control::find(name, &self.default_before())?),
            (None, ..) => None,
        };
        let new = name.map(str::to_owned).zip(new);
        let mut before = std::mem::replace(&mut self.cc, new);
        if let Some((_, before)) = &mut before {
            before.unpin();
        }
        self.pin_asked(wanted);
        self.tell_of_weights(wanted);
        if self.wrr.is_none() {
            self.put_congestion()?;
        }
        // Not before the namespace has another.
        drop(before);
        Ok(())
    }

    fn tell_of_weights(&mut self, wanted: Wanted<'_>) {
        if let (Wanted::Asked(name), Some(_)) = (wanted, &self.wrr) {
            self.note(format!(
                "on this kernel weights take the place of the congestion control {name}"
            ));
        }
    }

    /// One of ours was taken away, and is not to stay the default.
    pub(crate) fn give_default_back(&mut self) {
        if self.wrr.is_some() {
            return;
        }
        if let Err(e) = pins::restore(self.before.of(DEFAULT), true) {
            self.note(e.to_string());
        }
    }

    /// Returns the congestion control that the namespace had before this end, and that plain TCP
    /// keeps.
    pub(crate) fn default_before(&self) -> String {
        let before = self.before.of(DEFAULT).map(str::to_owned);
        before.unwrap_or_else(pins::default_of_the_kernel)
    }

    fn put_congestion(&mut self) -> Result<(), DaemonError> {
        if let Some((_, cc)) = &self.cc {
            let name = cc.name().to_owned();
            return self.set_sysctl(DEFAULT, &name);
        }
        if let Some(before) = self.before.of(DEFAULT) {
            support::set_sysctl(DEFAULT, before)?;
        }
        Ok(())
    }
}
