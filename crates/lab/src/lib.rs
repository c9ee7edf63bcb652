//! The lab: turns a scenario into namespaces, emulated radios, traffic,
//! measurements, a table and a report.

pub mod campaign;
pub mod cpu;
mod engine;
pub mod report;
pub mod run;
pub mod scenario;
pub mod summary;
pub mod timeline;
