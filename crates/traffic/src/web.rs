//! Web pages: the client loads one page after another over one connection, as HTTP/2 does.
//!
//! A page is a document, and then many small objects that are asked for all at once. Sizes of
//! objects are log-normal, as measured on the web: most are small, and few have most of the bytes.

use std::time::Duration;

use braid_core::stats::Percentiles;
use braid_core::{Time, seed};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::clock;
use super::error::{Result, TrafficError};
use super::kind::TrafficKind;
use super::pieces::Pieces;
use super::report::WebReport;
use super::session::Session;
use super::spec::{Direction, Role, TrafficSpec};
use super::talk::{Done, Talk};

/// Standard deviation of the logarithm of an object's size.
const SPREAD: f64 = 1.2;
/// Largest object, bytes.
const LARGEST: f64 = 2e6;
/// Objects of a page, at most: their requests go out before any answer is read.
const MOST_OBJECTS: u32 = 1000;

/// Pages of many small objects, one page after another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Web {
    /// Length of a page's document, bytes.
    pub document_bytes: u64,
    /// Objects of a page beside the document.
    pub objects: u32,
    /// Median length of an object, bytes.
    pub object_bytes: u64,
    /// Time between two pages, s.
    #[serde(rename = "pause_s", with = "super::seconds")]
    pub pause: Duration,
}

impl TrafficKind for Web {
    fn name(&self) -> &'static str {
        "web"
    }

    fn check(&self, spec: &TrafficSpec) -> Result<()> {
        let bad = |m: &str| Err(TrafficError::Spec(m.into()));
        if spec.direction != Direction::Down {
            return bad("pages go down (from server to client) only");
        }
        if self.document_bytes == 0 || self.object_bytes == 0 {
            return bad("document_bytes and object_bytes must be at least 1");
        }
        match self.objects > MOST_OBJECTS {
            true => bad("expected at most 1000 objects of a page"),
            false => Ok(()),
        }
    }

    fn run(&self, s: &mut Session<'_, '_>) -> Result<()> {
        let mut talk = Talk::new(s, u64::MAX);
        s.conn.set_nodelay()?;
        s.sleep_until_start()?;
        let pieces = Pieces::new(s);
        let result = match s.spec.role {
            Role::Client => browse(self, s, &mut talk, pieces),
            Role::Server => pieces.serve(s, &mut talk),
        };
        s.corruption = talk.corruption();
        result
    }

    /// Whatever the direction that is set, pages go down.
    fn sends(&self, role: Role, direction: Direction) -> bool {
        direction == Direction::Both || role == Role::Server
    }
}

/// Times of the pages that were asked for in the measured window and came whole.
#[derive(Default)]
struct Pages {
    first_byte_ms: Vec<f64>,
    page_ms: Vec<f64>,
    bytes: u64,
}

fn browse(web: &Web, s: &mut Session<'_, '_>, talk: &mut Talk, mut pieces: Pieces) -> Result<()> {
    let mut sizes = Sizes::new(web, s.spec.seed);
    let mut pages = Pages::default();
    let mut whole = 0u64;
    let result = loop {
        let asked = clock::now();
        if asked >= s.plan.end {
            break Ok(());
        }
        let objects = sizes.next_page();
        s.gaps.due(asked);
        match load(web, &objects, s, talk, &mut pieces) {
            Ok(Loaded::Whole { first_byte }) => {
                let done = clock::now();
                s.gaps.idle(done);
                whole += 1;
                if asked >= s.plan.window && done < s.plan.end {
                    let ms = |t: Time| t.since(asked).as_secs_f64() * 1e3;
                    pages.first_byte_ms.push(ms(first_byte));
                    pages.page_ms.push(ms(done));
                    pages.bytes += web.document_bytes + objects.iter().sum::<u64>();
                }
                if let Err(e) = s.sleep(s.plan.end.min(done + web.pause)) {
                    break Err(e);
                }
            }
            Ok(Loaded::Not(Done::Closed)) => break Err(s.gone("closed the connection")),
            Ok(Loaded::Not(_)) => break Ok(()),
            Err(e) => break Err(e),
        }
    };
    s.web = Some(WebReport {
        pages: pages.page_ms.len() as u64,
        bytes: pages.bytes,
        first_byte_ms: Percentiles::of(&mut pages.first_byte_ms),
        page_ms: Percentiles::of(&mut pages.page_ms),
    });
    s.observe();
    s.conn.abort_on_close();
    result?;
    if whole == 0 {
        return Err(TrafficError::Peer(format!(
            "no page arrived whole from {} in {:.1} s ({} bytes of the first did): check that the \
             path is up, or measure for longer",
            s.conn.peer,
            s.spec.duration.as_secs_f64(),
            s.received.total
        )));
    }
    Ok(())
}

