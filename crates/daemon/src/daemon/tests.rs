//! The one state over engines in memory.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use braid_api::{AccessChange, AccessState, Priorities, SchedulerChange, Weights as Given};

use super::*;
use crate::control::Decided;
use crate::engine::Change;
use crate::engine::testing::Fake;

const DEVICE: &str = "[access.nr]\ninterface = \"d1\"\nweight = 3\n[access.wifi]\ninterface = \
                      \"d2\"\n";

impl Daemon {
    /// Makes a daemon with these engines, of a device whose file says `text`.
    pub(crate) fn of_engines(folder: &Path, text: &str, engines: Vec<Arc<dyn Engine>>) -> Self {
        Self::of_role(Role::Device, folder, text, engines)
    }

    /// Makes a daemon with these engines, whose file says `text`.
    pub(crate) fn of_role(
        role: Role,
        folder: &Path,
        text: &str,
        engines: Vec<Arc<dyn Engine>>,
    ) -> Self {
        let file: PathBuf = folder.join("braid.toml");
        std::fs::write(&file, text).unwrap();
        let control = folder.join("c.sock");
        let config = Config::load(&file, role).unwrap();
        let shared = Arc::new(Shared::new(role, &file, &config, &control));
        let saved = Requests::beside(&control);
        let mut wanted = Wanted::configured(&config.accesses);
        saved.adopt(&mut wanted);
        Self::with(shared, config, wanted, saved, &control, engines)
    }
}

/// A daemon with two engines.
struct Two {
    daemon: Daemon,
    mptcp: Arc<Fake>,
    mpquic: Arc<Fake>,
    folder: tempfile::TempDir,
}

fn two(change: impl FnOnce(&mut Fake, &mut Fake)) -> Two {
    let folder = tempfile::tempdir().unwrap();
    let (mut mptcp, mut mpquic) = (Fake::new(Kind::Mptcp), Fake::new(Kind::Mpquic));
    mptcp.tokens = [70].into();
    change(&mut mptcp, &mut mpquic);
    let (mptcp, mpquic) = (Arc::new(mptcp), Arc::new(mpquic));
    let engines: Vec<Arc<dyn Engine>> = vec![mptcp.clone(), mpquic.clone()];
    let daemon = Daemon::of_engines(folder.path(), DEVICE, engines);
    Two {
        daemon,
        mptcp,
        mpquic,
        folder,
    }
}

fn named(of: &[(&str, f64)]) -> ByName {
    of.iter().map(|(n, w)| ((*n).to_owned(), *w)).collect()
}

const OFF: AccessChange = AccessChange {
    enabled: Some(false),
    backup: None,
    expected: None,
    limit: None,
};

#[tokio::test]
async fn one_request_switches_an_access_off_for_every_engine_and_outlives_a_kill() {
    let two = two(|_, _| {});
    let status = two.daemon.change("wifi", OFF).await.unwrap();
    assert!(!status.enabled);
    let made = [Change::Access("wifi".into(), OFF)];
    assert_eq!(
        (two.mptcp.made(), two.mpquic.made()),
        (made.to_vec(), made.to_vec())
    );
    let logged = two.daemon.events(0).events;
    assert_eq!(logged.len(), 1, "{logged:?}");
    // The same once more is no event.
    two.daemon.change("wifi", OFF).await.unwrap();
    assert_eq!(two.daemon.events(0).events.len(), 1);
    // Killed: nothing is dropped.
    std::mem::forget(two.daemon);
    let again = Daemon::of_engines(two.folder.path(), DEVICE, vec![two.mptcp.clone()]);
    let on = |d: &Daemon| -> Vec<bool> { lock(&d.wanted).iter().map(|w| w.enabled).collect() };
    assert_eq!(on(&again), [true, false]);
}

/// Change of whether an access is a backup.
fn backup(name: &str, backup: bool) -> Change {
    let change = AccessChange {
        enabled: None,
        backup: Some(backup),
        ..OFF
    };
    Change::Access(name.to_owned(), change)
}

