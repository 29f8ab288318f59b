//! Waiting for a clock of unknown pace. Invariant: a clock that stands still is looked at ten times
//! or so, and then left alone until somebody says that it moved.

use std::time::Duration;

use crate::clock::{Alarm, Timestamp};

/// How long to wait for a clock of unknown pace that stands still: twice as long each time, and
/// after a second until somebody says that it moved. Without this a stopped clock would be polled.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    last: Option<Timestamp>,
    millis: u64,
}

impl Patience {
    /// The alarm to set when the clock shows `now`; longer than asked if it stood still.
    pub(crate) fn stretch(&mut self, alarm: Alarm, now: Timestamp) -> Alarm {
        let Alarm::After(time) = alarm else {
            return alarm;
        };
        let stood_still = self.last.replace(now) == Some(now);
        self.millis = if stood_still { (self.millis * 2).max(1) } else { 0 };
        if self.millis > 1024 {
            return Alarm::Never;
        }
        Alarm::After(time.max(Duration::from_millis(self.millis)))
    }
}
