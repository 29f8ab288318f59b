//! The contract as the plainest program that keeps it: lists, loops, and no threads.

use std::collections::BTreeMap;

use duetime::{CancelOutcome, FixedDelay, FixedRate, Missed, Run, Task, TaskState, retry};

use crate::common::{at, ms};

/// What a task is made of. All times are in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) delay: i64,
    pub(crate) priority: i32,
    pub(crate) rule: Rule,
    /// Number of retries, and the delay before each.
    pub(crate) retry: (u64, i64),
    pub(crate) max_runs: Option<u64>,
    pub(crate) until: Option<i64>,
    pub(crate) takes: i64,
    pub(crate) timeout: Option<i64>,
    /// Whether each run fails, over and over.
    pub(crate) fails: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rule {
    Once,
    Skip(i64),
    CatchUp(i64),
    Delay(i64),
}

impl Plan {
    fn fails(&self, run: u64) -> bool {
        self.fails[usize::try_from(run).expect("few") % self.fails.len()]
    }

    /// The task of this plan for the scheduler, with a job that does as the plan says.
    pub(crate) fn task(&self, id: i64, now: i64) -> Task {
        let due = now + self.delay;
        let plan = self.clone();
        let job = move |run: &Run| {
            if plan.takes > 0 {
                let _ = run.wait(ms(plan.takes.unsigned_abs()));
            }
            !plan.fails(run.number())
        };
        let time = |millis: i64| ms(millis.unsigned_abs());
        let mut task = Task::new(at(due), job).id(id).priority(self.priority);
        task = match self.rule {
            Rule::Once => task,
            Rule::Skip(period) => task.recurrence(FixedRate::new(time(period))),
            Rule::CatchUp(period) => {
                task.recurrence(FixedRate::new(time(period)).missed(Missed::CatchUp))
            }
            Rule::Delay(delay) => task.recurrence(FixedDelay::new(time(delay))),
        };
        if self.retry.0 > 0 {
            task = task.retry(retry::FixedDelay::new(self.retry.0, time(self.retry.1)));
        }
        if let Some(max_runs) = self.max_runs {
            task = task.max_runs(max_runs);
        }
        if let Some(until) = self.until {
            task = task.until(at(due + until));
        }
        if let Some(timeout) = self.timeout {
            task = task.timeout(time(timeout));
        }
        task
    }
}

/// A task of the model.
#[derive(Clone, Debug)]
pub(crate) struct Modelled {
    pub(crate) plan: Plan,
    pub(crate) state: TaskState,
    pub(crate) first: i64,
    pub(crate) due: i64,
    pub(crate) slot: i64,
    /// Slots that were run, the current one included.
    pub(crate) slots: u64,
    pub(crate) slot_failures: u64,
    pub(crate) runs: u64,
    pub(crate) failures: u64,
    pub(crate) missed: u64,
    /// The place in the order of adding, of the entry that waits.
    pub(crate) sequence: u64,
    pub(crate) announced: bool,
    /// When the time of the run that goes on is up.
    pub(crate) deadline: i64,
    /// Whether its last failure was that.
    pub(crate) late: bool,
    pub(crate) stopping: bool,
}

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) now: i64,
    /// All that are known, by id.
    pub(crate) tasks: BTreeMap<i64, Modelled>,
    pub(crate) sequence: u64,
    /// Who runs, and when that run ends.
    pub(crate) running: Option<(i64, i64)>,
    pub(crate) story: Vec<String>,
}

impl Model {
    fn tell(&mut self, what: &str, id: i64, rest: &str) {
        self.story.push(format!("{} {what} {id}{rest}", self.now));
    }

    pub(crate) fn task(&mut self, id: i64) -> &mut Modelled {
        self.tasks.get_mut(&id).expect("it is known")
    }

    /// The waiting task that comes first of those that `wanted` picks.
    pub(crate) fn first(&self, wanted: impl Fn(&Modelled) -> bool) -> Option<i64> {
        let waiting = self.tasks.iter().filter(|(_, task)| task.state == TaskState::Waiting);
        let wanted = waiting.filter(|(_, task)| wanted(task));
        let first = wanted.min_by_key(|(_, t)| (t.due, -t.plan.priority, t.sequence));
        first.map(|(&id, _)| id)
    }

    /// Sends DUE for those whose time has come.
    fn announce(&mut self) {
        let now = self.now;
        while let Some(id) = self.first(|task| !task.announced && task.due <= now) {
            self.tell("DUE", id, "");
            self.task(id).announced = true;
        }
    }

    fn enqueue(&mut self, id: i64, due: i64) {
        self.sequence += 1;
        let sequence = self.sequence;
        let task = self.task(id);
        (task.due, task.sequence, task.announced) = (due, sequence, false);
        task.state = TaskState::Waiting;
        self.announce();
    }