#[tokio::test]
async fn an_access_that_a_policy_lets_rest_is_a_backup_whatever_people_wish_meanwhile() {
    let two = two(|_, _| {});
    let decided = |resting: &[&str]| Decided {
        weights: named(&[("nr", 3.0)]),
        resting: resting.iter().map(|n| (*n).to_owned()).collect(),
        why: "for its energy".to_owned(),
    };
    let made = || {
        let changes = two.mptcp.made().into_iter();
        let accesses = changes.filter(|c| matches!(c, Change::Access(..)));
        accesses.collect::<Vec<_>>()
    };
    two.daemon.set_decided(decided(&["wifi"])).await.unwrap();
    assert_eq!(made(), [backup("wifi", true)]);
    two.daemon.set_decided(decided(&["wifi"])).await.unwrap();
    assert_eq!(made(), []);
    // A wish is kept, and in force once the policy does not need the access any more.
    for wish in [true, false] {
        let wish = AccessChange {
            enabled: None,
            backup: Some(wish),
            ..OFF
        };
        let status = two.daemon.change("wifi", wish).await.unwrap();
        assert_eq!(Some(status.backup), wish.backup);
        assert_eq!(made(), [backup("wifi", true)]);
    }
    // One carries before the other ceases to.
    two.daemon.set_decided(decided(&["nr"])).await.unwrap();
    assert_eq!(made(), [backup("wifi", false), backup("nr", true)]);
    // Where an engine refuses, the others take it back, and it is tried with the next decision.
    *lock(&two.mpquic.refuses) = Some(|_| true);
    let why = two.daemon.set_decided(decided(&[])).await.unwrap_err();
    assert_eq!(why.to_string(), "mpquic refuses");
    assert_eq!(made(), [backup("nr", false), backup("nr", true)]);
    *lock(&two.mpquic.refuses) = None;
    two.daemon.set_decided(decided(&[])).await.unwrap();
    assert_eq!(made(), [backup("nr", false)]);
    // The engines have gone back to the file.
    let again = two.daemon.rest_again(["wifi".to_owned()].into());
    again.await.unwrap();
    assert_eq!(made(), [backup("wifi", true)]);
}

#[tokio::test]
async fn what_one_engine_refuses_the_others_take_back() {
    let two = two(|_, _| {});
    let refuse = |refuses| *lock(&two.mpquic.refuses) = refuses;
    refuse(Some(|_| true));
    let e = two.daemon.change("wifi", OFF).await.unwrap_err();
    assert_eq!(e.to_string(), "mpquic refuses");
    let on = AccessChange {
        enabled: Some(true),
        ..OFF
    };
    let [off, on] = [OFF, on].map(|c| Change::Access("wifi".into(), c));
    assert_eq!(two.mptcp.made(), [off, on]);
    assert!(two.daemon.events(0).events.is_empty());

    let order = Priorities([("nr".to_owned(), Some(1))].into());
    two.daemon.set_priorities(&order).await.unwrap_err();
    let before = Priorities([("nr".to_owned(), None), ("wifi".to_owned(), None)].into());
    assert_eq!(two.mptcp.made(), [order, before].map(Change::Order));

    let given = Given(named(&[("wifi", 2.0)]));
    two.daemon.set_weights(&given).await.unwrap_err();
    let steering = |of: &[(&str, f64)]| {
        Change::Weights(Steering {
            weights: named(of),
            ..Steering::default()
        })
    };
    let (new, old) = (
        steering(&[("nr", 3.0), ("wifi", 2.0)]),
        steering(&[("nr", 3.0)]),
    );
    assert_eq!(two.mptcp.made(), [new.clone(), old]);

    let scheduler = SchedulerChange {
        name: Some("rr".into()),
        ..SchedulerChange::default()
    };
    two.daemon.set_scheduler(&scheduler).await.unwrap_err();
    let made = two.mptcp.made();
    assert_eq!(
        made,
        [scheduler, two.mptcp.scheduler()].map(Change::Scheduler)
    );

    refuse(None);
    let now = two.daemon.set_weights(&given).await.unwrap();
    assert_eq!(now.0, named(&[("nr", 3.0), ("wifi", 2.0)]));
    assert_eq!(two.mpquic.made(), [new]);
}

#[tokio::test]
async fn what_only_one_engine_can_do_is_refused_with_its_sentence() {
    let two = two(|mptcp, mpquic| {
        mptcp.can.leave_out = Err("only the device can");
        mpquic.can.order = Err("there is no order");
        mptcp.can.expect.down = Err("the kernel's windows");
        mptcp.can.expect.up = Err("the kernel's windows");
        mpquic.can.expect.down = Err("no lane");
    });
    let refused = |e: DaemonError| match e {
        DaemonError::Refused(why) => why,
        other => panic!("{other:?}"),
    };
    let zero = Given(named(&[("wifi", 0.0)]));
    let e = two.daemon.set_weights(&zero).await.unwrap_err();
    assert_eq!(refused(e), "access \"wifi\": only the device can");
    let e = two.daemon.set_priorities(&Priorities::default()).await;
    assert_eq!(refused(e.unwrap_err()), "there is no order");
    // Rates that one of them goes by are of use.
    let rate = |way: &str| {
        let text = format!("{{\"expected\": {{\"{way}_bps\": 1000000}}}}");
        serde_json::from_str::<AccessChange>(&text).unwrap()
    };
    two.daemon.change("nr", rate("up")).await.unwrap();
    let e = two.daemon.change("nr", rate("down")).await.unwrap_err();
    assert_eq!(refused(e), "access \"nr\": the kernel's windows");
    let made = two.mpquic.made();
    assert_eq!(made.len(), 1, "nothing else was begun: {made:?}");
}

