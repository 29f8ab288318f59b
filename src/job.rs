//! The work and what comes of it. Invariant: whatever a job does (return, fail, panic), exactly
//! one [`Outcome`] comes out.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::id::TaskId;
use crate::later::Later;
use crate::run::Run;

/// The work of a task. Closures of no argument or of one `&Run` are jobs too.
///
/// ```
/// use duetime::{Job, Outcome, Run};
/// struct Count(u32);
/// impl Job for Count {
///     fn run(&mut self, _: &Run) -> Outcome {
///         self.0 += 1;
///         (self.0 < 3).into() // `false` is a failure
///     }
/// }
/// ```
pub trait Job: Any + Send {
    /// Does the work once. A panic counts as a failure.
    fn run(&mut self, run: &Run) -> Outcome;
}

/// How a run ended, or that it has not.
#[derive(Debug)]
pub enum Outcome {
    /// It succeeded, with this result.
    Done(Value),
    /// It failed.
    Failed(JobError),
    /// It goes on elsewhere, and ends later.
    Later(Later),
}

impl Outcome {
    /// Why it failed, if it did.
    #[must_use]
    pub fn error(&self) -> Option<&JobError> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Done(_) | Self::Later(_) => None,
        }
    }
}

/// A job's result, of any type. Clones share it.
#[derive(Clone, Default)]
pub struct Value(Option<Arc<dyn Any + Send + Sync>>);

impl Value {
    /// Wraps a result; `()` costs nothing.
    pub fn new<T: Any + Send + Sync>(result: T) -> Self {
        if (&result as &dyn Any).is::<()>() { Self(None) } else { Self(Some(Arc::new(result))) }
    }

    /// The result, if it is a `T`.
    ///
    /// ```
    /// # use duetime::Value;
    /// assert_eq!(Value::new(7_u8).downcast_ref::<u8>(), Some(&7));
    /// ```
    #[must_use]
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        static UNIT: () = ();
        match &self.0 {
            Some(value) => value.downcast_ref(),
            None => (&UNIT as &dyn Any).downcast_ref(),
        }
    }
}

impl Value {
    /// Whether there is nothing in it that a user made.
    pub(crate) fn is_unit(&self) -> bool {
        self.0.is_none()
    }

    /// Whether nobody else shares the result.
    #[doc(hidden)]
    #[must_use]
    pub fn is_sole(&self) -> bool {
        self.0.as_ref().is_some_and(|value| Arc::strong_count(value) == 1)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Value(..)" } else { "Value(())" })
    }
}

/// Why a run failed, or why a series ended as FAILED. Clones share the cause.
#[derive(Clone)]
pub struct JobError(Arc<dyn StdError + Send + Sync>);

impl JobError {
    /// Wraps an error.
    pub fn new(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(Arc::from(error.into()))
    }

    /// The error, if it is an `E`: the one that the job returned, [`ReturnedFalse`],
    /// [`Panicked`], [`NotForward`] or [`DependencyFailed`].
    #[must_use]
    pub fn downcast_ref<E: StdError + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl JobError {
    /// How many share the error.
    pub(crate) fn sharers(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Whether it is the same error, and not one like it.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobError({:?})", self.0)
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! failure {
    ($(#[$doc:meta])* $name:ident $fields:tt, $($message:tt)+) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name $fields

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let message: fn(&Self) -> String = $($message)+;
                f.write_str(&message(self))
            }
        }

        impl StdError for $name {}
    };
}

failure!(
    /// The job returned `false`.
    ReturnedFalse {},
    |_| "the job returned false".into()
);

failure!(
    /// User code panicked: the job, or the task's recurrence or retry policy.
    Panicked {
        /// What the panic said.
        pub message: String,
    },
    |this| format!("panicked: {}", this.message)
);

failure!(
    /// A run that went on elsewhere was dropped there, and nobody said how it ended.
    NeverEnded {},
    |_| "the run went on elsewhere, and nobody ended it".into()
);

failure!(
    /// A recurrence answered with a due time that is not after the slot it was asked for.
    NotForward {
        /// The slot.
        pub due: crate::clock::Timestamp,
        /// The answer.
        pub next: crate::clock::Timestamp,
    },
    |this| format!("the recurrence's next due {} is not after {}", this.next, this.due)
);

failure!(
    /// The task never ran, since one that it depends on, directly or through others, did not end
    /// DONE.
    DependencyFailed {
        /// That task: the first that failed or was cancelled.
        pub id: TaskId,
        /// Why it failed, as text; `None` if it was cancelled.
        pub error: Option<Arc<str>>,
    },
    |this| match &this.error {
        Some(error) => format!("it depends on task {}, which failed: {error}", this.id),
        None => format!("it depends on task {}, which was cancelled", this.id),
    }
);

impl From<Arc<DependencyFailed>> for JobError {
    fn from(cause: Arc<DependencyFailed>) -> Self {
        Self(cause)
    }
}

/// Runs user code; a panic becomes an error. The caller holds no lock.
pub(crate) fn contain<T>(code: impl FnOnce() -> T) -> Result<T, JobError> {
    // Whatever the code left half changed is its own; nothing of ours is borrowed by it.
    catch_unwind(AssertUnwindSafe(|| stop_at_end(code))).map_err(|panic| {
        let message = panic
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "(no message)".into());
        // The payload is user code too, and its `Drop` may panic again.
        drop(catch_unwind(AssertUnwindSafe(|| drop(panic))));
        JobError::new(Panicked { message })
    })
}

/// Drops what is a user's, or what may hold something of a user's: its `Drop` may panic. The caller
/// holds no lock.
pub(crate) fn discard<T>(of_user: T) {
    drop(contain(|| drop(of_user)));
}

/// Calls `code`; a thread that is ended from outside in there (`pthread_exit`, by a runtime that is
/// itself about to end) stops. Its unwinding is no panic: to catch it aborts the process.
pub fn stop_at_end<T>(code: impl FnOnce() -> T) -> T {
    struct Stop;
    impl Drop for Stop {
        fn drop(&mut self) {
            while !std::thread::panicking() {
                std::thread::park();
            }
        }
    }
    let stop = Stop;
    let value = code();
    std::mem::forget(stop);
    value
}

/// An error as text. Its `Display` is user code.
pub(crate) fn describe(error: &JobError) -> Arc<str> {
    contain(|| error.to_string())
        .unwrap_or_else(|_| "(an error that cannot be shown)".into())
        .into()
}

/// Runs a job; a panic is a failure.
pub(crate) fn run_contained(job: &mut dyn Job, run: &Run) -> Outcome {
    contain(|| job.run(run)).unwrap_or_else(Outcome::Failed)
}

impl From<bool> for Outcome {
    fn from(ok: bool) -> Self {
        if ok {
            Self::Done(Value::new(true))
        } else {
            Self::Failed(JobError::new(ReturnedFalse {}))
        }
    }
}

impl From<Value> for Outcome {
    fn from(value: Value) -> Self {
        Self::Done(value)
    }
}

impl From<()> for Outcome {
    fn from((): ()) -> Self {
        Self::Done(Value::default())
    }
}

impl<T: Any + Send + Sync, E: Into<Box<dyn StdError + Send + Sync>>> From<Result<T, E>>
    for Outcome
{
    /// `Ok(false)` is a failure as `false` is.
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(value) => match (&value as &dyn Any).downcast_ref::<bool>() {
                Some(false) => false.into(),
                _ => Self::Done(Value::new(value)),
            },
            Err(error) => Self::Failed(JobError::new(error)),
        }
    }
}
