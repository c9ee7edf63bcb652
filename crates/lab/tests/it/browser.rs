//! Chromium over the DevTools protocol, by a pair of pipes: one page after the other, asked and
//! waited for. A library for the whole protocol has thousands of types, and takes longer to
//! compile than half of this workspace.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use serde_json::{Value, json};

/// One browser at a time: several starve each other on a small machine.
static ONE: Mutex<()> = Mutex::new(());

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Names by which distributions install it.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

const FLAGS: [&str; 14] = [
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--force-device-scale-factor=1",
    // Whatever the browser itself would like to fetch.
    "--host-resolver-rules=MAP * ~NOTFOUND",
];

/// A browser with an empty profile; it ends with this value.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    /// Answers and events, in their order.
    from: Receiver<Value>,
    /// Events that came before an answer, not yet taken.
    events: VecDeque<Value>,
    last_id: u64,
    _profile: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Browser {
    /// Starts Chromium, or says why this test is skipped.
    pub(crate) fn start() -> Option<Self> {
        let turn = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(program) = installed() else {
            println!("skipped: no Chromium on PATH (apt-get install chromium)");
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        // Chromium reads commands from descriptor 3 and writes answers to 4.
        let mut command = Command::new("sh");
        command
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null", "sh"])
            .arg(program)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // The sandbox does not work for root.
        if nix::unistd::geteuid().is_root() {
            command.arg("--no-sandbox");
        }
        let mut child = command.spawn().expect("sh starts");
        let to = child.stdin.take().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let (tell, from) = channel();
        std::thread::spawn(move || {
            for message in said.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("Chromium speaks JSON");
                if tell.send(message).is_err() {
                    break;
                }
            }
        });
        Some(Self {
            child,
            to,
            from,
            events: VecDeque::new(),
            last_id: 0,
            _profile: profile,
            _turn: turn,
        })
    }

    fn next(&mut self, until: Instant, what: &str) -> Value {
        let left = until.saturating_duration_since(Instant::now());
        match self.from.recv_timeout(left) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => panic!("Chromium did not answer: {what}"),
            Err(RecvTimeoutError::Disconnected) => panic!("Chromium ended: {what}"),
        }
    }

    /// Calls a method of the protocol, in a page's session where one is named.
    fn call(&mut self, session: Option<&str>, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut asked = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = session {
            asked["sessionId"] = session.into();
        }
        let mut bytes = asked.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("Chromium listens");
        let until = Instant::now() + PATIENCE;
        loop {
            let mut said = self.next(until, method);
            if said["id"] != self.last_id {
                self.events.push_back(said);
                continue;
            }
            assert_eq!(said["error"], Value::Null, "{method} {params}");
            return said["result"].take();
        }
    }

    /// Opens an empty page.
    pub(crate) fn page(&mut self) -> Page<'_> {
        let target = self.call(None, "Target.createTarget", json!({ "url": "about:blank" }));
        let target = target["targetId"].as_str().unwrap().to_owned();
        let attached = self.call(
            None,
            "Target.attachToTarget",
            json!({ "targetId": target, "flatten": true }),
        );
        let session = attached["sessionId"].as_str().unwrap().to_owned();
        let mut page = Page {
            browser: self,
            target,
            session,
            requests: Vec::new(),
            complaints: Vec::new(),
        };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            page.call(&format!("{domain}.enable"), json!({}));
        }
        page
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn installed() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths)
        .flat_map(|dir| NAMES.map(|name| dir.join(name)))
        .find(|path| path.is_file())
}

/// A page, with what it asked the network for and complained of; it is closed with this value.
pub(crate) struct Page<'b> {
    browser: &'b mut Browser,
    target: String,
    session: String,
    requests: Vec<String>,
    complaints: Vec<String>,
}

impl Page<'_> {
    /// Calls a method of the protocol for this page.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = self.browser.call(Some(&self.session), method, params);
        while let Some(event) = self.browser.events.pop_front() {
            self.note(&event);
        }
        answer
    }

    fn note(&mut self, event: &Value) {
        if event["sessionId"] != self.session.as_str() {
            return;
        }
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => {
                let url = params["request"]["url"].as_str().unwrap();
                self.requests.push(url.to_owned());
            }
            "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded" => {
                self.complaints.push(params.to_string());
            }
            _ => {}
        }
    }

    /// Goes to `url` and waits until all of it is loaded.
    pub(crate) fn open(&mut self, url: &str) {
        let went = self.call("Page.navigate", json!({ "url": url }));
        assert_eq!(went["errorText"], Value::Null, "{url}");
        self.until("document.readyState === 'complete'");
    }

    /// Addresses that the page asked for, its own among them.
    pub(crate) fn requests(&self) -> &[String] {
        &self.requests
    }

    /// Exceptions, and what stands on the console.
    pub(crate) fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// Value of an expression, awaited where it is a promise.
    pub(crate) fn eval(&mut self, js: &str) -> Value {
        let params = json!({ "expression": js, "returnByValue": true, "awaitPromise": true });
        let mut got = self.call("Runtime.evaluate", params);
        assert_eq!(got["exceptionDetails"], Value::Null, "{js}");
        got["result"]["value"].take()
    }

    /// Waits until `js` is true.
    pub(crate) fn until(&mut self, js: &str) {
        let end = Instant::now() + 3 * PATIENCE;
        while self.eval(js) != Value::Bool(true) {
            let complaints = &self.complaints;
            assert!(Instant::now() < end, "never true: {js}; {complaints:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses and releases the mouse in the middle of an element, which is waited for.
    pub(crate) fn click(&mut self, selector: &str) {
        let found = format!("document.querySelector({})", json!(selector));
        self.until(&format!("{found} !== null"));
        let middle = self.eval(&format!(
            "(e => {{ e.scrollIntoView({{ block: 'center', behavior: 'instant' }}); \
                const r = e.getBoundingClientRect(); \
                return [r.x + r.width / 2, r.y + r.height / 2]; }})({found})"
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({
                "type": kind, "x": middle[0], "y": middle[1], "button": "left", "clickCount": 1,
            });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Bytes of what a method answers with in base64.
    fn bytes(&mut self, method: &str, params: Value) -> Vec<u8> {
        let answer = self.call(method, params);
        let data = answer["data"].as_str().expect("an answer with data");
        base64::engine::general_purpose::STANDARD
            .decode(data)
            .unwrap()
    }

    /// PNG of what the window shows.
    pub(crate) fn png(&mut self) -> Vec<u8> {
        self.bytes("Page.captureScreenshot", json!({ "format": "png" }))
    }

    /// Prints the page.
    pub(crate) fn pdf(&mut self) -> Vec<u8> {
        self.bytes("Page.printToPDF", json!({ "printBackground": true }))
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        // After a failure the browser may be gone, and a second panic would end the test program.
        if !std::thread::panicking() {
            let target = json!({ "targetId": self.target });
            self.browser.call(None, "Target.closeTarget", target);
        }
    }
}
