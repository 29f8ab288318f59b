//! A task as its maker describes it. Invariant: a description is scheduled once, by value.

use std::any::Any;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use crate::any_job::AnyJob;
use crate::body::Label;
use crate::clock::{Timestamp, saturating_nanos};
use crate::dependency::Dependency;
use crate::error::Error;
use crate::id::TaskId;
use crate::into_job::IntoJob;
use crate::job::JobError;
use crate::limits::Names;
use crate::plan::{GroupName, Plan};
use crate::recurrence::{OneTime, Recurrence};
use crate::retry::RetryPolicy;
use crate::series::{Ahead, Series, Slot};
use crate::timeout::TimeLimit;

/// What to run, when, and by which rules. [`Scheduler::schedule`](crate::Scheduler::schedule)
/// takes it.
///
/// ```
/// use duetime::{FixedRate, Scheduler, Task, Timestamp, retry};
/// use std::time::Duration;
/// let scheduler = Scheduler::new();
/// let backup = Task::new(scheduler.now(), || Ok::<_, std::io::Error>("saved"))
///     .id("backup")
///     .recurrence(FixedRate::new(Duration::from_secs(600)))
///     .retry(retry::FixedDelay::new(3, Duration::from_secs(5)))
///     .max_runs(2);
/// scheduler.schedule(backup)?;
/// # Ok::<_, duetime::Error>(())
/// ```
#[must_use = "a task does nothing until it is scheduled"]
pub struct Task {
    pub(crate) id: Option<TaskId>,
    pub(crate) due: Timestamp,
    pub(crate) job: AnyJob,
    pub(crate) priority: i32,
    /// Made with the first rule. A plain one-off task has none.
    pub(crate) plan: Option<Box<Plan>>,
    pub(crate) label: Option<Label>,
    /// `None`: nothing.
    #[expect(clippy::box_collection, reason = "most have none, and are moved around")]
    pub(crate) depends_on: Option<Box<Vec<Dependency>>>,
}

impl Task {
    /// A task that is due once, at `due`. A `due` in the past is legal: it runs at once.
    pub fn new<Kind>(due: Timestamp, job: impl IntoJob<Kind>) -> Self {
        Self {
            id: None,
            due,
            job: job.into_job(),
            priority: 0,
            plan: None,
            label: None,
            depends_on: None,
        }
    }

    /// The same as [`Task::new`], for a call that says that there is no other run.
    pub fn once<Kind>(due: Timestamp, job: impl IntoJob<Kind>) -> Self {
        Self::new(due, job)
    }

    /// The id, instead of one that the scheduler makes.
    pub fn id(mut self, id: impl Into<TaskId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Among tasks due at the same time the one of higher priority starts first. 0 otherwise.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// When the task runs again.
    pub fn recurrence(mut self, recurrence: impl Recurrence) -> Self {
        // A one-off with or without saying so is the same task.
        if !(&recurrence as &dyn Any).is::<OneTime>() {
            let grid =
                recurrence.grid().map_or(0, |period| saturating_nanos(period).unsigned_abs());
            let series = self.series();
            series.endless = recurrence.is_endless();
            series.grid = NonZeroU64::new(grid);
            series.recurrence = Some(Box::new(recurrence));
        }
        self
    }

    /// Whether a failed attempt is made again.
    pub fn retry(mut self, retry: impl RetryPolicy) -> Self {
        self.plan().retry = Some(Box::new(retry));
        self
    }

    /// How many slots are run at most; the retries of a slot do not count.
    pub fn max_runs(mut self, max_runs: u64) -> Self {
        self.series().max_runs = Some(max_runs);
        self
    }

    /// No run is due after `until`.
    pub fn until(mut self, until: Timestamp) -> Self {
        self.series().until = Some(until);
        self
    }

    /// Each run is due at its slot or, by chance, up to `jitter` later, so that tasks of one
    /// period do not all start at once. The slots stay where they are: nothing adds up, and
    /// missed slots and retries are counted by the slots. Nothing is due after
    /// [`Task::until`], and the jitter of a [`FixedRate`](crate::FixedRate) must be shorter than
    /// its period. None otherwise.
    ///
    /// ```
    /// use duetime::{FixedRate, Scheduler, Task};
    /// use std::time::Duration;
    /// let (minute, second) = (Duration::from_secs(60), Duration::from_secs(1));
    /// let scheduler = Scheduler::new();
    /// let first = scheduler.now() + minute;
    /// let poll = Task::new(first, || ()).recurrence(FixedRate::new(minute)).jitter(5 * second);
    /// let poll = scheduler.schedule(poll)?;
    /// assert!(first <= poll.due() && poll.due() <= first + 5 * second);
    /// # Ok::<_, duetime::Error>(())
    /// ```
    pub fn jitter(mut self, jitter: Duration) -> Self {
        if !jitter.is_zero() {
            self.series().jitter = jitter;
        }
        self
    }

    /// The task waits for these too: it runs at its due time or when the last of them is DONE,
    /// whichever is later. Its due time stays what it was, and its lateness counts from there. Of a
    /// series it is the first slot that waits.
    ///
    /// If one of them ends FAILED or CANCELLED the task is cancelled with
    /// [`DependencyFailed`](crate::DependencyFailed), and so are those that depend on it. It makes no
    /// difference whether that was before the task is scheduled. A retry is no end.
    ///
    /// Each is an id, a [`TaskHandle`](crate::TaskHandle) or a [`Dependency`]. An id may be that of
    /// another task of the same [`schedule_all`](crate::Scheduler::schedule_all), before or after
    /// this one.
    ///
    /// ```
    /// use duetime::{Scheduler, Task};
    /// let scheduler = Scheduler::new();
    /// let now = scheduler.now();
    /// let tasks = scheduler.schedule_all(vec![
    ///     Task::new(now, || println!("load")).depends_on(["extract"]),
    ///     Task::new(now, || println!("extract")).id("extract"),
    /// ])?;
    /// let report = scheduler.schedule(Task::new(now, || println!("report")).depends_on(&tasks))?;
    /// assert!(report.result(None).is_ok());
    /// # Ok::<_, duetime::Error>(())
    /// ```
    pub fn depends_on<D: Into<Dependency>>(mut self, tasks: impl IntoIterator<Item = D>) -> Self {
        let mut tasks = tasks.into_iter().map(Into::into).peekable();
        if tasks.peek().is_some() {
            self.depends_on.get_or_insert_default().extend(tasks);
        }
        self
    }

    /// The group whose limit the task counts for; see [`Builder::limit`](crate::Builder::limit).
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.plan().named = Some(Box::new(GroupName(group.into())));
        self
    }

