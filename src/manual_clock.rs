//! A clock that is moved by hand. Invariant: time only goes forward, and moves only while every
//! scheduler that reads the clock is quiet (nothing runs, nothing is due).

use std::hint;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::clock::{Clock, Driven, Pace, Rest, Timestamp, Waker, check_duration, saturating_nanos};
use crate::error::Error;
use crate::sync::{AtomicI64, Generation, Ordering, Signal, SmallMutex, watch_forks};

/// Virtual time for tests and simulations. Clones show the same time.
///
/// ```
/// use duetime::{ManualClock, Scheduler};
/// use std::time::Duration;
///
/// let clock = ManualClock::new();
/// let scheduler = Scheduler::builder().clock(clock.clone()).build()?;
/// let task = scheduler.after(Duration::from_secs(3600), || ())?;
/// clock.advance(Duration::from_secs(3600))?; // instantly
/// assert!(task.outcome().is_some());
/// # Ok::<_, duetime::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct ManualClock {
    inner: Arc<Inner>,
}

struct Inner {
    /// Only ever raised. `SeqCst`: who moves the clock then looks at the queues, and who reads the
    /// clock for a queue must not see a time from before that look.
    now: AtomicI64,
    /// The schedulers that read this clock.
    schedulers: SmallMutex<Vec<Weak<dyn Driven>>>,
    /// In a forked child that lock is not touched: it may be held by a thread of the parent's.
    made_in: Generation,
}

impl Default for Inner {
    fn default() -> Self {
        watch_forks();
        let (now, schedulers) = (AtomicI64::new(0), SmallMutex::default());
        Self { now, schedulers, made_in: Generation::current() }
    }
}

/// A scheduler that has to come to rest before its clock can move on.
pub struct Busy {
    scheduler: Arc<dyn Driven>,
}

/// A wait for [`Busy`] to be over.
#[derive(Clone, Copy, Debug)]
pub struct QuietKey(u64);

impl Busy {
    /// Watches for some 30 µs whether it is over; most steps of virtual time are shorter than
    /// falling asleep and being woken. The caller holds nothing that a job might need.
    #[must_use]
    pub fn is_brief(&self) -> bool {
        (0..100).any(|_| {
            (0..20).for_each(|_| hint::spin_loop());
            self.scheduler.quiet().is_some()
        })
    }

    /// Has `waker` called once when it is over; `None` if it is.
    pub fn when_over(&self, waker: Waker) -> Option<QuietKey> {
        self.scheduler.when_quiet(waker).map(QuietKey)
    }

    /// Takes a waker back.
    pub fn forget(&self, key: QuietKey) {
        self.scheduler.forget_waker(key.0);
    }
}

