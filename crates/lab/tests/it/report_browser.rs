//! The report in a real browser: it draws, reacts, asks nobody for anything,
//! and fits a phone. Screenshots of every kind of run, in light and dark and on
//! a phone, are left in the target directory (`tmp/report/`) to be looked at.

use std::path::{Path, PathBuf};

use braid_lab::report::{self, RunDir, RunFiles};
use braid_lab::summary::EventRow;
use serde_json::{Value, json};

use crate::browser::{Browser, Page};
use crate::synthetic;

/// Leaves a picture or a print in the target directory.
fn keep(name: &str, bytes: &[u8]) {
    let dir: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    std::fs::write(&path, bytes).unwrap();
    println!("{}", path.display());
}

const DESKTOP: (u32, u32) = (1280, 900);
const PHONE: (u32, u32) = (375, 812);

/// A report in a browser.
struct Shown<'b> {
    page: Page<'b>,
    _dir: tempfile::TempDir,
}

impl<'b> Shown<'b> {
    /// Writes the run's files, makes the report of them, and opens it.
    fn new(browser: &'b mut Browser, files: &RunFiles) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::create(dir.path(), "braid lab run").unwrap();
        run.write_scenario(&files.scenario).unwrap();
        run.timeline().unwrap().append(&files.timeline).unwrap();
        run.events().unwrap().append(&files.events).unwrap();
        run.write_summary(&files.summary).unwrap();
        let report = report::remake(dir.path()).unwrap();
        let mut shown = Self {
            page: browser.page(),
            _dir: dir,
        };
        shown.look(DESKTOP, "light");
        shown.page.open(&format!("file://{}", report.display()));
        shown.drawn();
        shown
    }

    /// Sets the size of the window and the system's colour scheme.
    fn look(&mut self, (width, height): (u32, u32), scheme: &str) {
        let phone = width < 640;
        let metrics = json!({
            "width": width, "height": height, "screenWidth": width, "screenHeight": height,
            "deviceScaleFactor": if phone { 2 } else { 1 }, "mobile": phone,
        });
        self.page
            .call("Emulation.setDeviceMetricsOverride", metrics);
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.page.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": [feature] }),
        );
    }

    fn eval(&mut self, js: &str) -> Value {
        self.page.eval(js)
    }

    /// Number that `js` comes to.
    fn count(&mut self, js: &str) -> u64 {
        let got = self.eval(js);
        got.as_u64().unwrap_or_else(|| panic!("{js}: {got}"))
    }

    fn until(&mut self, js: &str) {
        self.page.until(js);
    }

    fn click(&mut self, selector: &str) {
        self.page.click(selector);
    }

    /// Waits until every chart is there and as wide as its box.
    fn drawn(&mut self) {
        self.until(
            "document.documentElement.dataset.ready === 'yes' \
             && [...document.querySelectorAll('.chart')].every(b => b.chart \
                && Math.abs(b.chart.getWidth() - b.clientWidth) < 2)",
        );
    }

    /// A picture of the whole page as it is shown in a window of that size.
    fn screenshot(&mut self, name: &str, size: (u32, u32), scheme: &str) {
        self.eval("scrollTo(0, 0)");
        let height = self.count("document.documentElement.scrollHeight");
        self.look((size.0, u32::try_from(height).unwrap()), scheme);
        self.drawn();
        self.check_layout(name);
        keep(&format!("{name}.png"), &self.page.png());
        self.look(size, scheme);
    }

    /// No complaint on the console, and no request but for the page itself.
    fn check_quiet(&self) {
        assert_eq!(self.page.complaints(), [] as [String; 0]);
        let requests = self.page.requests().iter();
        let out: Vec<&String> = requests.filter(|u| !u.starts_with("data:")).collect();
        assert!(out.len() == 1 && out[0].starts_with("file://"), "{out:?}");
    }

    /// Nothing sticks out at the side; each chart has marks in it.
    fn check_layout(&mut self, name: &str) {
        let out = self.eval(
            "[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, pre, nav') \
                && e.getBoundingClientRect().right > screen.width + .5) \
                .map(e => e.outerHTML.slice(0, 120)).join('\\n')",
        );
        assert_eq!(out, "", "{name}: sticks out at the side");
        // What is drawn spans its box, whatever its size was before.
        let empty = self.eval(
            "[...document.querySelectorAll('.chart')].filter(b => \
                b.querySelectorAll('svg path').length < 3 \
                || b.querySelector('svg').getBBox().width < .7 * b.clientWidth).length",
        );
        assert_eq!(empty, 0, "{name}: empty charts");
    }

    /// No text of a chart lies on another: lines of one touch at most.
    fn check_labels(&mut self, name: &str) {
        let over = self.eval(
            "[...document.querySelectorAll('.chart')].flatMap(b => { \
                const all = [...b.querySelectorAll('svg text')].filter(t => t.textContent.trim()) \
                    .map(t => [t.textContent, t.getBoundingClientRect()]); \
                return all.flatMap(([s, r], i) => all.slice(i + 1).filter(([, q]) => \
                    r.left + 2 < q.right - 2 && q.left + 2 < r.right - 2 \
                    && r.top + 2 < q.bottom - 2 && q.top + 2 < r.bottom - 2) \
                    .map(([t]) => s + ' on ' + t + ' in ' + b.getAttribute('aria-label'))); \
            }).join('\\n')",
        );
        assert_eq!(over, "", "{name}: labels lie on each other");
    }
}

