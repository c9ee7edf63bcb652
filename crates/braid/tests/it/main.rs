//! Tests of the program: the daemon, the command line and the lab, over real
//! namespaces and on the virtual clock. One file a theme; files never run beside each
//! other ([`braid_netns::world::Turn`]).

mod announce;
mod campaign;
mod capacity;
mod caps;
mod classes;
mod cli;
mod contact;
mod converter;
mod coupled;
mod coupling;
mod daemon;
mod default_route;
mod doctor;
mod domains;
mod energy;
mod events;
mod exchange;
mod fallback;
mod hosts;
mod interruption;
mod lan;
mod metrics;
mod mpquic;
mod mpquic_ends;
mod neighbours;
mod one_lan;
#[cfg(feature = "bpf")]
mod orphans;
mod own;
#[cfg(feature = "bpf")]
mod pin;
#[cfg(feature = "bpf")]
mod pin_coupled;
mod plan;
mod priority;
#[cfg(feature = "bpf")]
mod probe;
mod progress;
mod recovery;
mod refused;
mod registration;
mod reload;
mod replay;
mod resting;
mod routes;
mod rules;
mod run;
#[cfg(feature = "bpf")]
mod service;
mod silent_download;
mod standby;
mod status;
mod stripping;
mod support;
mod takeover;
mod two_engines;
mod unheard;
mod units;
#[cfg(feature = "bpf")]
mod usual_cc;
mod virtual_clock;
mod weights;
mod wrr;
