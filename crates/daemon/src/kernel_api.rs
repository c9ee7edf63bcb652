//! The control API of the engines that are the kernel's.

use braid_api::{
    AccessChange, AccessStatus, Connections, Counters, Events, Priorities, SchedulerChange, Status,
    Weights,
};

use super::DaemonError;
use super::serve::Api;
use super::state::State;

type Result<T> = std::result::Result<T, DaemonError>;

impl Api for State {
    async fn status(&self) -> Result<Status> {
        Self::status(self).await
    }

    fn connections(&self) -> Result<Connections> {
        Self::connections(self)
    }

    fn counters(&self) -> Result<Counters> {
        Self::counters(self)
    }

    fn events(&self, after: u64) -> Events {
        Self::events(self, after)
    }

    async fn change(&self, access: &str, change: AccessChange) -> Result<AccessStatus> {
        Self::change(self, access, change).await
    }

    async fn schedule(&self, change: &SchedulerChange) -> Result<SchedulerChange> {
        Self::schedule(self, change).await
    }

    async fn prioritise(&self, order: &Priorities) -> Result<Priorities> {
        Self::prioritise(self, order).await
    }

    async fn weigh(&self, weights: &Weights) -> Result<Weights> {
        Self::weigh(self, weights).await
    }

    async fn weigh_connection(&self, token: &str, weights: Option<&Weights>) -> Result<Weights> {
        Self::weigh_connection(self, token, weights).await
    }
}