/// A result whose cases have the names that a campaign over three axes gives them, and in
/// which much happens at once.
fn campaign() -> RunFiles {
    let mut files = synthetic::bulk(1);
    let axes = "cc=olia, loss=0.001, access.wifi.down.delay=20 ms: ";
    let rename = |name: &mut String| *name = format!("{axes}{name}");
    files.events = (0..3)
        .map(|i| EventRow {
            case: files.summary.cases[0].name.clone(),
            repeat: 1,
            t_s: 4.0 + f64::from(i) * 0.2,
            access: String::new(),
            what: "emulator woke 3.2 ms late".to_owned(),
        })
        .collect();
    files
        .summary
        .cases
        .iter_mut()
        .for_each(|c| rename(&mut c.name));
    files.timeline.iter_mut().for_each(|r| rename(&mut r.case));
    files.events.iter_mut().for_each(|r| rename(&mut r.case));
    files
}

#[test]
fn every_kind_of_run_draws_everywhere() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let kinds = [
        ("bulk", synthetic::bulk(1)),
        ("bulk-repeated", synthetic::bulk(5)),
        ("requests", synthetic::requests()),
        ("interruption", synthetic::interruption(6)),
        ("walk", synthetic::walk()),
        ("followed", synthetic::followed()),
        ("contention", synthetic::contention()),
        ("campaign", campaign()),
    ];
    for (name, files) in kinds {
        let mut shown = Shown::new(&mut browser, &files);
        for (kind, size, scheme) in [
            ("light", DESKTOP, "light"),
            ("dark", DESKTOP, "dark"),
            ("phone", PHONE, "light"),
        ] {
            shown.look(size, scheme);
            shown.drawn();
            let back = shown.eval("getComputedStyle(document.body).backgroundColor");
            assert_eq!(back == "rgb(14, 17, 22)", scheme == "dark", "{back}");
            shown.check_labels(&format!("{name}-{kind}"));
            shown.screenshot(&format!("{name}-{kind}"), size, scheme);
        }
        shown.look(DESKTOP, "dark");
        shown.drawn();
        keep(&format!("{name}.pdf"), &shown.page.pdf());
        shown.check_quiet();
    }
}

