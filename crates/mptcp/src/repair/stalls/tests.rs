use super::*;
use crate::tcp_info::TcpInfo;
use proptest::prelude::*;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn at(n: u64) -> Time {
    Time::ZERO + Duration::from_secs(1000) + ms(n)
}

fn ends(port: u16) -> Ends {
    (
        SocketAddr::from(([10, 77, 2, 2], port)),
        SocketAddr::from(([10, 77, 0, 1], 80)),
    )
}

fn subject(port: u16) -> Subject {
    Subject {
        token: 7,
        asker_id: 2,
        asked_id: port as u8,
    }
}

fn look(port: u16, progress: Progress) -> Look {
    Look {
        token: 1,
        subject: Some(subject(port)),
        ends: ends(port),
        backup: false,
        progress,
    }
}

fn quiet(n: u64) -> Progress {
    Progress {
        quiet: ms(n),
        ..Progress::default()
    }
}

/// A sender of one segment over a path on which packets do not overtake each other, and whose
/// round trip takes what `queue` says for each 100 ms. Probes go every 40 ms.
struct Model {
    queue: Vec<u64>,
    /// The segment and its retransmissions are lost.
    lost: bool,
    min_rtt: u64,
}

impl Model {
    /// Round trip of what is sent at `t`: nothing overtakes what was sent before.
    fn returns(&self, t: u64) -> u64 {
        let until = |k: usize| k as u64 * 100 + self.min_rtt + self.queue[k];
        let last = ((t / 100) as usize).min(self.queue.len() - 1);
        (0..last)
            .map(until)
            .max()
            .unwrap_or(0)
            .max(t + self.min_rtt + self.queue[last])
    }

    /// When a stall is found, if it is, by looks every 240 ms from `offset` on.
    fn run(&self, until: u64, offset: u64) -> Option<u64> {
        let mut rto = (self.min_rtt * 2).max(200);
        let (mut sent, mut next) = (vec![0], rto);
        let mut stalls = Stalls::default();
        let mut t = offset;
        while t < until {
            while next <= t {
                sent.push(next);
                rto *= 2;
                next += rto;
            }
            let acknowledged = !self.lost && sent.iter().any(|s| self.returns(*s) <= t);
            if acknowledged {
                return None;
            }
            let probe = (0..t).step_by(40).filter(|p| self.returns(*p) <= t).max();
            let last = *sent.last().unwrap();
            let progress = Progress {
                unacked: true,
                timeouts: (sent.len() - 1) as u8,
                quiet: ms(t),
                sent_ago: ms(t - last),
                rto: ms(rto),
                srtt: ms(self.min_rtt),
            };
            stalls.look(
                &[look(1, progress)],
                &|_| Some(at(probe.unwrap_or(0))),
                at(t),
            );
            if !stalls.now().is_empty() {
                return Some(t);
            }
            t += 240;
        }
        None
    }
}