impl ManualClock {
    /// A clock that shows zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A clock that shows `start`.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        let clock = Self::default();
        clock.raise(start);
        clock
    }

    /// The time it shows.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.inner.now.load(Ordering::SeqCst))
    }

    /// Moves time forward by `duration`, step by step through every due time on the way, and
    /// returns when all that became due, and all that those runs scheduled up to the target, has
    /// finished. Nothing sleeps. With one worker the order of all events is always the same.
    ///
    /// # Errors
    /// [`Error::InsideJob`] from a job, listener or callback of a scheduler on this clock;
    /// [`Error::InvalidValue`] above 100 years; [`Error::Forked`] in a child of the process that
    /// made the clock.
    pub fn advance(&self, duration: Duration) -> Result<(), Error> {
        self.advance_with(duration, |busy| {
            block(busy);
            Ok(())
        })
    }

    /// Moves time forward by `duration` in one leap, as a suspended machine does, and returns
    /// when all that became due has finished.
    ///
    /// # Errors
    /// As [`ManualClock::advance`].
    pub fn jump(&self, duration: Duration) -> Result<(), Error> {
        self.jump_with(duration, |busy| {
            block(busy);
            Ok(())
        })
    }

    /// [`ManualClock::advance`] for callers with a way of blocking of their own: `block` returns
    /// when what it is given is over, or with an error, which ends the move where it is.
    ///
    /// # Errors
    /// As [`ManualClock::advance`], and what `block` answers.
    pub fn advance_with<E: From<Error>>(
        &self,
        duration: Duration,
        mut block: impl FnMut(&Busy) -> Result<(), E>,
    ) -> Result<(), E> {
        let target = self.target("advance", duration)?;
        loop {
            let next = self.quiet(&mut block)?;
            let Some(next) = next.filter(|&next| next <= target) else {
                break;
            };
            self.move_to(next);
        }
        self.move_to(target);
        self.quiet(&mut block).map(drop)
    }

    /// [`ManualClock::jump`] for callers with a way of blocking of their own.
    ///
    /// # Errors
    /// As [`ManualClock::jump`], and what `block` answers.
    pub fn jump_with<E: From<Error>>(
        &self,
        duration: Duration,
        mut block: impl FnMut(&Busy) -> Result<(), E>,
    ) -> Result<(), E> {
        let target = self.target("jump", duration)?;
        self.move_to(target);
        self.quiet(&mut block).map(drop)
    }

    fn target(&self, call: &'static str, duration: Duration) -> Result<Timestamp, Error> {
        self.check_process()?;
        if self.schedulers().iter().any(|scheduler| scheduler.is_inside()) {
            return Err(Error::InsideJob(call));
        }
        check_duration("duration", duration)?;
        // A task may be due beyond the end of time, but the clock never gets there.
        let latest = i64::MAX - saturating_nanos(Duration::from_secs(1));
        Ok((self.now() + duration).min(Timestamp::from_nanos(latest)))
    }

    /// Waits until every scheduler is quiet; gives the earliest due time of all.
    fn quiet<E>(
        &self,
        block: &mut impl FnMut(&Busy) -> Result<(), E>,
    ) -> Result<Option<Timestamp>, E> {
        'again: loop {
            let mut earliest: Option<Timestamp> = None;
            for scheduler in self.schedulers() {
                let Some(Rest { next }) = scheduler.quiet() else {
                    block(&Busy { scheduler })?;
                    // While this one came to rest another may have started something.
                    continue 'again;
                };
                earliest = earliest.into_iter().chain(next).min();
            }
            return Ok(earliest);
        }
    }

    /// Whether the scheduler at this address reads the clock.
    pub(crate) fn drives(&self, address: usize) -> bool {
        let is_it = |scheduler: &Arc<dyn Driven>| Arc::as_ptr(scheduler).addr() == address;
        self.check_process().is_ok() && self.schedulers().iter().any(is_it)
    }

    fn check_process(&self) -> Result<(), Error> {
        self.inner.made_in.check()
    }

    fn move_to(&self, time: Timestamp) {
        self.raise(time);
        for scheduler in self.schedulers() {
            scheduler.moved();
        }
    }

    fn raise(&self, time: Timestamp) {
        self.inner.now.fetch_max(time.as_nanos(), Ordering::SeqCst);
    }

    fn schedulers(&self) -> Vec<Arc<dyn Driven>> {
        let mut schedulers = self.inner.schedulers.lock();
        schedulers.retain(|scheduler| scheduler.strong_count() > 0);
        schedulers.iter().filter_map(Weak::upgrade).collect()
    }
}

fn block(busy: &Busy) {
    if !busy.is_brief() {
        let signal = Arc::new(Signal::default());
        let waker = Arc::clone(&signal);
        if busy.when_over(Box::new(move || waker.give())).is_some() {
            signal.wait(None);
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Self::now(self)
    }

    fn pace(&self) -> Pace {
        Pace::Manual
    }

    fn drive(&self, scheduler: Weak<dyn Driven>) -> Result<(), Error> {
        self.check_process()?;
        self.inner.schedulers.lock().push(scheduler);
        Ok(())
    }
}

impl std::fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManualClock").field("now", &self.now()).finish_non_exhaustive()
    }
}
