//! A kernel that refuses steps, in a network namespace of its own.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use braid_api::{AccessChange, AccessState, Priorities};
use braid_mptcp::manage::diff::Op;
use braid_mptcp::pm::EndpointFlags;
use braid_mptcp::support::Support;
use futures_util::TryStreamExt;
use nix::sched::{CloneFlags, unshare};
use rtnetlink::{Handle, LinkUnspec, LinkVeth, RouteMessageBuilder};

use super::*;
use crate::DaemonError;
use crate::accesses::Wanted;
use crate::engine::mptcp::Mptcp;
use crate::engine::{Steering, Tokens};
use crate::state::lock;

const NAMES: [&str; 3] = ["nr", "wifi", "lte"];

fn address(k: u8) -> IpAddr {
    Ipv4Addr::new(10, 77, k, 2).into()
}

/// Access `k`: an interface that DHCP would have set up like this.
async fn lay(h: &Handle, k: u8) {
    let (d, p) = (format!("d{k}"), format!("p{k}"));
    let veth = LinkVeth::new(&d, &p).build();
    h.link().add(veth).execute().await.unwrap();
    let mut index = 0;
    for name in [p, d] {
        let mut found = h.link().get().match_name(name).execute();
        index = found.try_next().await.unwrap().unwrap().header.index;
        let up = LinkUnspec::new_with_index(index).up().build();
        h.link().set(up).execute().await.unwrap();
    }
    let add = h.address().add(index, address(k), 24);
    add.execute().await.unwrap();
    let route = RouteMessageBuilder::<Ipv4Addr>::new()
        .gateway(Ipv4Addr::new(10, 77, k, 1))
        .output_interface(index)
        .priority(k.into());
    h.route().add(route.build()).execute().await.unwrap();
}

/// Parts of an engine for three accesses.
fn prepared(test: impl AsyncFnOnce(Setup<'_>) + Send + 'static) {
    let in_namespace = move || {
        if let Err(e) = unshare(CloneFlags::CLONE_NEWNET) {
            return println!("skipped: no network namespace can be made: {e}");
        }
        if let Err(e) = Support::detect().require() {
            return println!("skipped: {e}");
        }
        let t = tempfile::tempdir().unwrap();
        let file = t.path().join("braid.toml");
        let mut text = "[probe]\nenabled = false\n[scheduler]\npin = false\n".to_owned();
        for (k, name) in (1..).zip(NAMES) {
            text += &format!("[access.{name}]\ninterface = \"d{k}\"\n");
        }
        std::fs::write(&file, text).unwrap();
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async {
            let h = braid_access::links::handle().unwrap();
            for k in 1..=3 {
                lay(&h, k).await;
            }
            let config = Config::load(&file, Role::Device).unwrap();
            let control = t.path().join("c.sock");
            let shared = Arc::new(Shared::new(Role::Device, &file, &config, &control));
            let setup = Setup {
                shared: &shared,
                config: &config,
                wanted: &Wanted::configured(&config.accesses),
                control: &control,
                tokens: &Arc::new(Tokens::default()),
            };
            test(setup).await;
        });
    };
    std::thread::spawn(in_namespace).join().unwrap();
}

/// Begins a manager.
async fn begun(setup: Setup<'_>) -> Manager {
    let (mut m, _heard) = Manager::new(&setup).unwrap();
    m.begin().await.unwrap();
    assert_eq!(set(&m), [1, 2, 3].map(|k| (address(k), false)).into());
    m
}

/// As others would.
async fn delete_endpoint(m: &Manager, id: u8) {
    let pm = m.kernel.pm.as_ref().unwrap();
    pm.change(move |pm| pm.delete(id)).await.unwrap();
}

/// The endpoints, and which are backups.
fn set(m: &Manager) -> BTreeMap<IpAddr, bool> {
    let all = m.view.endpoints.iter();
    all.map(|e| (e.address, e.flags.contains(EndpointFlags::BACKUP)))
        .collect()
}

fn states(m: &Manager) -> Vec<AccessState> {
    m.plan.accesses.iter().map(|(state, _)| *state).collect()
}

fn order(of: &[(&str, u16)]) -> Priorities {
    let one = |(name, p): &(&str, u16)| ((*name).to_owned(), Some(*p));
    Priorities(of.iter().map(one).collect())
}

fn change(backup: Option<bool>, enabled: Option<bool>) -> AccessChange {
    AccessChange {
        backup,
        enabled,
        ..AccessChange::default()
    }
}

#[test]
fn what_is_refused_of_a_request_is_taken_back_and_not_kept() {
    prepared(async |setup| {
        let m = &mut begun(setup).await;
        let (before, endpoints) = (m.settings.clone(), set(m));
        let unchanged = |m: &Manager, e: DaemonError| {
            let e = e.to_string();
            assert!(e.contains("access \"lte\": the kernel refused to"), "{e}");
            assert_eq!((&m.settings, set(m)), (&before, endpoints.clone()), "{e}");
            assert!(m.retry.is_none(), "{e}");
            assert!(states(m).iter().all(|s| *s == AccessState::Init), "{e}");
        };
        // Of several steps the last one, when the others are taken already.
        m.kernel.refuses =
            Some(|op| matches!(op, Op::SetBackup(e, true) if e.address == address(3)));
        let all = order(&[("nr", 1), ("wifi", 2), ("lte", 3)]);
        let e = m.prioritise(&all).await.unwrap_err();
        unchanged(m, e);
        let e = m.change("lte", change(Some(true), None)).await.unwrap_err();
        unchanged(m, e);
        let e = m.exclude(&["wifi", "lte"]).await.unwrap_err();
        unchanged(m, e);
        m.kernel.refuses =
            Some(|op| matches!(op, Op::DeleteEndpoint(e) if e.address == address(3)));
        let e = m
            .change("lte", change(None, Some(false)))
            .await
            .unwrap_err();
        unchanged(m, e);

        // What is taken is kept, and stays so when the way back is refused.
        m.kernel.refuses = None;
        m.change("lte", change(None, Some(false))).await.unwrap();
        let settings = m.settings.clone();
        m.kernel.refuses = Some(|op| matches!(op, Op::AddEndpoint(_)));
        let e = m.change("lte", change(None, Some(true))).await.unwrap_err();
        assert!(e.to_string().contains("access \"lte\""), "{e}");
        assert_eq!(m.settings, settings);
        assert_eq!(set(m), [1, 2].map(|k| (address(k), false)).into());
        m.kernel.refuses = None;
        m.reconcile().await.unwrap();
        assert_eq!(set(m).len(), 2, "it is not tried again");
    });
}

