//! Steps from the rules and routes that the kernel has to those that are planned.
//!
//! Rules go before the routes that they lead to, and come after them. Whatever is not ours stays.

use super::view::{Route, Rule, View};

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Delete a rule of ours.
    DeleteRule(Rule),
    /// Delete a route of ours.
    DeleteRoute(Route),
    /// Add a route.
    AddRoute(Route),
    /// Add a rule.
    AddRule(Rule),
}

/// Returns the steps from `view` to these rules and routes of ours, and no others, in the order
/// in which they are to be taken.
pub fn steps(view: &View, rules: &[Rule], routes: &[Route]) -> Vec<Step> {
    let mut steps = Vec::new();
    let moved = out_of_order(view, rules);
    for rule in view.rules.iter().filter(|r| r.is_ours()) {
        if !rules.contains(rule) || moved.contains(rule) {
            steps.push(Step::DeleteRule(*rule));
        }
    }
    let ours: Vec<_> = view.routes.iter().filter(|r| r.is_ours()).collect();
    for route in &ours {
        if !routes.iter().any(|r| r.is_like(route)) {
            steps.push(Step::DeleteRoute(**route));
        }
    }
    for route in routes {
        if !ours.iter().any(|r| r.is_like(route)) {
            steps.push(Step::AddRoute(*route));
        }
    }
    for rule in rules {
        if moved.contains(rule) || !view.rules.iter().any(|r| r.is_like(rule)) {
            steps.push(Step::AddRule(*rule));
        }
    }
    steps
}

/// Returns the rules of ours for what is not bonded that have to be added anew. They have one
/// priority, and the kernel asks such rules in the order in which they came: one that is there
/// must not stand before one that is to be asked earlier, or has yet to come.
fn out_of_order(view: &View, rules: &[Rule]) -> Vec<Rule> {
    let mut moved = Vec::new();
    for v4 in [true, false] {
        let mut after = Some(0);
        let of_family = |r: &&Rule| r.is_for_unbonded() && r.source.addr().is_ipv4() == v4;
        for rule in rules.iter().filter(of_family) {
            let mut there = view.rules.iter();
            let Some(place) = there.position(|r| r.is_like(rule)) else {
                after = None;
                continue;
            };
            match after.is_some_and(|a| place >= a) {
                true => after = Some(place),
                false if view.rules[place].is_ours() => {
                    moved.push(*rule);
                    after = None;
                }
                // Somebody else's, which comes first anyway.
                false => {}
            }
        }
    }
    moved
}
