//! A run that outlives its job's frame: what it tells, what it keeps, and whom it wakes.

mod common;

use std::error::Error;
use std::fmt;
use std::sync::{Arc, mpsc};
use std::thread;

use common::{Log, World, ms, secs};
use duetime::{CancelOutcome, Run, Scheduler};

/// An error that shows whether it is still kept.
#[derive(Debug)]
struct Watched(Arc<()>);

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kept {} times", Arc::strong_count(&self.0))
    }
}

impl Error for Watched {}

#[test]
fn threads_that_a_job_gave_its_run_to_all_wake_when_it_is_to_stop() {
    let scheduler = Scheduler::new();
    let (asleep, sleepers) = mpsc::channel();
    let task = scheduler.after(ms(0), move |run: &Run| {
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (run, asleep) = (run.clone(), asleep.clone());
                thread::spawn(move || {
                    asleep.send(()).unwrap();
                    run.wait(secs(3600))
                })
            })
            .collect();
        threads.into_iter().all(|thread| thread.join().unwrap()) && run.stop_requested()
    });
    let task = task.unwrap();
    sleepers.iter().take(3).for_each(drop);
    assert_eq!(task.cancel().unwrap(), CancelOutcome::Stopping);
    assert!(task.result(None).is_ok());
}

#[test]
fn a_kept_run_keeps_neither_error_nor_result() {
    let world = World::quiet(1);
    let (watched, runs) = (Arc::new(()), Log::new());
    let (inside, kept) = (Arc::clone(&watched), runs.clone());
    let job = move |run: &Run| {
        kept.push(run.clone());
        Err::<(), _>(Watched(Arc::clone(&inside)))
    };
    let task = world.scheduler.after(ms(1), job).unwrap();
    world.advance(1);
    assert_eq!(Arc::strong_count(&watched), 2, "the job is gone, the error is its holder's");
    drop(task);
    assert_eq!(Arc::strong_count(&watched), 1);
    assert!(!runs.take()[0].stop_requested());
}

#[test]
fn a_job_may_wait_for_another_scheduler() {
    let outer = Scheduler::builder().workers(1).build().unwrap();
    let waited = outer.after(ms(0), || {
        let inner = Scheduler::new();
        let task = inner.after(ms(1), || ()).unwrap();
        let idle = task.wait(None) && inner.wait_idle(None).unwrap();
        idle && inner.shutdown().unwrap() && inner.has_ended()
    });
    assert!(waited.unwrap().result(None).is_ok());
}
