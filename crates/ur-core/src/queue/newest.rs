//! How the newest contents of a memory object come to the device that a command runs on, if each device has a copy
//! (`memory/newest.rs` records which has them). A copy from device to device runs in a stream of its own, as
//! soon as the commands have run that wrote its source; the command that needs it waits for its end. So a copy does not
//! wait for anything else that its command waits for, and other commands that need the same bytes share it.
//!
//! The caller orders commands that use the same bytes. Ranges of a buffer that do not overlap may be used on several
//! devices at the same time. A rectangle counts as the range from its first to its last byte, since rows of others within
//! it would be a record for each row: a command that needs columns beside it, on another device, waits for it.
use super::objects::{HasStreams, Queue, no_point};
use crate::{
    command::{Ready, Usage, Used},
    memory::{
        image_layout,
        newest::{Arrival, Before, End, Newest, Segment, Side, Writer},
    },
    over_driver::mem::{Copies, Copy, Found, Mem, Storage},
};
use smallvec::SmallVec;
use std::{
    any::Any,
    ops::Range,
    ptr,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use ur_adapter::{api::Objects, error::Result, memory::UsmPtr, object::Owned};
use ur_hal::{
    Address, Command, Completion, ImageCopy, ImageDesc, ImageEnd, Order, Status, StreamRequest,
    Streams, Submission, Types, Wait, repeated, wait_for_taken,
};
use ur_lock::locked;

/// The copies for which a command waits.
type Arrivals<D> = SmallVec<[Arrival<<D as Types>::Point>; 4]>;
/// A stream for copies to a device. What is under way in it does not hold up a copy: that waits for a later command of the
/// same in-order queue, or nothing is under way.
struct Copier<D: Types> {
    /// The index of the device.
    to: usize,
    /// The in-order queue for whose commands its copies wait, and the number of the last of these.
    behind: Option<(u64, u64)>,
    stream: Arc<D::Stream>,
}
/// The streams for copies in a context. There are no more than needed: drivers have few channels to a device, and streams
/// that share one hold up each other.
struct Copiers<D: Types>(Mutex<Vec<Copier<D>>>);
/// The most of them in a context. Copies that find none then share one, and may wait for one another.
const MOST_COPIERS: usize = 256;
impl<D: Types> Default for Copiers<D> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// Submits a command to a queue, behind the copies without which its memory objects were out of date on the queue's device.
///
/// # Errors
/// As for [`Streams::submit`] and [`Storage::found`].
#[inline(always)] // most commands use no memory object of which there are copies
pub(crate) fn submit_with_newest<D: HasStreams>(
    queue: &Queue<D>,
    what: &Submission<'_, D>,
    ready: &Ready<'_, D>,
) -> ur_hal::Result<Option<D::Point>> {
    match ready.uses_any() && ready.buffers().any(|(mem, ..)| mem.storage().is_copied()) {
        false => submit_keeping(queue, what, ready),
        true => submit_behind_copies(queue, what, ready),
    }
}
/// Submits a command with the objects that it uses, where the driver keeps those. Memory objects are freed deferred, behind
/// their commands.
#[inline(always)]
fn submit_keeping<D: HasStreams>(
    queue: &Queue<D>,
    what: &Submission<'_, D>,
    ready: &Ready<'_, D>,
) -> ur_hal::Result<Option<D::Point>> {
    if D::KEEPS_OBJECTS && ready.uses_any() {
        for used in ready.used() {
            // Of these a command uses at most one.
            let kept: Arc<dyn Any + Send + Sync> = match used {
                Used::Buffer { .. } => continue,
                Used::Program(program) => Arc::new(program.own()?),
                Used::Freed(freed) => Arc::new(freed.take()),
            };
            return D::submit_keeping(queue.stream(), what, kept);
        }
    }
    D::submit(queue.stream(), what)
}
/// A memory object that a command uses.
struct Use<'a, D: HasStreams> {
    storage: &'a Storage<D>,
    /// The index of the queue's device.
    index: usize,
    bytes: Range<usize>,
    usage: Usage,
    /// Whether it overwrites all of these bytes, if it runs.
    is_whole: bool,
}
/// The records of which device has what, locked, by the address of the storage.
type Locks<'a, D> = SmallVec<[(usize, MutexGuard<'a, Newest<<D as Types>::Point>>); 4]>;
/// Locks the records of all memory objects, in an order that is the same for all threads.
fn lock_all<'a, D: HasStreams>(uses: &[Use<'a, D>]) -> Locks<'a, D> {
    let state = |one: &Use<'a, D>| match one.storage.copies() {
        Some(Copies::Each { state, .. }) => Some((ptr::from_ref(one.storage).addr(), state)),
        _ => None,
    };
    let mut all: SmallVec<[_; 4]> = uses.iter().filter_map(state).collect();
    all.sort_by_key(|(storage, _)| *storage);
    all.dedup_by_key(|(storage, _)| *storage);
    all.into_iter().map(|(storage, state)| (storage, locked(state))).collect()
}
fn record_of<'l, D: HasStreams>(
    locks: &'l mut Locks<'_, D>,
    storage: &Storage<D>,
) -> Option<&'l mut Newest<D::Point>> {
    let of = ptr::from_ref(storage).addr();
    locks.iter_mut().find(|(storage, _)| *storage == of).map(|(_, newest)| &mut **newest)
}
/// What is written is recorded before the command is submitted, so that other threads know of it: those who need it wait
/// until it has been submitted. Native commands call the application, and are recorded afterwards.
#[inline(never)]
fn submit_behind_copies<D: HasStreams>(
    queue: &Queue<D>,
    what: &Submission<'_, D>,
    ready: &Ready<'_, D>,
) -> ur_hal::Result<Option<D::Point>> {
    // What native code captures may never run: the contents are there then, too.
    let is_captured = D::is_captured(queue.stream())?;
    let mems: SmallVec<[_; 4]> =
        ready.buffers().filter(|(mem, ..)| mem.storage().is_copied()).collect();
    let mut uses = SmallVec::<[Use<'_, D>; 4]>::new();
    for (mem, bytes, usage) in &mems {
        let (_, index) = mem.storage().on(queue.device())?;
        let is_whole = *usage == Usage::Overwrites && !is_captured;
        let (storage, bytes) = (mem.storage(), mem.within(bytes.clone()));
        uses.push(Use { storage, index, bytes, usage: *usage, is_whole });
    }
    let writes = uses.iter().any(|one| one.usage != Usage::Reads);
    let is_native = matches!(what.command, Command::Native(_));
    let mut arrivals = Arrivals::<D>::new();
    let mut locks = lock_submitted(&uses);
    for Use { storage, index, bytes, is_whole, .. } in &uses {
        let need = if *is_whole { Need::Room } else { Need::Contents };
        if let Some(newest) = record_of(&mut locks, storage) {
            storage.bring(newest, *index, bytes.clone(), need, &mut arrivals)?;
        }
    }
    let record = (writes && !is_native).then(|| Record::of(queue, &uses, &mut locks));
    drop(locks);
    if is_captured {
        // What is captured cannot wait for what is not.
        let soon = arrivals.iter().filter(|arrival| arrival.behind.is_empty());
        soon.clone().try_for_each(|one| <D as Streams>::wait(&one.point, None).map(drop))?;
        arrivals.retain(|arrival| !arrival.behind.is_empty());
    }
    let ends = arrivals.iter().map(|arrival| Wait::End(&*arrival.point));
    let waits: SmallVec<[_; 8]> = what.waits.iter().copied().chain(ends).collect();
    // A command that writes is waited for only when others know where it is complete.
    let is_awaited = what.completion.is_awaited() && record.is_some() && !is_captured;
    let completion = match what.completion {
        _ if is_awaited => Completion::Point,
        Completion::None if record.is_some() => Completion::Point,
        completion => completion,
    };
    let lends_memory = what.lends_memory || is_awaited;
    let submission = Submission { waits: &waits, completion, lends_memory, ..*what };
    let submitted = submit_keeping(queue, &submission, ready);
    let Some(record) = record else {
        if writes {
            // The application may have been called although it failed, and may have ended a capture or begun one. While it
            // cannot be known, nothing is waited for: what is captured would not end.
            let is_captured = repeated(|| D::is_captured(queue.stream())).unwrap_or(true);
            record_native(queue, &uses, is_captured);
        }
        return Ok(submitted?.filter(|_| what.completion != Completion::None));
    };
    let mut made = match submitted {
        Ok(made) => made,
        Err(error) => {
            record.fail(queue, &uses, is_captured);
            return Err(error);
        }
    };
    // Another thread may have begun a capture meanwhile, and then nothing is written now; or ended it.
    let runs = made.as_ref().map_or(!is_captured, |end| D::check_runs(end).is_ok());
    let is_lost = !is_captured && !runs;
    let end = match what.completion {
        _ if !runs => None,
        completion if completion.wants_point() => end_of::<D>(queue.stream(), made.as_ref()),
        _ => made.take(), // nobody gets the command's own point
    };
    let end = match is_lost {
        true => {
            record.fail(queue, &uses, true);
            None
        }
        false => Some(record.submitted(&uses, end)),
    };
    if is_awaited && let Some(point) = made.as_ref().or(end.as_ref().and_then(|end| end.point())) {
        <D as Streams>::wait(point, None).inspect_err(|_| {
            wait_for_taken(|| D::is_idle(queue.stream())); // the point may say no more than the error
        })?;
    }
    Ok(made.filter(|_| what.completion != Completion::None))
}
/// Locks the records of all memory objects, when the commands are submitted for which copies would wait.
fn lock_submitted<'a, D: HasStreams>(uses: &[Use<'a, D>]) -> Locks<'a, D> {
    loop {
        let mut locks = lock_all(uses);
        let behind = uses.iter().filter(|one| !one.is_whole).find_map(|one| {
            record_of(&mut locks, one.storage)?.unsubmitted(one.bytes.clone(), one.index)
        });
        let Some(end) = behind else { return locks };
        drop(locks);
        end.wait();
    }
}
/// What a command will have written, which is recorded already.
struct Record<P> {
    end: Arc<End<P>>,
    /// Where the newest contents were of what it overwrites, in the order of its memory objects.
    before: SmallVec<[Option<Before>; 4]>,
}
impl<P> Record<P> {
    fn of<D: HasStreams<Point = P>>(
        queue: &Queue<D>,
        uses: &[Use<'_, D>],
        locks: &mut Locks<'_, D>,
    ) -> Self {
        let (writer, mut before) = (writer(queue, End::pending()), SmallVec::new());
        for Use { storage, index, bytes, usage, is_whole } in uses {
            let newest = record_of(locks, storage).filter(|_| *usage != Usage::Reads);
            before.push(newest.and_then(|newest| {
                let before = is_whole.then(|| newest.sides(bytes.clone()));
                newest.write(bytes.clone(), *index, Some(&writer), *is_whole);
                before
            }));
        }
        Self { end: writer.end, before }
    }
    /// Says where the command is complete; `None` if it is already.
    fn submitted<D: HasStreams<Point = P>>(
        self,
        uses: &[Use<'_, D>],
        end: Option<P>,
    ) -> Arc<End<P>> {
        self.end.set(end);
        let mut locks = lock_all(uses);
        for one in uses.iter().filter(|one| one.is_whole) {
            if let Some(newest) = record_of(&mut locks, one.storage) {
                newest.overwritten(one.bytes.clone(), one.index, &self.end);
            }
        }
        for (_, newest) in &mut locks {
            newest.tidy(|sides| forget_what_is_over::<D>(sides));
        }
        self.end.clone()
    }
    /// The driver may refuse what follows a command when that is on its way.
    fn fail<D: HasStreams<Point = P>>(
        self,
        queue: &Queue<D>,
        uses: &[Use<'_, D>],
        is_captured: bool,
    ) {
        let end = if is_captured { None } else { end_of::<D>(queue.stream(), None) };
        let mut locks = lock_all(uses);
        for (one, before) in uses.iter().zip(&self.before) {
            if let Some(newest) = record_of(&mut locks, one.storage) {
                newest.failed(one.bytes.clone(), one.index, &self.end, before.as_ref());
            }
        }
        self.end.set(end);
    }
}
impl<P> Drop for Record<P> {
    fn drop(&mut self) {
        if !self.end.is_set() {
            self.end.set(None); // nobody must wait for ever
        }
    }
}
fn writer<D: HasStreams>(queue: &Queue<D>, end: Arc<End<D::Point>>) -> Writer<D::Point> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Relaxed); // the locks order records of the same bytes
    Writer { end, queue: queue.is_in_order().then_some(queue.number), number }
}
/// Records what a native command has written: whatever the queue has now is before the end of it.
fn record_native<D: HasStreams>(queue: &Queue<D>, uses: &[Use<'_, D>], is_captured: bool) {
    let mut locks = lock_all(uses);
    let writer = writer(queue, End::pending());
    // Before the point that follows: only what is submitted now is before it.
    for Use { storage, index, bytes, usage, .. } in uses {
        let newest = record_of(&mut locks, storage).filter(|_| *usage != Usage::Reads);
        if let Some(newest) = newest {
            newest.write(bytes.clone(), *index, Some(&writer), false);
        }
    }
    writer.end.set(if is_captured { None } else { end_of::<D>(queue.stream(), None) });
    for (_, newest) in &mut locks {
        newest.tidy(|sides| forget_what_is_over::<D>(sides));
    }
}
/// A point behind what was just submitted to a stream, whose own point, if there is one, may become an event's. `None` if
/// it is complete. If the driver makes none, that is waited for: what was submitted must not be taken for complete.
fn end_of<D: HasStreams>(stream: &D::Stream, made: Option<&D::Point>) -> Option<D::Point> {
    let waits: SmallVec<[_; 1]> = made.into_iter().map(Wait::End).collect();
    let (barrier, completion) = (Submission::new(&Command::Barrier), Completion::Point);
    let order = if made.is_some() { Order::Free } else { Order::AfterAll };
    let end = end_behind::<D>(stream, &Submission { waits: &waits, order, completion, ..barrier });
    // The command's own point comes also while another thread captures the stream.
    let has_ended = || match made {
        Some(made) if D::status(made)?.is_final() => Ok(true),
        _ => D::is_idle(stream),
    };
    end.inspect_err(|_| wait_for_taken(has_ended)).ok()
}
/// The point of a barrier behind what has been submitted.
///
/// # Errors
/// The driver makes none that comes: also if another thread has begun to capture the stream meanwhile.
pub(crate) fn end_behind<D: HasStreams>(
    stream: &D::Stream,
    barrier: &Submission<'_, D>,
) -> ur_hal::Result<D::Point> {
    let end = repeated(|| {
        let end = D::submit(stream, barrier)?.ok_or_else(no_point)?;
        D::check_runs(&end).map(|()| end)
    });
    end.inspect_err(|_| {
        let _refused = D::flush(stream); // then it does not run
    })
}

/// What is needed of a device's copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// The newest contents.
    Contents,
    /// The newest contents, as far as the commands that wrote them are complete.
    CompleteContents,
    /// That no copy from another device arrives there any more.
    Room,
}
impl<D: HasStreams> Mem<D> {
    /// Where these bytes of it are in its storage. An image is one whole.
    fn within(&self, bytes: Range<usize>) -> Range<usize> {
        match self.is_image() {
            true => 0..self.storage().bytes(),
            false => self.origin() + bytes.start..self.origin() + bytes.end,
        }
    }
    /// What it is on `device`, or on the context's first device, with the contents that complete commands wrote. Waits for
    /// copies between devices, not for commands.
    ///
    /// # Errors
    /// As for [`Storage::found`].
    pub(crate) fn now(
        &self,
        device: Option<&Owned<<D as Objects>::Device>>,
    ) -> Result<Found<'_, D>> {
        let (storage, mut arrivals) = (self.storage(), Arrivals::<D>::new());
        let device = device.unwrap_or(&self.context().devices()[0]);
        let found = storage.found(device)?;
        if storage.is_copied() {
            let (index, bytes) = (storage.index(device)?, self.within(0..self.bytes()));
            if let Some(Copies::Each { state, .. }) = storage.copies() {
                let need = Need::CompleteContents;
                storage.bring(&mut locked(state), index, bytes, need, &mut arrivals)?;
            }
        }
        let mut points = arrivals.iter().map(|arrival| &arrival.point);
        points.try_for_each(|point| <D as Streams>::wait(point, None).map(drop))?;
        Ok(found)
    }
}
impl<D: HasStreams> Storage<D> {
    /// Copies the pixels of a new image from the caller's memory, and waits for that.
    ///
    /// # Errors
    /// `INVALID_SIZE` for memory that would exceed the address space; the driver's error.
    pub(crate) fn write_pixels(&self, image: &ImageDesc, host: UsmPtr) -> Result<()> {
        image_layout::check_whole_on_host(image, host.into())?;
        if let Found::Pixels(pixels) = self.first()? {
            let other = ImageEnd::FromMemory(host.into(), image.pitches);
            let copy = ImageCopy { image: pixels, origin: [0; 3], region: image.sides, other };
            let (command, completion) =
                (Command::ImageCopy(&copy), Completion::Done { point: false });
            let how = Submission { completion, ..Submission::new(&command) };
            let stream = self.copier(0, None, &mut 0)?;
            D::submit(&stream, &how)?;
        }
        self.written_first();
        Ok(())
    }
    /// A stream for a copy to the device with this index, behind a command of an in-order queue, or of any. Nobody else
    /// gets it while the result exists. `asked`: how many streams of the context need not be asked whether they are idle,
    /// since they were not just now.
    fn copier(
        &self,
        to: usize,
        behind: Option<(u64, u64)>,
        asked: &mut usize,
    ) -> ur_hal::Result<Arc<D::Stream>> {
        let all = self.context().kept().get::<Copiers<D>>();
        let mut all = locked(&all.0);
        let is_free = |one: &Copier<D>| one.to == to && Arc::strong_count(&one.stream) == 1;
        if let Some((queue, number)) = behind {
            let is_before = |(of, last): (u64, u64)| of == queue && last <= number;
            let same = |one: &&mut Copier<D>| is_free(one) && one.behind.is_some_and(is_before);
            if let Some(same) = all.iter_mut().find(same) {
                same.behind = behind;
                return Ok(Arc::clone(&same.stream));
            }
        }
        for one in all.iter_mut().skip(*asked) {
            *asked += 1;
            if is_free(one) && D::is_idle(&one.stream)? {
                one.behind = behind;
                return Ok(Arc::clone(&one.stream));
            }
        }
        let of_device = all.iter().filter(|one| one.to == to);
        if all.len() >= MOST_COPIERS
            && let Some(least) = of_device.min_by_key(|one| Arc::strong_count(&one.stream))
        {
            return Ok(Arc::clone(&least.stream));
        }
        let context = self.context().as_handle().addr();
        let request = StreamRequest { context, ..StreamRequest::default() };
        let device = &self.context().driver_devices()[to];
        let stream = Arc::new(D::stream(self.context().driver(), device, request)?);
        all.push(Copier { to, behind, stream: Arc::clone(&stream) });
        *asked = all.len();
        Ok(stream)
    }
    /// Whether devices have different copies.
    fn is_copied(&self) -> bool {
        matches!(self.copies(), Some(Copies::Each { all, .. }) if all.len() > 1)
    }
    /// Submits the copies of these bytes to the device with this index that are needed there, and appends the ends of those
    /// that are under way to `arrivals`. The record is locked until the copies are submitted: another thread may need the
    /// same ones.
    fn bring(
        &self,
        newest: &mut Newest<D::Point>,
        index: usize,
        bytes: Range<usize>,
        need: Need,
        arrivals: &mut Arrivals<D>,
    ) -> ur_hal::Result<()> {
        newest.within(bytes.clone()).iter_mut().for_each(|one| {
            forget_what_is_over::<D>(&mut one.sides);
        });
        newest.join(bytes.clone());
        let segments = newest.within(bytes.clone());
        let mut submitted = Ok(());
        if need != Need::Room {
            let (mut asked, mut free, mut first) = (0, None, 0);
            while first < segments.len() && submitted.is_ok() {
                let behind = Behind::of(&segments[first], index);
                let end = (first + 1..segments.len())
                    .find(|&next| !behind.includes(&Behind::of(&segments[next], index)))
                    .unwrap_or(segments.len());
                let run = &mut segments[first..end];
                first = end;
                submitted = self.bring_run(run, index, behind, need, (&mut asked, &mut free));
            }
        }
        let arrival = |one: &Segment<D::Point>| one.sides[index].arrival.clone();
        for arrival in segments.iter().filter_map(arrival) {
            let is_awaited = need != Need::CompleteContents || arrival.behind.is_empty();
            let is_last = |last: &Arrival<_>| Arc::ptr_eq(&last.point, &arrival.point);
            if is_awaited && !arrivals.last().is_some_and(is_last) {
                arrivals.push(arrival);
            }
        }
        newest.join(bytes);
        submitted
    }
    /// Submits one copy of neighbouring segments, if the device with this index does not have the newest contents.
    fn bring_run(
        &self,
        run: &mut [Segment<D::Point>],
        index: usize,
        behind: Behind,
        need: Need,
        (asked, free): (&mut usize, &mut Option<Arc<D::Stream>>),
    ) -> ur_hal::Result<()> {
        let Some(Copies::Each { all, image, .. }) = self.copies() else { return Ok(()) };
        let Some(from) = behind.from() else { return Ok(()) };
        let (Some(to), Some(source)) = (all[index].get(), all[from].get()) else {
            return Ok(()); // both are in use
        };
        let all_of = |one: &Segment<D::Point>| {
            let Side { arrival, written, .. } = &one.sides[from];
            let before = arrival.iter().flat_map(|arrival| arrival.behind.all());
            written.all().iter().chain(before).cloned().collect::<Vec<_>>()
        };
        let mut writers: Vec<_> = run.iter().flat_map(all_of).collect();
        writers.dedup_by(|one, other| Arc::ptr_eq(&one.end, &other.end));
        let of_queue = match behind {
            Behind::Queue { queue, .. } => {
                writers.iter().map(|writer| (queue, writer.number)).max()
            }
            _ => None,
        };
        if need == Need::CompleteContents && !writers.is_empty() {
            return Ok(()); // a later command brings them
        }
        let sides = run.iter().flat_map(|one| [&one.sides[from], &one.sides[index]]);
        let arriving: SmallVec<[_; 4]> = sides
            .filter_map(|side| side.arrival.as_ref().map(|one| Arc::clone(&one.point)))
            .collect();
        let failed = run.iter().flat_map(|one| one.sides[index].failed.all().to_vec());
        let before: SmallVec<[_; 4]> =
            writers.iter().cloned().chain(failed).map(|writer| writer.end).collect();
        let points = before.iter().filter_map(|end| end.point());
        let after: SmallVec<[_; 4]> = points.chain(arriving.iter().map(|point| &**point)).collect();
        let stream = match (free.as_ref(), &behind) {
            (Some(free), Behind::Nothing { .. }) => Arc::clone(free),
            _ => self.copier(index, of_queue, asked)?,
        };
        if let Behind::Nothing { .. } = behind {
            *free = Some(Arc::clone(&stream));
        }
        let bytes = run[0].bytes.start..run[run.len() - 1].bytes.end;
        let what = (bytes, image.as_ref());
        let (arrival, outcome) = self.copy(&stream, to, source, what, &after);
        let arrival = arrival.map(Arc::new);
        for side in run.iter_mut().map(|one| &mut one.sides[index]) {
            side.is_newest = outcome.is_ok();
            if let Some(point) = &arrival {
                let behind = writers.iter().cloned().collect();
                side.arrival = Some(Arrival { point: Arc::clone(point), behind });
            }
        }
        outcome
    }
    /// Submits a copy of these bytes, or of all pixels of an image. Returns where it is complete, and whether it was
    /// submitted: the driver may refuse what follows a copy when the copy is on its way.
    fn copy(
        &self,
        stream: &D::Stream,
        to: &Copy<D>,
        from: &Copy<D>,
        (bytes, image): (Range<usize>, Option<&ImageDesc>),
        after: &[&D::Point],
    ) -> (Option<D::Point>, ur_hal::Result<()>) {
        let at = |copy: &Copy<D>| -> ur_hal::Result<Address> {
            let base = copy.at.ok_or(ur_hal::ErrorKind::Unknown)?; // the copies of a buffer have addresses
            Ok(base.offset(bytes.start)?.into())
        };
        let pixels;
        let command = match (image, &to.pixels, &from.pixels) {
            (Some(image), Some(to), Some(from)) => {
                let other = ImageEnd::FromImage(from, [0; 3]);
                pixels = ImageCopy { image: to, origin: [0; 3], region: image.sides, other };
                Command::ImageCopy(&pixels)
            }
            _ => match (at(to), at(from)) {
                (Ok(to), Ok(from)) => Command::Copy { to, from, bytes: bytes.len() },
                (Err(error), _) | (_, Err(error)) => return (None, Err(error)),
            },
        };
        let waits: SmallVec<[_; 4]> = after.iter().map(|point| Wait::End(*point)).collect();
        let completion = Completion::Point;
        let how = Submission { waits: &waits, completion, ..Submission::new(&command) };
        match D::submit(stream, &how) {
            Ok(Some(point)) => (Some(point), Ok(())),
            Ok(None) => (None, Err(no_point())),
            Err(error) => (end_of::<D>(stream, None), Err(error)),
        }
    }
}
/// What a copy of a segment to a device waits for. Neighbours of which it is the same are copied at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    /// No copy is needed.
    None,
    /// Nothing is under way.
    Nothing { from: usize },
    /// Commands of one in-order queue.
    Queue { from: usize, queue: u64 },
    /// Anything else.
    Others { from: usize },
}
impl Behind {
    fn of<P>(segment: &Segment<P>, index: usize) -> Self {
        let Some(from) = segment.source(index) else { return Self::None };
        let (there, here) = (&segment.sides[from], &segment.sides[index]);
        let arrives = there.arrival.is_some() || here.arrival.is_some();
        match there.written.all() {
            _ if arrives || !here.failed.is_empty() => Self::Others { from },
            [] => Self::Nothing { from },
            [Writer { queue: Some(queue), .. }] => Self::Queue { from, queue: *queue },
            _ => Self::Others { from },
        }
    }
    fn from(self) -> Option<usize> {
        match self {
            Self::None => None,
            Self::Nothing { from } | Self::Queue { from, .. } | Self::Others { from } => Some(from),
        }
    }
    /// Whether one copy serves both.
    fn includes(self, next: &Self) -> bool {
        self == *next && !matches!(self, Self::Others { .. })
    }
}
/// Forgets the points that have been reached. Contents that did not arrive are not there.
fn forget_what_is_over<D: HasStreams>(sides: &mut [Side<D::Point>]) {
    let status = |point: &D::Point| match D::is_settled(point) {
        true => Status::Complete,
        // What the driver does not tell is waited for, and not taken for complete.
        false => D::status(point).unwrap_or(Status::Submitted),
    };
    // The status may have told that another thread captured it.
    let is_over = |point: &D::Point| status(point).is_final() || D::check_runs(point).is_err();
    for index in 0..sides.len() {
        let others_have = (0..sides.len()).any(|other| other != index && sides[other].is_newest);
        let side = &mut sides[index];
        side.written.forget(is_over);
        side.failed.forget(is_over);
        let Some(arrival) = &mut side.arrival else { continue };
        arrival.behind.forget(is_over);
        match status(&arrival.point) {
            Status::Submitted | Status::Running => continue,
            Status::Complete => {}
            Status::Failed => side.is_newest &= !others_have,
        }
        side.arrival = None;
    }
}
