//! Changes of interfaces as they are heard, and when they are lost.

use std::time::Duration;

use braid_access::links::{Heard, RouteEvents};
use braid_netns::world::World;

#[test]
fn changes_are_heard_and_lost_ones_are_told() {
    let Some(w) = World::new(1) else { return };
    w.device.run(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut events = RouteEvents::with_buffer(64 * 1024).unwrap();
            w.set_link(1, false);
            assert_eq!(events.next().await.unwrap(), Heard::Change);
            // Far more than the queue holds.
            w.churn(300);
            assert_eq!(events.next().await.unwrap(), Heard::Lost);
            // Nothing is left over, and it goes on.
            let more = tokio::time::timeout(Duration::from_millis(50), events.next()).await;
            assert!(more.is_err(), "{more:?}");
            w.set_link(1, true);
            assert_eq!(events.next().await.unwrap(), Heard::Change);
        });
    });
}
