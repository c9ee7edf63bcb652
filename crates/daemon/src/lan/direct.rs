//! Flows that rules send directly, by the accesses that work.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use braid_api::EventKind;
use braid_core::rules::Outcome;
use braid_forward::divert::{Direct, Divert, Exits};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::shared::Shared;
use crate::state::lock;

/// Pause before what the kernel refused is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Turns the ways of flows to the accesses that work.
pub(super) async fn follow(
    mut exits: watch::Receiver<Exits>,
    direct: Arc<tokio::sync::Mutex<Direct>>,
    divert: Arc<Mutex<Divert>>,
    shared: Arc<Shared>,
) {
    let mut refused: Option<String> = None;
    loop {
        let changed = exits.changed();
        let changed = match refused.is_some() {
            true => timeout(RETRY, changed).await.unwrap_or(Ok(())),
            false => changed.await,
        };
        if changed.is_err() {
            return;
        }
        let new = exits.borrow_and_update().clone();
        let mut ways = direct.lock().await;
        let (turned, done) = ways.lead(&new).await;
        let refused_at_once = lock(&divert).refuse_unled(ways.unled());
        drop(ways);
        let why = done.err().map(|e| e.to_string());
        let why = why.or(refused_at_once.err().map(|e| e.to_string()));
        if let Some(why) = why.as_ref().filter(|w| refused.as_ref() != Some(w)) {
            tracing::warn!("[[rule]] direct: {why}; it is tried again every second");
        }
        refused = why;
        for way in turned {
            let access = way.by.clone();
            let what = EventKind::DirectRoute {
                accesses: way.accesses,
                ipv6: !way.v4,
                by: way.by,
            };
            shared.log(access, what);
        }
    }
}

/// Says why flows of a rule do not leave, where they do not.
pub(super) fn note(
    outcome: &Outcome,
    by: [Option<&str>; 2],
    unforwarded: &[&str],
) -> Option<String> {
    let Outcome::Direct(accesses) = outcome else {
        return None;
    };
    if by == [None, None] {
        return Some(match &accesses[..] {
            [one] => format!("refused: {one} does not work"),
            all => format!("refused: none of {} works", all.join(", ")),
        });
    }
    let off = |name: &str| unforwarded.contains(&name);
    let families = [
        (by[0], "net.ipv4.ip_forward", "IPv4"),
        (by[1], "net.ipv6.conf.all.forwarding", "IPv6"),
    ];
    let led = families.iter().filter(|(by, ..)| by.is_some());
    let lacks: Vec<_> = led.filter(|(_, name, _)| off(name)).collect();
    let (_, first, family) = lacks.first()?;
    let whose = match by.iter().flatten().count() == lacks.len() {
        true => "refused",
        false => &format!("{family} is refused"),
    };
    Some(format!(
        "{whose}: this machine does not forward: sysctl -w {first}=1"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_flows_do_not_leave_is_said() {
        let direct = |names: &[&str]| Outcome::Direct(names.iter().map(|n| (*n).into()).collect());
        let (v4, v6) = ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding");
        let of =
            |names: &[&str], by, off: &[&str]| note(&direct(names), by, off).unwrap_or_default();
        assert_eq!(of(&["nr"], [None, None], &[]), "refused: nr does not work");
        assert_eq!(
            of(&["nr", "lte"], [None, None], &[v4]),
            "refused: none of nr, lte works"
        );
        assert_eq!(of(&["nr"], [Some("nr"), None], &[v6]), "");
        assert_eq!(
            of(&["nr"], [Some("nr"), Some("nr")], &[v6]),
            "IPv6 is refused: this machine does not forward: sysctl -w net.ipv6.conf.all.forwarding=1"
        );
        for by in [[Some("nr"), None], [Some("nr"), Some("nr")]] {
            let off = if by[1].is_some() {
                vec![v4, v6]
            } else {
                vec![v4]
            };
            let said = of(&["nr"], by, &off);
            assert!(
                said.starts_with("refused: this machine") && said.ends_with("ip_forward=1"),
                "{said}"
            );
        }
        assert_eq!(note(&Outcome::Block, [None, None], &[v4]), None);
    }
}
