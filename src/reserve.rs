//! Workers in place of those that a stuck job holds. Invariant: while the queue is open, each place in
//! the pool is served by one thread, or is vacant because as many threads are stuck as the pool has
//! places, beyond those that were replaced; who comes back takes a vacant one.

/// Guarded by the queue's lock.
#[derive(Debug, Default)]
pub(crate) struct Reserve {
    /// Runs that were given up and have not returned.
    stuck: usize,
    /// Replacements that were made and are not made up for by a thread that came back.
    replacements: usize,
    vacant: Vec<usize>,
}

impl Reserve {
    pub(crate) fn stuck(&self) -> usize {
        self.stuck
    }

    /// How many places of a pool of `most` are served.
    pub(crate) fn serving(&self, most: usize) -> usize {
        most - self.vacant.len()
    }

    /// A run that holds no worker is stuck.
    pub(crate) fn note_stuck(&mut self) {
        self.stuck += 1;
    }

    /// The same of one that holds `worker`, in a pool of `most`. `true`: another is to be made for its
    /// place.
    #[must_use]
    pub(crate) fn write_off(&mut self, worker: usize, most: usize) -> bool {
        self.stuck += 1;
        let replaced = self.replacements < most;
        if replaced {
            self.replacements += 1;
        } else {
            self.vacant.push(worker);
        }
        replaced
    }

    /// No replacement could be made after all.
    pub(crate) fn vacate(&mut self, worker: usize) {
        self.replacements -= 1;
        self.vacant.push(worker);
    }

    /// A stuck run that holds no worker ended.
    pub(crate) fn note_return(&mut self) {
        self.stuck -= 1;
    }

    /// The same of one that held its worker. Gives the place that the thread is to serve; `None`: there
    /// are enough without it.
    pub(crate) fn come_back(&mut self) -> Option<usize> {
        self.stuck -= 1;
        let place = self.vacant.pop();
        if place.is_none() {
            self.replacements -= 1;
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_as_many_are_replaced_as_there_are_places() {
        let mut reserve = Reserve::default();
        assert!(reserve.write_off(0, 2) && reserve.write_off(1, 2));
        assert!(!reserve.write_off(0, 2), "the replacement is stuck too");
        assert_eq!((reserve.stuck(), reserve.serving(2)), (3, 1));
        assert_eq!(reserve.come_back(), Some(0), "a place is vacant");
        assert_eq!(reserve.come_back(), None);
        assert!(reserve.write_off(1, 2));
    }

    #[test]
    fn who_cannot_be_replaced_comes_back() {
        let mut reserve = Reserve::default();
        assert!(reserve.write_off(0, 1));
        reserve.vacate(0);
        assert_eq!(reserve.come_back(), Some(0));
        assert_eq!(reserve.stuck(), 0);
    }
}
