//! The report in a real browser: it draws, reacts, asks nobody for anything,
//! and fits a phone. Screenshots of every kind of run, in light and dark and on
//! a phone, are left in the target directory (`tmp/report/`) to be looked at.

use crate::synthetic;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use braid_lab::report::{self, RunDir, RunFiles};
use braid_lab::summary::EventRow;
use headless_chrome::protocol::cdp::types::Event;
use headless_chrome::protocol::cdp::{Emulation, Log, Network, Page, Runtime};
use headless_chrome::{Browser, LaunchOptions, Tab};
use serde_json::Value;

/// One browser at a time: several starve each other on a small machine.
static ONE: Mutex<()> = Mutex::new(());

/// Starts Chromium with an empty profile, or says why this test is skipped.
fn browser() -> Option<(Browser, MutexGuard<'static, ()>)> {
    let turn = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let names = [
        "chromium",
        "chromium-browser",
        "google-chrome",
        "google-chrome-stable",
    ];
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths)
        .flat_map(|dir| names.map(|n| dir.join(n)))
        .find(|p| p.is_file());
    let Some(path) = found else {
        println!("skipped: no Chromium on PATH (apt-get install chromium)");
        return None;
    };
    let args = [
        "--hide-scrollbars",
        "--disable-component-update",
        "--disable-domain-reliability",
        "--no-default-browser-check",
        "--force-device-scale-factor=1",
        // Whatever the browser itself would like to fetch.
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ];
    let options = LaunchOptions {
        path: Some(path),
        // The sandbox does not work for root.
        sandbox: !nix::unistd::geteuid().is_root(),
        args: args.iter().map(OsStr::new).collect(),
        idle_browser_timeout: Duration::from_secs(600),
        ..LaunchOptions::default()
    };
    Some((Browser::new(options).expect("Chromium starts"), turn))
}

/// A report in a tab, with what it asked the network for and complained of.
struct Shown {
    tab: Arc<Tab>,
    requests: Arc<Mutex<Vec<String>>>,
    complaints: Arc<Mutex<Vec<String>>>,
    _dir: tempfile::TempDir,
}

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

