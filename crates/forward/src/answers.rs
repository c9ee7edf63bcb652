//! Answers of resolvers that come by, told before whoever has asked has them: so what goes by the
//! addresses in them ([`Divert::learn`](crate::divert::Divert::learn)) is ready when these are used.

use std::fmt;
use std::sync::Arc;

use braid_core::domain::{self, Answer};

type Told = dyn Fn(&Answer) + Send + Sync;

/// Listener to answers; the default does nothing.
#[derive(Clone, Default)]
pub struct Answers(Option<Arc<Told>>);

impl fmt::Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = if self.0.is_some() { "told" } else { "ignored" };
        f.debug_tuple("Answers").field(&told).finish()
    }
}

impl Answers {
    /// Makes a listener, which is to be quick: an answer waits for it.
    pub fn new(told: impl Fn(&Answer) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(told)))
    }

    /// Tells of a message, if it is an answer with addresses (RFC 1035 4).
    pub(crate) fn tell(&self, message: &[u8]) {
        if let Some(told) = &self.0
            && let Ok(answer) = domain::read(message)
            && !answer.addresses.is_empty()
        {
            told(&answer);
        }
    }
}
