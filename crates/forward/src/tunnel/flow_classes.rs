//! Classes of the flows of one device, at the proxy: what comes back of a flow is of the class that it
//! had on its way out.

use std::collections::HashMap;

use braid_core::class::DEFAULT_NUMBER;

/// Flows that are learned before those are forgotten that were not seen since as many others were.
const GENERATION: usize = 4096;

/// Classes by the number of the flow; those that are not here are the default.
#[derive(Debug, Default)]
pub(super) struct FlowClasses {
    young: HashMap<u32, u8>,
    old: HashMap<u32, u8>,
}

impl FlowClasses {
    /// Takes the class of a packet that came from the device.
    pub(super) fn learn(&mut self, flow: impl FnOnce() -> u32, class: u8) {
        if class == DEFAULT_NUMBER {
            // As a rule there is nothing to forget.
            if self.young.is_empty() && self.old.is_empty() {
                return;
            }
            let flow = flow();
            if self.class(flow) != DEFAULT_NUMBER {
                self.young.remove(&flow);
                self.old.remove(&flow);
            }
            return;
        }
        self.young.insert(flow(), class);
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
    }

    /// Returns the class of a flow.
    pub(super) fn class(&self, flow: u32) -> u8 {
        let known = self.young.get(&flow).or_else(|| self.old.get(&flow));
        known.copied().unwrap_or(DEFAULT_NUMBER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_has_the_class_that_it_had_last_and_few_are_remembered() {
        let mut classes = FlowClasses::default();
        assert_eq!(classes.class(7), 0);
        classes.learn(|| panic!("nobody asks"), 0);
        classes.learn(|| 7, 3);
        assert_eq!((classes.class(7), classes.class(8)), (3, 0));
        classes.learn(|| 7, 5);
        assert_eq!(classes.class(7), 5);
        for flow in 0..10 * GENERATION as u32 {
            classes.learn(|| 1000 + flow, 1);
            // It goes on.
            if flow % 100 == 0 {
                classes.learn(|| 7, 5);
            }
            assert!(classes.young.len() + classes.old.len() <= 2 * GENERATION);
        }
        assert_eq!((classes.class(7), classes.class(1000)), (5, 0));
        classes.learn(|| 7, 0);
        assert_eq!(classes.class(7), 0);
    }
}