proptest! {
    /// Nothing outstanding: idle, not chosen by the scheduler, a zero window, a slow
    /// application.
    #[test]
    fn what_has_nothing_outstanding_never_stalls(
        timeouts: u8, quiet in 0u64..100_000, sent in 0u64..100_000, rto in 200u64..120_000,
    ) {
        let progress = Progress {
            unacked: false,
            timeouts,
            quiet: ms(quiet),
            sent_ago: ms(sent),
            rto: ms(rto),
            srtt: ms(30),
        };
        let mut s = Stalls::default();
        s.look(&[look(1, progress)], &|_| Some(at(99_999)), at(100_000));
        prop_assert!(s.now().is_empty());
    }

    /// A queue that others fill, of up to 6 s.
    #[test]
    fn a_congested_access_costs_no_subflow(
        queue in prop::collection::vec(0u64..6_000, 1..120), min_rtt in 1u64..700,
        offset in 0u64..240,
    ) {
        let model = Model { queue, lost: false, min_rtt };
        prop_assert_eq!(model.run(15_000, offset), None);
    }

    /// An access that answers, but not to one five-tuple.
    #[test]
    fn a_dead_subflow_is_found_in_time(min_rtt in 1u64..150, offset in 0u64..240) {
        let model = Model { queue: vec![0], lost: true, min_rtt };
        let found = model.run(10_000, offset);
        prop_assert!(found.is_some_and(|t| (1_000..2_500).contains(&t)), "{found:?}");
    }

    /// After an outage of any length, an access that answers again is not waited for longer
    /// than a quarter of a second by the timer that the outage has doubled.
    #[test]
    fn a_doubled_timer_is_not_waited_for(outage in 2u64..60) {
        let (mut rto, mut sent) = (250, 0);
        let outage = outage * 1000;
        let mut timeouts = 0u8;
        while sent + rto < outage {
            sent += rto;
            rto *= 2;
            timeouts += 1;
        }
        let t = outage + 700;
        let progress = Progress {
            unacked: true,
            timeouts,
            quiet: ms(t),
            sent_ago: ms(t - sent),
            rto: ms(rto),
            srtt: ms(30),
        };
        let waits = sent + rto < t + 250;
        let mut s = Stalls::default();
        s.look(&[look(1, progress)], &|_| Some(at(outage + 50)), at(t));
        prop_assert_eq!(s.now().is_empty(), waits || timeouts < 2);
    }

    /// Whatever the other end says about the time before something came, no subflow is lost
    /// by it.
    #[test]
    fn a_verdict_is_of_no_account_once_something_came(
        asked in 500u64..5_000, came in 0u64..3_000, later in 0u64..3_000,
    ) {
        let mut s = Stalls::default();
        let answers = |_| Some(at(asked));
        let questions = s.look(&[look(1, quiet(asked))], &answers, at(asked));
        prop_assert_eq!(questions.len(), 1);
        let verdicts = [(subject(1), Verdict::Stalled)];
        prop_assert!(s.answer(ends(1).0.ip(), questions[0].number, &verdicts));
        s.look(&[look(1, quiet(later))], &answers, at(asked + came + later));
        prop_assert!(s.now().is_empty());
        // Nor by a second response.
        prop_assert!(!s.answer(ends(1).0.ip(), questions[0].number, &verdicts));
    }
}

#[test]
fn the_other_end_tells_of_a_download_that_stalls() {
    let mut s = Stalls::default();
    let answers = |_| Some(at(0));
    let busy = |port, n| look(port, quiet(n));
    assert!(
        s.look(&[busy(1, 400), busy(2, 3)], &answers, at(400))
            .is_empty()
    );
    let mut found = None;
    for t in (600..3_000).step_by(250) {
        let looks = [busy(1, t), busy(2, 3)];
        for q in s.look(&looks, &answers, at(t)) {
            assert_eq!(
                (q.address, &*q.subjects),
                (ends(1).0.ip(), &[subject(1)][..])
            );
            // It has waited for two timeouts by then.
            let verdict = match t < 1_300 {
                true => Verdict::Progresses,
                false => Verdict::Stalled,
            };
            s.answer(q.address, q.number, &[(subject(1), verdict)]);
        }
        if found.is_none() && s.now() == BTreeSet::from([ends(1)]) {
            found = Some(t);
        }
    }
    assert_eq!(found, Some(1_600));
    let told = s.of(ends(1).0.ip()).unwrap();
    assert_eq!((told.since, told.subflows), (at(0), 1));
    // It has gone; the note stays a while.
    s.look(&[busy(2, 3)], &answers, at(10_000));
    assert!(s.now().is_empty() && s.of(ends(1).0.ip()).is_some());
    s.look(&[busy(2, 3)], &answers, at(70_000));
    assert_eq!(s.of(ends(1).0.ip()), None);
}

