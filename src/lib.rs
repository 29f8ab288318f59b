//! duetime runs work when it is due: once or again and again, on a pool of worker threads,
//! earliest first, with retries, cancel, priorities and a clock that tests can move.
//!
//! ```
//! use duetime::{FixedRate, Run, Scheduler, Task, retry};
//! use std::time::Duration;
//!
//! let scheduler = Scheduler::builder().workers(4).build()?;
//! let report = scheduler.schedule(
//!     Task::once(scheduler.now() + Duration::from_millis(5), |run: &Run| run.attempt() > 1)
//!         .id("report")
//!         .retry(retry::FixedDelay::new(3, Duration::from_millis(1))),
//! )?;
//! scheduler.every(FixedRate::new(Duration::from_secs(600)), || println!("ten minutes passed"))?;
//! assert!(report.result(None).is_ok()); // the second attempt succeeded
//! assert!(!matches!(scheduler.cancel("report")?, duetime::CancelOutcome::Cancelled)); // too late
//! # Ok::<_, duetime::Error>(())
//! ```
//!
//! Start with [`Scheduler`] and [`Task`]; [`ManualClock`] makes tests of timed code instant. What
//! a task does after a run is a [`Recurrence`] and a [`RetryPolicy`]; both are traits of one
//! method. ARCHITECTURE.md in the repository draws the whole on one page.

mod admission;
mod announcer;
mod any_job;
mod attempt;
mod body;
mod builder;
mod chance;
mod clock;
mod closing;
mod crew;
mod deadlines;
mod dependency;
mod dependents;
mod door;
mod elsewhere;
mod ending;
mod enforcer;
mod error;
mod event;
mod handle;
mod heap;
mod histogram;
mod history;
mod hold;
mod id;
mod idle;
mod info;
mod inside;
mod into_job;
mod job;
mod lateness;
mod later;
mod leash;
mod limits;
mod line;
mod links;
mod manual_clock;
mod nap;
mod outcome;
mod overtime;
mod owed;
mod patience;
mod plan;
mod queue;
mod quiet;
mod reading;
mod record;
mod recurrence;
mod registry;
mod reserve;
pub mod retry;
mod roll;
mod room;
mod run;
mod scheduler;
mod series;
mod shared;
mod slack;
mod sleep;
mod state;
mod stats;
mod steering;
mod stops;
mod story;
mod surroundings;
mod sync;
mod taking;
mod task;
mod threads;
mod timeout;
mod vigil;
mod waiting;
mod wakers;
mod watchdog;
mod worker;

#[cfg(feature = "python")]
mod python;

pub use any_job::AnyJob;
pub use builder::{Builder, MAX_WORKERS};
pub use clock::{Clock, Driven, MAX_DURATION, MonotonicClock, Pace, Rest, Timestamp, Waker};
pub use closing::Shutdown;
pub use crew::{Crew, WakerKey, WeakCrew};
pub use dependency::Dependency;
pub use error::Error;
pub use event::{Event, EventKind, Listener, ListenerId};
pub use handle::{TaskError, TaskHandle, WatchKey, Watcher};
pub use id::TaskId;
pub use info::TaskInfo;
pub use into_job::IntoJob;
#[doc(hidden)]
pub use into_job::{TakesNothing, TakesRun};
#[doc(hidden)]
pub use job::stop_at_end;
pub use job::{
    DependencyFailed, Job, JobError, NeverEnded, NotForward, Outcome, Panicked, ReturnedFalse,
    Value,
};
pub use lateness::{Lateness, Percentiles};
pub use later::{Completion, Later};
pub use manual_clock::{Busy, ManualClock, QuietKey};
pub use recurrence::{FixedDelay, FixedRate, Missed, Next, OneTime, Recurrence};
pub use retry::RetryPolicy;
pub use run::{Asleep, NapKey, Run, current_run};
pub use scheduler::{Scheduler, WeakScheduler};
pub use state::{CancelOutcome, ControlOutcome, TaskState};
pub use stats::Stats;
pub use surroundings::{Pause, Surroundings};
pub use task::Task;
pub use timeout::{Interrupt, TaskStuck, TaskTimeout};
