//! A video session in the manner of DASH: the client asks for one segment after
//! the other, keeps a buffer, and plays from it.

use std::time::Duration;

use braid_core::Rate;
use serde::{Deserialize, Serialize};

use super::abr::Ladder;
use super::clock;
use super::error::{Result, TrafficError};
use super::kind::TrafficKind;
use super::pieces::Pieces;
use super::playback::Player;
use super::report::{Segment, VideoReport};
use super::session::Session;
use super::spec::{Direction, Role, TrafficSpec};
use super::talk::{Done, Talk};

/// Segments listed in a report, which is one line that readers may cut at 64 kB.
const MOST_LISTED: usize = 300;

/// A video session in the manner of DASH.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Video {
    /// Bit rates on offer, ascending; one: a session of fixed quality.
    pub bitrates: Vec<Rate>,
    /// Playing time of a segment, s.
    #[serde(rename = "segment_s", with = "super::seconds")]
    pub segment: Duration,
    /// Playing time that the player keeps buffered, s.
    #[serde(rename = "buffer_s", with = "super::seconds")]
    pub buffer: Duration,
    /// Playing time buffered before it starts, and starts again after a
    /// stall, s.
    #[serde(rename = "startup_s", with = "super::seconds")]
    pub startup: Duration,
}

impl TrafficKind for Video {
    fn name(&self) -> &'static str {
        "video"
    }

    fn check(&self, spec: &TrafficSpec) -> Result<()> {
        let bad = |m: String| Err(TrafficError::Spec(m));
        let Self {
            bitrates,
            segment,
            buffer,
            startup,
        } = self;
        if spec.direction != Direction::Down {
            return bad("video goes down (from server to client) only".into());
        }
        if bitrates.is_empty() || bitrates[0] == Rate::ZERO || !bitrates.is_sorted_by(|a, b| a < b)
        {
            return bad("bitrates must be positive and ascending, at least one".into());
        }
        if segment.is_zero() || buffer < segment || startup > buffer {
            return bad(format!(
                "segment_s is {}, buffer_s {}, startup_s {}; expected 0 < segment_s <= \
                 buffer_s and startup_s <= buffer_s",
                segment.as_secs_f64(),
                buffer.as_secs_f64(),
                startup.as_secs_f64()
            ));
        }
        Ok(())
    }

    fn run(&self, s: &mut Session<'_, '_>) -> Result<()> {
        let mut talk = Talk::new(s, u64::MAX);
        s.conn.set_nodelay()?;
        s.sleep_until_start()?;
        let pieces = Pieces::new(s);
        let result = match s.spec.role {
            Role::Client => watch(self, s, &mut talk, pieces),
            Role::Server => pieces.serve(s, &mut talk),
        };
        s.corruption = talk.corruption();
        result
    }

    /// Whatever the direction that is set, video goes down.
    fn sends(&self, role: Role, direction: Direction) -> bool {
        direction == Direction::Both || role == Role::Server
    }
}

fn watch(
    video: &Video,
    s: &mut Session<'_, '_>,
    talk: &mut Talk,
    mut pieces: Pieces,
) -> Result<()> {
    let Video {
        bitrates,
        segment,
        buffer,
        startup,
    } = video.clone();
    let start = s.plan.start;
    let mut player = Player::new(start, startup);
    let mut ladder = Ladder::new(bitrates, buffer, segment);
    let mut tally = Tally::default();
    let result = loop {
        let now = clock::now();
        if now >= s.plan.end {
            break Ok(());
        }
        player.advance(now);
        let wait = player.time_until(buffer.saturating_sub(segment));
        if !wait.is_zero() {
            if let Err(e) = s.sleep(s.plan.end.min(now + wait)) {
                break Err(e);
            }
            continue;
        }
        let rate = ladder.next(player.buffered());
        let bytes = rate.bytes_in(segment).max(1);
        s.gaps.due(now);
        let done = fetch(s, talk, &mut pieces, bytes);
        let arrived = clock::now();
        match done {
            Ok(Done::All) => {}
            Ok(Done::Late) => break Ok(()),
            Ok(Done::Closed) => break Err(s.gone("closed the connection")),
            Err(e) => break Err(e),
        }
        s.gaps.idle(arrived);
        player.add(arrived, segment);
        tally.take(Segment {
            requested_s: seconds(now.since(start)),
            bitrate_mbps: rate.as_mbps(),
            bytes,
            download_s: seconds(arrived.since(now)),
            buffer_s: seconds(player.buffered()),
        });
    };
    player.advance(clock::now().min(s.plan.end));
    let (started, stalls, stalled) = player.result();
    let count = tally.count;
    s.video = Some(VideoReport {
        startup_s: started.map(|t| seconds(t.since(start))),
        stalls,
        stalled_s: seconds(stalled),
        ..tally.report()
    });
    s.observe();
    s.conn.abort_on_close();
    result?;
    if count == 0 {
        return Err(TrafficError::Peer(format!(
            "no segment arrived whole from {} in {:.1} s ({} bytes of the first did): check that \
             the path is up and carries the lowest bit rate",
            s.conn.peer,
            s.spec.duration.as_secs_f64(),
            s.received.total
        )));
    }
    Ok(())
}

/// Asks for a segment and receives it.
fn fetch(
    s: &mut Session<'_, '_>,
    talk: &mut Talk,
    pieces: &mut Pieces,
    bytes: u64,
) -> Result<Done> {
    match pieces.ask(s, bytes)? {
        Done::All => talk.receive(s, bytes, s.plan.end),
        other => Ok(other),
    }
}

/// Seconds to the microsecond.
fn seconds(d: Duration) -> f64 {
    d.as_micros() as f64 / 1e6
}

/// Segments that arrived whole.
#[derive(Default)]
struct Tally {
    count: u64,
    sum_mbps: f64,
    switches: u32,
    last_mbps: Option<f64>,
    list: Vec<Segment>,
}

impl Tally {
    fn take(&mut self, segment: Segment) {
        let rate = segment.bitrate_mbps;
        self.count += 1;
        self.sum_mbps += rate;
        if self
            .last_mbps
            .replace(rate)
            .is_some_and(|last| last != rate)
        {
            self.switches += 1;
        }
        if self.list.len() < MOST_LISTED {
            self.list.push(segment);
        }
    }

    fn report(self) -> VideoReport {
        VideoReport {
            mean_bitrate_mbps: self.sum_mbps / self.count.max(1) as f64,
            switches: self.switches,
            segments: self.list,
            ..VideoReport::default()
        }
    }
}
