//! Contact with the proxy, at the device: what keeps every access from reaching it stands in the
//! status, and is logged once.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use braid_api::Role;

use super::DaemonError;
use super::config::machine::addresses_of_accesses;
use super::daemon::Daemon;
use super::proxies::words;
use super::state::lock;

/// Between two looks. What two of them find in a row is logged.
const EVERY: Duration = Duration::from_secs(2);

/// Loss of contact with the proxy as an engine finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    /// Port of the proxy that does not answer, with a word for it.
    pub(crate) port: (&'static str, u16),
    /// Time for which nothing has come back.
    pub(crate) lasts: Duration,
    /// Whether the proxy's host says that nobody listens there.
    pub(crate) refused: bool,
}

/// Obstacle between every access and the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trouble {
    /// No access has an address of its family.
    Family(IpAddr),
    Lost(Vec<IpAddr>, Lost),
}

impl Trouble {
    /// Whether it is the same obstacle, however long it lasts.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Family(a), Self::Family(b)) => a == b,
            (Self::Lost(a, one), Self::Lost(b, other)) => {
                (a, one.port, one.refused) == (b, other.port, other.refused)
            }
            _ => false,
        }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Family(proxy) => {
                let (has, lack) = match proxy.is_ipv4() {
                    true => ("IPv4", "IPv6"),
                    false => ("IPv6", "IPv4"),
                };
                write!(
                    f,
                    "no access reaches the proxy {proxy}: it is {has}, and no access has an {has} \
                     address: give one of them such an address, or the proxy's {lack} address as \
                     `proxy`"
                )
            }
            Self::Lost(proxy, lost) => {
                let (proxy, (what, port)) = (words(proxy), lost.port);
                match lost.refused {
                    true => write!(
                        f,
                        "the proxy {proxy} refuses (its host says that nobody listens at its {what} \
                         {port}): is braid proxy running there, with the same port?"
                    ),
                    false => write!(
                        f,
                        "the proxy {proxy} does not answer on any access (nothing came back from \
                         its {what} {port} for {} s): is braid proxy running there, and does its \
                         firewall let udp/{port} in?",
                        lost.lasts.as_secs()
                    ),
                }
            }
        }
    }
}

/// Returns the address of the proxy whose family none of the addresses has, where no other address
/// of the proxy is of their family. Accesses without any address lack more than a family.
fn of_other_family(proxy: &[IpAddr], addresses: &[IpAddr]) -> Option<IpAddr> {
    let fits = |p: &IpAddr| addresses.iter().any(|a| a.is_ipv4() == p.is_ipv4());
    let none = !addresses.is_empty() && !proxy.iter().any(fits);
    proxy.first().copied().filter(|_| none)
}

/// State of the contact.
#[derive(Debug, Default)]
pub(crate) struct Contact(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    trouble: Option<Trouble>,
    logged: bool,
}

impl Contact {
    /// Returns what keeps every access from reaching the proxy, in a sentence.
    pub(crate) fn trouble(&self) -> Option<String> {
        lock(&self.0).trouble.as_ref().map(ToString::to_string)
    }

    /// Takes what a look has found; returns the line to log, if it is time for it.
    fn look(&self, trouble: Option<Trouble>) -> Option<String> {
        let mut state = lock(&self.0);
        let lasts = state.trouble.as_ref().zip(trouble.as_ref());
        let lasts = lasts.is_some_and(|(before, now)| before.is_like(now));
        let news = lasts && !state.logged;
        state.logged = lasts;
        state.trouble = trouble;
        let told = state.trouble.as_ref().filter(|_| news);
        told.map(ToString::to_string)
    }
}

/// Looks whether the proxy is reached, for ever.
pub(crate) async fn follow(daemon: Arc<Daemon>) -> DaemonError {
    if daemon.shared().role == Role::Proxy {
        return std::future::pending().await;
    }
    let mut every = tokio::time::interval(EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let trouble = look(&daemon).await;
        if let Some(line) = daemon.shared().contact.look(trouble) {
            tracing::warn!("{line}");
        }
    }
}

async fn look(daemon: &Daemon) -> Option<Trouble> {
    let config = daemon.config();
    if let Some(proxy) = of_other_family(&config.proxy, &addresses_of_accesses(&config)) {
        return Some(Trouble::Family(proxy));
    }
    for engine in daemon.engines() {
        if let Some(lost) = engine.lost_contact().await {
            return Some(Trouble::Lost(config.proxy, lost));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn lost(seconds: u64) -> Trouble {
        let lost = Lost {
            port: ("probe port", 7724),
            lasts: Duration::from_secs(seconds),
            refused: false,
        };
        Trouble::Lost(vec![a("203.0.113.7")], lost)
    }

    #[test]
    fn what_lasts_is_logged_once_and_stands_in_the_status() {
        let c = Contact::default();
        assert_eq!((c.look(None), c.trouble()), (None, None));
        assert_eq!(c.look(Some(lost(10))), None);
        let line = c.look(Some(lost(12))).unwrap();
        assert_eq!(
            line,
            "the proxy 203.0.113.7 does not answer on any access (nothing came back from its probe \
             port 7724 for 12 s): is braid proxy running there, and does its firewall let udp/7724 \
             in?"
        );
        assert_eq!(c.look(Some(lost(14))), None);
        assert!(c.trouble().unwrap().contains("for 14 s"));
        // It may be another obstacle by now, and the same one later.
        assert_eq!(c.look(Some(Trouble::Family(a("::1")))), None);
        assert!(
            c.look(Some(Trouble::Family(a("::1"))))
                .unwrap()
                .contains("IPv6")
        );
        assert_eq!((c.look(None), c.trouble()), (None, None));
        assert_eq!(c.look(Some(lost(10))), None);
        assert!(c.look(Some(lost(12))).is_some());
    }

    #[test]
    fn a_family_is_missed_where_the_accesses_have_the_other_alone() {
        let (four, six) = (a("203.0.113.7"), a("2001:db8::7"));
        let (mine4, mine6) = (a("10.64.0.2"), a("2001:db8:1::2"));
        assert_eq!(of_other_family(&[six], &[mine4]), Some(six));
        assert_eq!(of_other_family(&[six], &[mine4, mine6]), None);
        assert_eq!(of_other_family(&[six, four], &[mine4]), None);
        assert_eq!(of_other_family(&[four], &[mine6]), Some(four));
        assert_eq!(of_other_family(&[six], &[]), None);
        assert_eq!(of_other_family(&[], &[mine4]), None);
    }
}
