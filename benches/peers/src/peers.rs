//! The schedulers as the measurements use them, so that all of them do the same work.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use duetime::{Scheduler, Task, TaskHandle};
use scheduled_thread_pool::{JobHandle, ScheduledThreadPool};
use tokio::runtime::{EnterGuard, Runtime};
use tokio_util::time::{DelayQueue, delay_queue};

use crate::system::sleep_until;

pub trait Peer {
    type Handle;

    fn new(workers: usize) -> Self;

    /// Schedules a job after a delay.
    fn schedule(&mut self, delay: Duration, job: impl FnMut() + Send + 'static) -> Self::Handle;

    fn cancel(&mut self, handle: Self::Handle);

    /// Schedules `count` jobs that do nothing, due after `delay`; returns when all have been run.
    fn run(&mut self, count: u64, delay: Duration);

    /// Lets it work until then.
    fn spend(&mut self, end: Instant) {
        sleep_until(end);
    }
}

/// duetime, a task a call.
pub struct Duetime(Scheduler);

impl Peer for Duetime {
    type Handle = TaskHandle;

    fn new(workers: usize) -> Self {
        Self(Scheduler::builder().workers(workers).build().expect("in bounds"))
    }

    fn schedule(&mut self, delay: Duration, job: impl FnMut() + Send + 'static) -> TaskHandle {
        self.0.after(delay, job).expect("open")
    }

    fn cancel(&mut self, handle: TaskHandle) {
        handle.cancel().expect("same process");
    }

    fn run(&mut self, count: u64, delay: Duration) {
        let (start, due) = (Instant::now(), self.0.now() + delay);
        for _ in 0..count {
            self.0.schedule(Task::new(due, || ())).expect("open");
        }
        sleep_until(start + delay);
        self.0.wait_idle(None).expect("outside of jobs");
    }
}

/// duetime, all tasks in one call.
pub struct DuetimeBatch(Duetime);

impl Peer for DuetimeBatch {
    type Handle = TaskHandle;

    fn new(workers: usize) -> Self {
        Self(Duetime::new(workers))
    }

    fn schedule(&mut self, delay: Duration, job: impl FnMut() + Send + 'static) -> TaskHandle {
        self.0.schedule(delay, job)
    }

    fn cancel(&mut self, handle: TaskHandle) {
        self.0.cancel(handle);
    }

    fn run(&mut self, count: u64, delay: Duration) {
        let Duetime(scheduler) = &self.0;
        let (start, due) = (Instant::now(), scheduler.now() + delay);
        let tasks = (0..count).map(|_| Task::new(due, || ())).collect();
        drop(scheduler.schedule_all(tasks).expect("open"));
        sleep_until(start + delay);
        scheduler.wait_idle(None).expect("outside of jobs");
    }
}

/// scheduled-thread-pool. It cannot say when it has nothing to do, so its jobs count.
pub struct Pool(ScheduledThreadPool);

impl Peer for Pool {
    type Handle = JobHandle;

    fn new(workers: usize) -> Self {
        Self(ScheduledThreadPool::new(workers))
    }

    fn schedule(&mut self, delay: Duration, job: impl FnMut() + Send + 'static) -> JobHandle {
        self.0.execute_after(delay, job)
    }

    fn cancel(&mut self, handle: JobHandle) {
        handle.cancel();
    }

    fn run(&mut self, count: u64, delay: Duration) {
        let start = Instant::now();
        let (left, caller) = (Arc::new(AtomicU64::new(count)), std::thread::current());
        for _ in 0..count {
            let (left, caller) = (Arc::clone(&left), caller.clone());
            self.0.execute_after(delay.saturating_sub(start.elapsed()), move || {
                if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                    caller.unpark();
                }
            });
        }
        while left.load(Ordering::Acquire) > 0 {
            std::thread::park();
        }
    }
}

/// tokio-util's `DelayQueue`, on the caller's thread. It keeps values; here these are the jobs.
pub struct Delays {
    queue: DelayQueue<Box<dyn FnMut() + Send>>,
    runtime: &'static Runtime,
    _inside: EnterGuard<'static>,
}

impl Peer for Delays {
    type Handle = delay_queue::Key;

    fn new(_: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = Box::leak(Box::new(runtime.expect("a runtime")));
        let inside = runtime.enter();
        Self { queue: DelayQueue::new(), runtime, _inside: inside }
    }

    fn schedule(
        &mut self,
        delay: Duration,
        job: impl FnMut() + Send + 'static,
    ) -> delay_queue::Key {
        self.queue.insert(Box::new(job), delay)
    }

    fn cancel(&mut self, handle: delay_queue::Key) {
        self.queue.remove(&handle);
    }

    fn run(&mut self, count: u64, delay: Duration) {
        let due = tokio::time::Instant::now() + delay;
        for _ in 0..count {
            self.queue.insert_at(Box::new(|| ()), due);
        }
        self.spend(Instant::now() + Duration::from_secs(3600));
    }

    /// Returns earlier if nothing waits any more.
    fn spend(&mut self, end: Instant) {
        let queue = &mut self.queue;
        let all = async {
            while let Some(expired) = poll_fn(|context| queue.poll_expired(context)).await {
                expired.into_inner()();
            }
        };
        let _ = self.runtime.block_on(async { tokio::time::timeout_at(end.into(), all).await });
        // A queue that is never empty ends with the time; one that is, before it.
    }
}
