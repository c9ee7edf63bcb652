//! Selection of the cell that each interface takes, second by second.

use std::time::Duration;

use super::super::delay::DelayModel;
use super::super::paths::{Now, Paths, STEP};
use super::{Attached, Case, Handover, NewAddress, Plan, Row, State};

/// An interface while a plan is made.
#[derive(Clone, Debug, Default)]
struct Interface {
    cell: Option<usize>,
    /// Another cell that carries more, and since which second.
    rival: Option<(usize, usize)>,
    /// Nothing passes until then.
    busy_until: Option<Duration>,
    /// The cell it was on last, and its address there.
    last: Option<usize>,
    address: u32,
}

/// The schedule of `case` over `paths`.
///
/// Case `sp` is on the best path in every second. Otherwise every interface
/// keeps its cell until that is not heard any more, or until another one carries
/// more by the hysteresis for the time to trigger: the same other one, on no
/// carrier of another interface. The interface with the worst cell chooses
/// first. An interface that lost its cell takes the best that is left. Only what
/// was known at a time decides.
///
/// # Errors
/// A parameter of `handover` is out of its range, or there is no second.
pub fn plan(
    paths: &Paths,
    case: Case,
    handover: &Handover,
    delay: &DelayModel,
) -> Result<Plan, String> {
    handover.check()?;
    if paths.seconds.is_empty() {
        return Err("no second in the recording".to_owned());
    }
    let mut maker = Maker {
        paths,
        handover,
        delay,
        interfaces: vec![Interface::default(); case.interfaces()],
        rows: Vec::new(),
        latest: vec![None; case.interfaces()],
    };
    for (second, now) in paths.seconds.iter().enumerate() {
        match case {
            Case::SinglePath => maker.follow_best(now),
            Case::Interfaces(_) => maker.choose(second, now),
        }
        maker.note(second, now);
    }
    let mut rows = maker.rows;
    rows.sort_by_key(|r| (r.at, r.interface));
    Ok(Plan {
        interfaces: case.interfaces(),
        length: at(paths.seconds.len()),
        rows,
    })
}

fn at(second: usize) -> Duration {
    STEP * u32::try_from(second).unwrap_or(u32::MAX)
}

struct Maker<'a> {
    paths: &'a Paths,
    handover: &'a Handover,
    delay: &'a DelayModel,
    interfaces: Vec<Interface>,
    rows: Vec<Row>,
    /// Per interface its latest row.
    latest: Vec<Option<usize>>,
}

impl Maker<'_> {
    fn follow_best(&mut self, now: &Now) {
        let i = &mut self.interfaces[0];
        i.cell = now.paths.first().map(|p| p.cell);
        i.address = 1;
    }

    fn choose(&mut self, second: usize, now: &Now) {
        for i in &mut self.interfaces {
            if i.cell.is_some_and(|c| now.rate_of(c).is_none()) {
                i.cell = None;
                i.busy_until = None;
                i.rival = None;
            }
        }
        for index in 0..self.interfaces.len() {
            if self.interfaces[index].cell.is_none()
                && let Some((cell, _)) = self.candidate(index, now)
            {
                self.attach(index, cell, second);
            }
        }
        let rate = |i: &Interface| i.cell.and_then(|c| now.rate_of(c));
        let mut order: Vec<usize> = (0..self.interfaces.len()).collect();
        order.sort_by_key(|i| rate(&self.interfaces[*i]));
        for index in order {
            let Some(present) = rate(&self.interfaces[index]) else {
                continue;
            };
            if self.interfaces[index].busy_until.is_some() {
                continue;
            }
            let wanted = present.scaled(1.0 + self.handover.hysteresis);
            let better = self.candidate(index, now).filter(|(_, r)| *r > wanted);
            let rival = self.interfaces[index].rival.take();
            let Some((cell, _)) = better else { continue };
            let since = rival.filter(|r| r.0 == cell).map_or(second, |r| r.1);
            if at(second - since) >= self.handover.time_to_trigger {
                self.attach(index, cell, second);
            } else {
                self.interfaces[index].rival = Some((cell, since));
            }
        }
    }

    /// The best cell that interface `index` could be on: its carrier is not that
    /// of another interface.
    fn candidate(&self, index: usize, now: &Now) -> Option<(usize, braid_core::Rate)> {
        let channel = |cell: usize| self.paths.cells[cell].channel;
        let others = self.interfaces.iter().enumerate();
        let taken: Vec<usize> = others
            .filter(|(i, _)| *i != index)
            .filter_map(|(_, i)| i.cell.map(channel))
            .collect();
        let free = now.heard.iter().find(|p| !taken.contains(&channel(p.cell)));
        free.map(|p| (p.cell, p.rate))
    }

    fn attach(&mut self, index: usize, cell: usize, second: usize) {
        let operator = |c: usize| &self.paths.cells[c].operator;
        let i = &mut self.interfaces[index];
        let new_address = match (i.last, self.handover.new_address) {
            (None, _) => true,
            (Some(_), NewAddress::Never) => false,
            (Some(l), NewAddress::Operator) => operator(l) != operator(cell),
            (Some(l), NewAddress::Cell) => l != cell,
        };
        i.address += u32::from(new_address);
        // The device is attached already when the recording begins.
        let begins = second == 0;
        let busy = !begins && !self.handover.interruption.is_zero();
        i.busy_until = busy.then(|| at(second) + self.handover.interruption);
        i.cell = Some(cell);
        i.last = Some(cell);
        i.rival = None;
    }

    /// Writes down what has changed.
    fn note(&mut self, second: usize, now: &Now) {
        for index in 0..self.interfaces.len() {
            let i = &self.interfaces[index];
            let Some((cell, rate)) = i.cell.and_then(|c| Some((c, now.rate_of(c)?))) else {
                self.row(at(second), index, State::Down);
                continue;
            };
            let c = &self.paths.cells[cell];
            let attached = Attached {
                operator: c.operator.clone(),
                carrier: c.carrier.clone(),
                cell: c.cell.clone(),
                rate,
                delay: self.delay.one_way(rate),
                address: i.address,
            };
            match i.busy_until {
                None => self.row(at(second), index, State::Up(attached)),
                Some(until) => {
                    if until > at(second) {
                        self.row(at(second), index, State::Handover(attached.clone()));
                    }
                    if until < at(second + 1) {
                        self.row(until, index, State::Up(attached));
                        self.interfaces[index].busy_until = None;
                    }
                }
            }
        }
    }

    fn row(&mut self, at: Duration, index: usize, state: State) {
        let interface = index + 1;
        let same = self.latest[index].map(|r| &self.rows[r]);
        // While on its way an interface has one row: nothing changes for it.
        let unchanged = same.is_some_and(|r| match (&r.state, &state) {
            (State::Handover(a), State::Handover(b)) => a.same_cell(b) && a.address == b.address,
            (a, b) => a == b,
        });
        if !unchanged {
            self.latest[index] = Some(self.rows.len());
            self.rows.push(Row {
                at,
                interface,
                state,
            });
        }
    }
}
