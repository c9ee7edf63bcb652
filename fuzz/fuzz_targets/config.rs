//! Configurations of both roles.
#![no_main]

use std::path::PathBuf;

use braid_api::config::{Config, DeviceAccess, Format, ProxyAccess};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(problem) = Config::<DeviceAccess>::parse(text, Format::Toml) {
        problem.in_file(PathBuf::from("f"), text).to_string();
    }
    if let Err(problem) = Config::<ProxyAccess>::parse(text, Format::Toml) {
        problem.in_file(PathBuf::from("f"), text).to_string();
    }
});
