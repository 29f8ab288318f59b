//! What lies under a record's lock. Invariants: a plain one-off task that nobody waits for has its job
//! here and nothing else; what only some tasks have lies in a [`Full`] part, made when it is first
//! needed. Values of a user are moved out to be dropped, or shown; none is dropped here.

use std::any::Any;
use std::mem;
use std::sync::Arc;

use crate::any_job::AnyJob;
use crate::ending::{Ended, Watchers};
use crate::id::TaskId;
use crate::info::{Facts, Ran};
use crate::job::JobError;
use crate::leash::Leash;
use crate::plan::Plan;
use crate::series::Position;

pub(crate) enum Body {
    /// A job without rules, that nobody waits for.
    Plain(AnyJob),
    /// All else. `None`: a plain job that was taken out.
    Full(Option<Box<Full>>),
}

#[derive(Default)]
pub(crate) struct Full {
    pub(crate) name: Option<TaskId>,
    pub(crate) work: Option<Work>,
    pub(crate) label: Option<Label>,
    /// What it depends on; none: nothing.
    pub(crate) depends_on: Option<Arc<[TaskId]>>,
    /// The group that it is of, as in its plan, which a worker takes along.
    pub(crate) group: u16,
    /// Whether it is a series that never ends by itself.
    pub(crate) endless: bool,
    pub(crate) facts: Facts,
    /// Where in its series a running task is, for who looks ahead.
    pub(crate) position: Option<Position>,
    /// Why the last failed run failed, or what cancelled a task that never ran.
    pub(crate) error: Option<JobError>,
    pub(crate) ended: Option<Ended>,
    pub(crate) watchers: Watchers,
    pub(crate) watchers_made: u64,
    /// That of the run that goes on, if somebody keeps it.
    pub(crate) leash: Option<Arc<Leash>>,
}

/// What the describer of a task put on it.
pub(crate) type Label = Arc<dyn Any + Send + Sync>;

/// A job with its rules.
pub(crate) struct Work {
    pub(crate) job: AnyJob,
    pub(crate) plan: Option<Box<Plan>>,
}

impl Full {
    pub(crate) fn note(&mut self, ran: &Ran) -> Option<JobError> {
        self.facts.note(ran);
        ran.error().and_then(|error| self.error.replace(error.clone()))
    }

    /// Shows the error if nobody else shares it: an event that is on its way, say.
    pub(crate) fn show_error(&self, show: &mut dyn FnMut(&dyn Any)) {
        if let Some(error) = &self.error {
            let again = matches!(&self.ended, Some(Ended::Failed(other)) if other.is(error));
            if error.sharers() == 1 + usize::from(again) {
                show(error);
            }
        }
    }

    /// The same for the label.
    pub(crate) fn show_label(&self, show: &mut dyn FnMut(&dyn Any)) {
        if let Some(label) = self.label.as_ref().filter(|label| Arc::strong_count(label) == 1) {
            show(&**label);
        }
    }

    pub(crate) fn visit(&self, show: &mut dyn FnMut(&dyn Any)) {
        if let Some(Work { job, plan }) = &self.work {
            show(&**job);
            plan.iter().for_each(|plan| plan.visit(show));
        }
        self.show_error(show);
        self.show_label(show);
        for (_, watcher) in &self.watchers {
            show(watcher.shown());
        }
    }
}

impl Body {
    #[inline]
    pub(crate) fn take_work(&mut self) -> Option<Work> {
        if let Self::Full(full) = self {
            return full.as_mut()?.work.take();
        }
        match mem::replace(self, Self::Full(None)) {
            Self::Plain(job) => Some(Work { job, plan: None }),
            Self::Full(_) => None,
        }
    }

    /// The rules of a task that waits, if it has any.
    pub(crate) fn plan(&mut self) -> Option<&mut Plan> {
        match self {
            Self::Full(Some(full)) => full.work.as_mut()?.plan.as_deref_mut(),
            _ => None,
        }
    }

    pub(crate) fn full(&mut self) -> &mut Full {
        if let Self::Plain(_) = self
            && let Self::Plain(job) = mem::replace(self, Self::Full(None))
        {
            let work = Some(Work { job, plan: None });
            *self = Self::Full(Some(Box::new(Full { work, ..Full::default() })));
        }
        match self {
            Self::Full(full) => full.get_or_insert_default(),
            Self::Plain(_) => unreachable!("replaced above"),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Body")
    }
}

const _: () = assert!(size_of::<Body>() == 16);
