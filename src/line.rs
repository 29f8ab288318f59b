//! Things that stand in line, in pieces. Invariant: no call takes longer the longer the line is: it is
//! never copied to grow, and is swept a piece a call.

use std::collections::VecDeque;

/// To sweep as many takes less than a tenth of a millisecond, but where what is looked at is in no cache.
pub(crate) const PIECE: usize = if cfg!(test) { 16 } else { 1024 };

/// First in, first out.
#[derive(Debug)]
pub(crate) struct Line<T> {
    /// None of them is empty, but that the only one may be.
    pieces: VecDeque<VecDeque<T>>,
    length: usize,
    /// How many pieces were swept, from the front, while a sweep goes on.
    swept: Option<usize>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { pieces: VecDeque::new(), length: 0, swept: None }
    }
}

impl<T> Line<T> {
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) fn front(&self) -> Option<&T> {
        self.pieces.front()?.front()
    }

    pub(crate) fn back(&self) -> Option<&T> {
        self.pieces.back()?.back()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten()
    }

    #[inline]
    pub(crate) fn push_back(&mut self, item: T) {
        self.length += 1;
        match self.pieces.back_mut() {
            Some(piece) if piece.len() < PIECE => piece.push_back(item),
            _ => self.push_piece(item),
        }
    }

    #[cold]
    fn push_piece(&mut self, item: T) {
        self.pieces.push_back(self.piece_of(item));
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<T> {
        let piece = self.pieces.front_mut()?;
        let item = piece.pop_front()?;
        self.length -= 1;
        if piece.is_empty() && self.pieces.len() > 1 {
            self.drop_front();
        }
        Some(item)
    }

    /// A new piece. Only the first one grows; who needs a second is going to fill it.
    fn piece_of(&self, item: T) -> VecDeque<T> {
        let mut piece = VecDeque::with_capacity(if self.pieces.is_empty() { 4 } else { PIECE });
        piece.push_back(item);
        piece
    }

    #[cold]
    fn drop_front(&mut self) {
        self.pieces.pop_front();
        self.swept = self.swept.map(|swept| swept.saturating_sub(1));
    }

    /// Begins to look at all that stand in line now.
    pub(crate) fn begin_sweep(&mut self) {
        self.swept = Some(0);
    }

    /// Whether pieces are left to be swept.
    pub(crate) fn is_swept(&self) -> bool {
        self.swept.is_none()
    }

    /// How many a sweep has still to look at, or a few more.
    pub(crate) fn left_to_sweep(&self) -> usize {
        self.swept.map_or(0, |swept| self.pieces.len().saturating_sub(swept).max(1) * PIECE)
    }

    /// Sweeps the next piece: what `keep` gives back stays, where it was, in as few pieces as it takes.
    pub(crate) fn sweep(&mut self, mut keep: impl FnMut(T) -> Option<T>) {
        let Some(at) = self.swept else { return };
        let Some(piece) = self.pieces.remove(at) else {
            self.swept = None;
            return;
        };
        self.length -= piece.len();
        let mut end = at;
        for item in piece.into_iter().filter_map(&mut keep) {
            self.length += 1;
            match end.checked_sub(1).and_then(|last| self.pieces.get_mut(last)) {
                Some(piece) if piece.len() < PIECE => piece.push_back(item),
                _ => {
                    self.pieces.insert(end, self.piece_of(item));
                    end += 1;
                }
            }
        }
        self.swept = Some(end).filter(|&end| end < self.pieces.len());
    }
}

#[cfg(test)]
impl<T> Line<T> {
    /// For how many there is room.
    pub(crate) fn capacity(&self) -> usize {
        self.pieces.iter().map(VecDeque::capacity).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(items: impl IntoIterator<Item = usize>) -> Line<usize> {
        let mut line = Line::default();
        items.into_iter().for_each(|item| line.push_back(item));
        line
    }

    fn drain(mut line: Line<usize>) -> Vec<usize> {
        let length = line.len();
        let items: Vec<usize> = std::iter::from_fn(|| line.pop_front()).collect();
        assert_eq!((items.len(), line.len(), line.front()), (length, 0, None));
        items
    }

    #[test]
    fn who_comes_first_goes_first_and_room_is_given_back() {
        let mut line = line(0..10 * PIECE);
        assert_eq!((line.front(), line.back()), (Some(&0), Some(&(10 * PIECE - 1))));
        for item in 0..10 * PIECE {
            assert_eq!(line.pop_front(), Some(item));
            assert!(line.capacity() <= line.len() + 2 * PIECE);
        }
        line.push_back(7);
        assert_eq!(drain(line), [7]);
    }

    #[test]
    fn a_sweep_takes_one_piece_a_call_and_changes_no_order() {
        let mut line = line(0..10 * PIECE);
        line.begin_sweep();
        let mut looked_at = 0;
        while !line.is_swept() {
            let before = looked_at;
            line.sweep(|item| {
                looked_at += 1;
                Some(item).filter(|item| item % 3 == 0)
            });
            assert!(looked_at - before <= PIECE);
        }
        assert_eq!(looked_at, 10 * PIECE);
        assert!(line.capacity() <= line.len() + 2 * PIECE, "it takes no more room than it needs");
        assert_eq!(drain(line), (0..10 * PIECE).step_by(3).collect::<Vec<_>>());
    }

    #[test]
    fn what_comes_and_goes_during_a_sweep_keeps_its_place() {
        let mut line = line(0..6 * PIECE);
        let mut gone = Vec::new();
        line.begin_sweep();
        for item in 6 * PIECE.. {
            line.sweep(|item| Some(item).filter(|item| item % 2 == 0));
            line.push_back(item * 2);
            gone.extend((0..PIECE / 4).filter_map(|_| line.pop_front()));
            if line.is_swept() {
                break;
            }
        }
        gone.extend(drain(line));
        assert!(gone.is_sorted() && gone.iter().all(|item| item % 2 == 0));
        assert!(gone.len() > 3 * PIECE, "none was lost");
    }

    #[test]
    fn a_sweep_that_leaves_nothing_leaves_an_empty_line() {
        let mut line = line(0..3 * PIECE);
        line.begin_sweep();
        while !line.is_swept() {
            line.sweep(|_| None);
        }
        assert!(line.is_empty() && line.front().is_none() && line.back().is_none());
        line.push_back(1);
        assert_eq!(drain(line), [1]);
    }
}
