//! The parent's side: typed events of a traffic process.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use braid_core::Time;

use super::error::{Result, TrafficError};
use super::report::{TrafficEvent, TrafficReport};

/// Takes the lines that a traffic process writes to its standard output, on
/// whatever thread reads them. When the last clone is dropped, the process has
/// nothing more to say.
#[derive(Clone, Debug)]
pub struct Feed {
    to: Sender<std::result::Result<TrafficEvent, String>>,
}

impl Feed {
    /// Takes one line.
    pub fn line(&self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let event = serde_json::from_str(line).map_err(|e| {
            let start: String = line.chars().take(200).collect();
            format!("a traffic process wrote what is no event ({e}): {start}")
        });
        // Nobody watches any more: nothing is lost.
        let _ = self.to.send(event);
    }
}

/// One sample of a traffic process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When, ns of `CLOCK_MONOTONIC`.
    pub t: Time,
    /// Payload received since the start, bytes.
    pub bytes_received: u64,
    /// Payload handed to the kernel since the start, bytes.
    pub bytes_sent: u64,
}

/// Record of what a traffic process has said, and waiting for what it will say.
#[derive(Debug)]
pub struct Watch {
    from: Receiver<std::result::Result<TrafficEvent, String>>,
    /// The process, for messages.
    name: String,
    ready: Option<SocketAddr>,
    start: Option<Time>,
    samples: Vec<Sample>,
    report: Option<TrafficReport>,
}

/// A feed and its watch, for the process called `name` in messages.
pub fn watch(name: impl Into<String>) -> (Feed, Watch) {
    let (to, from) = mpsc::channel();
    let watch = Watch {
        from,
        name: name.into(),
        ready: None,
        start: None,
        samples: Vec::new(),
        report: None,
    };
    (Feed { to }, watch)
}

impl Watch {
    /// Watches standard output itself, on a thread that ends with it.
    pub fn of(name: impl Into<String>, stdout: impl Read + Send + 'static) -> Self {
        let (feed, watch) = watch(name);
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                match line {
                    Ok(line) => feed.line(&line),
                    Err(_) => break,
                }
            }
        });
        watch
    }

    /// Waits until the server listens; its address.
    ///
    /// # Errors
    /// It ended before (with the reason that its report gives), or `timeout`
    /// has passed.
    pub fn ready(&mut self, timeout: Duration) -> Result<SocketAddr> {
        self.until(timeout, "listened", |w| w.ready)
    }

    /// Waits until the two ends have met; the start of the payload.
    ///
    /// # Errors
    /// As for [`Watch::ready`].
    pub fn connected(&mut self, timeout: Duration) -> Result<Time> {
        self.until(timeout, "connected", |w| w.start)
    }

    /// Waits for the report.
    ///
    /// # Errors
    /// The process ended without one, or `timeout` has passed.
    pub fn report(&mut self, timeout: Duration) -> Result<TrafficReport> {
        self.until(timeout, "reported", |w| w.report.clone())
    }

    /// Takes in what has been said, without waiting, and returns all samples
    /// since the start.
    ///
    /// # Errors
    /// The process wrote something that is no event.
    pub fn samples(&mut self) -> Result<&[Sample]> {
        while let Ok(event) = self.from.try_recv() {
            self.take(event)?;
        }
        Ok(&self.samples)
    }

    fn until<T>(
        &mut self,
        timeout: Duration,
        what: &str,
        get: impl Fn(&Self) -> Option<T>,
    ) -> Result<T> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(v) = get(self) {
                return Ok(v);
            }
            if let Some(r) = &self.report {
                let why = r.errors.join("; ");
                let message = format!("{} ended before it {what}: {why}", self.name);
                return Err(TrafficError::Peer(message));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.from.recv_timeout(left) {
                Ok(event) => self.take(event)?,
                Err(e) => {
                    let why = match e {
                        RecvTimeoutError::Timeout => {
                            format!("has not {what} in {:.1} s", timeout.as_secs_f64())
                        }
                        RecvTimeoutError::Disconnected => {
                            format!("ended without a word before it {what}")
                        }
                    };
                    return Err(TrafficError::Peer(format!("{} {why}", self.name)));
                }
            }
        }
    }

    fn take(&mut self, event: std::result::Result<TrafficEvent, String>) -> Result<()> {
        match event.map_err(TrafficError::Peer)? {
            TrafficEvent::Ready { address } => self.ready = Some(address),
            TrafficEvent::Connected { start_ns, .. } => self.start = Some(start_ns),
            TrafficEvent::Sample {
                t_ns,
                bytes_received,
                bytes_sent,
            } => self.samples.push(Sample {
                t: t_ns,
                bytes_received,
                bytes_sent,
            }),
            TrafficEvent::Report(r) => self.report = Some(*r),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::{Role, Transport};
    use super::*;

    const SOON: Duration = Duration::ZERO;

    fn line(event: &TrafficEvent) -> String {
        serde_json::to_string(event).unwrap()
    }

    #[test]
    fn collects_what_is_said() {
        let (feed, mut w) = watch("server");
        let address = "10.77.0.1:5001".parse().unwrap();
        feed.line(&line(&TrafficEvent::Ready { address }));
        feed.line(&line(&TrafficEvent::Sample {
            t_ns: Time::from_nanos(5),
            bytes_received: 7,
            bytes_sent: 9,
        }));
        let report = TrafficReport::empty(Role::Server, "bulk", Transport::Tcp);
        feed.line(&line(&TrafficEvent::Report(Box::new(report.clone()))));
        assert_eq!(w.ready(SOON).unwrap(), address);
        assert_eq!(w.report(SOON).unwrap(), report);
        assert_eq!(w.samples().unwrap()[0].bytes_sent, 9);
    }

    #[test]
    fn says_why_nothing_will_come() {
        let (feed, mut w) = watch("client nr");
        let e = w.ready(SOON).unwrap_err().to_string();
        assert!(e.contains("client nr") && e.contains("0.0 s"), "{e}");
        let mut report = TrafficReport::empty(Role::Client, "bulk", Transport::Tcp);
        report.errors.push("no route".into());
        feed.line(&line(&TrafficEvent::Report(Box::new(report))));
        let e = w.connected(SOON).unwrap_err().to_string();
        assert!(e.contains("no route"), "{e}");

        let (feed, mut w) = watch("client");
        feed.line("Segmentation fault");
        drop(feed);
        let e = w.report(SOON).unwrap_err().to_string();
        assert!(e.contains("Segmentation fault"), "{e}");
        let e = w.report(SOON).unwrap_err().to_string();
        assert!(e.contains("without a word"), "{e}");
    }
}