#[test]
fn idle_connections_and_backups_are_hardly_asked_about() {
    let mut s = Stalls::default();
    let answers = |_| Some(at(0));
    let mut asked = [0; 2];
    for t in (0..60_000).step_by(250) {
        let mut backup = look(2, quiet(t));
        (backup.token, backup.backup) = (2, true);
        for q in s.look(&[look(1, quiet(t)), backup], &answers, at(t)) {
            q.subjects
                .iter()
                .for_each(|s| asked[usize::from(s.asked_id) - 1] += 1);
        }
    }
    assert!((5..12).contains(&asked[0]) && asked[1] == 0, "{asked:?}");
}

#[test]
fn nothing_is_asked_or_found_on_an_access_that_does_not_answer() {
    let mut s = Stalls::default();
    let progress = Progress {
        unacked: true,
        timeouts: 5,
        quiet: ms(9_000),
        sent_ago: ms(2_000),
        rto: ms(6_000),
        srtt: ms(30),
    };
    assert!(
        s.look(&[look(1, progress)], &|_| None, at(9_000))
            .is_empty()
    );
    assert!(s.now().is_empty());
    s.look(&[look(1, progress)], &|_| Some(at(8_900)), at(9_000));
    assert_eq!(s.now().len(), 1);
}

#[test]
fn many_are_asked_about_in_turn() {
    let mut s = Stalls::default();
    let all: Vec<_> = (1..=100).map(|p| look(p, quiet(700))).collect();
    let mut seen = BTreeSet::new();
    for t in [0, 250, 500, 750] {
        let questions = s.look(&all, &|_| Some(at(t)), at(t));
        for q in &questions {
            assert!(q.subjects.len() <= query::MOST);
            seen.extend(q.subjects.clone());
        }
    }
    assert_eq!(seen.len(), 100);
}

#[test]
fn a_subflow_falls_quiet_once_and_only_where_others_carry() {
    let mut s = Stalls::default();
    let mut falls = |looks: &[Look], t| {
        s.look(looks, &|_| Some(at(t)), at(t));
        s.suspects().count()
    };
    let busy = look(2, quiet(10));
    assert_eq!(falls(&[look(1, quiet(400)), busy], 400), 0);
    assert_eq!(falls(&[look(1, quiet(640)), busy], 640), 1);
    assert_eq!(falls(&[look(1, quiet(880)), busy], 880), 0, "told once");
    assert_eq!(falls(&[look(1, quiet(100)), busy], 1100), 0);
    assert_eq!(falls(&[look(1, quiet(600)), busy], 1600), 1, "and again");
    assert_eq!(falls(&[look(1, quiet(100)), busy], 1700), 0);
    let backup = Look {
        backup: true,
        ..look(1, quiet(600))
    };
    assert_eq!(falls(&[backup, busy], 2300), 0);
    assert_eq!(falls(&[look(3, quiet(600)), look(2, quiet(600))], 2900), 0);
}

/// A socket whose probes of a window go unanswered: the path has lost the subflow while the
/// peer's buffer was full, or this machine refuses to send.
#[test]
fn probes_without_an_answer_are_a_stall() {
    let socket = |unacked, probes| TcpSocket {
        cookie: 0,
        local: ends(1).0,
        remote: ends(1).1,
        state: 1,
        inode: 0,
        tcp: TcpInfo {
            unacked,
            probes,
            backoff: probes,
            rto_us: 280_000,
            rtt_us: 80_000,
            last_ack_recv_ms: 1_400,
            last_data_recv_ms: 1_400,
            last_data_sent_ms: 560,
            ..TcpInfo::default()
        },
        congestion_control: String::new(),
        queued_bytes: 0,
        send_buffer_bytes: 0,
        receive_buffer_bytes: 0,
        ulp: None,
    };
    let stalls = |s: TcpSocket| Progress::of(&s, Duration::ZERO).stalls();
    assert!(stalls(socket(0, 2)), "the third probe is due in 560 ms");
    assert!(!stalls(socket(0, 1)), "the second probe is due now");
    assert!(!stalls(socket(0, 0)), "nothing is outstanding");
    let late = Progress::of(&socket(0, 40), Duration::ZERO);
    assert_eq!(late.rto, RTO_MAX);
}
