//! The sync points of a recording.
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The number of the next sync point of any command buffer. It starts again at 0 after the largest.
static NEXT: AtomicU32 = AtomicU32::new(1);
/// How many sync points the process may make while one command buffer is recorded: half of the numbers there are.
const MOST: u32 = 1 << 31;

/// Which commands each sync point stands for, in the order in which they were made.
#[derive(Debug, Default)]
pub(super) struct SyncPoints(Vec<(u32, Vec<usize>)>);
impl SyncPoints {
    /// Makes a sync point that stands for these commands. No other recording that has [room](Self::has_room) has its
    /// number.
    pub(super) fn add(&mut self, behind: Vec<usize>) -> u32 {
        self.add_numbered(NEXT.fetch_add(1, Relaxed), behind)
    }
    fn add_numbered(&mut self, number: u32, behind: Vec<usize>) -> u32 {
        self.0.push((number, behind));
        number
    }
    /// Whether another one can be told from those there are.
    pub(super) fn has_room(&self) -> bool {
        self.place(NEXT.load(Relaxed)) < MOST
    }
    /// How many sync points the process had made since the first of these when it made the one with this number.
    fn place(&self, number: u32) -> u32 {
        self.0.first().map_or(0, |(first, _)| number.wrapping_sub(*first))
    }
    /// The commands that a sync point stands for; `None` if it belongs to another recording.
    pub(super) fn of(&self, number: u32) -> Option<&[usize]> {
        let place = self.place(number);
        let found = self.0.binary_search_by_key(&place, |(number, _)| self.place(*number));
        found.ok().map(|found| &*self.0[found].1)
    }
    /// The commands that the latest sync point stands for.
    pub(super) fn latest(&self) -> &[usize] {
        self.0.last().map_or(&[], |(_, behind)| behind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sync_points_are_found_when_the_numbers_start_again() {
        let mut points = SyncPoints::default();
        assert_eq!((points.of(0), points.latest()), (None, &[][..]));
        for (place, number) in [u32::MAX - 1, u32::MAX, 1].into_iter().enumerate() {
            points.add_numbered(number, vec![place]);
        }
        assert_eq!([u32::MAX - 1, u32::MAX, 1].map(|n| points.of(n).unwrap()[0]), [0, 1, 2]);
        assert_eq!([0, 2, u32::MAX - 2].map(|number| points.of(number)), [None; 3]);
        assert_eq!(points.latest(), [2]);
    }
    #[test]
    fn a_recording_with_old_sync_points_takes_no_more() {
        let mut points = SyncPoints::default();
        assert!(points.has_room());
        points.add(vec![]);
        assert!(points.has_room());
        let mut points = SyncPoints::default();
        points.add_numbered(NEXT.load(Relaxed).wrapping_sub(MOST), vec![]);
        assert!(!points.has_room());
    }
}
