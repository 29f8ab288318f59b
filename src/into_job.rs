//! What can be given as a job. Invariant: a job that is given as a closure is run as it was written, and
//! answers with what [`Outcome`] is made of.

use std::marker::PhantomData;

use crate::any_job::AnyJob;
use crate::job::{Job, Outcome};
use crate::run::Run;

/// What can be given as a job: a [`Job`], a closure `|run: &Run| …` or a closure `|| …`, where a
/// closure returns `()`, `bool`, a `Result` or an [`Outcome`]. `Kind` tells the three apart.
pub trait IntoJob<Kind> {
    /// The job.
    fn into_job(self) -> AnyJob;
}

/// Marks a closure that takes the run.
#[doc(hidden)]
pub struct TakesRun<R>(PhantomData<R>);

/// Marks a closure that takes nothing.
#[doc(hidden)]
pub struct TakesNothing<R>(PhantomData<R>);

struct WithRun<F>(F);
struct WithNothing<F>(F);
struct Boxed(Box<dyn Job>);

impl<F, R> Job for WithRun<F>
where
    F: FnMut(&Run) -> R + Send + 'static,
    R: Into<Outcome>,
{
    fn run(&mut self, run: &Run) -> Outcome {
        (self.0)(run).into()
    }
}

impl<F, R> Job for WithNothing<F>
where
    F: FnMut() -> R + Send + 'static,
    R: Into<Outcome>,
{
    fn run(&mut self, _: &Run) -> Outcome {
        (self.0)().into()
    }
}

impl Job for Boxed {
    fn run(&mut self, run: &Run) -> Outcome {
        self.0.run(run)
    }
}

impl<F, R> IntoJob<TakesRun<R>> for F
where
    F: FnMut(&Run) -> R + Send + 'static,
    R: Into<Outcome>,
{
    fn into_job(self) -> AnyJob {
        AnyJob::new(WithRun(self))
    }
}

impl<F, R> IntoJob<TakesNothing<R>> for F
where
    F: FnMut() -> R + Send + 'static,
    R: Into<Outcome>,
{
    fn into_job(self) -> AnyJob {
        AnyJob::new(WithNothing(self))
    }
}

impl<J: Job> IntoJob<()> for J {
    fn into_job(self) -> AnyJob {
        AnyJob::new(self)
    }
}

impl IntoJob<Box<dyn Job>> for Box<dyn Job> {
    fn into_job(self) -> AnyJob {
        AnyJob::new(Boxed(self))
    }
}

impl IntoJob<Self> for AnyJob {
    fn into_job(self) -> AnyJob {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;
    use std::ptr;
    use std::sync::Arc;

    use super::*;

    /// What it holds, how large it is made, and how strictly aligned.
    struct Small(Arc<u8>);
    struct Large(Arc<u8>, #[expect(dead_code, reason = "it makes it large")] [u8; 40]);
    #[repr(align(64))]
    struct Aligned(Arc<u8>);

    macro_rules! job {
        ($name:ident) => {
            impl Job for $name {
                fn run(&mut self, _: &Run) -> Outcome {
                    ().into()
                }
            }
        };
    }
    job!(Small);
    job!(Large);
    job!(Aligned);

    fn is_boxed(job: &AnyJob) -> bool {
        let (from, at) = (ptr::from_ref(job).addr(), ptr::from_ref(&**job).cast::<()>().addr());
        !(from..from + size_of::<AnyJob>()).contains(&at)
    }

    /// Is one, wherever it lies and wherever it is moved to, and lets go of what it holds once.
    fn check<J: Job>(make: impl FnOnce(Arc<u8>) -> J, held: fn(&J) -> &Arc<u8>, boxed: bool) {
        let kept = Arc::new(7);
        let mut job = Box::new(make(Arc::clone(&kept)).into_job());
        assert_eq!(is_boxed(&job), boxed);
        let within: &mut dyn Any = &mut **job;
        let within = within.downcast_mut::<J>().expect("as it was made");
        assert!(ptr::from_mut(within).is_aligned());
        let moved = *job;
        let within: &dyn Any = &*moved;
        assert!(Arc::ptr_eq(held(within.downcast_ref().expect("as it was made")), &kept));
        assert_eq!(Arc::strong_count(&kept), 2);
        drop(moved);
        assert_eq!(Arc::strong_count(&kept), 1);
    }

    #[test]
    fn a_job_is_kept_and_dropped_in_place_or_in_a_box() {
        check(Small, |job| &job.0, false);
        check(|held| Large(held, [1; 40]), |job| &job.0, true);
        check(Aligned, |job| &job.0, true);
    }

    #[test]
    fn a_closure_without_a_job_of_its_own_takes_no_box() {
        let count = Arc::new(());
        let held = Arc::clone(&count);
        let jobs = [(|| ()).into_job(), (move || drop(Arc::clone(&held))).into_job()];
        assert!(jobs.iter().all(|job| !is_boxed(job)));
        drop(jobs);
        assert_eq!(Arc::strong_count(&count), 1);
    }
}
