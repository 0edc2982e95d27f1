//! Which devices have the newest contents of which bytes, if each device has a copy. No driver is needed here: `P` is a
//! point of one.
use std::{ops::Range, sync::Arc};

/// A copy from another device.
#[derive(Debug)]
pub(crate) struct Arrival<P> {
    /// Where the copy is complete.
    pub(crate) point: Arc<P>,
    /// The command for whose write it waits.
    pub(crate) behind: Option<Arc<P>>,
}
/// One device's copy of some bytes.
#[derive(Debug)]
pub(crate) struct Side<P> {
    /// Whether it has the newest contents, no later than the points below are reached.
    pub(crate) is_newest: bool,
    /// The last copy into it, until that is known to be over.
    pub(crate) arrival: Option<Arrival<P>>,
    /// The last command that wrote it, until that is known to be over.
    pub(crate) written: Option<Arc<P>>,
}
/// Neighbouring bytes that have the same history.
#[derive(Debug)]
pub(crate) struct Segment<P> {
    /// Which bytes these are.
    pub(crate) bytes: Range<usize>,
    /// What each device has of them.
    pub(crate) sides: Box<[Side<P>]>,
}
/// All bytes of a memory object.
#[derive(Debug)]
pub(crate) struct Newest<P>(Vec<Segment<P>>);

impl<P> Clone for Arrival<P> {
    fn clone(&self) -> Self {
        Self { point: Arc::clone(&self.point), behind: self.behind.clone() }
    }
}
impl<P> Clone for Side<P> {
    fn clone(&self) -> Self {
        let Self { is_newest, arrival, written } = self;
        Self { is_newest: *is_newest, arrival: arrival.clone(), written: written.clone() }
    }
}
impl<P> Side<P> {
    /// Whether nothing is under way to it.
    fn is_idle(&self) -> bool {
        self.arrival.is_none() && self.written.is_none()
    }
    fn is_like(&self, other: &Self) -> bool {
        let is_same = |one: Option<&Arc<P>>, other: Option<&Arc<P>>| match (one, other) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        let point = |side: &Self| side.arrival.as_ref().map(|arrival| Arc::clone(&arrival.point));
        self.is_newest == other.is_newest
            && is_same(point(self).as_ref(), point(other).as_ref())
            && is_same(self.written.as_ref(), other.written.as_ref())
    }
}
impl<P> Segment<P> {
    /// The device from which the newest contents are copied to the one with this index: one to which nothing is under way,
    /// if there is any. `None` if the device has them, and if nothing was ever written.
    pub(crate) fn source(&self, index: usize) -> Option<usize> {
        if self.sides[index].is_newest {
            return None;
        }
        let newest = || (0..self.sides.len()).filter(|&from| self.sides[from].is_newest);
        newest().find(|&from| self.sides[from].is_idle()).or_else(|| newest().next())
    }
    /// Records a write on one device.
    fn write(&mut self, index: usize, written: Option<Arc<P>>) {
        self.sides.iter_mut().for_each(|side| side.is_newest = false);
        self.sides[index].is_newest = true;
        self.sides[index].written = written;
    }
}
impl<P> Newest<P> {
    /// Bytes that nothing was ever written to.
    pub(crate) fn new(bytes: usize, devices: usize) -> Self {
        let side = |_| Side { is_newest: false, arrival: None, written: None };
        Self(vec![Segment { bytes: 0..bytes, sides: (0..devices).map(side).collect() }])
    }
    /// The segments that these bytes consist of. Segments are divided where the bytes begin and end.
    pub(crate) fn within(&mut self, bytes: Range<usize>) -> &mut [Segment<P>] {
        let (first, last) = (self.divide(bytes.start), self.divide(bytes.end));
        &mut self.0[first..last]
    }
    /// The index of the first segment from this byte on.
    fn divide(&mut self, at: usize) -> usize {
        let place = self.0.partition_point(|segment| segment.bytes.end <= at);
        match self.0.get_mut(place) {
            Some(segment) if segment.bytes.start < at => {
                let (bytes, sides) = (at..segment.bytes.end, segment.sides.clone());
                segment.bytes.end = at;
                self.0.insert(place + 1, Segment { bytes, sides });
                place + 1
            }
            _ => place,
        }
    }
    /// Records a write of these bytes on one device, and the point at which it is complete unless it is.
    pub(crate) fn write(&mut self, bytes: Range<usize>, index: usize, written: Option<&Arc<P>>) {
        for segment in self.within(bytes) {
            segment.write(index, written.cloned());
        }
        self.join();
    }
    /// Makes one segment of neighbours that do not differ.
    pub(crate) fn join(&mut self) {
        let is_like = |one: &Segment<P>, other: &Segment<P>| {
            one.sides.iter().zip(&other.sides).all(|(one, other)| one.is_like(other))
        };
        self.0.dedup_by(|next, one| {
            let joins = is_like(one, next);
            if joins {
                one.bytes.end = next.bytes.end;
            }
            joins
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest(all: &mut Newest<u32>, at: usize) -> Vec<bool> {
        all.within(at..at + 1)[0].sides.iter().map(|side| side.is_newest).collect()
    }

    #[test]
    fn a_write_makes_the_other_copies_of_these_bytes_old_and_no_others() {
        let mut all = Newest::<u32>::new(100, 2);
        all.write(0..100, 0, None);
        all.write(40..60, 1, None);
        assert_eq!(newest(&mut all, 39), [true, false]);
        assert_eq!(newest(&mut all, 40), [false, true]);
        assert_eq!(newest(&mut all, 59), [false, true]);
        assert_eq!(newest(&mut all, 60), [true, false]);
        assert_eq!(all.within(0..100)[0].source(0), None);
        assert_eq!(all.within(40..60)[0].source(0), Some(1));
    }
    #[test]
    fn what_nobody_wrote_is_copied_from_nowhere() {
        let mut all = Newest::<u32>::new(10, 3);
        assert_eq!(all.within(0..10)[0].source(2), None);
        all.write(2..4, 1, None);
        let sources = |all: &mut Newest<u32>| {
            all.within(0..10).iter().map(|one| one.source(2)).collect::<Vec<_>>()
        };
        assert_eq!(sources(&mut all), [None, Some(1), None]);
    }
    #[test]
    fn neighbours_with_the_same_history_are_one_segment_again() {
        let mut all = Newest::<u32>::new(100, 2);
        let written = Arc::new(7);
        for at in (0..100).step_by(10) {
            all.write(at..at + 10, 0, Some(&written));
        }
        assert_eq!(all.0.len(), 1);
        all.write(50..51, 0, Some(&Arc::new(7)));
        assert_eq!(all.0.len(), 3, "another command's write");
        all.within(0..100).iter_mut().for_each(|one| one.sides[0].written = None);
        all.join();
        assert_eq!(all.0.len(), 1, "it does not matter once both are over");
    }
    #[test]
    fn a_source_to_which_nothing_is_under_way_is_preferred() {
        let mut all = Newest::<u32>::new(8, 3);
        all.write(0..8, 0, Some(&Arc::new(1)));
        let segment = &mut all.within(0..8)[0];
        segment.sides[1].is_newest = true;
        assert_eq!(segment.source(2), Some(1));
        segment.sides[1].arrival = Some(Arrival { point: Arc::new(2), behind: None });
        assert_eq!(segment.source(2), Some(0));
    }
}
