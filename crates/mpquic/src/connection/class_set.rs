//! Classes of a connection: a scheduler each, with the paths as the class sees them, and whose turn
//! it is to send.

use std::collections::BTreeMap;
use std::time::Duration;

use braid_core::class::{ClassSteering, DEFAULT_NUMBER, MAX_CLASSES};
use braid_core::sched::{Measured, PathView, Scheduler, ThresholdGate, Thresholds, confine};

use super::access_set::AccessSet;
use crate::steering::{Schedulers, Steering};

/// Steering of a class.
pub(super) struct Class {
    pub(super) scheduler: Box<dyn Scheduler>,
    /// Whether what blocks the receiver is reinjected.
    pub(super) reinjects: bool,
    /// Difference from how the accesses are steered; none of the default class.
    terms: Option<Terms>,
}

/// Terms of a class beside its scheduler.
struct Terms {
    steering: ClassSteering,
    thresholds: Thresholds,
    gate: ThresholdGate,
    /// Paths as the class sees them; kept for their room.
    views: Vec<PathView>,
}

/// Access of a path, and how many paths share its weight.
pub(super) type Place = (Option<usize>, f64);

impl Class {
    /// Makes the default class.
    fn default_of(scheduler: Box<dyn Scheduler>, reinjects: bool) -> Self {
        Self {
            scheduler,
            reinjects,
            terms: None,
        }
    }

    /// Makes a class with a steering of its own.
    fn new(steering: ClassSteering, scheduler: Box<dyn Scheduler>) -> Self {
        Self {
            scheduler,
            reinjects: steering.reinject,
            terms: Some(Terms {
                thresholds: steering.thresholds(),
                gate: ThresholdGate::default(),
                views: Vec::new(),
                steering,
            }),
        }
    }

    /// Returns the scheduler, and the paths as the class saw them last.
    fn shown<'a>(&'a mut self, all: &'a [PathView]) -> (&'a mut dyn Scheduler, &'a [PathView]) {
        let views = self.terms.as_ref().map_or(all, |t| &t.views);
        (&mut *self.scheduler, views)
    }
}

impl Terms {
    fn show(
        &mut self,
        all: &[PathView],
        places: &[Place],
        accesses: &AccessSet,
        measured: impl Fn(&PathView) -> Measured,
    ) {
        self.views.clear();
        self.views.extend_from_slice(all);
        for (view, (access, beside)) in self.views.iter_mut().zip(places) {
            let name = access.map(|i| &*accesses[i].name);
            if let Some(weight) = name.and_then(|name| self.steering.weight(name)) {
                view.weight = weight / beside;
            }
            // A path of no access has no name, and comes behind all that have one.
            let place = self.steering.place(name.unwrap_or_default());
            view.priority = place.unwrap_or(view.priority);
        }
        if self.steering.is_confined() {
            confine(&mut self.views);
        }
        match (self.thresholds.is_empty(), self.steering.leaves_out()) {
            (true, _) => {}
            (false, true) => self.gate.apply(&self.thresholds, &mut self.views, measured),
            (false, false) => self.gate.mark(&self.thresholds, &mut self.views, measured),
        }
    }
}

/// Classes by their numbers. Data of a class that is not there is scheduled as the default's.
pub(super) struct ClassSet {
    default: Class,
    others: BTreeMap<u8, Class>,
    turns: ClassTurns,
}

impl ClassSet {
    /// Makes the classes of a steering with the schedulers that it made.
    pub(super) fn new(steering: &Steering, made: Schedulers) -> Self {
        let others = made.others.into_iter().filter_map(|(number, scheduler)| {
            let own = steering.classes.get(&number)?.clone();
            Some((number, Class::new(own, scheduler)))
        });
        Self {
            default: Class::default_of(made.default, steering.reinject),
            others: others.collect(),
            turns: ClassTurns::default(),
        }
    }

    /// Replaces all classes; their turns go on.
    pub(super) fn set(&mut self, steering: &Steering, made: Schedulers) {
        let turns = std::mem::take(&mut self.turns);
        *self = Self {
            turns,
            ..Self::new(steering, made)
        };
    }

    /// Returns a class, or the default.
    fn get(&mut self, class: u8) -> &mut Class {
        match self.others.get_mut(&class) {
            Some(own) => own,
            None => &mut self.default,
        }
    }

    /// Returns the default class.
    pub(super) fn default_mut(&mut self) -> &mut Class {
        &mut self.default
    }

    /// Whether there are others than the default.
    pub(super) fn has_others(&self) -> bool {
        !self.others.is_empty()
    }

    fn thresholds(&self) -> impl Iterator<Item = &Thresholds> {
        let terms = self.others.values().filter_map(|c| c.terms.as_ref());
        terms.map(|t| &t.thresholds).filter(|t| !t.is_empty())
    }

    /// Whether a class has thresholds.
    pub(super) fn has_thresholds(&self) -> bool {
        self.thresholds().next().is_some()
    }

    /// Whether a path of this round-trip time may carry again by all thresholds.
    pub(super) fn let_return(&self, rtt: Duration) -> bool {
        self.thresholds().all(|t| t.lets_return(rtt))
    }

    /// Shows a class the paths as they are.
    pub(super) fn show(
        &mut self,
        class: u8,
        all: &[PathView],
        places: &[Place],
        accesses: &AccessSet,
        measured: impl Fn(&PathView) -> Measured,
    ) {
        if let Some(terms) = &mut self.get(class).terms {
            terms.show(all, places, accesses, measured);
        }
    }

