//! How the main thread sleeps, which alone runs the handlers of signals. Invariant: a signal ends the
//! sleep, whenever it comes.
//!
//! A lock of Python's cannot promise that: a signal that comes after CPython last looked, and
//! before the lock sleeps, is not seen until the next one comes. So the main thread sleeps on a
//! socket, to which CPython's C handler of signals writes: see [`signal.set_wakeup_fd`][1].
//!
//! [1]: https://docs.python.org/3/library/signal.html#signal.set_wakeup_fd

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::lookup::{Attribute, Lookup};
use crate::{Clock, Error, MonotonicClock, Timestamp, Waker};

static SET_WAKEUP_FD: Attribute = Attribute::new("signal", "set_wakeup_fd");
static WRITE: Attribute = Attribute::new("os", "write");
pub(super) static LOOKUPS: &[&dyn Lookup] = &[&SET_WAKEUP_FD, &WRITE];

/// A socket to sleep on, and its other end. What is written means no more than to look again.
#[derive(Debug)]
struct Line {
    sleeper: UnixStream,
    bell: UnixStream,
    process: u32,
}

/// Lines that nobody sleeps on. None is ever closed: another thread may be about to write to
/// it, in the handler of a signal. Locked for a moment with the GIL held, so that no fork made
/// with the GIL finds it locked.
static SPARE: Mutex<Vec<Arc<Line>>> = Mutex::new(Vec::new());

fn spare() -> std::sync::MutexGuard<'static, Vec<Arc<Line>>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Line {
    /// One of this process.
    fn get() -> io::Result<Arc<Self>> {
        let mut spare = spare();
        if let Some(at) = spare.iter().position(|line| line.is_ours()) {
            return Ok(spare.swap_remove(at));
        }
        let (sleeper, bell) = UnixStream::pair()?;
        // For life: a child has the same sockets, and what it sets counts here too.
        sleeper.set_nonblocking(true)?;
        bell.set_nonblocking(true)?;
        Ok(Arc::new(Self { sleeper, bell, process: std::process::id() }))
    }

    /// Whether it was made in this process, and not in one that this is a fork of: who read from it
    /// there would take what is meant for the other.
    fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    fn bell(&self) -> RawFd {
        self.bell.as_raw_fd()
    }

    /// Takes what was written.
    fn read(&self) -> io::Result<Vec<u8>> {
        let mut numbers = vec![0; 256];
        let count = match (&self.sleeper).read(&mut numbers) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            count => count?,
        };
        numbers.truncate(count);
        Ok(numbers)
    }

    /// Sleeps until something is written, no longer than `timeout`, or for no reason at all.
    fn sleep(&self, timeout: Option<Duration>) {
        let mut polled =
            libc::pollfd { fd: self.sleeper.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        poll(&mut polled, timeout.map(|timeout| timeout.min(LONGEST)));
    }
}

/// What every system can be asked to wait for.
const LONGEST: Duration = Duration::from_secs(1_000_000);

#[cfg(target_os = "linux")]
fn poll(polled: &mut libc::pollfd, timeout: Option<Duration>) {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().cast_signed(),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: it reads and writes the one element, and reads the time, if there is one.
    unsafe { libc::ppoll(polled, 1, timeout, std::ptr::null()) };
}

/// To the millisecond, rounded up.
#[cfg(not(target_os = "linux"))]
fn poll(polled: &mut libc::pollfd, timeout: Option<Duration>) {
    let millis = timeout.map(|timeout| timeout.as_nanos().div_ceil(1_000_000));
    let millis = millis.map_or(-1, |millis| millis.try_into().unwrap_or(libc::c_int::MAX));
    // SAFETY: it reads and writes the one element.
    unsafe { libc::poll(polled, 1, millis) };
}

/// A sleep of the main thread, from before it is known to whoever ends it.
pub(super) struct Sleep<'py> {
    py: Python<'py>,
    line: Arc<Line>,
    /// Set before the bell is rung: a line may still have what an earlier sleep was sent.
    over: Arc<AtomicBool>,
    /// The descriptor that signals are written to otherwise; -1 is none.
    others: RawFd,
}

