//! Which devices have the newest contents of which bytes, if each device has a copy. No driver is needed here: `P` is a
//! point of one.
use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

/// A copy from another device.
#[derive(Debug)]
pub(crate) struct Arrival<P> {
    /// Where the copy is complete.
    pub(crate) point: Arc<P>,
    /// The commands for which it waits, until they are known to be complete.
    pub(crate) behind: Writers<P>,
}
/// Where a command is complete, which is known once it has been submitted.
#[derive(Debug)]
pub(crate) struct End<P>(OnceLock<Option<P>>);
impl<P> End<P> {
    /// Of a command that has not been submitted yet.
    pub(crate) fn pending() -> Arc<Self> {
        Arc::new(Self(OnceLock::new()))
    }
    /// Says where it is complete; `None` if it is already.
    pub(crate) fn set(&self, point: Option<P>) {
        let first = self.0.set(point).is_ok();
        debug_assert!(first, "a command is submitted once");
    }
    /// Whether the command has been submitted.
    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }
    /// Where it is complete; `None` if it is already, or has not been submitted.
    pub(crate) fn point(&self) -> Option<&P> {
        self.0.get()?.as_ref()
    }
    /// Waits until the command has been submitted.
    pub(crate) fn wait(&self) {
        self.0.wait();
    }
}
/// A command that writes, until it is known to be complete.
#[derive(Debug)]
pub(crate) struct Writer<P> {
    /// Where it is complete.
    pub(crate) end: Arc<End<P>>,
    /// Identifies an in-order queue, in which a later command is complete after an earlier one.
    pub(crate) queue: Option<u64>,
    /// Greater than that of each command whose record was made before.
    pub(crate) number: u64,
}
/// Commands that write, the oldest first.
#[derive(Debug)]
pub(crate) struct Writers<P> {
    all: Vec<Writer<P>>,
    /// With how many of them what is over is looked for everywhere.
    most: usize,
}
impl<P> Writers<P> {
    /// No command.
    pub(crate) fn new() -> Self {
        Self { all: vec![], most: FEW_WRITERS }
    }
    /// The commands.
    pub(crate) fn all(&self) -> &[Writer<P>] {
        &self.all
    }
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
    /// Forgets the oldest that are over; those behind one that is not only once there are twice as many as were left the
    /// last time.
    pub(crate) fn forget(&mut self, is_over: impl Fn(&P) -> bool) {
        let is_over = |end: &End<P>| end.is_set() && end.point().is_none_or(&is_over);
        let left = self.all.iter().position(|writer| !is_over(&writer.end));
        self.all.drain(..left.unwrap_or(self.all.len()));
        if self.all.len() >= self.most {
            self.all.retain(|writer| !is_over(&writer.end));
            self.most = FEW_WRITERS.max(2 * self.all.len());
        }
    }
}
impl<P> FromIterator<Writer<P>> for Writers<P> {
    fn from_iter<I: IntoIterator<Item = Writer<P>>>(all: I) -> Self {
        Self { all: all.into_iter().collect(), most: FEW_WRITERS }
    }
}
impl<P> Clone for Writers<P> {
    fn clone(&self) -> Self {
        Self { all: self.all.clone(), most: self.most }
    }
}
/// Fewer commands are not worth that.
const FEW_WRITERS: usize = 16;
/// One device's copy of some bytes.
#[derive(Debug)]
pub(crate) struct Side<P> {
    /// Whether it has the newest contents, no later than the points below are reached.
    pub(crate) is_newest: bool,
    /// The last copy into it, until that is known to be over.
    pub(crate) arrival: Option<Arrival<P>>,
    /// The commands that wrote it.
    pub(crate) written: Writers<P>,
    /// Commands that failed and may write it all the same: no copy must arrive before.
    pub(crate) failed: Writers<P>,
}
/// Neighbouring bytes that have the same history.
#[derive(Debug)]
pub(crate) struct Segment<P> {
    /// Which bytes these are.
    pub(crate) bytes: Range<usize>,
    /// What each device has of them.
    pub(crate) sides: Box<[Side<P>]>,
}
/// Which devices had the newest contents of some bytes.
#[derive(Debug)]
pub(crate) struct Before(Vec<(Range<usize>, Box<[bool]>)>);
/// All bytes of a memory object.
#[derive(Debug)]
pub(crate) struct Newest<P> {
    segments: Vec<Segment<P>>,
    /// With how many of them what is over is looked for everywhere.
    most: usize,
}
/// Fewer segments are not worth that.
const FEW: usize = 64;

