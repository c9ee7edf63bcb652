//! Accesses of a device as it has registered them: at the proxy, which of its paths is on which,
//! where no configured address tells.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bytes::{Bytes, BytesMut};
use noq_proto::coding::{Decodable, Encodable};
use noq_proto::{PathId, VarInt};

use super::Connection;
use crate::access::Access;

/// Maximum names of paths that are not here yet: as many as there are paths.
const MAX_PENDING: usize = 64;
/// Maximum accesses of one connection.
const MAX_ACCESSES: usize = 64;

/// Names of paths that are not here yet.
#[derive(Debug, Default)]
pub(super) struct PathNames {
    pending: BTreeMap<PathId, String>,
}

impl PathNames {
    fn keep(&mut self, id: PathId, name: String) {
        self.pending.insert(id, name);
        // Numbers of paths only grow.
        if self.pending.len() > MAX_PENDING {
            self.pending.pop_first();
        }
    }

    /// Takes the name of a path that is here now, or has ended.
    pub(super) fn take(&mut self, id: PathId) -> Option<String> {
        self.pending.remove(&id)
    }
}

/// Returns the number of a path, which the library does not tell otherwise than on the wire.
pub(super) fn number(id: PathId) -> u32 {
    let mut wire = BytesMut::new();
    id.encode(&mut wire);
    let read = VarInt::decode(&mut Bytes::from(wire)).map(VarInt::into_inner);
    read.ok()
        .and_then(|n| u32::try_from(n).ok())
        .unwrap_or(u32::MAX)
}

impl Connection {
    /// Names the accesses of paths by their identifiers. A path on a configured access keeps it;
    /// an access that is not known begins with the weight 1.
    pub fn name_paths(&mut self, names: &BTreeMap<u32, String>) {
        for (id, name) in names {
            self.name_path(PathId::from(*id), name);
        }
    }

    fn name_path(&mut self, id: PathId, name: &str) {
        let Some(path) = self.paths.by_id(id) else {
            self.names.keep(id, name.to_owned());
            return;
        };
        if path.access.is_some_and(|i| !self.accesses[i].registered) {
            return;
        }
        let remote = path.network.remote().ip().to_canonical();
        let Some(i) = self.registered(name, remote) else {
            return;
        };
        if let Some(path) = self.paths.by_id_mut(id) {
            path.access = Some(i);
        }
    }

    /// Returns the number of a registered access, which is added if it is new; `None` where a
    /// connection has no room for more, or a configured one is called so.
    fn registered(&mut self, name: &str, address: IpAddr) -> Option<usize> {
        if let Some(i) = self.accesses.iter().position(|a| a.name == name) {
            return self.accesses[i].registered.then_some(i);
        }
        if self.accesses.len() >= MAX_ACCESSES {
            return None;
        }
        self.congestion.add_access();
        Some(self.accesses.add(Access {
            registered: true,
            ..Access::new(name, address)
        }))
    }

    /// Names a path that is here now as was told before.
    pub(super) fn name_new_path(&mut self, id: PathId) {
        if let Some(name) = self.names.take(id) {
            self.name_path(id, &name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_path_is_the_wire_s() {
        for n in [0, 1, 63, 64, 16_384, u32::MAX] {
            assert_eq!(number(PathId::from(n)), n);
        }
    }

    #[test]
    fn names_of_paths_that_never_come_are_bounded() {
        let mut names = PathNames::default();
        (0..1_000_u32).for_each(|n| names.keep(n.into(), n.to_string()));
        assert_eq!(names.pending.len(), MAX_PENDING);
        assert_eq!(names.take(999_u32.into()), Some("999".to_owned()));
        assert_eq!(names.take(1_u32.into()), None);
    }
}
