//! Makes each interface that serves an access answer ARP for its own addresses alone, and send
//! requests by them. By default Linux answers on every interface for all addresses of the host:
//! where two interfaces are in one LAN, a router sends what is for both to the one that answered
//! first. IPv6 has no such default (a neighbour solicitation is answered by the interface that
//! has the target, RFC 4861 7.2.3).
//!
//! A socket that is bound to a device needs no route of its source address: there the strict
//! check of source addresses (`rp_filter`, RFC 3704 2.2) would drop what arrives on all
//! interfaces but one, and is made loose (2.3).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use futures_util::TryStreamExt;
use rtnetlink::Handle;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use serde::{Deserialize, Serialize};

use crate::takeover::state_file::KeptFile;

/// A setting of an interface below `/proc/sys/net/ipv4/conf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Setting {
    /// Addresses that the interface answers for.
    ArpIgnore,
    /// By which address it asks.
    ArpAnnounce,
    /// Where packets may come from.
    RpFilter,
}

impl Setting {
    fn name(self) -> &'static str {
        match self {
            Self::ArpIgnore => "arp_ignore",
            Self::ArpAnnounce => "arp_announce",
            Self::RpFilter => "rp_filter",
        }
    }

    /// Returns the value to be set where the larger one of `all` and the interface, which is
    /// the one in force, is this; `None` where it does.
    fn wanted(self, in_force: u32) -> Option<u32> {
        match (self, in_force) {
            (Self::ArpIgnore, 0) => Some(1),
            (Self::ArpAnnounce, 0 | 1) => Some(2),
            (Self::RpFilter, 1) => Some(2),
            _ => None,
        }
    }
}

/// A setting that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Changed {
    interface: String,
    setting: Setting,
    /// Its value before.
    was: u32,
    /// The one that was set.
    set: u32,
}

/// Settings of interfaces that have been changed. They are given back when this is dropped.
#[derive(Debug)]
pub(super) struct Arp {
    file: KeptFile,
    changed: Vec<Changed>,
    settings: &'static [Setting],
    /// `/proc/sys/net/ipv4/conf`, unless a test has another.
    conf: PathBuf,
}

impl Arp {
    /// For sockets whose packets are routed by source address; what a killed daemon has changed
    /// counts.
    pub(super) fn routed(control: &Path) -> Self {
        Self::beside(control, &[Setting::ArpIgnore, Setting::ArpAnnounce])
    }

    /// For sockets that are bound to devices.
    pub(super) fn bound(control: &Path) -> Self {
        const ALL: &[Setting] = &[Setting::ArpIgnore, Setting::ArpAnnounce, Setting::RpFilter];
        Self::beside(control, ALL)
    }

    fn beside(control: &Path, settings: &'static [Setting]) -> Self {
        const ABOUT: &str = "how interfaces answered ARP before";
        let file = KeptFile::beside(control, ".interfaces", ABOUT);
        let mut changed: Vec<Changed> = file.read().unwrap_or_default();
        // Nothing leads out of the folder of settings.
        changed.retain(|c| is_name(&c.interface));
        Self {
            file,
            changed,
            settings,
            conf: PathBuf::from("/proc/sys/net/ipv4/conf"),
        }
    }

    /// Sets up these interfaces, if they are several, and gives others back their old settings.
    /// Returns those that were set just now.
    pub(super) fn serve(&mut self, interfaces: &BTreeSet<String>) -> BTreeSet<String> {
        let none = BTreeSet::new();
        let wanted = match interfaces.len() {
            0 | 1 => &none,
            _ => interfaces,
        };
        let (stay, go): (Vec<_>, Vec<_>) = std::mem::take(&mut self.changed)
            .into_iter()
            .partition(|c| wanted.contains(&c.interface));
        go.iter().for_each(|c| self.give_back(c));
        self.changed = stay;
        let mut new = BTreeSet::new();
        let mut keep = !go.is_empty();
        for interface in wanted.iter().filter(|i| is_name(i)) {
            for &setting in self.settings {
                let Some(change) = self.change(interface, setting) else {
                    continue;
                };
                let known = |c: &&mut Changed| (&c.interface, c.setting) == (interface, setting);
                match self.changed.iter_mut().find(known) {
                    // An interface that came anew, or somebody else's change.
                    Some(c) => c.set = change.set,
                    None => self.changed.push(change.clone()),
                }
                // Before it is set, so that a killed daemon's is never lost.
                self.file.write(&self.changed);
                keep = false;
                if self.write(&change.interface, setting, change.set) {
                    new.insert(interface.clone());
                }
            }
        }
        if keep {
            self.file.write(&self.changed);
        }
        new
    }

