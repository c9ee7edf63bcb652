//! Shares by weight to within one quantum, which is a burst: what `rr` and `wrr` have in
//! common.
//!
//! Worst-case fair weighted fair queueing turned around (WF2Q; Bennett and Zhang,
//! INFOCOM 1996): paths are served instead of flows. Of those that are not ahead
//! of their share, the one whose next quantum is due first is next. No path is
//! ever more than a quantum ahead of its share of what has been sent, nor behind.

use super::WrrMode;
use super::{Decision, PathView, Paths, Until};

/// Account of one path: what it has been given since the shares changed last.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Account {
    id: u32,
    weight: f64,
    served: f64,
}

/// Accounts of all paths, which tell whose turn it is.
#[derive(Clone, Debug)]
pub(super) struct Round {
    mode: WrrMode,
    accounts: Vec<Account>,
}

impl Round {
    pub(super) fn new(mode: WrrMode) -> Self {
        Self {
            mode,
            accounts: Vec::new(),
        }
    }

    /// Decides, with `weight` of each path.
    pub(super) fn decide(
        &mut self,
        paths: &[PathView],
        weight: impl Fn(&PathView) -> f64,
    ) -> Decision {
        let members = members(paths, &weight);
        if members.is_empty() {
            return Decision::Wait(Until::Path);
        }
        self.follow(paths, &members);
        let strict = self.mode == WrrMode::Strict;
        let may = |n: &usize| strict || paths[members[*n].0].has_room();
        let candidates: Vec<usize> = (0..members.len()).filter(may).collect();
        let Some(virtual_time) = self.virtual_time(&candidates) else {
            return Decision::Wait(Until::AnyRoom);
        };
        let quantum = |n: usize| paths[members[n].0].burst() as f64;
        if !strict {
            // Credit of those without room ends after one quantum.
            for (n, a) in self.accounts.iter_mut().enumerate() {
                a.served = a.served.max(a.weight * virtual_time - quantum(n));
            }
        }
        let due = |n: usize| (self.accounts[n].served + quantum(n)) / self.accounts[n].weight;
        let behind = |n: &usize| {
            let a = self.accounts[*n];
            // As far as sums of floating-point numbers tell.
            a.served <= a.weight * virtual_time * (1.0 + 1e-12) + 1e-6
        };
        let next = candidates.into_iter().filter(behind);
        let Some(n) = next.min_by(|a, b| due(*a).total_cmp(&due(*b))) else {
            return Decision::Wait(Until::AnyRoom);
        };
        let (path, _) = members[n];
        match paths[path].has_room() {
            true => Decision::Send {
                path,
                most: quantum(n) as u64,
            },
            false => Decision::Wait(Until::Room(path)),
        }
    }

    /// Where the ratio is only aimed at, any: the others catch up.
    pub(super) fn free_for_lost(
        &self,
        paths: &[PathView],
        weight: impl Fn(&PathView) -> f64,
    ) -> Option<Paths> {
        let members = || members(paths, &weight).into_iter().map(|(i, _)| i);
        (self.mode == WrrMode::WorkConserving).then(|| members().collect())
    }

    /// `bytes` have left on the path `id`.
    pub(super) fn sent(&mut self, id: u32, bytes: u64) {
        if let Some(a) = self.accounts.iter_mut().find(|a| a.id == id) {
            a.served += bytes as f64;
        }
    }

    /// Begins anew where members or weights are others than before.
    fn follow(&mut self, paths: &[PathView], members: &[(usize, f64)]) {
        let now = members.iter().map(|(i, w)| (paths[*i].id, *w));
        let before = self.accounts.iter().map(|a| (a.id, a.weight));
        if now.clone().eq(before) {
            // Differences alone count; large sums would lose them.
            if self.accounts.iter().any(|a| a.served > 1e12) {
                self.rebase();
            }
            return;
        }
        let account = |(id, weight)| Account {
            id,
            weight,
            served: 0.0,
        };
        self.accounts = now.map(account).collect();
    }

    fn rebase(&mut self) {
        let of = |a: &Account| a.served / a.weight;
        let least = self.accounts.iter().map(of).fold(f64::INFINITY, f64::min);
        for a in &mut self.accounts {
            a.served -= a.weight * least;
        }
    }

    /// How far a fluid would be that serves the candidates at once; none without any.
    fn virtual_time(&self, candidates: &[usize]) -> Option<f64> {
        let all = || candidates.iter().map(|n| self.accounts[*n]);
        let weight: f64 = all().map(|a| a.weight).sum();
        (!candidates.is_empty()).then(|| all().map(|a| a.served).sum::<f64>() / weight)
    }
}

/// Number and weight of the usable paths of the best rank that there is: primaries
/// with a weight, backups with one, primaries of weight 0, backups of weight 0. Those
/// of weight 0 count alike.
fn members(paths: &[PathView], weight: &impl Fn(&PathView) -> f64) -> Vec<(usize, f64)> {
    let of = |zero: bool, backup: bool| -> Vec<(usize, f64)> {
        let all = paths.iter().enumerate();
        let mine = all.filter(|(_, p)| p.usable && p.backup == backup && (weight(p) > 0.0) != zero);
        mine.map(|(i, p)| (i, if zero { 1.0 } else { weight(p) }))
            .collect()
    };
    let ranks = [(false, false), (false, true), (true, false), (true, true)];
    let mut found = ranks.into_iter().map(|(zero, backup)| of(zero, backup));
    found.find(|f| !f.is_empty()).unwrap_or_default()
}