#[test]
fn what_was_refused_before_does_not_count_against_a_request() {
    prepared(async |setup| {
        let m = &mut begun(setup).await;
        let id = m.view.endpoints[2].id;
        m.kernel.refuses = Some(|op| matches!(op, Op::AddEndpoint(_)));
        delete_endpoint(m, id).await;
        m.reconcile().await.unwrap();
        let init = AccessState::Init;
        assert_eq!(states(m), [init, init, AccessState::Ignored]);
        m.change("wifi", change(Some(true), None)).await.unwrap();
        m.change("lte", change(Some(true), None)).await.unwrap();
        m.kernel.refuses = None;
        m.reconcile().await.unwrap();
        let wanted = [(1, false), (2, true), (3, true)];
        assert_eq!(set(m), wanted.map(|(k, b)| (address(k), b)).into());
    });
}

#[test]
fn each_refusal_is_said_with_its_access_and_others_take_its_place() {
    use AccessState::{Backup, Ignored, Init};
    prepared(async |setup| {
        let m = &mut begun(setup).await;
        let all = order(&[("nr", 1), ("wifi", 2), ("lte", 3)]);
        m.prioritise(&all).await.unwrap();
        let id = |m: &Manager, k: u8| {
            let mut all = m.view.endpoints.iter();
            all.find(|e| e.address == address(k)).unwrap().id
        };
        let first = |op: &Op| matches!(op, Op::AddEndpoint(e) if e.address == address(1));
        m.kernel.refuses = Some(first);
        delete_endpoint(m, id(m, 1)).await;
        m.reconcile().await.unwrap();
        assert_eq!(states(m), [Ignored, Init, Backup]);
        assert!(m.plan.accesses[0].1.contains("the kernel refused to"));
        assert_eq!(set(m), [(address(2), false), (address(3), true)].into());
        // At first it may be a change that was overtaken by the next.
        assert!(m.said.is_empty() && m.retry.is_some());
        m.reconcile().await.unwrap();
        assert_eq!(m.said.len(), 1);
        let said = m.refusal(m.memory.refused.iter().next().unwrap());
        assert!(said.to_string().starts_with("access \"nr\": "), "{said}");

        m.kernel.refuses = Some(|op| matches!(op, Op::AddEndpoint(_)));
        delete_endpoint(m, id(m, 2)).await;
        m.reconcile().await.unwrap();
        assert_eq!(states(m), [Ignored, Ignored, Init]);
        assert_eq!(m.said.len(), 1);
        m.reconcile().await.unwrap();
        assert_eq!(m.said.len(), 2);

        m.kernel.refuses = None;
        m.reconcile().await.unwrap();
        assert_eq!(states(m), [Init, Backup, Backup]);
        let wanted = [(1, false), (2, true), (3, true)];
        assert_eq!(set(m), wanted.map(|(k, b)| (address(k), b)).into());
        assert!(m.said.is_empty() && m.retry.is_none());
    });
}

#[test]
fn weights_whose_backups_are_refused_are_as_before() {
    prepared(async |setup| {
        let before = Support::detect().default_congestion_control;
        let default = || Support::detect().default_congestion_control;
        let s = Mptcp::new(&setup).unwrap();
        s.manager.lock().await.begin().await.unwrap();
        let refuse = async |refuses: Option<fn(&Op) -> bool>| {
            s.manager.lock().await.kernel.refuses = refuses;
        };
        let weights = |of: &[(&str, f64)]| Steering {
            weights: of.iter().map(|(n, w)| ((*n).to_owned(), *w)).collect(),
            ..Steering::default()
        };
        let counts = || lock(&s.weights).counts;
        refuse(Some(|op| matches!(op, Op::SetBackup(_, true)))).await;
        let e = match s.set_weights(&weights(&[("nr", 3.0), ("lte", 0.0)])).await {
            Err(DaemonError::Lacking(why)) => return println!("skipped: {why}"),
            other => other.unwrap_err().to_string(),
        };
        assert!(e.contains("access \"lte\": the kernel refused to"), "{e}");
        assert!(lock(&s.weights).steering.weights.is_empty() && !counts());
        assert_eq!(
            (default(), lock(&s.namespace).stands_in()),
            (before.clone(), false)
        );
        let first = weights(&[("nr", 3.0), ("lte", 2.0)]);
        s.set_weights(&first).await.unwrap();
        s.set_weights(&weights(&[("nr", 7.0), ("lte", 0.0)]))
            .await
            .unwrap_err();
        assert_eq!(lock(&s.weights).steering, first);
        assert!(default().starts_with("wrr_") && counts());
        let m = s.manager.lock().await;
        assert!(set(&m).values().all(|backup| !backup) && set(&m).len() == 3);
    });
}
