//! Turns of messages and of streams, where both wait: each flow of messages and each stream has the
//! same share of the bytes.

/// Balance of the two.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Bytes that messages are ahead by, times both counts.
    lead: i64,
}

/// Bytes by which one may be ahead, times both counts at most.
const MOST: i64 = 1 << 40;

impl Turns {
    /// Whether it is the messages' turn.
    pub(super) fn is_messages(&self) -> bool {
        self.lead <= 0
    }

    /// Notes what has left while both waited: `flows` of messages and `streams`.
    pub(super) fn sent(&mut self, messages: bool, bytes: usize, flows: usize, streams: usize) {
        // Shares are as the counts.
        let cost = |n: usize| (bytes as i64).saturating_mul(n.max(1) as i64);
        let lead = match messages {
            true => self.lead.saturating_add(cost(streams)),
            false => self.lead.saturating_sub(cost(flows)),
        };
        self.lead = lead.clamp(-MOST, MOST);
    }

    /// Notes that one of them has nothing waiting: neither is ahead.
    pub(super) fn forget(&mut self) {
        self.lead = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_as_the_counts() {
        for (flows, streams) in [(1, 1), (3, 1), (2, 5)] {
            let mut turns = Turns::default();
            let mut sent = [0, 0];
            for _ in 0..10_000 {
                let messages = turns.is_messages();
                let bytes = if messages { 700 } else { 1200 };
                turns.sent(messages, bytes, flows, streams);
                sent[usize::from(messages)] += bytes;
            }
            let share = sent[1] as f64 / (sent[0] + sent[1]) as f64;
            let wanted = flows as f64 / (flows + streams) as f64;
            assert!((share - wanted).abs() < 0.01, "{flows} {streams}: {share}");
        }
    }
}