impl<'py> Sleep<'py> {
    /// Begins one; `None` where there is no descriptor left, or CPython refuses it.
    pub(super) fn begin(py: Python<'py>) -> Option<Self> {
        let line = Line::get().ok()?;
        if let Ok(others) = set_wakeup_fd(py, line.bell(), false) {
            let others = unless_spare(&line, others);
            return Some(Self { py, line, over: Arc::default(), others });
        }
        spare().push(line);
        None
    }

    /// Whether it began in this process; else it is a copy in a fork, of a wait that goes on elsewhere.
    pub(super) fn is_ours(&self) -> bool {
        self.line.is_ours()
    }

    pub(super) fn waker(&self) -> Waker {
        let (line, over) = (Arc::clone(&self.line), Arc::clone(&self.over));
        Box::new(move || {
            over.store(true, Ordering::Release); // what the waker's thread did is seen
            let _ = (&line.bell).write(&[0]); // if it is full there is enough to read
        })
    }

    /// Sleeps until the waker is called, or until `timeout`; says whether it was.
    pub(super) fn sleep(&mut self, timeout: Option<Duration>) -> PyResult<bool> {
        let clock = MonotonicClock::new();
        loop {
            self.run_handlers()?;
            if self.over.load(Ordering::Acquire) {
                return Ok(true);
            }
            let passed = clock.now().since(Timestamp::ZERO);
            let left = timeout.map(|timeout| timeout.saturating_sub(passed));
            if left == Some(Duration::ZERO) {
                return Ok(false);
            }
            let line = &self.line;
            self.py.detach(|| line.sleep(left));
        }
    }

    /// Runs the handlers of the signals that came until now. Later ones are written to the line,
    /// also if a handler told CPython otherwise.
    fn run_handlers(&mut self) -> PyResult<()> {
        loop {
            // As in CPython the number is where it is to be before the handler runs.
            self.pass_on(&self.line.read()?);
            self.py.check_signals()?;
            if !self.is_ours() {
                return Err(Error::Forked.into()); // by a handler
            }
            let before = set_wakeup_fd(self.py, self.line.bell(), false)?;
            if before == self.line.bell() {
                return Ok(());
            }
            self.others = unless_spare(&self.line, before);
        }
    }

    /// Writes the numbers of signals to where they would have been written.
    fn pass_on(&self, numbers: &[u8]) {
        let numbers: Vec<u8> = numbers.iter().copied().filter(|&number| number != 0).collect();
        if self.others >= 0 && !numbers.is_empty() {
            let _ = WRITE.get(self.py).call1((self.others, numbers.as_slice())); // as CPython does
        }
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        let now = set_wakeup_fd(self.py, self.others, true);
        let now = now.or_else(|_| set_wakeup_fd(self.py, -1, true)); // it was closed meanwhile
        if let Ok(now) = now
            && now != self.line.bell()
        {
            let _ = set_wakeup_fd(self.py, now, true); // as the handler wants it that ended the sleep
        }
        if self.is_ours() {
            self.pass_on(&self.line.read().unwrap_or_default());
        }
        spare().push(Arc::clone(&self.line));
    }
}

/// A descriptor that signals are to be written to, unless it is one of a line that is not slept on:
/// somebody kept it from the time when it was.
fn unless_spare(taken: &Line, descriptor: RawFd) -> RawFd {
    let is_spare = spare().iter().any(|line| line.bell() == descriptor);
    if is_spare || taken.bell() == descriptor { -1 } else { descriptor }
}

/// Has CPython write the numbers of signals there, and warn if the descriptor takes no more; gives where
/// it did before.
fn set_wakeup_fd(py: Python<'_>, descriptor: RawFd, warn: bool) -> PyResult<RawFd> {
    let options = PyDict::new(py);
    options.set_item("warn_on_full_buffer", warn)?;
    SET_WAKEUP_FD.get(py).call((descriptor,), Some(&options))?.extract()
}