#[test]
fn legends_measures_and_theme_react() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let mut shown = Shown::new(&mut browser, &synthetic::bulk(2));
    let wifi = "[data-legend=goodput] [data-series=wifi]";
    let colours =
        "document.querySelectorAll('[data-chart=goodput] svg path[fill=\"#e69f00\"]').length";
    let selected =
        "document.querySelector('[data-chart=goodput]').chart.getOption().legend[0].selected.wifi";
    let before = shown.count(colours);
    assert!(before >= 4, "{before}");
    shown.click(wifi);
    shown.until(&format!("{selected} === false && {colours} === 0"));
    assert_eq!(
        shown.eval(&format!("document.querySelector('{wifi}').ariaPressed")),
        "false"
    );
    // The choice outlives a change of theme, which redraws.
    shown.click("#theme");
    shown.until("getComputedStyle(document.body).backgroundColor === 'rgb(14, 17, 22)'");
    assert_eq!(shown.eval(selected), false);
    shown.screenshot("hidden-series-dark", DESKTOP, "light");
    shown.click("#theme");
    shown.click(wifi);
    shown.until(&format!("{selected} === true && {colours} === {before}"));

    shown.click("[data-measure=rtt]");
    shown.drawn();
    shown.until("document.querySelector('#explain').textContent.includes('round-trip')");
    assert_eq!(
        shown.count("document.querySelectorAll('#runs .chart').length"),
        6
    );
    shown.click("#runs .run:nth-child(4) header button");
    shown.drawn();
    let all = shown.count("document.querySelectorAll('#runs .wide .chart').length");
    assert_eq!(
        all,
        shown.count("document.querySelectorAll('#measures button').length")
    );
    assert_eq!(shown.eval("document.activeElement.ariaExpanded"), "true");
    shown.screenshot("all-measures", DESKTOP, "light");
    shown.eval(
        "document.querySelector('#repeat').value = '2'; \
                document.querySelector('#repeat').dispatchEvent(new Event('change'))",
    );
    shown.click("#same");
    shown.drawn();
    let scales = shown.eval(
        "new Set([...document.querySelectorAll('#runs .run:not(.wide) .chart')] \
            .map(b => b.chart.getOption().yAxis[0].max)).size",
    );
    assert_eq!(scales, 1);
    shown.check_quiet();
}

#[test]
fn a_policy_has_the_three_figures_of_the_paper() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let mut shown = Shown::new(&mut browser, &synthetic::followed());
    // One case has a policy; the others are lines beside it.
    let charts = "[...document.querySelectorAll('#policies .chart')]";
    assert_eq!(shown.eval(&format!("{charts}.length")), 3);
    let mut names = |figure: usize| {
        let all = shown.eval(&format!(
            "{charts}[{figure}].chart.getOption().series.map(s => s.name).join('; ')"
        ));
        all.as_str().unwrap().to_owned()
    };
    let [start, operator] = [
        "MPTCP weights of the start",
        "MPTCP weights of the operator",
    ];
    assert_eq!(
        names(0),
        "nr, estimated; wifi, estimated; nr, capacity; wifi, capacity"
    );
    assert_eq!(
        names(1),
        format!("nr; wifi; nr, {operator}; wifi, {operator}")
    );
    assert_eq!(
        names(2),
        format!("nr; wifi; the links could carry; {start}; {operator}")
    );
    // Payload: the capacity of 300 Mbit/s at the start, less headers.
    let first = shown.eval(&format!(
        "{charts}[0].chart.getOption().series[2].data[0][1]"
    ));
    let first = first.as_f64().unwrap();
    assert!((270.0..290.0).contains(&first), "{first}");
    let header = shown.eval("document.querySelector('#policies header p').textContent");
    assert_eq!(header, "616 of 640 Mbit/s · 96.3 %");
    shown.check_quiet();
    drop(shown);
    // Without a policy there is no such part.
    let mut shown = Shown::new(&mut browser, &synthetic::walk());
    assert_eq!(shown.eval("document.querySelectorAll('#policy').length"), 0);
}

#[test]
fn hostile_names_stay_text() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let mut shown = Shown::new(&mut browser, &synthetic::hostile());
    assert_eq!(shown.eval("typeof window.pwned"), "undefined");
    assert_eq!(shown.eval("document.querySelectorAll('img').length"), 0);
    let title = shown.eval("document.querySelector('h1').textContent");
    assert!(
        title
            .as_str()
            .unwrap()
            .contains("<img src=x onerror=pwned=1>"),
        "{title}"
    );
    // Tooltips are markup made by us of text made by others.
    shown.eval(
        "document.querySelectorAll('.chart').forEach(b => { \
            b.scrollIntoView(); \
            b.chart.dispatchAction({type: 'showTip', seriesIndex: 0, dataIndex: 0}); })",
    );
    shown.until("document.querySelectorAll('.tip').length > 0");
    assert_eq!(shown.eval("typeof window.pwned"), "undefined");
    assert_eq!(shown.eval("document.querySelectorAll('img').length"), 0);
    shown.look(PHONE, "light");
    shown.drawn();
    shown.screenshot("hostile-phone", PHONE, "light");
    shown.check_quiet();
}

#[test]
fn the_page_is_a_small_file() {
    // 20 s, 6 cases over 3 accesses, 5 repeats.
    let html = report::html::render(&synthetic::bulk(5));
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    let once = report::html::render(&synthetic::bulk(1)).len();
    assert!(once < 1_000_000, "{once} bytes");
}