    /// Returns the scheduler of a class, and the paths as the class saw them last.
    pub(super) fn shown<'a>(
        &'a mut self,
        class: u8,
        all: &'a [PathView],
    ) -> (&'a mut dyn Scheduler, &'a [PathView]) {
        self.get(class).shown(all)
    }

    /// Whether what blocks the receiver is reinjected in a class.
    pub(super) fn reinjects(&mut self, class: u8) -> bool {
        self.get(class).reinjects
    }

    /// Whether what blocks the receiver is reinjected in any class.
    pub(super) fn any_reinjects(&self) -> bool {
        self.default.reinjects || self.others.values().any(|c| c.reinjects)
    }

    /// Returns whose turn it is.
    pub(super) fn turns(&mut self) -> &mut ClassTurns {
        &mut self.turns
    }
}

/// Turns of classes: each stream and each flow of messages has the same share, whatever its class.
/// A class that has just begun to wait goes first.
#[derive(Debug, Default)]
pub(super) struct ClassTurns {
    /// Bytes that each class has sent for each of its streams and flows.
    served: [f64; MAX_CLASSES],
    /// Whether each waited when turns were asked for last.
    waited: [bool; MAX_CLASSES],
}

/// Classes in an order.
pub(super) type Order = ([u8; MAX_CLASSES], usize);

impl ClassTurns {
    /// Returns those of the first `classes` that wait, the one whose turn it is in front.
    pub(super) fn order(&mut self, classes: u8, waits: impl Fn(u8) -> bool) -> Order {
        if classes <= 1 {
            return (
                [DEFAULT_NUMBER; MAX_CLASSES],
                usize::from(waits(DEFAULT_NUMBER)),
            );
        }
        let (mut all, mut count) = ([DEFAULT_NUMBER; MAX_CLASSES], 0);
        let mut waiting = [false; MAX_CLASSES];
        for class in 0..classes.min(MAX_CLASSES as u8) {
            if waits(class) {
                waiting[usize::from(class)] = true;
                all[count] = class;
                count += 1;
            }
        }
        let stay = (0..MAX_CLASSES).filter(|i| waiting[*i] && self.waited[*i]);
        let least = stay.map(|i| self.served[i]).reduce(f64::min);
        let is_new = |class: u8| !self.waited[usize::from(class)];
        for class in all[..count].iter().filter(|c| is_new(**c)) {
            // Nothing is saved up while nothing waits.
            let served = &mut self.served[usize::from(*class)];
            *served = served.max(least.unwrap_or(0.0));
        }
        let served = &self.served;
        let key = |class: &u8| (served[usize::from(*class)], !is_new(*class));
        all[..count].sort_by(|a, b| {
            key(a)
                .partial_cmp(&key(b))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        self.waited = waiting;
        (all, count)
    }

    /// Notes that a class with so many streams and flows has sent, after `asked` had their turn and
    /// sent nothing: these save up nothing for when they can.
    pub(super) fn sent(&mut self, class: u8, bytes: usize, active: usize, asked: &[u8]) {
        let Some(served) = self.served.get_mut(usize::from(class)) else {
            return;
        };
        *served += bytes as f64 / active.max(1) as f64;
        let served = *served;
        for class in asked {
            let of = &mut self.served[usize::from(*class)];
            *of = of.max(served);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_share_by_what_is_active_and_the_one_that_begins_goes_first() {
        let mut turns = ClassTurns::default();
        let mut sent = [0; 4];
        let active = [0, 3, 1, 1];
        for n in 0..4000 {
            // The last one waits now and then, for one packet.
            let sparse = n % 100 == 7;
            let (order, count) = turns.order(8, |c| c == 1 || c == 2 || (c == 3 && sparse));
            assert_eq!(count, 2 + usize::from(sparse));
            let class = order[0];
            assert!(!sparse || class == 3, "{n}: {:?}", &order[..count]);
            sent[usize::from(class)] += 1000;
            turns.sent(class, 1000, active[usize::from(class)], &[]);
        }
        assert_eq!(sent[3], 40_000);
        let ratio = f64::from(sent[1]) / f64::from(sent[2]);
        assert!((2.9..3.1).contains(&ratio), "{sent:?}");
        // What rested for long has no claim to what the others sent meanwhile.
        let (order, _) = turns.order(8, |c| c <= 1);
        assert_eq!(order[0], 0);
        turns.sent(0, 5000, 1, &[]);
        let mut in_a_row = 0;
        while turns.order(8, |c| c <= 1).0[0] == 0 {
            turns.sent(0, 1000, 1, &[]);
            in_a_row += 1;
        }
        assert!(in_a_row < 5, "{in_a_row}");
        // One that could not send for long saves up nothing, either.
        for _ in 0..10_000 {
            let (order, _) = turns.order(8, |c| c <= 1);
            turns.sent(1, 1000, 1, if order[0] == 0 { &[0] } else { &[] });
        }
        let mut sent = [0; 2];
        for _ in 0..100 {
            let (order, _) = turns.order(8, |c| c <= 1);
            turns.sent(order[0], 1000, 1, &[]);
            sent[usize::from(order[0])] += 1;
        }
        assert!(sent[0] <= 52 && sent[1] <= 52, "{sent:?}");
    }
}
