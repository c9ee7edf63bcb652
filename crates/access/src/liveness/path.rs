//! One address as the detector sees it.

mod tcp_probing;

use std::collections::VecDeque;
use std::time::Duration;

use braid_core::Time;

use super::tcp_probe::{TcpProbes, first_tcp_probe};
use super::{
    By, DETECT_MARGIN, DETECT_MULT, FAST_RECOVERY_FOR, IDLE_POLL, Sample, TX_INTERVAL_ACTIVE,
    TX_INTERVAL_EAGER,
};

/// Round trip that is assumed before one was measured.
const UNKNOWN_RTT: Duration = Duration::from_millis(50);
/// Probes that are remembered.
const KEPT: usize = 64;
/// Answers in a row that bring a path back, and the most that are ever asked for.
const ANSWERS: u32 = 2;
const ANSWERS_MAX: u32 = 32;
/// One that has answered is asked again this soon after, ms, unless it died lately.
const CONFIRM: u64 = 15;
/// A path is asked early ([`TX_INTERVAL_EAGER`]) so often at most: what pauses all the time, as
/// speech does, is not doubled.
const EAGER_EVERY: Duration = Duration::from_millis(250);
/// A path that dies again within this long needs twice as many.
const FLAP: Duration = Duration::from_secs(5);
/// One that lives this long needs [`ANSWERS`] again.
const STEADY: Duration = Duration::from_secs(30);
/// First and longest wait before a path is tried again that nobody can ask.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Pause between probes of a path on which nothing has come back yet: the first ones, and
/// later ones.
const FIRST_CONTACT: Duration = Duration::from_secs(1);
const FIRST_CONTACT_LATER: Duration = Duration::from_secs(5);
/// First ones.
const FIRST_CONTACTS: u32 = 30;
/// Probes without an answer, while data comes, by which the responder is gone.
const GONE: u32 = 4;

/// A question that was not answered yet.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u32,
    at: Time,
    by_tcp: bool,
}

#[derive(Debug)]
pub(super) struct Path {
    sample: Sample,
    /// The last sign of life of any kind.
    life: Time,
    /// The last one by an acknowledgement or data.
    tcp_life: Time,
    /// Silence counts from here at the earliest.
    floor: Time,
    sent: VecDeque<Sent>,
    number: u32,
    last_probe: Option<Time>,
    /// When a path was last asked before [`TX_INTERVAL_ACTIVE`] of quiet.
    eager: Option<Time>,
    /// Questions that count, sent since the last sign of life, and the first of them.
    open: u32,
    first_open: Option<Time>,
    /// Since when data was seen unacknowledged, without a sign of life since.
    unacked: Option<Time>,
    /// Probes are answered here.
    answers: bool,
    /// When the last question was sent that was answered.
    answered: Option<Time>,
    /// Probes sent since the last answer; while it is silent, since data came all the same.
    unanswered: u32,
    /// When they became [`GONE`].
    in_vain: Option<Time>,
    min_rtt: Option<Duration>,
    /// Round trip of the last answered probe for which it is known.
    last_rtt: Option<Duration>,
    silent: Option<Time>,
    in_a_row: u32,
    wanted: u32,
    returned: Option<Time>,
    retry: Duration,
    tcp_probes: TcpProbes,
    /// How often it is asked while nothing flows, if at all.
    rest: Option<Duration>,
    /// Whether anything has come back on it.
    proven: bool,
    /// Whether it is asked, without any subflow, until something has come back.
    first_contact: bool,
}

impl Path {
    pub(super) fn new(now: Time) -> Self {
        Self {
            sample: Sample::default(),
            life: now,
            tcp_life: Time::ZERO,
            floor: now,
            sent: VecDeque::new(),
            number: 0,
            last_probe: None,
            eager: None,
            open: 0,
            first_open: None,
            unacked: None,
            answers: false,
            answered: None,
            unanswered: 0,
            in_vain: None,
            min_rtt: None,
            last_rtt: None,
            silent: None,
            in_a_row: 0,
            wanted: ANSWERS,
            returned: None,
            retry: RETRY,
            tcp_probes: TcpProbes::new(),
            rest: Some(IDLE_POLL),
            proven: false,
            first_contact: false,
        }
    }

