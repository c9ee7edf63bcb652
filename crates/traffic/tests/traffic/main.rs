//! Traffic between real processes over the loopback of a private network
//! namespace. Without the harness, because the test binary is also the traffic
//! process (`__traffic --spec ...`), as `braid` is in a lab.

mod bulk;
mod cbr;
mod command;
mod failure;
mod middle;
mod pair;
mod request_response;
mod video;
mod voip;
mod web;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use braid_traffic as traffic;
use nix::sched::{CloneFlags, unshare};
use rtnetlink::LinkUnspec;

type Test = (&'static str, fn());

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [sub, flag, spec] = &args[..]
        && sub == "__traffic"
        && flag == "--spec"
    {
        return match traffic::main(spec) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("braid traffic: {e}");
                e.exit_status().into()
            }
        };
    }
    match &args[..] {
        [sub, at] if sub == "__serve" => {
            command::serve(at);
            return ExitCode::SUCCESS;
        }
        [sub, at] if sub == "__say" => {
            command::say(at);
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    if args.iter().any(|a| a == "--list") {
        return ExitCode::SUCCESS;
    }
    let wanted = args.iter().find(|a| !a.starts_with('-'));
    if let Err(why) = private_namespace() {
        println!("skipped: no private network namespace ({why}); run as root");
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, test) in [
        bulk::TESTS,
        request_response::TESTS,
        cbr::TESTS,
        video::TESTS,
        voip::TESTS,
        web::TESTS,
        failure::TESTS,
        command::TESTS,
    ]
    .concat()
    {
        if wanted.is_some_and(|w| !name.contains(w.as_str())) {
            continue;
        }
        let ok = catch_unwind(AssertUnwindSafe(test)).is_ok();
        println!("test {name} ... {}", if ok { "ok" } else { "FAILED" });
        failed += u8::from(!ok);
    }
    ExitCode::from(u8::from(failed > 0))
}

/// Moves this process into a network namespace of its own, with loopback up.
fn private_namespace() -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|e| e.to_string())?;
    loopback(true)
}

/// Raises or lowers the loopback device.
fn loopback(up: bool) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let (connection, handle, _) = rtnetlink::new_connection().map_err(|e| e.to_string())?;
        let connection = tokio::spawn(connection);
        // The loopback device is the first of every namespace.
        let lo = LinkUnspec::new_with_index(1);
        let lo = if up { lo.up() } else { lo.down() };
        let done = handle.link().set(lo.build()).execute().await;
        connection.abort();
        done.map_err(|e| e.to_string())
    })
}
