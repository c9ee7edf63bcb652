//! `braid rules`: rules about hosts behind a device, what has met them, what a flow would get, and
//! ATSSS rules of a core network.

mod exchange;
mod judge;
mod show;

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use braid_api::Rules;
use braid_api::client::Client;
use braid_core::rules::{Dscp, Flow, Mac, Ports, Protocol, Unit, User};
use clap::{Args, Subcommand};

use crate::daemon_error::daemon;
use crate::runtime::runtime;
use crate::watch::{self, Looked, print};
use show::Shown;

/// `braid rules`.
#[derive(Debug, Args)]
pub struct RulesArgs {
    /// Control socket of the daemon
    #[arg(long, value_name = "PATH", global = true, default_value = braid_api::DEFAULT_SOCKET)]
    control: PathBuf,
    /// Show them anew every second, until interrupted
    #[arg(long)]
    watch: bool,
    /// Print JSON and nothing else; with --watch, a line every second
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Say which rule decides about a flow, and why. What is not given counts as not known
    Test(FlowArgs),
    /// Write rules and classes of a configuration as an ATSSS container (3GPP TS 24.193)
    Export(exchange::ExportArgs),
    /// Write the rules of an ATSSS container as [[rule]] and [class.NAME]
    Import(exchange::ImportArgs),
}

/// Flow of a host.
#[derive(Clone, Debug, Args)]
struct FlowArgs {
    /// Address of the destination
    #[arg(long, value_name = "ADDRESS")]
    dst: IpAddr,
    /// Name by which the destination was found
    #[arg(long, value_name = "NAME")]
    domain: Option<String>,
    /// tcp, udp, icmp, gre, esp, ah, sctp, or a number
    #[arg(long, value_name = "NAME")]
    protocol: Option<Protocol>,
    /// Port of the destination
    #[arg(long, value_name = "PORT", value_parser = port)]
    port: Option<u16>,
    /// Address of the host
    #[arg(long, value_name = "ADDRESS")]
    client: Option<IpAddr>,
    /// Address of its interface, such as 02:00:5e:10:00:01
    #[arg(long, value_name = "MAC")]
    mac: Option<Mac>,
    /// User whose program on this device sends: a name, or a number
    #[arg(long, value_name = "USER", conflicts_with_all = ["client", "mac"])]
    user: Option<User>,
    /// Unit whose program on this device sends: a name, or the path of its control group
    #[arg(long, value_name = "UNIT", conflicts_with_all = ["client", "mac"])]
    unit: Option<Unit>,
    /// Code point of its packets: 0 to 63, or a name such as ef
    #[arg(long, value_name = "DSCP")]
    dscp: Option<Dscp>,
}

fn port(text: &str) -> Result<u16, String> {
    let ports: Ports = text.parse()?;
    match ports.first == ports.last {
        true => Ok(ports.first),
        false => Err("a flow has one port".to_owned()),
    }
}

impl FlowArgs {
    fn flow(&self) -> Flow {
        let v4 = self.dst.is_ipv4();
        // ICMP of the destination's family.
        let number = |p: Protocol| match (p, v4) {
            (Protocol::Icmp, false) => p.numbers().last(),
            _ => p.numbers().next(),
        };
        let (user, user_name) = self.user.as_ref().map_or((None, None), known);
        Flow {
            client: self.client,
            mac: self.mac,
            user,
            user_name,
            unit: self.unit.as_ref().map(ToString::to_string),
            domain: self.domain.clone(),
            protocol: self.protocol.and_then(number),
            port: self.port,
            dscp: self.dscp,
            ..Flow::to(self.dst)
        }
    }
}

/// Returns the number and the name of a user, as far as this machine knows them.
fn known(user: &User) -> (Option<u32>, Option<String>) {
    use nix::unistd;
    let found = match user {
        User::Name(name) => unistd::User::from_name(name),
        User::Id(id) => unistd::User::from_uid(unistd::Uid::from_raw(*id)),
    };
    match (found.ok().flatten(), user) {
        (Some(found), _) => (Some(found.uid.as_raw()), Some(found.name)),
        (None, User::Name(name)) => (None, Some(name.clone())),
        (None, User::Id(id)) => (Some(*id), None),
    }
}

/// Shows the rules, judges a flow by them, or exchanges them with a core network.
///
/// # Errors
/// A file is not as it should be. No daemon serves the control socket, or it does not answer as it should.
pub fn run(args: RulesArgs) -> Result<ExitCode> {
    match &args.what {
        Some(What::Export(files)) => return files.run(args.json),
        Some(What::Import(files)) => return files.run(args.json),
        _ => {}
    }
    let mut watched = Daemon {
        client: Client::new(&args.control),
        before: None,
    };
    runtime()?.block_on(async {
        match args.what {
            Some(What::Test(flow)) => {
                let rules: Rules = watched.client.get("/v1/rules").await.map_err(daemon)?;
                let verdict = judge::Verdict::new(&rules, &flow.flow());
                let text = match args.json {
                    true => serde_json::to_string_pretty(&verdict)? + "\n",
                    false => verdict.text(),
                };
                print(&text)?;
                Ok(ExitCode::SUCCESS)
            }
            _ if args.watch => watch::follow(&mut watched, args.json).await,
            _ => watch::once(&mut watched, args.json).await,
        }
    })
}

/// Daemon whose rules are looked at again and again.
struct Daemon {
    client: Client,
    before: Option<Rules>,
}

impl Looked for Daemon {
    type Shown = Shown;

    async fn look(&mut self) -> braid_api::client::Result<Shown> {
        let rules: Rules = self.client.get("/v1/rules").await?;
        let shown = Shown::new(&rules, self.before.as_ref());
        self.before = Some(rules);
        Ok(shown)
    }
}