#[tokio::test]
async fn weights_of_a_connection_go_to_its_engine_alone() {
    let two = two(|_, _| {});
    let d = &two.daemon;
    let own = Given(named(&[("wifi", 5.0)]));
    let now = d.set_connection_weights("70", Some(&own)).await.unwrap();
    assert_eq!(now.0, named(&[("nr", 3.0), ("wifi", 5.0)]));
    let of = |made: Vec<Change>| match &made[..] {
        [Change::Weights(s)] => s.connections.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(of(two.mptcp.made()), [(70, own.0.clone())].into());
    assert_eq!(of(two.mpquic.made()), BTreeMap::new());
    let all = d.connections().unwrap().connections;
    let weights: Vec<_> = all.into_iter().map(|c| (c.token, c.weights)).collect();
    assert_eq!(weights, [(Some(70), Some(own.0.clone())), (Some(1), None)]);

    let e = d
        .set_connection_weights("71", Some(&own))
        .await
        .unwrap_err();
    assert!(matches!(e, DaemonError::Unknown(_)), "{e}");
    let none = Given(named(&[("nr", 0.0), ("wifi", 0.0)]));
    let e = d
        .set_connection_weights("1", Some(&none))
        .await
        .unwrap_err();
    assert!(e.to_string().ends_with("(connection 1)"), "{e}");
    // Those of all must leave something to a connection that has one access of its own.
    let one = Given(named(&[("wifi", 0.0)]));
    d.set_connection_weights("1", Some(&one)).await.unwrap();
    let nr = Given(named(&[("nr", 0.0)]));
    let e = d.set_weights(&nr).await.unwrap_err();
    assert!(e.to_string().ends_with("(connection 1)"), "{e}");
    d.set_connection_weights("1", None).await.unwrap();
    d.set_weights(&nr).await.unwrap();
}

#[tokio::test]
async fn an_access_is_as_good_as_the_best_engine_says() {
    let two = two(|mptcp, mpquic| {
        mptcp.states = vec![AccessState::Active, AccessState::Silent];
        mpquic.states = vec![AccessState::Down, AccessState::Active];
        mpquic.can.always_weighted = true;
    });
    let status = two.daemon.status().await.unwrap();
    let told = |i: usize| {
        let a = &status.accesses[i];
        (a.state, a.why.clone(), a.note.clone().unwrap(), a.weight)
    };
    let active = AccessState::Active;
    let (mptcp, mpquic) = ("so says mptcp".to_owned(), "so says mpquic".to_owned());
    let down = "mpquic: down: so says mpquic".to_owned();
    assert_eq!(told(0), (active, mptcp, down, Some(3.0)));
    let silent = "mptcp: silent: so says mptcp".to_owned();
    assert_eq!(told(1), (active, mpquic, silent, Some(1.0)));
    assert_eq!(status.accesses[0].subflows, 2);
}

#[tokio::test]
async fn a_status_with_connections_lists_them_once() {
    let two = two(|mptcp, mpquic| {
        mptcp.tokens = [1, 2].into();
        mpquic.tokens = [7].into();
    });
    let d = &two.daemon;
    let one = Given(named(&[("nr", 4.0)]));
    d.set_connection_weights("7", Some(&one)).await.unwrap();
    let listed = || [&two.mptcp, &two.mpquic].map(|e| e.listed.load(Ordering::Relaxed));
    let before = listed();
    let status = d.status_with_connections().await.unwrap();
    assert_eq!(listed(), before.map(|n| n + 1));
    let told = status.connections.unwrap();
    assert_eq!(told.t_ns, status.t_ns);
    let of = |c: Connection| (c.token, c.engine, c.weights);
    let told: Vec<_> = told.connections.into_iter().map(of).collect();
    let expected = [
        (Some(1), Some(Kind::Mptcp), None),
        (Some(2), Some(Kind::Mptcp), None),
        (Some(7), Some(Kind::Mpquic), Some(named(&[("nr", 4.0)]))),
    ];
    assert_eq!(told, expected);
    assert_eq!(d.status().await.unwrap().connections, None);
}

#[tokio::test]
async fn weights_that_one_engine_goes_on_with_count_for_all() {
    let kept = Steering {
        weights: named(&[("nr", 9.0)]),
        connections: [(70, named(&[("wifi", 4.0)]))].into(),
        ..Steering::default()
    };
    let two = two(|mptcp, _| mptcp.adopts = Some(kept.clone()));
    two.daemon.start().await.unwrap();
    assert_eq!(two.mptcp.made(), []);
    let general = Steering {
        weights: kept.weights.clone(),
        ..Steering::default()
    };
    assert_eq!(two.mpquic.made(), [Change::Weights(general)]);
    let weights = two
        .daemon
        .connections()
        .unwrap()
        .connections
        .remove(0)
        .weights;
    assert_eq!(weights, Some(named(&[("wifi", 4.0)])));
}

#[tokio::test]
async fn the_file_read_again_ends_requests_and_a_wrong_one_changes_nothing() {
    let two = two(|_, _| {});
    let d = &two.daemon;
    d.change("wifi", OFF).await.unwrap();
    d.set_weights(&Given(named(&[("nr", 7.0)]))).await.unwrap();
    let file = two.folder.path().join("braid.toml");
    std::fs::write(
        &file,
        format!("[metrics]\nlisten = \"127.0.0.1:9\"\n{DEVICE}"),
    )
    .unwrap();
    d.reload().await;
    let status = d.status().await.unwrap();
    let why = status.config_error.unwrap();
    assert!(why.contains("`listen` of [metrics] cannot change"), "{why}");
    assert!(!status.accesses[1].enabled);
    assert_eq!(status.accesses[0].weight, Some(7.0));
    std::fs::write(&file, DEVICE.replace("= 3", "= 4")).unwrap();
    two.mptcp.made();
    d.reload().await;
    let status = d.status().await.unwrap();
    assert_eq!(status.config_error, None);
    assert!(status.accesses[1].enabled);
    assert_eq!(status.accesses[0].weight, Some(4.0));
    let steering = Steering {
        weights: named(&[("nr", 4.0)]),
        ..Steering::default()
    };
    assert_eq!(two.mptcp.made(), [Change::Weights(steering)]);
}

#[tokio::test]
async fn a_request_is_answered_with_what_it_changed_though_the_file_is_read_at_once() {
    let two = two(|_, _| {});
    let (changed, ()) = tokio::join!(two.daemon.change("wifi", OFF), two.daemon.reload());
    let changed = changed.unwrap();
    assert_eq!((&*changed.name, changed.enabled), ("wifi", false));
    assert!(two.daemon.status().await.unwrap().accesses[1].enabled);
}

#[test]
fn a_connection_keeps_the_number_that_it_has() {
    let tokens = Tokens::default();
    let engine: Arc<dyn Engine> = Arc::new(Fake::new(Kind::Mptcp));
    tokens.are_of(&[Arc::clone(&engine)]);
    assert!(tokens.are_taken(1, Kind::Mpquic) && !tokens.are_taken(2, Kind::Mpquic));
    assert!(!tokens.are_taken(1, Kind::Mptcp), "its own");
    drop(engine);
    assert!(!tokens.are_taken(1, Kind::Mpquic));
}

#[tokio::test]
async fn every_engine_goes_by_the_addresses_of_a_name_while_it_is_configured() {
    let folder = tempfile::tempdir().unwrap();
    let (mptcp, mpquic) = (Fake::new(Kind::Mptcp), Fake::new(Kind::Mpquic));
    let (mptcp, mpquic) = (Arc::new(mptcp), Arc::new(mpquic));
    let engines: Vec<Arc<dyn Engine>> = vec![mptcp.clone(), mpquic.clone()];
    let text = format!("proxy = \"proxy.example\"\n{DEVICE}");
    let daemon = Daemon::of_engines(folder.path(), &text, engines);
    assert!(daemon.config().proxy.is_empty());
    let hosts = daemon.config().hosts;
    let found = vec!["192.0.2.1".parse().unwrap()];
    daemon.reach(0, &hosts, found.clone()).await;
    // The same again is no news.
    daemon.reach(0, &hosts, found.clone()).await;
    assert_eq!(*lock(&mptcp.reached), std::slice::from_ref(&found));
    assert_eq!(*lock(&mpquic.reached), std::slice::from_ref(&found));
    // Read again, a name keeps its addresses until they are resolved anew.
    daemon.reload().await;
    assert_eq!(daemon.config().proxy, found);
    std::fs::write(
        folder.path().join("braid.toml"),
        text.replace("proxy.ex", "other.ex"),
    )
    .unwrap();
    daemon.reload().await;
    assert!(daemon.config().proxy.is_empty());
    daemon.reach(0, &hosts, found).await;
    assert!(daemon.config().proxy.is_empty(), "of the name before");
}
