//! How time passes, while some runs wait for nobody and are waited for by nobody. Invariant: a move ends
//! when nothing happens any more before the world acts, or the clock moves on.

use std::thread;
use std::time::Duration;

use duetime::{Busy, Error, ManualClock};

use crate::bytes::Bytes;
use crate::notes::GROUPS;
use crate::rest::{is_held, of};
use crate::world::World;

/// Why a move ended where it was.
enum Halt {
    /// Runs are held.
    Held,
    Refused(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl World {
    pub(crate) fn advance(&self, time: Duration) {
        self.pass(time, |clock, time| clock.advance_with(time, |busy| self.stand_by(busy)));
    }

    pub(crate) fn jump(&self, time: Duration) {
        self.pass(time, |clock, time| clock.jump_with(time, |busy| self.stand_by(busy)));
    }

    fn pass(&self, time: Duration, go: impl FnOnce(&ManualClock, Duration) -> Result<(), Halt>) {
        match go(&self.clock, time) {
            Ok(()) | Err(Halt::Held) => {}
            Err(Halt::Refused(error)) => panic!("{error}: not in a job"),
        }
    }

    /// Lets time pass in one leap, if that must be, for a clock does not advance while a run that does
    /// not sleep goes on.
    pub(crate) fn go_on(&self, time: Duration) {
        if self.is_anything_held() { self.jump(time) } else { self.advance(time) }
    }

    pub(crate) fn is_anything_held(&self) -> bool {
        let now = self.clock.now();
        self.shared.notes().attempts.go_on(now).any(|attempt| attempt.is_held())
    }

    /// Jumps to the moment at which something happens to one of the runs, or right before or after.
    pub(crate) fn jump_to_deadline(&self, bytes: &mut Bytes) {
        let now = self.clock.now();
        let notes = self.shared.notes();
        let deadlines = notes.attempts.go_on(now).flat_map(|attempt| {
            let grace = attempt.given_up_at(now).filter(|_| attempt.is_held());
            attempt.run.deadline().into_iter().chain(grace).filter(|&time| time > now)
        });
        let deadlines: Vec<_> = deadlines.collect();
        drop(notes);
        let Some(place) = usize::from(bytes.next()).checked_rem(deadlines.len()) else { return };
        let early = Duration::from_nanos(u64::from(bytes.below(3)));
        let time = deadlines[place].since(now).saturating_sub(early) + Duration::from_nanos(1);
        self.jump(time);
    }

    /// Has one of those that are held go on.
    pub(crate) fn let_go(&self, bytes: &mut Bytes) {
        let stand = self.shared.notes().attempts.let_go_nth(bytes.next().into());
        if let Some(stand) = stand {
            stand.end();
        }
    }

    /// Waits until the move can go on, or says that only the world can go on.
    fn stand_by(&self, busy: &Busy) -> Result<(), Halt> {
        loop {
            if busy.is_brief() {
                return Ok(());
            }
            if self.stands() {
                return Err(Halt::Held);
            }
            // Not for ever: it may be that it never is over, but soon stands.
            let waiting = thread::current();
            if let Some(key) = busy.when_over(Box::new(move || waiting.unpark())) {
                thread::park_timeout(Duration::from_micros(100));
                busy.forget(key);
            }
        }
    }

    /// Whether all that runs is held or sleeps, and nothing can start.
    fn stands(&self) -> bool {
        let count = || {
            let now = self.clock.now();
            let notes = self.shared.notes();
            let stands = notes.attempts.go_on(now).filter(|attempt| attempt.stands(now)).count();
            // The numbers of the scheduler take longer.
            if stands < notes.attempts.go_on(now).count() {
                return None;
            }
            drop(notes);
            let stats = self.scheduler.stats().expect("no fork here");
            (stats.running == stands).then_some((stands, stats.runs))
        };
        // Nothing started or ended while it was looked whether something could.
        let before = count();
        before.is_some() && !self.can_start() && count() == before
    }

    /// Whether there is a worker, and something for it to do.
    fn can_start(&self) -> bool {
        self.is_served() && !self.scheduler.is_paused() && self.has_ready()
    }

    /// Whether a worker is neither stuck nor at work. Another takes the place of the first that is stuck,
    /// and nobody that of the second.
    pub(crate) fn is_served(&self) -> bool {
        let now = self.clock.now();
        let attempts = &self.shared.notes().attempts;
        let stuck = attempts.stuck(now).filter(|attempt| attempt.holds_worker()).count();
        stuck < 2 && !attempts.go_on(now).any(|attempt| attempt.holds_worker())
    }

    /// Whether a task is due that nothing holds back.
    fn has_ready(&self) -> bool {
        let now = self.clock.now();
        let infos = self.scheduler.tasks(None).expect("no fork here");
        let full = |group: usize| {
            let attempts = &self.shared.notes().attempts;
            attempts.go_on(now).filter(|attempt| attempt.group == Some(group)).count() > group
        };
        let full: Vec<bool> = (0..GROUPS.len()).map(full).collect();
        let known = self.shared.known();
        infos.iter().filter(|info| info.due <= now).any(|info| {
            let task = of(&known, info);
            let group = task.and_then(|task| task.group);
            info.state == duetime::TaskState::Waiting
                && !is_held(&known, info)
                && !task.is_some_and(|task| task.is_blocked())
                && !group.is_some_and(|group| full[group])
        })
    }
}