    /// Returns the change that is needed, if one is.
    fn change(&self, interface: &str, setting: Setting) -> Option<Changed> {
        let was = self.read(interface, setting)?;
        let all = self.read("all", setting).unwrap_or(0);
        Some(Changed {
            interface: interface.to_owned(),
            setting,
            was,
            set: setting.wanted(was.max(all))?,
        })
    }

    /// Where somebody else has set it to another value meanwhile, it stays.
    fn give_back(&self, c: &Changed) {
        if self.read(&c.interface, c.setting) == Some(c.set) {
            self.write(&c.interface, c.setting, c.was);
        }
    }

    fn path(&self, interface: &str, setting: Setting) -> PathBuf {
        self.conf.join(interface).join(setting.name())
    }

    fn read(&self, interface: &str, setting: Setting) -> Option<u32> {
        let text = fs::read_to_string(self.path(interface, setting)).ok()?;
        text.trim().parse().ok()
    }

    /// Says so where it may not be set: the access works, unless another is in its LAN.
    fn write(&self, interface: &str, setting: Setting, value: u32) -> bool {
        let path = self.path(interface, setting);
        match fs::write(&path, value.to_string()) {
            Ok(()) => true,
            // The interface has just gone.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => false,
            Err(e) => {
                tracing::warn!(
                    "set {} to {value}: {e}: where two interfaces are in one LAN, all may \
                     arrive on one of them",
                    path.display()
                );
                false
            }
        }
    }
}

impl Drop for Arp {
    fn drop(&mut self) {
        for c in self.changed.iter().rev() {
            self.give_back(c);
        }
    }
}

/// Whether it names one interface.
fn is_name(interface: &str) -> bool {
    let special = ["", ".", "..", "all", "default"];
    !special.contains(&interface) && !interface.contains('/')
}

/// Asks the IPv4 neighbours of these interfaces again: the question tells them which of our
/// addresses is on which interface (RFC 826), and they forget what they were told before.
///
/// # Errors
/// The kernel cannot list its neighbours.
pub(super) async fn ask_neighbours(
    handle: &Handle,
    interfaces: &BTreeSet<u32>,
) -> Result<(), rtnetlink::Error> {
    let all = handle
        .neighbours()
        .get()
        .set_address_family(AddressFamily::Inet);
    let all: Vec<NeighbourMessage> = all.execute().try_collect().await?;
    for n in all
        .iter()
        .filter(|n| interfaces.contains(&n.header.ifindex))
    {
        if let Some((address, mac)) = neighbour(n) {
            let again = handle.neighbours().add(n.header.ifindex, address);
            let again = again.link_layer_address(&mac).state(NeighbourState::Probe);
            // One that has just gone is asked by whoever needs it next.
            let _ = again.replace().execute().await;
        }
    }
    Ok(())
}

