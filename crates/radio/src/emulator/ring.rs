//! Many reads and writes of TUN devices, and the wait for the next, in one
//! system call (`io_uring`), with the time of each packet beside it
//! (`TUNSETTIMED`, of the virtual clock's kernel).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use io_uring::squeue::{Entry, Flags};
use io_uring::{EnterFlags, IoUring, opcode, types};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use super::batch::Write;
use super::buffers::LARGE;
use super::port::{Port, Read};
use super::tun;
use super::vnet::{Framing, VNET_LEN};

/// Packets read at a time.
pub(crate) const SLOTS: usize = 64;
/// Requests handed to the kernel at a time.
const ENTRIES: u32 = 512;
/// The time of a packet as it stands behind its virtio-net header
/// (`struct tun_vnet_hdr_timed`): padding, and nanoseconds of `CLOCK_MONOTONIC`.
const STAMP: usize = tun::TIMED_LEN - VNET_LEN;
/// Attempts to hand over requests for which the kernel lacks memory.
const RETRIES: usize = 1000;

/// Kind of a request, in the upper half of its mark.
const READ: u64 = 1 << 32;
const WRITE: u64 = 2 << 32;
const WATCH: u64 = 3 << 32;

/// Indices of the sources that the ring watches.
const PORTS: usize = 0;
const BELL: usize = 1;
const SIGNALS: usize = 2;

/// Result of a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    /// When the packet was sent (`CLOCK_MONOTONIC`, nanoseconds).
    pub(crate) at: u64,
    /// Index of the port.
    pub(crate) port: usize,
    /// Where its bytes are.
    pub(crate) slot: usize,
    /// How many, or why there are none.
    pub(crate) read: Read,
}

/// Buffer that a packet is read into.
struct Slot {
    buf: Box<[u8]>,
    stamp: [u8; STAMP],
    port: usize,
}

/// The ports, and what else to look out for.
pub(crate) struct Ring {
    ring: IoUring,
    /// How many: in the kernel's table, other files follow.
    ports: u32,
    /// Readable when a port is.
    watch: Epoll,
    slots: Vec<Slot>,
    vectors: Vec<[libc::iovec; 4]>,
    arrivals: Vec<Arrival>,
    failed: Vec<(usize, Errno)>,
    /// Requests to look out are under way.
    watched: [bool; 3],
    /// And have been answered.
    fired: [bool; 3],
    /// There are requests that the kernel did not take, and never must.
    broken: bool,
}

