//! `report.html`: one file that shows a run, needs no network and cannot use
//! one (its content security policy forbids it).

mod data;
mod view;

use askama::Template;
use base64::Engine as _;
use sha2::{Digest, Sha256};

use super::RunFiles;
use super::cases::{accesses, cases};
use super::notes::{Notes, paper_lines};
use crate::report::{columns, outages};
use data::Data;
use view::{Card, Table};

/// Apache ECharts, from `assets/echarts` (its README names version and hash).
const ECHARTS: &str = include_str!("../../../assets/echarts/echarts.common.min.js");
const CSS: &str = include_str!("../../../assets/report/report.css");
const JS: &str = concat!(
    "'use strict';(() => {\n",
    include_str!("../../../assets/report/base.js"),
    include_str!("../../../assets/report/overview.js"),
    include_str!("../../../assets/report/time.js"),
    include_str!("../../../assets/report/policy.js"),
    include_str!("../../../assets/report/page.js"),
    "})();\n",
);

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    title: &'a str,
    description: Vec<Vec<String>>,
    facts: Vec<(&'static str, String)>,
    cards: Vec<Card>,
    warnings: Vec<String>,
    results: Table,
    notes: &'a [(String, String)],
    paper: Vec<String>,
    has_goodput: bool,
    has_cdf: bool,
    has_policy: bool,
    has_time: bool,
    thinned_ms: Option<u64>,
    recoveries: Option<Table>,
    events: Vec<[String; 4]>,
    more_events: usize,
    scenario: &'a str,
    data: String,
    css: &'static str,
    echarts: &'static str,
    js: &'static str,
    script_hashes: String,
}

/// Events listed in the table of events.
const LISTED_EVENTS: usize = 500;

/// The report of a run.
pub fn render(files: &RunFiles) -> String {
    let s = &files.summary;
    let cases = cases(s);
    let order = accesses(s);
    let mut notes = Notes::default();
    let names = cases.iter().map(|c| notes.name(c)).collect();
    let columns = columns::of(&cases, names, &order);
    let data = Data::of(files, &cases, &order);
    let listed = files.events.iter().take(LISTED_EVENTS);
    let page = Page {
        title: &s.scenario,
        description: view::description(&files.scenario),
        facts: view::facts(s),
        cards: view::cards(&cases),
        warnings: files.warnings.clone(),
        results: Table::of(&columns, &order),
        notes: &notes.lines,
        paper: paper_lines(s),
        has_goodput: data.has_goodput(),
        has_cdf: data.has_cdf(),
        has_policy: data.has_policy(),
        has_time: data.has_time(),
        thinned_ms: data.thinned_ms,
        recoveries: outages::recoveries(&cases, &order).map(|c| Table::of(&c, &order)),
        events: listed
            .map(|e| {
                let case = match e.repeat {
                    0 | 1 => e.case.clone(),
                    n => format!("{} ({n})", e.case),
                };
                [
                    format!("{:.3}", e.t_s),
                    case,
                    e.access.clone(),
                    e.what.clone(),
                ]
            })
            .collect(),
        more_events: files.events.len().saturating_sub(LISTED_EVENTS),
        scenario: &files.scenario,
        data: data.to_script(),
        css: CSS,
        echarts: ECHARTS,
        js: JS,
        script_hashes: format!("{} {}", script_hash(ECHARTS), script_hash(JS)),
    };
    page.render()
        .expect("a template of strings writes into a string")
}

/// Returns the hash by which a content security policy knows a script.
fn script_hash(script: &str) -> String {
    let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(script));
    format!("'sha256-{hash}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ECHARTS_VERSION: &str = "6.1.0";
    const ECHARTS_SHA256: &str = "61f13280aba3161f77fc801bf5f9c786f55f10432153a0683fc5cc0700b013d5";

    #[test]
    fn the_chart_library_is_the_official_one() {
        let hash: String = Sha256::digest(ECHARTS)
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(hash, ECHARTS_SHA256);
        let readme = include_str!("../../../assets/echarts/README.md");
        assert!(readme.contains(ECHARTS_SHA256) && readme.contains(ECHARTS_VERSION));
        assert!(ECHARTS.contains(&format!("\"{ECHARTS_VERSION}\"")));
    }

    #[test]
    fn no_script_ends_its_own_element() {
        for s in [ECHARTS, JS] {
            let s = s.to_lowercase();
            assert!(!s.contains("</script") && !s.contains("<!--"));
        }
        assert!(!CSS.to_lowercase().contains("</style"));
    }
}
