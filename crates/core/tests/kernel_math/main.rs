//! The kernel's integer update rules (`kernel/mptcp/cc_math_*.h`) and decisions
//! (`kernel/mptcp/sched_math.h`), compiled
//! with the host's C compiler, against the vectors and against the Rust rules
//! over their whole domain. Skips with a reason where there is no compiler.

mod sched;
mod swing;
mod vegas;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use braid_core::cc::{Facts, Interval, Olia, by_name};
use braid_core::seed;
use rand::RngExt;
use serde_json::Value;

const ONE: f64 = (1u64 << 40) as f64;

/// The compiled harness, or why there is none.
static HARNESS: LazyLock<Result<String, String>> = LazyLock::new(|| {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernel_math/harness.c");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cc_math");
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let built = Command::new(&cc)
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined"])
        .args(["-fno-sanitize-recover=all", "-o"])
        .args([&out, &source])
        .output()
        .map_err(|e| format!("no C compiler: {cc}: {e}"))?;
    let said = String::from_utf8_lossy(&built.stderr);
    // A compiler without the sanitizer's library or kernel headers is none.
    if said.contains("-lubsan") || said.contains("linux/types.h: No such file") {
        return Err(format!("{cc} cannot build it: {said}"));
    }
    assert!(built.status.success(), "{cc} {}: {said}", source.display());
    Ok(out.display().to_string())
});

/// One line of numbers for each line asked; `None` without a compiler.
fn ask(lines: &[String]) -> Option<Vec<Vec<i128>>> {
    let harness = match &*HARNESS {
        Ok(path) => path,
        Err(why) => {
            eprintln!("skipped: {why}");
            return None;
        }
    };
    let mut child = Command::new(harness)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let text = lines.join("\n");
    let feed = std::thread::spawn(move || stdin.write_all(text.as_bytes()).unwrap());
    let out = child.wait_with_output().unwrap();
    feed.join().unwrap();
    assert!(out.status.success(), "the harness ends with {}", out.status);
    let numbers = |l: &str| l.split(' ').map(|n| n.parse().unwrap()).collect();
    let answers: Vec<_> = String::from_utf8(out.stdout)
        .unwrap()
        .lines()
        .map(numbers)
        .collect();
    assert_eq!(answers.len(), lines.len());
    Some(answers)
}

fn vectors(name: &str) -> Vec<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("vectors/cc/{name}.json"));
    let json: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    json["cases"].as_array().unwrap().clone()
}

/// One path: window in packets, round trip in us, OLIA's l in bytes.
type Path3 = (u32, u32, u64);

struct Case {
    what: String,
    paths: Vec<Path3>,
    me: usize,
}

impl Case {
    fn line(&self, rule: &str) -> String {
        let paths: Vec<String> = self
            .paths
            .iter()
            .map(|(w, t, l)| format!("{w} {t} {l}"))
            .collect();
        format!("{rule} {} {} {}", self.me, paths.len(), paths.join(" "))
    }

    fn facts(&self) -> Vec<Facts> {
        let of = |&(w, t, l): &Path3| Facts {
            interval_bytes: l,
            ..Facts::new(f64::from(w), f64::from(t))
        };
        self.paths.iter().map(of).collect()
    }

    fn of(v: &Value) -> Self {
        let path = |p: &Value| {
            let l = |k: &str| p[k].as_u64().unwrap();
            let interval = Interval::new(l("l1_bytes"), l("l2_bytes")).bytes();
            (l("cwnd") as u32, l("srtt_us") as u32, interval)
        };
        Self {
            what: v["name"].to_string(),
            paths: v["paths"].as_array().unwrap().iter().map(path).collect(),
            me: v["self"].as_u64().unwrap() as usize,
        }
    }
}

fn spread(rng: &mut seed::Rng, low: f64, high: f64) -> f64 {
    (low.ln() + rng.random::<f64>() * (high / low).ln()).exp()
}

fn random_cases(seed: u64, count: usize) -> Vec<Case> {
    let mut rng = seed::stream(seed, "kernel math");
    let one = |rng: &mut seed::Rng| {
        let w = spread(rng, 1.0, 1_048_576.9) as u32;
        let t = spread(rng, 10.0, 10_000_000.0) as u32;
        (w, t, spread(rng, 1.0, 2.0f64.powi(48)) as u64 - 1)
    };
    (0..count)
        .map(|k| {
            let n = 1 + k % 16;
            let mut paths: Vec<_> = (0..n).map(|_| one(&mut rng)).collect();
            if k % 5 == 0 {
                paths[n - 1] = paths[0]; // ties
            }
            Case {
                what: format!("random {k}: {paths:?}"),
                me: rng.random_range(0..n),
                paths,
            }
        })
        .collect()
}

