//! Observe, decide, apply: the task that samples the paths of an end.

use std::sync::Arc;
use std::time::Duration;

use braid_core::{AccessState, Time};

use super::{Control, Decided, Pace, Reading};
use crate::DaemonError;
use crate::state::now;

/// Interval of samples while there is traffic.
const SAMPLE: Duration = Duration::from_millis(100);
/// Interval while there are connections without traffic.
const IDLE: Duration = Duration::from_secs(1);

/// Paths and accesses of an end at one moment.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Every path on which this end may send.
    pub(crate) paths: Vec<Reading>,
    /// State of each access, none where nothing tells it. An access that is left out keeps its
    /// state.
    pub(crate) states: Vec<(String, Option<AccessState>)>,
}

/// End whose weights a policy may decide.
pub(crate) trait Steered: Send + Sync + 'static {
    fn control(&self) -> &Control;

    /// Looks at its paths and accesses.
    fn look(&self) -> Result<Look, DaemonError>;

    /// Sets what was decided, for all connections.
    fn steer(&self, decided: &Decided) -> impl Future<Output = Result<(), DaemonError>> + Send;
}

/// Runs the loop for ever. At rest it waits: without connections, and under a policy that needs
/// no samples.
pub(crate) async fn run<S: Steered>(state: Arc<S>) -> DaemonError {
    let control = state.control();
    loop {
        let pace = match control.samples() {
            true => once(&*state).await,
            false => Pace::Rest,
        };
        let wait = match pace {
            Pace::Traffic => SAMPLE,
            Pace::Idle => IDLE,
            Pace::Rest => {
                control.woken().await;
                continue;
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = control.woken() => {}
        }
    }
}

async fn once<S: Steered>(state: &S) -> Pace {
    let control = state.control();
    let look = match state.look() {
        Ok(look) => look,
        Err(e) => {
            control.trouble(Some(format!("paths cannot be sampled: {e}")));
            return Pace::Idle;
        }
    };
    let (decided, pace) = control.sample(Time::from_nanos(now()), look);
    apply(state, decided).await;
    pace
}

/// Sets what was decided, if anything was.
pub(crate) async fn apply<S: Steered>(state: &S, decided: Option<Decided>) {
    if let Some(decided) = decided {
        let done = state.steer(&decided).await;
        state.control().trouble(
            done.err()
                .map(|e| format!("what was decided is not in force: {e}")),
        );
    }
}
