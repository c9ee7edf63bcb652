//! Endpoints and limits in a namespace of its own.

use braid_mptcp::pm::{Endpoint, EndpointFlags, LIMIT_MAX, Limits, PathManager};
use braid_netns::world::{World, device4};

const MESH: EndpointFlags = EndpointFlags::SUBFLOW.union(EndpointFlags::FULLMESH);

#[test]
fn endpoints_come_and_go() {
    let Some(w) = World::new(2) else { return };
    let (i1, i2) = (w.ifindex(1), w.ifindex(2));
    w.device.run(|| {
        let mut pm = PathManager::open().unwrap();
        assert_eq!(pm.endpoints().unwrap(), []);
        let id = pm.add(&Endpoint::new(device4(1), Some(i1), MESH)).unwrap();
        let six = Endpoint {
            id: 9,
            ..Endpoint::new(
                "fd77:0:2::2".parse().unwrap(),
                Some(i2),
                EndpointFlags::SIGNAL,
            )
        };
        assert_eq!(pm.add(&six).unwrap(), 9);
        let all = pm.endpoints().unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].id, id);
        assert_eq!(
            (all[0].address, all[0].ifindex, all[0].flags),
            (device4(1), Some(i1), MESH)
        );
        assert_eq!(all[1], six);

        pm.set_backup(id, true).unwrap();
        assert_eq!(
            pm.get(id).unwrap().unwrap().flags,
            MESH | EndpointFlags::BACKUP
        );
        pm.set_backup(id, false).unwrap();
        assert_eq!(pm.get(id).unwrap().unwrap().flags, MESH);

        pm.delete(id).unwrap();
        assert_eq!(pm.endpoints().unwrap().len(), 1);
        pm.flush().unwrap();
        assert_eq!(pm.endpoints().unwrap(), []);
    });
    // Another namespace knows nothing of it.
    w.proxy
        .run(|| assert_eq!(PathManager::open().unwrap().endpoints().unwrap(), []));
}

#[test]
fn the_kernel_says_why_not() {
    let Some(w) = World::new(1) else { return };
    w.device.run(|| {
        let mut pm = PathManager::open().unwrap();
        let e = Endpoint::new(device4(1), None, MESH);
        pm.add(&e).unwrap();
        let again = pm.add(&e).unwrap_err().to_string();
        assert!(
            again.contains("10.77.1.2") && again.contains("kernel says"),
            "{again}"
        );
        let both = Endpoint::new(device4(1), None, MESH | EndpointFlags::SIGNAL);
        let both = pm.add(&both).unwrap_err().to_string();
        assert!(both.contains("kernel says"), "{both}");
        let gone = pm.delete(77).unwrap_err().to_string();
        assert!(gone.contains("endpoint 77"), "{gone}");
        let gone = pm.set_backup(77, true).unwrap_err().to_string();
        assert!(gone.contains("endpoint 77"), "{gone}");
        // What was refused left the channel usable.
        assert_eq!(pm.endpoints().unwrap().len(), 1);
    });
}

#[test]
fn limits_are_set_and_checked() {
    let Some(w) = World::new(0) else { return };
    w.device.run(|| {
        let mut pm = PathManager::open().unwrap();
        pm.set_limits(Limits::MAX).unwrap();
        assert_eq!(pm.limits().unwrap(), Limits::MAX);
        let beyond = Limits {
            subflows: LIMIT_MAX + 1,
            add_addr_accepted: 0,
        };
        let e = pm.set_limits(beyond).unwrap_err().to_string();
        assert!(e.contains("9 further subflows"), "{e}");
        assert_eq!(pm.limits().unwrap(), Limits::MAX);
    });
}
