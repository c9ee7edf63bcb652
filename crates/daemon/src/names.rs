//! Names of the proxies, which are resolved when the daemon starts and when it reads its file again.
//! Where nobody answers, as at boot before there is a way out, it is tried again later: the
//! daemon does its work without the proxy's addresses meanwhile, and ends for no name.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use braid_api::config::Host;
use futures_util::future::join_all;
use tokio::sync::Notify;

use super::DaemonError;
use super::daemon::Daemon;
use super::state::lock;

/// Pause after the first attempt that failed; it doubles with each.
const FIRST: Duration = Duration::from_secs(1);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(60);
/// Time in which a name has to be resolved.
const PATIENCE: Duration = Duration::from_secs(10);

/// State of the names of a daemon.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Told when there may be other names.
    pub(crate) changed: Notify,
    /// Why there is no address, in a sentence.
    trouble: Mutex<Option<String>>,
}

impl Names {
    /// Returns the note for the status, if there is something to note.
    pub(crate) fn note(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// Notes the outcome of an attempt; what is new is said.
    fn tell(&self, trouble: Option<String>) {
        let mut before = lock(&self.trouble);
        if let Some(e) = trouble.as_ref().filter(|e| Some(*e) != before.as_ref()) {
            tracing::warn!("{e}");
        }
        *before = trouble;
    }
}

/// Pauses between attempts.
#[derive(Clone, Copy, Debug, Default)]
struct Backoff(u32);

impl Backoff {
    /// Returns how long to wait before the next attempt: 1, 2, 4 ... 60 s.
    fn pause(&mut self) -> Duration {
        let pause = FIRST * 2u32.saturating_pow(self.0.min(16));
        self.0 += 1;
        pause.min(LONGEST)
    }
}

/// Returns addresses of the hosts in their order: of each family the first.
///
/// # Errors
/// No host has an address: the first reason, and what is done about it.
async fn resolve<F, R>(hosts: &[Host], lookup: F) -> Result<Vec<IpAddr>, String>
where
    F: Fn(String) -> R,
    R: Future<Output = io::Result<Vec<IpAddr>>>,
{
    let mut found: Vec<IpAddr> = Vec::new();
    let mut why = None;
    for host in hosts {
        let all = match host {
            Host::Address(a) => Ok(vec![*a]),
            Host::Name(name) => lookup(name.clone()).await,
        };
        let usable = |a: &IpAddr| !a.is_unspecified() && !a.is_multicast();
        match all {
            Ok(all) if all.iter().any(usable) => {
                for a in all.into_iter().filter(usable) {
                    if !found.iter().any(|f| f.is_ipv4() == a.is_ipv4()) {
                        found.push(a);
                    }
                }
            }
            Ok(_) => {
                why.get_or_insert_with(|| format!("{host} has no address"));
            }
            Err(e) => {
                why.get_or_insert_with(|| format!("resolve {host}: {e}"));
            }
        }
    }
    match (found.is_empty(), why) {
        (true, Some(why)) => Err(format!(
            "the proxy's address is not known: {why}; it is tried again"
        )),
        _ => Ok(found),
    }
}

/// Asks the resolver of this machine, in another thread of the same network namespace.
async fn ask(name: String) -> io::Result<Vec<IpAddr>> {
    let asked = tokio::time::timeout(PATIENCE, tokio::net::lookup_host((name, 0)));
    let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer within 10 s");
    let all = asked.await.map_err(|_| late())??;
    Ok(all.map(|a| a.ip()).collect())
}

/// Resolves the proxy's names for the daemon, for ever.
pub(crate) async fn follow(daemon: Arc<Daemon>) -> DaemonError {
    let names = &daemon.shared().names;
    loop {
        // Told of while it is asked about: ask again.
        let changed = names.changed.notified();
        let proxies = daemon.proxies();
        if proxies.iter().flatten().all(|h| h.address().is_some()) {
            names.tell(None);
            changed.await;
            continue;
        }
        tokio::pin!(changed);
        let mut backoff = Backoff::default();
        loop {
            let all = proxies.iter().enumerate();
            let all = all.map(async |(place, hosts)| {
                let addresses = resolve(hosts, ask).await?;
                daemon.reach(place, hosts, addresses).await;
                Ok::<_, String>(())
            });
            let trouble = join_all(all).await.into_iter().find_map(Result::err);
            names.tell(trouble.clone());
            if trouble.is_none() {
                changed.as_mut().await;
                break;
            }
            let pause = backoff.pause();
            tokio::select! {
                () = changed.as_mut() => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(all: &[&str]) -> Vec<Host> {
        all.iter().map(|h| h.parse().unwrap()).collect()
    }

    fn addresses(all: &[&str]) -> Vec<IpAddr> {
        all.iter().map(|a| a.parse().unwrap()).collect()
    }

    /// A resolver that knows two names.
    async fn dns(name: String) -> io::Result<Vec<IpAddr>> {
        match &*name {
            "two.example" => Ok(addresses(&[
                "2001:db8::1",
                "192.0.2.1",
                "192.0.2.2",
                "2001:db8::2",
            ])),
            "odd.example" => Ok(addresses(&["0.0.0.0"])),
            _ => Err(io::Error::other("no such name")),
        }
    }

    #[tokio::test]
    async fn the_first_address_of_each_family_is_taken() {
        let of = async |all: &[&str]| resolve(&hosts(all), dns).await;
        let both = Ok(addresses(&["2001:db8::1", "192.0.2.1"]));
        assert_eq!(of(&["two.example"]).await, both);
        // Hosts come in the order of the file, and one that is known helps without the DNS.
        let literal = Ok(addresses(&["198.51.100.7", "2001:db8::1"]));
        assert_eq!(of(&["198.51.100.7", "two.example"]).await, literal);
        let alone = Ok(addresses(&["198.51.100.7"]));
        assert_eq!(of(&["none.example", "198.51.100.7"]).await, alone);
        assert_eq!(of(&[]).await, Ok(vec![]));
    }

    #[tokio::test]
    async fn a_name_without_address_is_told_with_its_reason() {
        let e = resolve(&hosts(&["none.example"]), dns).await.unwrap_err();
        assert!(
            e.contains("resolve none.example: no such name; it is tried again"),
            "{e}"
        );
        let e = resolve(&hosts(&["odd.example"]), dns).await.unwrap_err();
        assert!(e.contains("odd.example has no address"), "{e}");
    }

    #[test]
    fn pauses_grow_to_a_minute() {
        let mut backoff = Backoff::default();
        let pauses: Vec<u64> = (0..9).map(|_| backoff.pause().as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        let mut long = Backoff(u32::MAX - 1);
        assert_eq!(long.pause(), LONGEST);
    }

    #[test]
    fn trouble_is_told_until_it_is_over() {
        let names = Names::default();
        assert_eq!(names.note(), None);
        names.tell(Some("no".into()));
        assert_eq!(names.note().as_deref(), Some("no"));
        names.tell(None);
        assert_eq!(names.note(), None);
    }
}
