//! Configurations of the two ends of Multipath QUIC.

use std::path::{Path, PathBuf};

use braid_mpquic::tls::Identity;

use braid_netns::world::{SERVICE, SERVICE6};

/// Configurations of both ends that know each other; `more` belongs to `[mpquic]`.
pub(crate) fn configs(dir: &Path, more: &str) -> (PathBuf, PathBuf) {
    let make = |end: &str| {
        let files = (
            dir.join(format!("{end}.crt")),
            dir.join(format!("{end}.key")),
        );
        let pin = Identity::create("braid", &files.0, &files.1).unwrap().pin();
        (files, pin)
    };
    let (device, proxy) = (make("device"), make("proxy"));
    let write = |end: &str,
                 own: &((PathBuf, PathBuf), _),
                 pin: &dyn std::fmt::Display,
                 rest: &str| {
        let ((certificate, key), _): &((PathBuf, PathBuf), braid_mpquic::tls::Pin) = own;
        let text = format!(
            "engine = \"mpquic\"\nproxy = \"{SERVICE}\"\n[mpquic]\ncertificate = {certificate:?}\n\
             key = {key:?}\npins = [\"{pin}\"]\n{more}{rest}"
        );
        let path = dir.join(format!("{end}.toml"));
        std::fs::write(&path, text).unwrap();
        path
    };
    let access = |name: &str, what: String| format!("[access.{name}]\n{what}\n");
    let forward = format!(
        "forward = [{{ listen = \"127.0.0.1:5001\", to = \"{SERVICE}:5001\" }}, \
         {{ listen = \"[::1]:5001\", to = \"[{SERVICE6}]:5001\" }}, \
         {{ listen = \"[::1]:5002\", to = \"[{SERVICE6}]:5002\" }}]\n"
    );
    let of_device = ["nr", "wifi"].iter().zip(1..);
    let at_device: String = of_device
        .clone()
        .map(|(n, k)| access(n, format!("interface = \"d{k}\"")))
        .collect();
    let at_proxy: String = of_device
        .map(|(n, k)| access(n, format!("address = \"10.77.{k}.0/30\"")))
        .collect();
    (
        write("d", &device, &proxy.1, &(forward + &at_device)),
        write(
            "p",
            &proxy,
            &device.1,
            &format!("allow = [\"internet\", \"{SERVICE}\", \"{SERVICE6}\"]\n{at_proxy}"),
        ),
    )
}