impl<P> Clone for Writer<P> {
    fn clone(&self) -> Self {
        Self { end: Arc::clone(&self.end), ..*self }
    }
}
impl<P> Clone for Arrival<P> {
    fn clone(&self) -> Self {
        Self { point: Arc::clone(&self.point), behind: self.behind.clone() }
    }
}
impl<P> Clone for Side<P> {
    fn clone(&self) -> Self {
        let Self { is_newest, arrival, written, failed } = self;
        let (arrival, written, failed) = (arrival.clone(), written.clone(), failed.clone());
        Self { is_newest: *is_newest, arrival, written, failed }
    }
}
impl<P> Side<P> {
    /// Whether nothing is under way to it.
    fn is_idle(&self) -> bool {
        self.arrival.is_none() && self.written.is_empty()
    }
    fn is_like(&self, other: &Self) -> bool {
        let arrival =
            |side: &Self| side.arrival.as_ref().map(|arrival| Arc::as_ptr(&arrival.point));
        let are_same = |one: &Writers<P>, other: &Writers<P>| {
            let mut pairs = one.all.iter().zip(&other.all);
            one.all.len() == other.all.len()
                && pairs.all(|(one, other)| Arc::ptr_eq(&one.end, &other.end))
        };
        self.is_newest == other.is_newest
            && arrival(self) == arrival(other)
            && are_same(&self.written, &other.written)
            && are_same(&self.failed, &other.failed)
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
    fn is_like(&self, other: &Self) -> bool {
        self.sides.iter().zip(&other.sides).all(|(one, other)| one.is_like(other))
    }
    /// Records a write on one device. Commands that write other bytes of these need not be ordered with it, unless it
    /// writes all of them.
    fn write(&mut self, index: usize, writer: Option<&Writer<P>>, is_whole: bool) {
        self.sides.iter_mut().for_each(|side| side.is_newest = false);
        let Side { is_newest, written, .. } = &mut self.sides[index];
        *is_newest = true;
        // Of an in-order queue what was submitted before this record is complete before the writer.
        let is_earlier = |one: &Writer<P>| {
            let precedes = |writer: &Writer<P>| {
                writer.queue == one.queue && one.number < writer.number && one.end.is_set()
            };
            one.queue.is_some() && writer.is_some_and(precedes)
        };
        // What was written before matters until the command that overwrites it has been submitted.
        let forgets_all = is_whole && writer.is_none();
        written.all.retain(|one| !forgets_all && !is_earlier(one));
        written.all.extend(writer.cloned());
    }
    /// A command that writes all of these bytes has been submitted: who waits for it waits for whatever it followed.
    fn overwritten(&mut self, index: usize, end: &Arc<End<P>>) {
        let written = &mut self.sides[index].written.all;
        if let Some(place) = written.iter().position(|one| Arc::ptr_eq(&one.end, end)) {
            written.drain(..place);
        }
    }
    /// A command that writes on one device has failed, and may write all the same: no copy must arrive there before.
    fn failed(&mut self, index: usize, end: &Arc<End<P>>) {
        let Side { written, failed, .. } = &mut self.sides[index];
        failed.all.extend(written.all.iter().find(|one| Arc::ptr_eq(&one.end, end)).cloned());
    }
    /// Takes back that a command that [failed](Self::failed) has written on one device, unless another has written since: the
    /// newest contents are then where they were.
    fn take_back(&mut self, index: usize, end: &Arc<End<P>>, before: &[bool]) {
        let is_it = |one: &Writer<P>| Arc::ptr_eq(&one.end, end);
        // If the contents were nowhere else, they stay what the command left of them.
        let is_elsewhere = before.iter().enumerate().any(|(side, was)| *was && side != index);
        if before[index] && !is_elsewhere || !self.sides[index].is_newest {
            return;
        }
        if self.sides[index].written.all.pop_if(|last| is_it(last)).is_some() {
            self.sides.iter_mut().zip(before).for_each(|(side, was)| side.is_newest = *was);
            self.sides[index].is_newest = false;
        }
    }
}
impl<P> Newest<P> {
    /// Bytes that nothing was ever written to.
    pub(crate) fn new(bytes: usize, devices: usize) -> Self {
        let side = |_| {
            let (written, failed) = (Writers::new(), Writers::new());
            Side { is_newest: false, arrival: None, written, failed }
        };
        let whole = Segment { bytes: 0..bytes, sides: (0..devices).map(side).collect() };
        Self { segments: vec![whole], most: FEW }
    }
    /// The segments that these bytes consist of. Segments are divided where the bytes begin and end.
    pub(crate) fn within(&mut self, bytes: Range<usize>) -> &mut [Segment<P>] {
        let (first, last) = (self.divide(bytes.start), self.divide(bytes.end));
        &mut self.segments[first..last]
    }
    /// The index of the first segment from this byte on.
    fn divide(&mut self, at: usize) -> usize {
        let place = self.segments.partition_point(|segment| segment.bytes.end <= at);
        match self.segments.get_mut(place) {
            Some(segment) if segment.bytes.start < at => {
                let (bytes, sides) = (at..segment.bytes.end, segment.sides.clone());
                segment.bytes.end = at;
                self.segments.insert(place + 1, Segment { bytes, sides });
                place + 1
            }
            _ => place,
        }
    }
    /// Records a write of these bytes on one device, by a command unless that is complete, which writes all of them if
    /// `is_whole`.
    pub(crate) fn write(
        &mut self,
        bytes: Range<usize>,
        index: usize,
        writer: Option<&Writer<P>>,
        is_whole: bool,
    ) {
        for segment in self.within(bytes.clone()) {
            segment.write(index, writer, is_whole);
        }
        self.join(bytes);
    }
    /// Forgets what was written before a command that [wrote](Self::write) all of these bytes and has been submitted.
    pub(crate) fn overwritten(&mut self, bytes: Range<usize>, index: usize, end: &Arc<End<P>>) {
        self.within(bytes.clone()).iter_mut().for_each(|one| one.overwritten(index, end));
        self.join(bytes);
    }
    /// Which devices have the newest contents of these bytes.
    pub(crate) fn sides(&mut self, bytes: Range<usize>) -> Before {
        let flags = |one: &Segment<P>| one.sides.iter().map(|side| side.is_newest).collect();
        let before = self.within(bytes).iter().map(|one| (one.bytes.clone(), flags(one)));
        Before(before.collect())
    }
    /// A command that [writes](Self::write) these bytes has failed; its writes may be under way or not. If it would have
    /// overwritten all, it is taken back: the newest contents are where they were `before`.
    pub(crate) fn failed(
        &mut self,
        bytes: Range<usize>,
        index: usize,
        end: &Arc<End<P>>,
        before: Option<&Before>,
    ) {
        self.within(bytes).iter_mut().for_each(|one| one.failed(index, end));
        for (bytes, flags) in before.iter().flat_map(|before| &before.0) {
            self.within(bytes.clone()).iter_mut().for_each(|one| one.take_back(index, end, flags));
        }
    }
    /// A command that was not submitted yet, for which a copy of these bytes to one device waits.
    pub(crate) fn unsubmitted(&mut self, bytes: Range<usize>, index: usize) -> Option<Arc<End<P>>> {
        self.within(bytes).iter().find_map(|one| {
            let from = &one.sides[one.source(index)?];
            let behind = from.arrival.iter().flat_map(|arrival| &arrival.behind.all);
            let mut all = from.written.all.iter().chain(behind);
            all.find(|one| !one.end.is_set()).map(|one| Arc::clone(&one.end))
        })
    }
    /// Makes one segment of neighbours that do not differ, among these bytes and those beside them.
    pub(crate) fn join(&mut self, bytes: Range<usize>) {
        let first = self.segments.partition_point(|segment| segment.bytes.end < bytes.start);
        let last = self.segments.partition_point(|segment| segment.bytes.start <= bytes.end);
        let mut kept = first;
        for place in first + 1..last {
            let is_like = self.segments[kept].is_like(&self.segments[place]);
            if is_like {
                self.segments[kept].bytes.end = self.segments[place].bytes.end;
            } else {
                kept += 1;
                self.segments.swap(kept, place);
            }
        }
        self.segments.drain((kept + 1).min(last)..last);
    }
    /// Lets `forget` forget what is over in all segments, once there are twice as many as were left the last time.
    pub(crate) fn tidy(&mut self, mut forget: impl FnMut(&mut [Side<P>])) {
        if self.segments.len() < self.most {
            return;
        }
        self.segments.iter_mut().for_each(|segment| forget(&mut segment.sides));
        self.join(0..usize::MAX);
        self.most = FEW.max(2 * self.segments.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest(all: &mut Newest<u32>, at: usize) -> Vec<bool> {
        all.within(at..at + 1)[0].sides.iter().map(|side| side.is_newest).collect()
    }

    fn next() -> u64 {
        static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
    fn writer(queue: u64) -> Writer<u32> {
        let end = End::pending();
        end.set(Some(7));
        Writer { end, queue: Some(queue), number: next() }
    }
    #[test]
    fn a_write_makes_the_other_copies_of_these_bytes_old_and_no_others() {
        let mut all = Newest::<u32>::new(100, 2);
        all.write(0..100, 0, None, true);
        all.write(40..60, 1, None, true);
        assert_eq!(newest(&mut all, 39), [true, false]);
        assert_eq!(newest(&mut all, 40), [false, true]);
        assert_eq!(newest(&mut all, 59), [false, true]);
        assert_eq!(newest(&mut all, 60), [true, false]);
        assert_eq!(all.within(0..40)[0].source(0), None);
        assert_eq!(all.within(40..60)[0].source(0), Some(1));
    }
    #[test]
    fn what_nobody_wrote_is_copied_from_nowhere() {
        let mut all = Newest::<u32>::new(10, 3);
        assert_eq!(all.within(0..10)[0].source(2), None);
        all.write(2..4, 1, None, true);
        let sources = |all: &mut Newest<u32>| {
            all.within(0..10).iter().map(|one| one.source(2)).collect::<Vec<_>>()
        };
        assert_eq!(sources(&mut all), [None, Some(1), None]);
    }
    #[test]
    fn neighbours_with_the_same_history_are_one_segment_again() {
        let mut all = Newest::<u32>::new(100, 2);
        let written = writer(1);
        for at in [30, 10, 90, 0, 70, 20, 50, 40, 80, 60] {
            all.write(at..at + 10, 0, Some(&written), true);
        }
        assert_eq!(all.segments.len(), 1);
        assert_eq!(all.segments[0].bytes, 0..100);
        all.write(50..51, 0, Some(&writer(2)), true);
        assert_eq!(all.segments.len(), 3, "another command's write");
        all.within(0..100).iter_mut().for_each(|one| one.sides[0].written = Writers::new());
        all.join(0..100);
        assert_eq!(all.segments.len(), 1, "it does not matter once both are over");
    }
    #[test]
    fn many_pieces_become_few_when_what_is_over_is_forgotten() {
        let mut all = Newest::<u32>::new(1 << 20, 2);
        let mut looked_at = 0;
        for at in 0..100_000 {
            all.write(at..at + 1, 0, Some(&writer(at as u64)), true);
            all.tidy(|sides| {
                looked_at += 1;
                sides[0].written = Writers::new();
            });
            assert!(all.segments.len() <= FEW);
        }
        assert!(looked_at < 400_000, "{looked_at}");
    }
    #[test]
    fn all_commands_that_may_write_different_bytes_of_a_segment_are_kept() {
        let mut all = Newest::<u32>::new(100, 2);
        let kept = |all: &mut Newest<u32>| {
            let written = &all.within(0..100)[0].sides[1].written;
            written.all().iter().map(|one| one.queue).collect::<Vec<_>>()
        };
        for queue in [Some(1), None, Some(2), None, Some(1)] {
            let one = Writer { queue, ..writer(0) };
            all.write(0..100, 1, Some(&one), false);
        }
        assert_eq!(kept(&mut all), [None, Some(2), None, Some(1)], "in-order queues once");
        all.write(0..100, 1, None, false);
        assert_eq!(kept(&mut all).len(), 4, "one that is complete says nothing of the others");
        let whole = writer(3);
        all.write(0..100, 1, Some(&whole), true);
        assert_eq!(kept(&mut all).len(), 5, "the one that overwrites them may yet be refused");
        all.overwritten(0..100, 1, &whole.end);
        assert_eq!(kept(&mut all), [Some(3)]);
    }
    #[test]
    fn a_source_to_which_nothing_is_under_way_is_preferred() {
        let mut all = Newest::<u32>::new(8, 3);
        all.write(0..8, 0, Some(&writer(1)), true);
        let segment = &mut all.within(0..8)[0];
        segment.sides[1].is_newest = true;
        assert_eq!(segment.source(2), Some(1));
        segment.sides[1].arrival = Some(Arrival { point: Arc::new(2), behind: Writers::new() });
        assert_eq!(segment.source(2), Some(0));
    }
    #[test]
    fn commands_that_are_over_are_forgotten_also_behind_one_that_is_not() {
        let mut all = Newest::<u32>::new(100, 2);
        let mut asked = 0;
        for point in 0..10_000 {
            let end = End::pending();
            end.set(Some(point));
            let one = Writer { end, queue: None, number: next() };
            all.write(0..100, 0, Some(&one), false);
            let counted = std::cell::Cell::new(0);
            let written = &mut all.within(0..100)[0].sides[0].written;
            written.forget(|point| {
                counted.set(counted.get() + 1);
                *point != 0
            });
            asked += counted.get();
            assert!(written.all().len() <= FEW_WRITERS);
        }
        assert!(asked < 40_000, "{asked}");
        assert_eq!(all.within(0..100)[0].sides[0].written.all()[0].end.point(), Some(&0));
    }
    #[test]
    fn what_failed_is_taken_back_where_nobody_has_written_since() {
        let mut all = Newest::<u32>::new(100, 2);
        all.write(0..50, 1, None, true);
        all.write(50..100, 0, None, true);
        let (before, failing) = (all.sides(0..100), writer(1));
        all.write(0..100, 0, Some(&failing), true);
        all.write(40..45, 0, Some(&writer(2)), true);
        all.failed(0..100, 0, &failing.end, Some(&before));
        let seen: Vec<_> = [0, 40, 45, 50].iter().map(|at| newest(&mut all, *at)).collect();
        assert_eq!(seen, [[false, true], [true, false], [false, true], [true, false]]);
        let failed = |at: usize, all: &mut Newest<u32>| {
            all.within(at..at + 1)[0].sides[0].failed.all().len()
        };
        assert_eq!([0, 40, 50].map(|at| failed(at, &mut all)), [1, 1, 1]);
    }
    #[test]
    fn what_a_failed_command_may_have_torn_is_taken_from_where_it_is_whole() {
        let mut all = Newest::<u32>::new(100, 2);
        all.write(0..50, 0, None, true);
        all.write(50..100, 0, None, true);
        all.within(0..50).iter_mut().for_each(|one| one.sides[1].is_newest = true);
        let (before, failing) = (all.sides(0..100), writer(1));
        all.write(0..100, 0, Some(&failing), true);
        all.failed(0..100, 0, &failing.end, Some(&before));
        assert_eq!(newest(&mut all, 0), [false, true], "the other device has it whole");
        assert_eq!(newest(&mut all, 50), [true, false], "it is nowhere else");
        all.write(0..100, 1, None, true);
        let late = &all.within(50..51)[0].sides[0].failed;
        assert_eq!(late.all().len(), 1, "it may write when another device has overwritten all");
    }
    #[test]
    fn what_is_not_submitted_yet_is_waited_for_by_those_who_need_it() {
        let mut all = Newest::<u32>::new(100, 2);
        let late = Writer { end: End::pending(), queue: Some(1), number: next() };
        all.write(0..50, 0, Some(&late), false);
        all.write(0..50, 0, Some(&writer(1)), false);
        assert_eq!(all.within(0..50)[0].sides[0].written.all().len(), 2, "which is first?");
        let found = |all: &mut Newest<u32>, bytes, index| all.unsubmitted(bytes, index).is_some();
        assert!(found(&mut all, 10..20, 1) && !found(&mut all, 10..20, 0));
        assert!(!found(&mut all, 50..100, 1));
        late.end.set(None);
        assert!(!found(&mut all, 10..20, 1));
    }
}
