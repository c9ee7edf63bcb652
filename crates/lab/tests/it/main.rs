//! Tests of scenarios and reports, without radios. One file a theme.

mod browser;
mod report_browser;
mod report_files;
mod report_table;
mod scenario;
mod scenario_backhaul;
mod scenario_hosts;
mod scenario_plan;
mod scenario_quic;
mod synthetic;