    pub(super) fn first_contact(&mut self, asked: bool) {
        self.first_contact = asked;
    }

    pub(super) fn proven(&mut self, proven: bool) {
        self.proven = proven;
    }

    /// Whether it is asked for a first sign of life.
    fn is_unproven(&self) -> bool {
        self.first_contact && !self.proven && self.rest.is_some()
    }

    pub(super) fn rest(&mut self, every: Option<Duration>) {
        self.rest = every;
    }

    fn lives(&mut self, at: Time) {
        if at > self.life {
            self.life = at;
            self.unacked = None;
            // What came before something was asked does not answer it, though it is seen
            // only now.
            if self.first_open.is_none_or(|asked| at >= asked) {
                if self.tcp_probing() {
                    let idle = at.since(self.tcp_life) > IDLE_POLL;
                    self.tcp_probes.lived(at, idle);
                }
                self.close_all();
            }
        }
    }

    pub(super) fn sample(&mut self, sample: Sample, now: Time) {
        if sample.subflows > 0 {
            self.proven = true;
            let at = now - sample.quiet;
            self.lives(at);
            self.tcp_life = self.tcp_life.max(at);
        }
        if let Some(rtt) = sample.min_rtt {
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |m| m.min(rtt)));
        }
        match sample.unacked {
            true => {
                self.unacked.get_or_insert(now);
            }
            false => self.unacked = None,
        }
        if sample.subflows > 0 && sample.quiet < IDLE_POLL {
            self.tcp_probes.used(now);
        }
        // Whoever is asked about a silence stays the same until that is over.
        if self.silent.is_none() && !self.tcp_probing() {
            self.tcp_probes.leads(sample.remote);
        }
        self.sample = sample;
    }

    /// To a question of this kind; says how long it took.
    pub(super) fn answer(&mut self, number: u32, by: By, now: Time) -> Option<Duration> {
        let by_tcp = by != By::Probe;
        let asked = |s: &Sent| (s.number, s.by_tcp) == (number, by_tcp);
        let at = self.sent.iter().position(asked)?;
        let sent = self.sent.remove(at)?;
        let took = now.since(sent.at);
        self.answered = self.answered.max(Some(sent.at));
        self.proven = true;
        let rtt = match by {
            By::Probe => Some(took),
            // A path that is out for want of patience has to be met with more of it.
            By::Tcp(rtt) => rtt.or(self.silent.map(|_| took)),
        };
        if !by_tcp {
            self.answers = true;
            self.unanswered = 0;
            self.in_vain = None;
        }
        if let Some(rtt) = rtt {
            self.last_rtt = Some(rtt);
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |m| m.min(rtt)));
        }
        self.lives(now);
        if let Some(since) = self.silent {
            // An answer that was on its way when the path was given up says
            // nothing about now.
            self.in_a_row += u32::from(sent.at >= since);
            // Older ones tell of an older time.
            self.sent.retain(|s| s.at > sent.at);
        }
        Some(took)
    }

    /// Silence before now does not count.
    pub(super) fn forgive(&mut self, now: Time) {
        self.floor = now;
    }

    /// The path carries data and its probes are not answered, be it silent or not.
    pub(super) fn responder_is_gone(&self) -> bool {
        let life = |t| self.tcp_life > t + self.detect_time();
        self.answers && self.in_vain.is_some_and(life)
    }

    /// Whether probes were answered here, as far as is known.
    pub(super) fn answers(&self) -> bool {
        self.answers
    }

    /// When the last packet was sent that was answered, as far as is known; `None` while the
    /// path is silent. Where nobody answers probes, what came of other subflows counts, as the
    /// answer to what was sent a second before: how long it took is not known.
    pub(super) fn answered(&self) -> Option<Time> {
        if self.silent.is_some() {
            return None;
        }
        let carried = (!self.answers).then(|| self.tcp_life - IDLE_POLL);
        self.answered.max(carried)
    }

    pub(super) fn without_answers(&mut self) {
        self.answers = false;
        self.close_all();
        self.sent.clear();
    }

    /// Silence that is death on a path without a queue, less [`DETECT_MARGIN`].
    fn least(&self) -> Duration {
        self.min_rtt.unwrap_or(UNKNOWN_RTT) * DETECT_MULT
    }

    /// How much longer than without a queue a silence lasts until an answer can have come to what
    /// was asked after this pause, the queue having grown a little.
    fn wanting(&self, pause: Duration) -> Duration {
        let expected = pause + self.last_rtt.map(|rtt| rtt * 5 / 4).unwrap_or_default();
        expected.saturating_sub(self.least() + DETECT_MARGIN)
    }

    /// How long a silence is death.
    fn detect_time(&self) -> Duration {
        let least = self.least();
        // Where nothing of ours flows, or not all the time, a queue filled by others tells
        // itself only by the time that the last probe took.
        let asked = self.first_open.map_or(self.life, |t| t.max(self.life));
        let idle = asked.since(self.tcp_life) > IDLE_POLL;
        let queued = self.last_rtt.map(|rtt| rtt + rtt / 2).unwrap_or_default();
        let limit = match idle {
            true => least.max(queued),
            // What flows has a queue of its own as well, and that is no reason for patience: only
            // where no answer can come within the bound, the bound grows by twice what is wanting.
            false => {
                let pause = match self.first_open {
                    Some(_) => asked.since(self.life).min(TX_INTERVAL_ACTIVE),
                    None => TX_INTERVAL_ACTIVE,
                };
                least.max(queued.min(least + self.wanting(pause) * 2))
            }
        } + DETECT_MARGIN;
        match idle && !self.answers && self.silent.is_none() {
            // Its radio may sleep, and no probe has told of a queue. Nothing is urgent there.
            true => limit.max(IDLE_POLL),
            false => limit,
        }
    }

    /// Since when something is outstanding without a sign of life.
    fn quiet_since(&self) -> Option<Time> {
        let first = match (self.first_open, self.unacked) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        // What was asked right after a sign of life was asked about that time.
        let since = match first.since(self.life) <= TX_INTERVAL_ACTIVE + TX_INTERVAL_ACTIVE / 2 {
            true => self.life,
            // By TCP a silence is asked about that is there already.
            false if self.tcp_probing() => {
                self.life.max(first - first_tcp_probe(self.detect_time()))
            }
            false => first,
        };
        Some(since.max(self.floor))
    }

    fn is_dead(&self, now: Time) -> bool {
        let asked = (self.answers || self.tcp_probes.vouched().is_some()) && self.open >= 2;
        let timed_out = self.unacked.is_some() && self.sample.timeouts > 0;
        (asked || timed_out)
            && self
                .quiet_since()
                .is_some_and(|t| now.since(t) >= self.detect_time())
    }

    /// `Some(true)`: it just died; `Some(false)`: it is back.
    pub(super) fn judge(&mut self, now: Time, busy: bool) -> Option<bool> {
        if self.returned.is_some_and(|t| now.since(t) > STEADY) {
            self.wanted = ANSWERS;
            self.retry = RETRY;
            self.returned = None;
        }
        match self.silent {
            None if self.is_dead(now) => {
                if self.returned.is_some_and(|t| now.since(t) < FLAP) {
                    self.wanted = (self.wanted * 2).min(ANSWERS_MAX);
                }
                self.silent = Some(now);
                self.in_a_row = 0;
                // These may have been lost with the path.
                self.unanswered = 0;
                self.in_vain = None;
                Some(true)
            }
            Some(since) => {
                // Probes that nobody answers are not lost.
                let lost = self.sent.iter().any(|s| {
                    (s.by_tcp || self.answers)
                        && s.at >= since.max(self.floor)
                        && now.since(s.at) >= self.detect_time()
                });
                if lost {
                    self.in_a_row = 0;
                    let limit = self.detect_time();
                    self.sent.retain(|s| now.since(s.at) < limit);
                }
                let (from, patience) = match self.tcp_probes.vouched().filter(|_| busy) {
                    Some(t) => (since.max(t), RETRY_MAX),
                    None => (since, self.retry),
                };
                let blind = !self.answers && now.since(from) >= patience;
                if self.in_a_row < self.wanted && !blind {
                    return None;
                }
                if blind {
                    self.retry = (self.retry * 2).min(RETRY_MAX);
                }
                self.silent = None;
                self.tcp_probes.returned();
                self.returned = Some(now);
                self.life = now;
                self.floor = now;
                self.close_all();
                self.unacked = None;
                Some(false)
            }
            None => None,
        }
    }

    /// When the next probe is due.
    fn probe_due(&self, busy: bool) -> Time {
        let Some(last) = self.last_probe else {
            let wanted = self.sample.subflows > 0 || self.silent.is_some() || self.is_unproven();
            return if wanted { Time::ZERO } else { Time::MAX };
        };
        let ms = |n| last + Duration::from_millis(n);
        if let Some(since) = self.silent {
            let confirms = self.in_a_row > 0 && self.wanted == ANSWERS && self.sent.is_empty();
            return match last.since(since) < FAST_RECOVERY_FOR {
                _ if confirms => ms(CONFIRM),
                _ if !busy => ms(500),
                true => ms(50),
                false => ms(250),
            };
        }
        if self.sample.subflows == 0 {
            return match (self.is_unproven(), self.number < FIRST_CONTACTS) {
                (true, true) => last + FIRST_CONTACT,
                (true, false) => last + FIRST_CONTACT_LATER,
                (false, _) => Time::MAX,
            };
        }
        let idle = self.rest.map_or(Time::MAX, |every| last + every);
        let in_use = self.open > 0 || self.unacked.is_some() || self.tcp_life + IDLE_POLL > last;
        match (self.answers, in_use) {
            (false, _) if self.number < 10 => ms(200),
            (true, true) => ms(1000)
                .min(self.life.max(last) + TX_INTERVAL_ACTIVE)
                .min(self.eager_due()),
            (false, true) => ms(1000),
            (_, false) => idle,
        }
    }

    /// When the first question about a silence is due before [`TX_INTERVAL_ACTIVE`] of quiet: never
    /// where an answer comes in time all the same, so that sockets are not looked at as often.
    fn eager_due(&self) -> Time {
        if self.open > 0 || self.wanting(TX_INTERVAL_ACTIVE).is_zero() {
            return Time::MAX;
        }
        let early = self.life + TX_INTERVAL_EAGER;
        self.eager
            .map_or(early, |last| early.max(last + EAGER_EVERY))
    }

    /// The number of the probe to send, if one is due.
    pub(super) fn ask(&mut self, now: Time, busy: bool) -> Option<u32> {
        if self.probe_due(busy) > now {
            return None;
        }
        if self.answers {
            if self.eager_due() <= now {
                self.eager = Some(now);
            }
            self.opens(now);
        }
        self.last_probe = Some(now);
        if self.silent.is_none_or(|since| self.tcp_life > since) {
            self.unanswered = self.unanswered.saturating_add(1);
            if self.unanswered == GONE {
                self.in_vain = Some(now);
            }
        }
        Some(self.send(now, false))
    }

    /// Stops counting the probes sent so far.
    fn close_all(&mut self) {
        self.open = 0;
        self.first_open = None;
    }

    /// One more question counts.
    fn opens(&mut self, now: Time) {
        self.open += 1;
        self.first_open.get_or_insert(now);
    }

    /// The number of a question that is sent.
    fn send(&mut self, at: Time, by_tcp: bool) -> u32 {
        self.number = self.number.wrapping_add(1);
        if self.sent.len() == KEPT {
            self.sent.pop_front();
        }
        let number = self.number;
        self.sent.push_back(Sent { number, at, by_tcp });
        number
    }

    /// When something is to be decided or sent.
    pub(super) fn due(&self, now: Time, busy: bool) -> Time {
        let death = match (self.silent, self.quiet_since()) {
            (None, Some(t)) => Some(t + self.detect_time()),
            _ => None,
        };
        // What is overdue waits for something else: for a life of another path, for a timer.
        let later = [death.unwrap_or(Time::MAX), self.tcp_probe_due(busy)];
        let later = later.into_iter().filter(|t| *t > now);
        later.fold(self.probe_due(busy), Time::min)
    }

    pub(super) fn subflows(&self) -> u32 {
        self.sample.subflows
    }

    pub(super) fn silent_since(&self) -> Option<Time> {
        self.silent
    }

    pub(super) fn last_rtt(&self) -> Option<Duration> {
        self.last_rtt
    }
}