impl Shown {
    /// Writes the run's files, makes the report of them, and opens it.
    fn new(browser: &Browser, files: &RunFiles) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::create(dir.path(), "braid lab run").unwrap();
        run.write_scenario(&files.scenario).unwrap();
        run.timeline().unwrap().append(&files.timeline).unwrap();
        run.events().unwrap().append(&files.events).unwrap();
        run.write_summary(&files.summary).unwrap();
        let page = report::remake(dir.path()).unwrap();
        let tab = browser.new_tab().unwrap();
        tab.set_default_timeout(Duration::from_secs(60));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let complaints = Arc::new(Mutex::new(Vec::new()));
        let (r, c) = (requests.clone(), complaints.clone());
        tab.add_event_listener(Arc::new(move |event: &Event| match event {
            Event::NetworkRequestWillBeSent(e) => {
                r.lock().unwrap().push(e.params.request.url.clone());
            }
            Event::RuntimeExceptionThrown(e) => {
                c.lock()
                    .unwrap()
                    .push(format!("{:?}", e.params.exception_details));
            }
            Event::RuntimeConsoleAPICalled(e) => {
                c.lock()
                    .unwrap()
                    .push(format!("{:?} {:?}", e.params.Type, e.params.args));
            }
            Event::LogEntryAdded(e) => c.lock().unwrap().push(e.params.entry.text.clone()),
            _ => {}
        }))
        .unwrap();
        tab.call_method(Runtime::Enable(None)).unwrap();
        tab.call_method(Log::Enable(None)).unwrap();
        tab.call_method(Network::Enable {
            max_total_buffer_size: None,
            max_resource_buffer_size: None,
            max_post_data_size: None,
            report_direct_socket_traffic: None,
            enable_durable_messages: None,
        })
        .unwrap();
        let shown = Self {
            tab,
            requests,
            complaints,
            _dir: dir,
        };
        shown.look(DESKTOP, "light");
        let url = format!("file://{}", page.display());
        shown
            .tab
            .navigate_to(&url)
            .unwrap()
            .wait_until_navigated()
            .unwrap();
        shown.drawn();
        shown
    }

    /// Sets the size of the window and the system's colour scheme.
    fn look(&self, (width, height): (u32, u32), scheme: &str) {
        self.tab
            .call_method(Emulation::SetDeviceMetricsOverride {
                width,
                height,
                device_scale_factor: if width < 640 { 2.0 } else { 1.0 },
                mobile: width < 640,
                scale: None,
                screen_width: Some(width),
                screen_height: Some(height),
                position_x: None,
                position_y: None,
                dont_set_visible_size: None,
                screen_orientation: None,
                viewport: None,
                display_feature: None,
                device_posture: None,
            })
            .unwrap();
        self.tab
            .call_method(Emulation::SetEmulatedMedia {
                media: None,
                features: Some(vec![Emulation::MediaFeature {
                    name: "prefers-color-scheme".to_owned(),
                    value: scheme.to_owned(),
                }]),
            })
            .unwrap();
    }

    fn eval(&self, js: &str) -> Value {
        let got = self
            .tab
            .evaluate(js, true)
            .unwrap_or_else(|e| panic!("{js}: {e}"));
        got.value.unwrap_or(Value::Null)
    }

    /// Waits until `js` is true.
    fn until(&self, js: &str) {
        let start = Instant::now();
        while self.eval(js) != Value::Bool(true) {
            assert!(
                start.elapsed() < Duration::from_secs(180),
                "never true: {js}; {:?}",
                self.complaints()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until every chart is there and as wide as its box.
    fn drawn(&self) {
        self.until(
            "document.documentElement.dataset.ready === 'yes' \
             && [...document.querySelectorAll('.chart')].every(b => b.chart \
                && Math.abs(b.chart.getWidth() - b.clientWidth) < 2)",
        );
    }

    fn click(&self, selector: &str) {
        self.tab
            .wait_for_element(selector)
            .unwrap()
            .click()
            .unwrap();
    }

    fn complaints(&self) -> Vec<String> {
        self.complaints.lock().unwrap().clone()
    }

    /// A picture of the whole page as it is shown in a window of that size.
    fn screenshot(&self, name: &str, size: (u32, u32), scheme: &str) {
        self.eval("scrollTo(0, 0)");
        let height = self
            .eval("document.documentElement.scrollHeight")
            .as_u64()
            .unwrap();
        self.look((size.0, u32::try_from(height).unwrap()), scheme);
        self.drawn();
        self.check_layout(name);
        let shot = self.tab.call_method(Page::CaptureScreenshot {
            format: Some(Page::CaptureScreenshotFormatOption::Png),
            quality: None,
            clip: None,
            from_surface: Some(true),
            capture_beyond_viewport: None,
            optimize_for_speed: None,
        });
        let png = base64::engine::general_purpose::STANDARD.decode(shot.unwrap().data);
        keep(&format!("{name}.png"), &png.unwrap());
        self.look(size, scheme);
    }

    /// No complaint on the console, and no request but for the page itself.
    fn check_quiet(&self) {
        assert_eq!(self.complaints(), Vec::<String>::new());
        let requests = self.requests.lock().unwrap();
        let out: Vec<&String> = requests
            .iter()
            .filter(|u| !u.starts_with("data:"))
            .collect();
        assert!(out.len() == 1 && out[0].starts_with("file://"), "{out:?}");
    }

    /// Nothing sticks out at the side; each chart has marks in it.
    fn check_layout(&self, name: &str) {
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
    fn check_labels(&self, name: &str) {
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
    let Some((browser, _turn)) = browser() else {
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
        let shown = Shown::new(&browser, &files);
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
        let pdf = shown.tab.print_to_pdf(None).unwrap();
        keep(&format!("{name}.pdf"), &pdf);
        shown.check_quiet();
        shown.tab.close(false).unwrap();
    }
}

#[test]
fn legends_measures_and_theme_react() {
    let Some((browser, _turn)) = browser() else {
        return;
    };
    let shown = Shown::new(&browser, &synthetic::bulk(2));
    let wifi = "[data-legend=goodput] [data-series=wifi]";
    let colours =
        "document.querySelectorAll('[data-chart=goodput] svg path[fill=\"#e69f00\"]').length";
    let selected =
        "document.querySelector('[data-chart=goodput]').chart.getOption().legend[0].selected.wifi";
    let before = shown.eval(colours).as_u64().unwrap();
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
    let cards = shown
        .eval("document.querySelectorAll('#runs .chart').length")
        .as_u64()
        .unwrap();
    assert_eq!(cards, 6);
    shown.click("#runs .run:nth-child(4) header button");
    shown.drawn();
    let all = shown
        .eval("document.querySelectorAll('#runs .wide .chart').length")
        .as_u64()
        .unwrap();
    assert_eq!(
        all,
        shown
            .eval("document.querySelectorAll('#measures button').length")
            .as_u64()
            .unwrap()
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
    let Some((browser, _turn)) = browser() else {
        return;
    };
    let shown = Shown::new(&browser, &synthetic::followed());
    // One case has a policy; the others are lines beside it.
    let charts = "[...document.querySelectorAll('#policies .chart')]";
    assert_eq!(shown.eval(&format!("{charts}.length")), 3);
    let names = |figure: usize| {
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
    // Without a policy there is no such part.
    let shown = Shown::new(&browser, &synthetic::walk());
    assert_eq!(shown.eval("document.querySelectorAll('#policy').length"), 0);
}

#[test]
fn hostile_names_stay_text() {
    let Some((browser, _turn)) = browser() else {
        return;
    };
    let shown = Shown::new(&browser, &synthetic::hostile());
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