    /// Lets the worker do all that it can do now.
    pub(crate) fn settle(&mut self) {
        self.announce();
        loop {
            match self.running {
                Some((id, end)) if end <= self.now => self.finish(id),
                Some(_) => return,
                None => {
                    let now = self.now;
                    let Some(id) = self.first(|task| task.due <= now) else { return };
                    self.tell("STARTED", id, "");
                    let task = self.task(id);
                    task.state = TaskState::Running;
                    task.deadline = task.plan.timeout.map_or(i64::MAX, |timeout| now + timeout);
                    let end = task.deadline.min(now + task.plan.takes);
                    self.running = Some((id, end));
                }
            }
        }
    }

    fn finish(&mut self, id: i64) {
        self.running = None;
        let now = self.now;
        let task = self.task(id);
        task.runs += 1;
        let late = task.deadline <= now;
        let failed = task.plan.fails(task.runs) || late;
        task.failures += u64::from(failed);
        task.late = if failed { late } else { task.late };
        let ended = if failed { "FAILED" } else { "COMPLETED" };
        let next = task.next(now, failed);
        if let Some((due, missed)) = next.filter(|_| !task.stopping) {
            task.missed += missed;
            self.tell(ended, id, &format!(" next {due}"));
            if missed > 0 {
                self.tell("MISSED", id, &format!(" {missed}"));
            }
            self.enqueue(id, due);
            return;
        }
        let series = task.plan.rule != Rule::Once;
        task.state = match (task.stopping && series, failed) {
            (true, _) => TaskState::Cancelled,
            (false, true) => TaskState::Failed,
            (false, false) => TaskState::Done,
        };
        let cancelled = task.state == TaskState::Cancelled;
        self.tell(ended, id, "");
        if cancelled {
            self.tell("CANCELLED", id, "");
        }
    }

    pub(crate) fn move_to(&mut self, time: i64) {
        self.now = time;
        self.settle();
    }

    pub(crate) fn advance(&mut self, by: i64) {
        let target = self.now + by;
        loop {
            let now = self.now;
            let end = self.running.map(|(_, end)| end);
            let due = self.first(|task| task.due > now).map(|id| self.tasks[&id].due);
            match end.into_iter().chain(due).min() {
                Some(next) if next <= target => self.move_to(next),
                _ => break,
            }
        }
        self.move_to(target);
    }

    pub(crate) fn schedule(&mut self, id: i64, plan: &Plan) {
        let due = self.now + plan.delay;
        let task = Modelled {
            plan: plan.clone(),
            state: TaskState::Waiting,
            first: due,
            due,
            slot: due,
            slots: 1,
            slot_failures: 0,
            runs: 0,
            failures: 0,
            missed: 0,
            sequence: 0,
            announced: true, // until it is in the queue
            deadline: i64::MAX,
            late: false,
            stopping: false,
        };
        self.tasks.insert(id, task);
        self.tell("SCHEDULED", id, "");
        self.enqueue(id, due);
    }

    pub(crate) fn cancel(&mut self, id: i64) -> CancelOutcome {
        let Some(task) = self.tasks.get_mut(&id) else { return CancelOutcome::Unknown };
        match task.state {
            TaskState::Waiting => {
                task.state = TaskState::Cancelled;
                self.tell("CANCELLED", id, "");
                CancelOutcome::Cancelled
            }
            TaskState::Running => {
                task.stopping = true;
                self.running = Some((id, self.now)); // its wait ends
                CancelOutcome::Stopping
            }
            _ => CancelOutcome::Finished,
        }
    }
}

impl Modelled {
    /// When the run that ended now is followed by another, and how many slots passed.
    fn next(&mut self, now: i64, failed: bool) -> Option<(i64, u64)> {
        let until = self.plan.until.map_or(i64::MAX, |until| self.first + until);
        let mut missed = 0;
        let slot = match self.plan.rule {
            Rule::Once => None,
            Rule::CatchUp(period) => Some(self.slot + period),
            Rule::Delay(delay) => Some(now + delay),
            Rule::Skip(period) => {
                let mut slot = self.slot + period;
                while slot < now {
                    slot += period;
                    missed += 1;
                }
                Some(slot)
            }
        };
        let may_go_on = self.plan.max_runs.is_none_or(|max| self.slots < max);
        let slot = slot.filter(|&slot| slot <= until && may_go_on);
        if failed {
            self.slot_failures += 1;
            let (retries, delay) = self.plan.retry;
            let retry = now + delay;
            if self.slot_failures <= retries
                && retry <= until
                && slot.is_none_or(|slot| retry < slot)
            {
                return Some((retry, 0));
            }
        }
        self.slot = slot?;
        self.slots += 1;
        self.slot_failures = 0;
        Some((self.slot, missed))
    }
}
