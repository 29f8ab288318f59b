//! What the tests share: a world with a clock of its own, logs, gates, and a net under hangs.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use duetime::{Event, EventKind, Job, JobError, ManualClock, Outcome, Run, Scheduler, Timestamp};

/// Far above what any test takes: a test that hangs ends the process instead of the patience.
const PATIENCE: Duration = Duration::from_secs(120);

/// Ends the process if it is not dropped for a very long time. It makes no test right or wrong.
pub(crate) struct Watchdog {
    _leash: Sender<()>,
}

pub(crate) fn watchdog() -> Watchdog {
    let (leash, end) = channel();
    let test = thread::current().name().unwrap_or("a test").to_owned();
    thread::spawn(move || {
        if end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            // Past the capture of the test harness, which would be lost.
            drop(writeln!(std::io::stderr(), "{test} hangs"));
            std::process::abort();
        }
    });
    Watchdog { _leash: leash }
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The instant so many milliseconds after the clock's zero.
pub(crate) const fn at(millis: i64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

/// Whole milliseconds; a time between two of them is a fault of the test.
pub(crate) fn millis(time: Timestamp) -> i64 {
    assert_eq!(time.as_nanos() % 1_000_000, 0, "{time} is no whole millisecond");
    time.as_nanos() / 1_000_000
}

/// A list that many threads write to.
pub(crate) struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Log<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn push(&self, entry: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
    }

    /// What was written since the last call.
    pub(crate) fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl<T> Clone for Log<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Closed until it is opened, and then for good.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn open(&self) {
        *self.0.0.lock().expect("no holder panics") = true;
        self.0.1.notify_all();
    }

    pub(crate) fn pass(&self) {
        let mut open = self.0.0.lock().expect("no holder panics");
        while !*open {
            open = self.0.1.wait(open).expect("no holder panics");
        }
    }
}

/// A job that says that it runs, and then goes on only when it is let.
#[derive(Clone, Default)]
pub(crate) struct Held {
    pub(crate) runs: Gate,
    pub(crate) go_on: Gate,
}

impl Held {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn hold(&self) {
        self.runs.open();
        self.go_on.pass();
    }
}

impl Job for Held {
    fn run(&mut self, _: &Run) -> Outcome {
        self.hold();
        ().into()
    }
}

/// A scheduler on a clock that the test moves, and all its events.
pub(crate) struct World {
    pub(crate) clock: ManualClock,
    pub(crate) scheduler: Scheduler,
    pub(crate) events: Log<Event>,
    _watchdog: Watchdog,
}

impl World {
    /// With nobody listening.
    pub(crate) fn quiet(workers: usize) -> Self {
        let clock = ManualClock::new();
        let scheduler =
            Scheduler::builder().workers(workers).clock(clock.clone()).build().expect("in bounds");
        let events = Log::new();
        Self { clock, scheduler, events, _watchdog: watchdog() }
    }

    /// With a listener to everything.
    pub(crate) fn new(workers: usize) -> Self {
        let world = Self::quiet(workers);
        listen(&world.scheduler, &world.events);
        world
    }

    pub(crate) fn advance(&self, millis: u64) {
        self.clock.advance(ms(millis)).expect("outside of any job");
    }

    pub(crate) fn jump(&self, millis: u64) {
        self.clock.jump(ms(millis)).expect("outside of any job");
    }

    /// The events since the last call, as text; see [`tell`].
    pub(crate) fn story(&self) -> Vec<String> {
        self.events.take().iter().map(tell).collect()
    }
}

pub(crate) fn listen(scheduler: &Scheduler, events: &Log<Event>) {
    let events = events.clone();
    scheduler
        .add_listener(move |event: &Event| events.push(event.clone()), &EventKind::ALL)
        .expect("not closed");
}

/// An event in short: when, what, to whom, and for FAILED when the next attempt is due.
pub(crate) fn tell(event: &Event) -> String {
    let time = millis(event.time);
    let kind = format!("{:?}", event.kind).to_uppercase();
    let next = match (event.kind, event.next_due) {
        (EventKind::Failed | EventKind::Completed, Some(due)) => format!(" next {}", millis(due)),
        _ => String::new(),
    };
    let missed = event.missed.map(|missed| format!(" {missed}")).unwrap_or_default();
    format!("{time} {kind} {}{missed}{next}", event.task_id)
}

/// What a failed task's error is, if it is an `E`.
pub(crate) fn cause<E: std::error::Error + Clone + 'static>(error: &JobError) -> E {
    error.downcast_ref::<E>().unwrap_or_else(|| panic!("{error} is another error")).clone()
}

/// Panics that a test causes on purpose print nothing. They do so by their message.
pub(crate) const ON_PURPOSE: &str = "on purpose";

pub(crate) fn hush() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let payload = info.payload();
            let text = payload
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            if text.is_some_and(|text| text.starts_with(ON_PURPOSE)) {
                return;
            }
            usual(info);
        }));
    });
}

/// A job that panics.
pub(crate) fn blow_up() {
    panic!("{ON_PURPOSE}");
}

/// The same numbers each time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % sides
    }
}