    /// How long each attempt may take, from its start: what it waits before, in the queue or for a
    /// retry, does not count. As long as it likes otherwise.
    ///
    /// When the time is up the run is told to stop: [`Run::stop_requested`](crate::Run::stop_requested),
    /// [`Run::wait`](crate::Run::wait), [`Completion::on_stop`](crate::Completion::on_stop). Whatever
    /// the job answers from then on, the attempt has failed with
    /// [`TaskTimeout`](crate::TaskTimeout), and the retry policy applies. If it still runs when
    /// [`Task::grace`] is over too, it is stuck: the task is FAILED with
    /// [`TaskStuck`](crate::TaskStuck) there and then, a series as well, and another worker takes the
    /// place of the one that it holds.
    ///
    /// ```
    /// use duetime::{ManualClock, Run, Scheduler, Task, TaskError, TaskTimeout};
    /// use std::time::Duration;
    /// let (clock, second) = (ManualClock::new(), Duration::from_secs(1));
    /// let scheduler = Scheduler::builder().clock(clock.clone()).build()?;
    /// let nap = Task::new(scheduler.now(), |run: &Run| !run.wait(Duration::from_secs(3600)));
    /// let nap = scheduler.schedule(nap.timeout(10 * second))?;
    /// clock.advance(10 * second)?;
    /// let Some(Err(TaskError::Failed(error))) = nap.outcome() else { panic!("it is late") };
    /// assert!(error.downcast_ref::<TaskTimeout>().is_some());
    /// # Ok::<_, duetime::Error>(())
    /// ```
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.limit().timeout = Some(timeout);
        self
    }

    /// How long after its [`Task::timeout`] a job may take to stop before it is stuck. 5 seconds
    /// otherwise.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.limit().grace = grace;
        self
    }

    /// Whether a job that outlives its [`Task::timeout`] is interrupted as well, by what it gave to
    /// [`Run::set_interrupt`](crate::Run::set_interrupt). Not otherwise.
    pub fn interrupt(mut self, interrupt: bool) -> Self {
        self.limit().interrupt = interrupt;
        self
    }

    /// Anything that is to be found again by [`TaskHandle::label`](crate::TaskHandle::label).
    pub fn label(mut self, label: impl Any + Send + Sync) -> Self {
        self.label = Some(Arc::new(label));
        self
    }

    /// The first `count` due times, as if the task was scheduled and each run ended in the instant
    /// in which it was due; without jitter. The job is not run. A recurrence of your own is asked.
    ///
    /// ```
    /// use duetime::{FixedRate, Task, Timestamp};
    /// use std::time::Duration;
    /// let at = Timestamp::from_nanos;
    /// let task = Task::new(at(0), || ()).recurrence(FixedRate::new(Duration::from_nanos(30)));
    /// assert_eq!(task.preview(3)?, [at(0), at(30), at(60)]);
    /// # Ok::<_, duetime::JobError>(())
    /// ```
    ///
    /// # Errors
    /// The recurrence's own, and whatever scheduling the task would be refused for.
    pub fn preview(&self, count: usize) -> Result<Vec<Timestamp>, JobError> {
        self.check().map_err(JobError::new)?;
        let series = self.plan.as_ref().and_then(|plan| plan.series.clone());
        let series = series.map(|series| (series, Slot::first(self.due)));
        Ahead { due: Some(self.due), series }.preview(count, self.due)
    }

    fn plan(&mut self) -> &mut Plan {
        self.plan.get_or_insert_default()
    }

    fn limit(&mut self) -> &mut TimeLimit {
        self.plan().limit.get_or_insert_default()
    }

    /// Whether somebody has to watch over its attempts.
    pub(crate) fn is_timed(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.timeout().is_some())
    }

    fn series(&mut self) -> &mut Series {
        let series = self.plan().series.get_or_insert_default();
        Arc::get_mut(series).expect("a description is one, and shares nothing yet")
    }

    /// Checks the rules, and finds the group that it is of.
    #[inline]
    pub(crate) fn prepare(&mut self, groups: &Names) -> Result<(), Error> {
        if self.plan.is_some() { self.prepare_plan(groups) } else { Ok(()) }
    }

    fn prepare_plan(&mut self, groups: &Names) -> Result<(), Error> {
        let plan = self.plan();
        if let Some(name) = plan.named.take() {
            plan.group = groups.find(&name.0)?;
        }
        self.check()
    }

    fn check(&self) -> Result<(), Error> {
        self.plan.as_ref().map_or(Ok(()), |plan| plan.check(self.due))
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("id", &self.id).field("due", &self.due).finish_non_exhaustive()
    }
}
