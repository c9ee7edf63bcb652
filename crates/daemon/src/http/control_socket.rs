//! Rights over the control socket: root may do everything, and a group that the configuration
//! names may read. The kernel tells who is at the other end (SO_PEERCRED, unix(7)).

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::{Request, State as Shared};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use axum::serve::IncomingStream;
use nix::unistd::{Gid, Group, chown, geteuid};
use tokio::net::UnixListener;

use super::api::refuse;

/// User at the other end of a connection; `None` where the kernel does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer(Option<u32>);

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        Self(stream.io().peer_cred().ok().map(|c| c.uid()))
    }
}

/// Users that may change what the daemon does. Whoever may connect may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Changers(Vec<u32>);

impl Changers {
    /// Returns root and the user that this process runs as, who could end it anyway.
    pub(super) fn own() -> Self {
        Self(vec![0, geteuid().as_raw()])
    }

    fn may(&self, method: &Method, peer: Peer) -> bool {
        let reads = method == Method::GET || method == Method::HEAD;
        reads || peer.0.is_some_and(|uid| self.0.contains(&uid))
    }
}

/// Refuses changes by users that may only read.
pub(super) async fn guard(
    Shared(changers): Shared<Arc<Changers>>,
    request: Request,
    next: Next,
) -> Response {
    let info = request.extensions().get::<ConnectInfo<Peer>>();
    let peer = info.map_or(Peer(None), |ConnectInfo(p)| *p);
    if changers.may(request.method(), peer) {
        return next.run(request).await;
    }
    let who = peer.0.map_or("a user that is not known".to_owned(), |uid| {
        format!("user {uid}")
    });
    let (method, path) = (request.method(), request.uri().path());
    let why = format!("{method} {path}: {who} may only read: run it as root, sudo braid ...");
    refuse(StatusCode::FORBIDDEN, why)
}

/// Opens the socket at `path` to the members of `group`, and its folder, where that is Braid's
/// own, to be passed through. Without a group both stay as they were made.
///
/// # Errors
/// There is no such group, or it cannot be given the socket: what to do.
pub(super) fn open_to(path: &Path, group: Option<&str>) -> Result<(), String> {
    let Some(name) = group else {
        return Ok(());
    };
    let known = Group::from_name(name).map_err(|e| format!("look up the group {name}: {e}"))?;
    let gid = known.map(|g| g.gid).ok_or_else(|| {
        format!("there is no group {name}: groupadd --system {name}, then restart the daemon")
    })?;
    let give = |at: &Path, mode| {
        give(at, gid, mode).map_err(|e| format!("give {} to the group {name}: {e}", at.display()))
    };
    if let (true, Some(folder)) = (is_default(path), path.parent()) {
        give(folder, 0o750)?;
    }
    give(path, 0o660)
}

fn is_default(path: &Path) -> bool {
    path == Path::new(braid_api::DEFAULT_SOCKET)
}

/// The mode comes last: before that nobody else may use it.
fn give(at: &Path, gid: Gid, mode: u32) -> io::Result<()> {
    chown(at, None, Some(gid))?;
    std::fs::set_permissions(at, Permissions::from_mode(mode))
}

#[cfg(test)]
impl Changers {
    /// Returns nobody, as seen by a user that may only read.
    pub(super) fn nobody() -> Self {
        Self(vec![])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn only_some_may_change_and_all_may_read() {
        let changers = Changers(vec![0, 1000]);
        for (method, uid, may) in [
            (Method::GET, Some(1001), true),
            (Method::HEAD, None, true),
            (Method::PUT, Some(0), true),
            (Method::PUT, Some(1000), true),
            (Method::PUT, Some(1001), false),
            (Method::DELETE, Some(1001), false),
            (Method::PUT, None, false),
        ] {
            assert_eq!(changers.may(&method, Peer(uid)), may, "{method} {uid:?}");
        }
        assert!(Changers::own().may(&Method::PUT, Peer(Some(geteuid().as_raw()))));
    }

    #[test]
    fn the_socket_is_given_to_the_group_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.sock");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let mode = || std::fs::metadata(&path).unwrap().mode() & 0o777;
        let before = mode();
        assert_eq!(open_to(&path, None), Ok(()));
        assert_eq!(mode(), before);
        let e = open_to(&path, Some("no-such-group")).unwrap_err();
        assert!(e.contains("groupadd --system no-such-group"), "{e}");
        // The group of the test's own user can be given by anybody.
        let gid = nix::unistd::getegid();
        let own = Group::from_gid(gid).unwrap().expect("a group with a name");
        assert_eq!(open_to(&path, Some(&own.name)), Ok(()));
        let gid_now = std::fs::metadata(&path).unwrap().gid();
        assert_eq!((mode(), gid_now), (0o660, gid.as_raw()));
    }
}
