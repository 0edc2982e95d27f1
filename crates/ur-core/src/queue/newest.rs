//! How the newest contents of a memory object come to the device that a command runs on, if each device has a copy
//! (`memory/newest.rs` records which has them). A copy from device to device runs in a stream of its own, as
//! soon as the commands have run that wrote its source; the command that needs it waits for its end. So a copy does not
//! wait for anything else that its command waits for, and other commands that need the same bytes share it.
//!
//! The caller orders commands that use the same bytes. Parts of a buffer that do not overlap may be used on several
//! devices at the same time.
use super::objects::{HasStreams, Queue, no_point};
use crate::{
    command::{Ready, Usage},
    memory::{
        image_layout,
        newest::{Arrival, Side, Writer, Writers},
    },
    over_driver::mem::{Copies, Copy, Found, Mem, Storage},
};
use smallvec::SmallVec;
use std::{
    ops::Range,
    sync::{Arc, Mutex},
};
use ur_adapter::{api::Objects, error::Result, memory::UsmPtr, object::Owned};
use ur_hal::{
    Address, Command, Completion, ImageCopy, ImageDesc, ImageEnd, Status, StreamRequest, Streams,
    Submission, Types, Wait,
};
use ur_lock::locked;

/// The copies for which a command waits.
type Arrivals<D> = SmallVec<[Arrival<<D as Types>::Point>; 4]>;
/// A stream for copies to a device. What is under way in it does not hold up a copy: that waits for later commands of the
/// same in-order queue, or nothing is under way.
struct Copier<D: Types> {
    /// The index of the device.
    to: usize,
    /// The in-order queue for whose commands its copies wait.
    behind: Option<u64>,
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
    match ready.buffers().any(|(mem, ..)| mem.storage().is_copied()) {
        false => D::submit_using(queue, what, ready),
        true => submit_behind_copies(queue, what, ready),
    }
}
#[inline(never)]
fn submit_behind_copies<D: HasStreams>(
    queue: &Queue<D>,
    what: &Submission<'_, D>,
    ready: &Ready<'_, D>,
) -> ur_hal::Result<Option<D::Point>> {
    // What native code captures may never run: the contents are there then, too.
    let is_captured = D::is_captured(queue)?;
    let copied = || ready.buffers().filter(|(mem, ..)| mem.storage().is_copied());
    let mut arrivals = Arrivals::<D>::new();
    for (mem, bytes, usage) in copied() {
        let (_, index) = mem.storage().on(queue.device())?;
        let is_whole = usage == Usage::Overwrites && !is_captured;
        let need = if is_whole { Need::Room } else { Need::Contents };
        mem.storage().bring(index, mem.within(bytes), need, &mut arrivals)?;
    }
    if is_captured {
        // What is captured cannot wait for what is not.
        let soon = arrivals.iter().filter(|arrival| arrival.behind.is_empty());
        soon.clone().try_for_each(|one| <D as Streams>::wait(&one.point, None).map(drop))?;
        arrivals.retain(|arrival| !arrival.behind.is_empty());
    }
    let ends = arrivals.iter().map(|arrival| Wait::End(&*arrival.point));
    let waits: SmallVec<[_; 8]> = what.waits.iter().copied().chain(ends).collect();
    let writes = copied().any(|(.., usage)| usage != Usage::Reads);
    let completion = match what.completion {
        Completion::None if writes => Completion::Point,
        completion => completion,
    };
    let submission = Submission { waits: &waits, completion, ..*what };
    let mut made = D::submit_using(queue, &submission, ready)?;
    if writes {
        let end = match what.completion {
            // Nobody gets the command's own point.
            Completion::None if !is_captured => made.take(),
            completion if completion.is_awaited() || is_captured => None,
            _ => end_of::<D>(queue.stream(), made.as_ref())?,
        };
        let of = queue.is_in_order().then_some(queue.number);
        let writer = end.map(|point| Writer { point: Arc::new(point), queue: of });
        for (mem, bytes, usage) in copied().filter(|(.., usage)| *usage != Usage::Reads) {
            if let Some(Copies::Each { state, .. }) = mem.storage().copies() {
                let (_, index) = mem.storage().on(queue.device())?;
                let is_whole = usage == Usage::Overwrites;
                let mut newest = locked(state);
                newest.write(mem.within(bytes), index, writer.as_ref(), is_whole);
                newest.tidy(|sides| forget_what_is_over::<D>(sides));
            }
        }
    }
    Ok(made.filter(|_| what.completion != Completion::None))
}
/// A point behind what was just submitted to a stream, whose own point, if there is one, may become an event's. `None` if
/// it is complete.
fn end_of<D: HasStreams>(
    stream: &D::Stream,
    made: Option<&D::Point>,
) -> ur_hal::Result<Option<D::Point>> {
    let waits: SmallVec<[_; 1]> = made.into_iter().map(Wait::End).collect();
    let (barrier, completion) = (Submission::new(&Command::Barrier), Completion::Point);
    let submit = || D::submit(stream, &Submission { waits: &waits, completion, ..barrier });
    // It has been submitted, and must not be taken for complete.
    match submit().or_else(|_| submit()) {
        Ok(Some(end)) => Ok(Some(end)),
        Ok(None) | Err(_) => D::finish(stream).map(|()| None),
    }
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
            storage.bring(index, bytes, Need::CompleteContents, &mut arrivals)?;
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
            let to = ImageEnd::Image(pixels, [0; 3]);
            let from = ImageEnd::Memory(host.into(), image.pitches);
            let copy = ImageCopy { to, from, region: image.sides };
            let (command, completion) =
                (Command::ImageCopy(&copy), Completion::Done { point: false });
            let how = Submission { completion, ..Submission::new(&command) };
            let stream = self.copier(0, None)?;
            D::submit(&stream, &how)?;
        }
        self.written_first();
        Ok(())
    }
    /// A stream for a copy to the device with this index, behind commands of an in-order queue, or of any.
    fn copier(&self, to: usize, behind: Option<u64>) -> ur_hal::Result<Arc<D::Stream>> {
        let Copiers(all) = self.context().kept().get::<Copiers<D>>();
        let mut all = locked(all);
        let same = all.iter().find(|one| one.to == to && behind.is_some() && one.behind == behind);
        if let Some(same) = same {
            return Ok(Arc::clone(&same.stream));
        }
        for one in all.iter_mut().filter(|one| one.to == to) {
            if D::is_idle(&one.stream)? {
                one.behind = behind;
                return Ok(Arc::clone(&one.stream));
            }
        }
        if all.len() >= MOST_COPIERS
            && let Some(last) = all.iter().rfind(|one| one.to == to)
        {
            return Ok(Arc::clone(&last.stream));
        }
        let context = self.context().as_handle().addr();
        let request = StreamRequest { context, ..StreamRequest::default() };
        let device = &self.context().driver_devices()[to];
        let stream = Arc::new(D::stream(self.context().driver(), device, request)?);
        all.push(Copier { to, behind, stream: Arc::clone(&stream) });
        Ok(stream)
    }
    /// Whether devices have different copies.
    fn is_copied(&self) -> bool {
        matches!(self.copies(), Some(Copies::Each { all, .. }) if all.len() > 1)
    }
    /// Submits the copies of these bytes to the device with this index that are needed there, and appends the ends of those
    /// that are under way to `arrivals`.
    fn bring(
        &self,
        index: usize,
        bytes: Range<usize>,
        need: Need,
        arrivals: &mut Arrivals<D>,
    ) -> ur_hal::Result<()> {
        let Some(Copies::Each { all, state, image }) = self.copies() else { return Ok(()) };
        // Locked until the copies are submitted: another thread may need the same ones.
        let mut newest = locked(state);
        let mut submitted = Ok(());
        for segment in newest.within(bytes.clone()) {
            forget_what_is_over::<D>(&mut segment.sides);
            let source = segment.source(index).filter(|_| need != Need::Room);
            if let Some(from) = source {
                let Side { arrival, written, .. } = &segment.sides[from];
                let mut behind = written.clone();
                behind.extend(arrival.iter().flat_map(|arrival| arrival.behind.iter().cloned()));
                if need == Need::CompleteContents && !behind.is_empty() {
                    continue; // a later command brings them
                }
                let mut after: SmallVec<[_; 4]> =
                    written.iter().map(|writer| Arc::clone(&writer.point)).collect();
                for side in [from, index].map(|one| &segment.sides[one]) {
                    after.extend(side.arrival.as_ref().map(|one| Arc::clone(&one.point)));
                }
                let (to, from) = (&all[index], &all[from]);
                let (Some(to), Some(from)) = (to.get(), from.get()) else { continue }; // both are in use
                let what = (segment.bytes.clone(), image.as_ref());
                let side = &mut segment.sides[index];
                let of_queue = match behind.as_slice() {
                    [writer] if side.arrival.is_none() => writer.queue,
                    _ => None,
                };
                let stream = self.copier(index, of_queue)?;
                let (arrival, outcome) = self.copy(&stream, to, from, what, &after);
                side.is_newest = outcome.is_ok();
                let arrival = arrival.map(|point| Arrival { point: Arc::new(point), behind });
                side.arrival = arrival.or(side.arrival.take());
                submitted = outcome;
                if submitted.is_err() {
                    break;
                }
            }
            let arrival = segment.sides[index].arrival.as_ref();
            let is_awaited =
                |one: &&Arrival<_>| need != Need::CompleteContents || one.behind.is_empty();
            arrivals.extend(arrival.filter(is_awaited).cloned());
        }
        newest.join(bytes);
        submitted
    }
    /// Submits a copy of these bytes, or of all pixels of an image. Returns where it is complete, and whether it was
    /// submitted: the driver may refuse what follows a copy when the copy is on its way.
    fn copy(
        &self,
        stream: &D::Stream,
        to: &Copy<D>,
        from: &Copy<D>,
        (bytes, image): (Range<usize>, Option<&ImageDesc>),
        after: &[Arc<D::Point>],
    ) -> (Option<D::Point>, ur_hal::Result<()>) {
        let at = |copy: &Copy<D>| -> ur_hal::Result<Address> {
            let base = copy.at.ok_or(ur_hal::ErrorKind::Unknown)?; // the copies of a buffer have addresses
            Ok(base.offset(bytes.start)?.into())
        };
        let pixels;
        let command = match (image, &to.pixels, &from.pixels) {
            (Some(image), Some(to), Some(from)) => {
                let (to, from) = (ImageEnd::Image(to, [0; 3]), ImageEnd::Image(from, [0; 3]));
                pixels = ImageCopy { to, from, region: image.sides };
                Command::ImageCopy(&pixels)
            }
            _ => match (at(to), at(from)) {
                (Ok(to), Ok(from)) => Command::Copy { to, from, bytes: bytes.len() },
                (Err(error), _) | (_, Err(error)) => return (None, Err(error)),
            },
        };
        let waits: SmallVec<[_; 4]> = after.iter().map(|point| Wait::End(&**point)).collect();
        let completion = Completion::Point;
        let how = Submission { waits: &waits, completion, ..Submission::new(&command) };
        match D::submit(stream, &how) {
            Ok(Some(point)) => (Some(point), Ok(())),
            Ok(None) => (None, Err(no_point())),
            Err(error) => (end_of::<D>(stream, None).unwrap_or(None), Err(error)),
        }
    }
}
/// Forgets the points that have been reached. Contents that did not arrive are not there.
fn forget_what_is_over<D: HasStreams>(sides: &mut [Side<D::Point>]) {
    let status = |point: &D::Point| match D::is_settled(point) {
        true => Status::Complete,
        // What the driver does not tell is waited for, and not taken for complete.
        false => D::status(point).unwrap_or(Status::Submitted),
    };
    let is_over = |point: &Arc<D::Point>| status(point).is_final();
    for index in 0..sides.len() {
        let others_have = (0..sides.len()).any(|other| other != index && sides[other].is_newest);
        let side = &mut sides[index];
        forget(&mut side.written, is_over);
        let Some(arrival) = &mut side.arrival else { continue };
        forget(&mut arrival.behind, is_over);
        match status(&arrival.point) {
            Status::Submitted | Status::Running => continue,
            Status::Complete => {}
            Status::Failed => side.is_newest &= !others_have,
        }
        side.arrival = None;
    }
}
/// Forgets the oldest that are over. Those behind one that is not are not asked for: there may be many.
fn forget<P>(writers: &mut Writers<P>, is_over: impl Fn(&Arc<P>) -> bool) {
    let left = writers.iter().position(|writer| !is_over(&writer.point));
    writers.drain(..left.unwrap_or(writers.len()));
}