/// Outcome of a page.
enum Loaded {
    Whole {
        /// When the first byte of the document came.
        first_byte: Time,
    },
    Not(Done),
}

/// Loads a page: its document, then all its objects.
fn load(
    web: &Web,
    objects: &[u64],
    s: &mut Session<'_, '_>,
    talk: &mut Talk,
    pieces: &mut Pieces,
) -> Result<Loaded> {
    let end = s.plan.end;
    macro_rules! all {
        ($done:expr) => {
            match $done? {
                Done::All => {}
                other => return Ok(Loaded::Not(other)),
            }
        };
    }
    all!(pieces.ask(s, web.document_bytes));
    all!(talk.receive(s, 1, end));
    let first_byte = clock::now();
    all!(talk.receive(s, web.document_bytes - 1, end));
    for bytes in objects {
        all!(pieces.ask(s, *bytes));
    }
    all!(talk.receive(s, objects.iter().sum(), end));
    Ok(Loaded::Whole { first_byte })
}

/// Sizes of objects, the same for every run with the same seed.
struct Sizes {
    rng: seed::Rng,
    objects: u32,
    median: f64,
}

impl Sizes {
    fn new(web: &Web, seed: u64) -> Self {
        Self {
            rng: seed::stream(seed, "web objects"),
            objects: web.objects,
            median: web.object_bytes as f64,
        }
    }

    fn next_page(&mut self) -> Vec<u64> {
        (0..self.objects).map(|_| self.next()).collect()
    }

    /// Draws a size by the method of Box and Muller.
    fn next(&mut self) -> u64 {
        let (u, v): (f64, f64) = (self.rng.random(), self.rng.random());
        // A draw of 0 has no logarithm.
        let radius = (-2.0 * (1.0 - u).ln()).sqrt();
        let normal = radius * (2.0 * std::f64::consts::PI * v).cos();
        (self.median * (SPREAD * normal).exp()).clamp(1.0, LARGEST) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_their_median_and_a_heavy_tail_and_repeat() {
        let web = Web {
            document_bytes: 1,
            objects: 1000,
            object_bytes: 10_000,
            pause: Duration::ZERO,
        };
        let mut sizes = Sizes::new(&web, 7);
        let mut all: Vec<u64> = (0..20).flat_map(|_| sizes.next_page()).collect();
        let again: Vec<u64> = Sizes::new(&web, 7).next_page();
        assert_eq!(again, all[..1000]);
        all.sort_unstable();
        let median = all[all.len() / 2] as f64;
        assert!((median / 10_000.0 - 1.0).abs() < 0.05, "{median}");
        // Of a log-normal distribution the mean is exp(spread^2 / 2) medians: 2.05.
        let mean = all.iter().sum::<u64>() as f64 / all.len() as f64;
        assert!((mean / 20_500.0 - 1.0).abs() < 0.08, "{mean}");
        let largest_tenth: u64 = all[all.len() * 9 / 10..].iter().sum();
        let share = largest_tenth as f64 / all.iter().sum::<u64>() as f64;
        assert!((0.4..0.55).contains(&share), "{share}");
    }
}