/// The stated error: 2^-14 of the terms and three units of 2^-40 packets.
fn check_increase(rule: &str, case: &Case, got: i128) {
    let (facts, me) = (case.facts(), case.me);
    let want = by_name(rule).unwrap().increase(&facts, me) * ONE;
    let mut terms = want.abs();
    if rule == "olia" {
        let shift = Olia::alpha(&facts, me) / facts[me].window * ONE;
        terms = (want - shift).abs();
    }
    let slack = terms / 16_384.0 + 3.0 + want.abs() * 1e-12;
    let (what, diff) = (&case.what, got as f64 - want);
    assert!(
        diff.abs() <= slack,
        "{rule}, {what}: {got} instead of {want}"
    );
}

fn check_ssthresh(rule: &str, case: &Case, got: i128) {
    let (facts, me) = (case.facts(), case.me);
    let want = by_name(rule).unwrap().after_loss(&facts, me);
    let slack = 1.0 + facts[me].window / 32_768.0;
    let (what, diff) = (&case.what, got as f64 - want);
    assert!(
        diff <= 1e-6 && diff >= -slack,
        "{rule}, {what}: {got} instead of {want}"
    );
}

fn check(rule: &str, cases: &[Case]) {
    let lines: Vec<String> = cases.iter().map(|c| c.line(rule)).collect();
    let Some(answers) = ask(&lines) else { return };
    for (case, answer) in cases.iter().zip(&answers) {
        check_increase(rule, case, answer[0]);
        if rule != "lia" {
            check_ssthresh(rule, case, answer[1]);
        }
        if rule == "olia" {
            let alpha = if answer[3] == 0 {
                0.0
            } else {
                answer[2] as f64 / answer[3] as f64
            };
            let want = Olia::alpha(&case.facts(), case.me);
            assert!(
                (alpha - want).abs() < 1e-12,
                "{}: {alpha}, not {want}",
                case.what
            );
        }
    }
}

#[test]
fn kernel_rules_follow_the_vectors() {
    for rule in ["lia", "olia", "balia"] {
        let cases: Vec<Case> = vectors(rule).iter().map(Case::of).collect();
        check(rule, &cases);
    }
}

/// Windows to 2^20, round trips of 10 us to 10 s, 1 to 16 paths: no overflow
/// (the sanitizer ends the harness), and the stated error.
#[test]
fn kernel_rules_hold_over_the_domain() {
    for rule in ["lia", "olia", "balia"] {
        check(rule, &random_cases(1, 4_000));
    }
}

/// The corners of the domain, alone and against each other.
#[test]
fn kernel_rules_hold_in_the_corners() {
    let corners: Vec<Path3> = [1, 2, 1 << 20]
        .iter()
        .flat_map(|&w| [10, 10_000_000].map(|t| [0, (1 << 48) - 1].map(|l| (w, t, l))))
        .flatten()
        .collect();
    let mut cases = Vec::new();
    for &a in &corners {
        for &b in &corners {
            for n in [1, 2, 16] {
                let mut paths = vec![b; n];
                paths[0] = a;
                for me in [0, n - 1] {
                    let what = format!("{a:?} before {} of {b:?}, {me}", n - 1);
                    cases.push(Case {
                        what,
                        paths: paths.clone(),
                        me,
                    });
                }
            }
        }
    }
    for rule in ["lia", "olia", "balia"] {
        check(rule, &cases);
    }
}

#[test]
fn long_division_is_exact() {
    let mut rng = seed::stream(2, "muldiv");
    let mut triples: Vec<[u64; 3]> = (0..20_000)
        .map(|_| [0; 3].map(|_| rng.random::<u64>() >> rng.random_range(0..64)))
        .map(|[a, b, c]| [a, b, c.max(1)])
        .collect();
    let edge = [
        0,
        1,
        u64::from(u32::MAX),
        1 << 32,
        1 << 63,
        u64::MAX - 1,
        u64::MAX,
    ];
    for a in edge {
        for b in edge {
            triples.extend(edge[1..].iter().map(|&c| [a, b, c]));
        }
    }
    let lines: Vec<String> = triples
        .iter()
        .map(|[a, b, c]| format!("muldiv {a} {b} {c}"))
        .collect();
    let Some(answers) = ask(&lines) else { return };
    for ([a, b, c], got) in triples.iter().zip(answers) {
        let exact = u128::from(*a) * u128::from(*b) / u128::from(*c);
        let want = exact.min(u128::from(u64::MAX));
        assert_eq!(got[0] as u128, want, "{a} * {b} / {c}");
    }
}