/// A neighbour that was asked, not one that somebody has set.
fn neighbour(n: &NeighbourMessage) -> Option<(std::net::IpAddr, Vec<u8>)> {
    let asked = [
        NeighbourState::Reachable,
        NeighbourState::Stale,
        NeighbourState::Delay,
    ];
    if n.header.family != AddressFamily::Inet || !asked.contains(&n.header.state) {
        return None;
    }
    let (mut address, mut mac) = (None, None);
    for a in &n.attributes {
        match a {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(a)) => address = Some(*a),
            NeighbourAttribute::LinkLayerAddress(m) => mac = Some(m.clone()),
            _ => {}
        }
    }
    Some((address?.into(), mac?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of settings as the kernel's: of `all` and two interfaces.
    fn conf(at: &Path, all: [u32; 3], each: [u32; 3]) -> PathBuf {
        let conf = at.join("conf");
        for (name, values) in [("all", all), ("w0", each), ("l.0", each)] {
            fs::create_dir_all(conf.join(name)).unwrap();
            for (s, v) in ["arp_ignore", "arp_announce", "rp_filter"]
                .iter()
                .zip(values)
            {
                fs::write(conf.join(name).join(s), format!("{v}\n")).unwrap();
            }
        }
        conf
    }

    fn values(conf: &Path, interface: &str) -> [u32; 3] {
        ["arp_ignore", "arp_announce", "rp_filter"].map(|s| {
            let text = fs::read_to_string(conf.join(interface).join(s)).unwrap();
            text.trim().parse().unwrap()
        })
    }

    fn names(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(|n| (*n).to_owned()).collect()
    }

    fn bound(control: &Path, conf: &Path) -> Arp {
        let mut arp = Arp::bound(control);
        conf.clone_into(&mut arp.conf);
        arp
    }

    #[test]
    fn several_interfaces_are_set_and_given_back_also_after_a_kill() {
        let t = tempfile::tempdir().unwrap();
        let conf = conf(t.path(), [0, 0, 1], [0, 1, 0]);
        let control = t.path().join("c.sock");
        let mut arp = bound(&control, &conf);
        assert!(arp.serve(&names(&["w0"])).is_empty());
        assert_eq!(values(&conf, "w0"), [0, 1, 0], "one alone needs nothing");
        assert_eq!(arp.serve(&names(&["w0", "l.0"])), names(&["l.0", "w0"]));
        assert_eq!(values(&conf, "w0"), [1, 2, 2]);
        assert!(arp.serve(&names(&["w0", "l.0"])).is_empty());
        // Killed: nothing is dropped.
        std::mem::forget(arp);
        let mut next = bound(&control, &conf);
        next.serve(&names(&["w0", "l.0"]));
        assert_eq!(values(&conf, "l.0"), [1, 2, 2]);
        // Somebody else's value stays.
        fs::write(conf.join("w0/arp_ignore"), "2").unwrap();
        drop(next);
        assert_eq!(
            (values(&conf, "w0"), values(&conf, "l.0")),
            ([2, 1, 0], [0, 1, 0])
        );
        assert!(!t.path().join("c.sock.interfaces").exists());
    }

    #[test]
    fn one_that_serves_no_more_is_given_back_at_once() {
        let t = tempfile::tempdir().unwrap();
        let conf = conf(t.path(), [0; 3], [0; 3]);
        let mut arp = bound(&t.path().join("c.sock"), &conf);
        arp.serve(&names(&["w0", "l.0"]));
        assert_eq!(values(&conf, "w0"), [1, 2, 0]);
        arp.serve(&names(&["l.0"]));
        assert_eq!(
            (values(&conf, "w0"), values(&conf, "l.0")),
            ([0; 3], [0; 3])
        );
        // One that is not there is no error.
        arp.serve(&names(&["w0", "gone"]));
        assert_eq!(values(&conf, "w0"), [1, 2, 0]);
    }

    #[test]
    fn what_is_set_for_all_is_enough_and_names_lead_nowhere() {
        let t = tempfile::tempdir().unwrap();
        let conf = conf(t.path(), [1, 2, 2], [0; 3]);
        let control = t.path().join("c.sock");
        let mut arp = bound(&control, &conf);
        assert!(arp.serve(&names(&["w0", "l.0", "../w0", "all"])).is_empty());
        assert_eq!((values(&conf, "w0"), arp.changed.len()), ([0; 3], 0));
        arp.changed = vec![Changed {
            interface: "../../kernel".into(),
            setting: Setting::ArpIgnore,
            was: 1,
            set: 0,
        }];
        arp.file.write(&arp.changed);
        arp.changed.clear();
        std::mem::forget(arp);
        assert_eq!(bound(&control, &conf).changed, []);
    }
}
