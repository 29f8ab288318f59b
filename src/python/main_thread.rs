//! How the main thread sleeps, which alone runs the handlers of signals. Invariant: a signal ends the
//! sleep, whenever it comes.
//!
//! A lock of Python's cannot promise that: a signal that comes after CPython last looked, and
//! before the lock sleeps, is not seen until the next one comes. So the main thread sleeps on a
//! socket, to which CPython's C handler of signals writes: see [`signal.set_wakeup_fd`][1].
//!
//! [1]: https://docs.python.org/3/library/signal.html#signal.set_wakeup_fd

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::lookup::{Attribute, Lookup};
use crate::{Clock, MonotonicClock, Timestamp, Waker};

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

impl Line {
    /// One of this process: a child would share those that it inherits.
    fn get() -> io::Result<Arc<Self>> {
        let process = std::process::id();
        let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = spare.iter().position(|line| line.process == process) {
            return Ok(spare.swap_remove(at));
        }
        let (sleeper, bell) = UnixStream::pair()?;
        bell.set_nonblocking(true)?; // a handler of signals must not wait
        Ok(Arc::new(Self { sleeper, bell, process }))
    }

    fn put(line: &Arc<Self>) {
        SPARE.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(line));
    }

    /// Sleeps until something is written, no longer than `timeout`, or for no reason at all.
    fn read(&self, timeout: Option<Duration>) -> Vec<u8> {
        let mut numbers = vec![0; 64];
        let timed = self.sleeper.set_read_timeout(timeout);
        let count = timed.and_then(|()| (&self.sleeper).read(&mut numbers));
        numbers.truncate(count.unwrap_or(0));
        numbers
    }

    /// What nobody has read, which the next sleep on this line must not take for news.
    fn rest(&self) -> Vec<u8> {
        let _ = self.sleeper.set_nonblocking(true);
        let rest = self.read(None);
        let _ = self.sleeper.set_nonblocking(false);
        rest
    }
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
        let set = set_wakeup_fd(py, line.bell.as_raw_fd());
        if set.is_err() {
            Line::put(&line);
        }
        Some(Self { py, line, over: Arc::default(), others: set.ok()? })
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
            self.pass_on(&self.py.detach(|| line.read(left)));
        }
    }

    /// Runs the handlers of the signals that came until now. Later ones are written to the line,
    /// also if a handler told CPython otherwise.
    fn run_handlers(&mut self) -> PyResult<()> {
        loop {
            self.py.check_signals()?;
            let bell = self.line.bell.as_raw_fd();
            let before = set_wakeup_fd(self.py, bell)?;
            if before == bell {
                return Ok(());
            }
            self.others = before;
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
        if let Ok(now) = set_wakeup_fd(self.py, self.others)
            && now != self.line.bell.as_raw_fd()
        {
            let _ = set_wakeup_fd(self.py, now); // as the handler wants it that ended the sleep
        }
        self.pass_on(&self.line.rest());
        Line::put(&self.line);
    }
}

/// Has CPython write the numbers of signals there; gives where it did before.
fn set_wakeup_fd(py: Python<'_>, descriptor: RawFd) -> PyResult<RawFd> {
    let options = PyDict::new(py);
    options.set_item("warn_on_full_buffer", false)?; // then there is enough to read
    SET_WAKEUP_FD.get(py).call((descriptor,), Some(&options))?.extract()
}