impl Ring {
    /// Opens a ring for `ports`, which have to be TUN devices, beside what becomes
    /// readable when there are commands or a signal. To be used on the calling thread.
    ///
    /// # Errors
    /// The kernel has no `io_uring` or no `TUNSETTIMED`, which only that of the
    /// virtual clock has.
    pub(crate) fn new(
        ports: &[Port],
        bell: BorrowedFd<'_>,
        signals: BorrowedFd<'_>,
    ) -> io::Result<Self> {
        if ports.iter().any(|p| p.framing() != Framing::Ip) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_cqsize(2 * ENTRIES)
            .build(ENTRIES)?;
        let watch = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let mut files = Vec::with_capacity(ports.len() + 3);
        for port in ports {
            watch.add(port, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
            files.push(port.as_fd().as_raw_fd());
        }
        files.extend([watch.0.as_raw_fd(), bell.as_raw_fd(), signals.as_raw_fd()]);
        ring.submitter().register_files(&files)?;
        // Last: nothing else works with them from then on.
        for port in ports {
            tun::set_timed(port.as_fd())?;
        }
        let slot = || Slot {
            buf: vec![0; LARGE].into_boxed_slice(),
            stamp: [0; STAMP],
            port: 0,
        };
        Ok(Self {
            ring,
            ports: ports.len() as u32,
            watch,
            slots: std::iter::repeat_with(slot).take(SLOTS).collect(),
            vectors: Vec::new(),
            arrivals: Vec::with_capacity(SLOTS),
            failed: Vec::new(),
            watched: [false; 3],
            fired: [false; 3],
            broken: false,
        })
    }

    /// Writes `writes`, then waits until `until` (`CLOCK_MONOTONIC`,
    /// nanoseconds; `None`: for ever) or until there is something to look at:
    /// a command, a signal, a write that failed or, if `ports`, a packet to
    /// read. Returns the writes that failed, by index.
    ///
    /// # Errors
    /// The kernel's; the ring cannot be used any more then.
    pub(crate) fn exchange(
        &mut self,
        writes: &[Write<'_>],
        ports: bool,
        until: Option<u64>,
    ) -> io::Result<&[(usize, Errno)]> {
        self.failed.clear();
        for what in [PORTS, BELL, SIGNALS] {
            if !self.watched[what] && (what != PORTS || ports) {
                self.watched[what] = true;
                let file = types::Fixed(self.ports + what as u32);
                let poll = opcode::PollAdd::new(file, libc::POLLIN as u32).build();
                self.push(&poll.user_data(WATCH | what as u64))?;
            }
        }
        let stamps: Vec<_> = writes.iter().map(|w| stamp(w.at)).collect();
        self.vectors.clear();
        self.vectors
            .extend(writes.iter().zip(&stamps).map(|(w, s)| {
                let (vnet, headers) = w.headers[..w.header_bytes].split_at(VNET_LEN);
                [vnet, s, headers, w.payload].map(|part| libc::iovec {
                    iov_base: part.as_ptr().cast_mut().cast(),
                    iov_len: part.len(),
                })
            }));
        for (i, write) in writes.iter().enumerate() {
            let file = types::Fixed(write.port as u32);
            let entry = opcode::Writev::new(file, self.vectors[i].as_ptr(), 4)
                .rw_flags(libc::RWF_NOWAIT)
                .build()
                .flags(Flags::SKIP_SUCCESS);
            self.push(&entry.user_data(WRITE | i as u64))?;
        }
        // Requests that must not wait are carried out while they are handed
        // over: the kernel needs `writes` and `stamps` no more when this returns.
        let wait = !self.fired.contains(&true);
        self.enter(usize::from(wait), until)?;
        self.drain();
        Ok(&self.failed)
    }

    /// Tries to read `wants` packets of each port, [`SLOTS`] in all at most.
    /// Returns what came of it, in the order in which the packets were sent;
    /// attempts that found none come first.
    ///
    /// # Errors
    /// The kernel's; the ring cannot be used any more then.
    pub(crate) fn read(&mut self, wants: &[usize]) -> io::Result<Vec<Arrival>> {
        let ports = wants.iter().enumerate();
        let each = ports.flat_map(|(port, &n)| std::iter::repeat_n(port, n));
        self.vectors.clear();
        self.vectors
            .extend(self.slots.iter_mut().zip(each).map(|(slot, port)| {
                slot.port = port;
                let (vnet, rest) = slot.buf.split_at_mut(VNET_LEN);
                let none: &mut [u8] = &mut [];
                [vnet, &mut slot.stamp[..], rest, none].map(|part| libc::iovec {
                    iov_base: part.as_mut_ptr().cast(),
                    iov_len: part.len(),
                })
            }));
        self.arrivals.clear();
        if let Err(e) = self.read_all() {
            // The kernel may still write there.
            std::mem::forget(std::mem::take(&mut self.slots));
            return Err(e);
        }
        let mut arrivals = std::mem::take(&mut self.arrivals);
        arrivals.sort_by_key(|a| (a.at, a.slot));
        Ok(arrivals)
    }

    fn read_all(&mut self) -> io::Result<()> {
        let all = self.vectors.len();
        for i in 0..all {
            let file = types::Fixed(self.slots[i].port as u32);
            let entry = opcode::Readv::new(file, self.vectors[i].as_ptr(), 3)
                .rw_flags(libc::RWF_NOWAIT)
                .build();
            self.push(&entry.user_data(READ | i as u64))?;
        }
        while self.arrivals.len() < all {
            self.enter(all - self.arrivals.len(), None)?;
            self.drain();
        }
        Ok(())
    }

    /// The bytes of an arrival are at the start of this; it may be exchanged
    /// for another of the same length.
    pub(crate) fn buffer(&mut self, slot: usize) -> &mut Box<[u8]> {
        &mut self.slots[slot].buf
    }

    /// Whether there was a packet to read.
    pub(crate) fn called(&mut self) -> bool {
        self.take(PORTS)
    }

    /// Whether there are commands.
    pub(crate) fn rung(&mut self) -> bool {
        self.take(BELL)
    }

    /// Whether there is a signal.
    pub(crate) fn signalled(&mut self) -> bool {
        self.take(SIGNALS)
    }

    fn take(&mut self, what: usize) -> bool {
        std::mem::take(&mut self.fired[what])
    }

    /// Looks out for `port` no longer.
    pub(crate) fn forget(&mut self, port: &Port) {
        // Failing means that it is not watched any more, which is what we want.
        let _ = self.watch.delete(port);
    }

    fn push(&mut self, entry: &Entry) -> io::Result<()> {
        // SAFETY: what the entry refers to is alive until the kernel is done
        // with it: that of reads belongs to the ring, which waits for all of
        // them; that of writes is borrowed until they have been carried out.
        if unsafe { self.ring.submission().push(entry) }.is_ok() {
            return Ok(());
        }
        self.enter(0, None)?;
        // SAFETY: as before.
        unsafe { self.ring.submission().push(entry) }.map_err(io::Error::other)
    }

    /// Hands over all requests and waits for `least` answers, at most until `until`.
    fn enter(&mut self, least: usize, until: Option<u64>) -> io::Result<()> {
        if self.broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let time = until.map(|ns| {
            let time = types::Timespec::new().sec(ns / 1_000_000_000);
            time.nsec((ns % 1_000_000_000) as u32)
        });
        let mut args = types::SubmitArgs::new();
        if let Some(time) = &time {
            args = args.timespec(time);
        }
        let flags = EnterFlags::GETEVENTS | EnterFlags::EXT_ARG | EnterFlags::ABS_TIMER;
        for _ in 0..RETRIES {
            let todo = self.ring.submission().len();
            // SAFETY: the argument is of the type that EXT_ARG stands for, and
            // lives, with the time it refers to, until the call returns.
            let done = unsafe {
                let least = least.try_into().unwrap_or(u32::MAX);
                (self.ring.submitter()).enter(todo as u32, least, flags.bits(), Some(&args))
            };
            let again = [libc::ETIME, libc::EINTR, libc::EAGAIN, libc::EBUSY];
            if let Err(e) = done
                && !e.raw_os_error().is_some_and(|e| again.contains(&e))
            {
                self.broken = true;
                return Err(e);
            }
            if self.ring.submission().is_empty() {
                return Ok(());
            }
            self.drain();
        }
        self.broken = true;
        Err(io::ErrorKind::OutOfMemory.into())
    }

    /// Takes in the answers.
    fn drain(&mut self) {
        for answer in self.ring.completion() {
            let (kind, i) = (answer.user_data() >> 32 << 32, answer.user_data() as u32);
            let i = i as usize;
            match kind {
                WATCH => {
                    self.watched[i] = false;
                    self.fired[i] = true;
                }
                WRITE if answer.result() < 0 => {
                    self.failed.push((i, Errno::from_raw(-answer.result())));
                }
                READ => {
                    let slot = &self.slots[i];
                    let n = answer.result();
                    let read = Read::from_result(match usize::try_from(n) {
                        Ok(n) => Ok(n.saturating_sub(STAMP)),
                        Err(_) => Err(Errno::from_raw(-n)),
                    });
                    let at = match read {
                        Read::Bytes(_) => stamped(&slot.stamp),
                        _ => 0,
                    };
                    self.arrivals.push(Arrival {
                        at,
                        port: slot.port,
                        slot: i,
                        read,
                    });
                }
                _ => {}
            }
        }
    }
}

fn stamp(at: u64) -> [u8; STAMP] {
    let mut stamp = [0; STAMP];
    stamp[STAMP - 8..].copy_from_slice(&at.to_ne_bytes());
    stamp
}

fn stamped(stamp: &[u8; STAMP]) -> u64 {
    stamp.last_chunk().map_or(0, |ns| u64::from_ne_bytes(*ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stand_where_the_kernel_has_them() {
        let s = stamp(0x0102_0304_0506_0708);
        // 6 bytes of padding, then the machine's byte order.
        assert_eq!((STAMP, &s[..6]), (14, &[0; 6][..]));
        assert_eq!(s[6..], 0x0102_0304_0506_0708_u64.to_ne_bytes());
        assert_eq!(stamped(&s), 0x0102_0304_0506_0708);
    }
}
