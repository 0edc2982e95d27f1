//! How the newest contents of a memory object come to the device that a command runs on, if each device has a copy
//! (`memory/newest.rs` records which has them). A copy from device to device runs in a stream of the context's own, as
//! soon as the commands have run that wrote its source; the command that needs it waits for its end. So a copy does not
//! wait for anything else that its command waits for, and other commands that need the same bytes share it.
//!
//! The caller orders commands that use the same bytes. Parts of a buffer that do not overlap may be used on several
//! devices at the same time.
use super::objects::{HasStreams, Queue, no_point};
use crate::{
    command::{Ready, Usage},
    memory::{
        image_layout::Image,
        newest::{Arrival, Side},
    },
    over_driver::mem::{Copies, Copy, Found, Mem, Storage},
};
use smallvec::SmallVec;
use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};
use ur_adapter::{api::Objects, error::Result, memory::UsmPtr, object::Owned};
use ur_hal::{
    Address, Command, Completion, ImageCopy, ImageEnd, Order, Status, StreamRequest, Streams,
    Submission, Types, Wait,
};
use ur_lock::locked;

/// The ends of copies for which a command waits.
type Arrivals<D> = SmallVec<[Arc<<D as Types>::Point>; 4]>;
/// For each device of a context, the stream of copies to it; made when it is first needed.
struct Copiers<D: Types>(OnceLock<Box<[OnceLock<D::Stream>]>>);
impl<D: Types> Default for Copiers<D> {
    fn default() -> Self {
        Self(OnceLock::new())
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
    let copied = || ready.buffers().filter(|(mem, ..)| mem.storage().is_copied());
    let mut arrivals = Arrivals::<D>::new();
    for (mem, bytes, usage) in copied() {
        let (_, index) = mem.storage().on(queue.device())?;
        let need = if usage == Usage::Overwrites { Need::Room } else { Need::Contents };
        mem.storage().bring(index, mem.within(bytes), need, &mut arrivals)?;
    }
    let ends = arrivals.iter().map(|point| Wait::End(&**point));
    let waits: SmallVec<[_; 8]> = what.waits.iter().copied().chain(ends).collect();
    let writes = copied().any(|(.., usage)| usage != Usage::Reads);
    let completion = match what.completion {
        Completion::None if writes => Completion::Point,
        completion => completion,
    };
    let made = D::submit_using(queue, &Submission { waits: &waits, completion, ..*what }, ready)?;
    if writes {
        let end = match completion.is_awaited() {
            true => None,
            false => end_of(queue, made.as_ref())?.map(Arc::new),
        };
        for (mem, bytes, usage) in copied() {
            if let (Some(Copies::Each { state, .. }), false) =
                (mem.storage().copies(), usage == Usage::Reads)
            {
                let (_, index) = mem.storage().on(queue.device())?;
                locked(state).write(mem.within(bytes), index, end.as_ref());
            }
        }
    }
    Ok(made.filter(|_| what.completion != Completion::None))
}
/// A point behind a command that was just submitted; its own may become an event's. `None` if the command is complete, or
/// does not run now because native code captures the stream.
fn end_of<D: HasStreams>(
    queue: &Queue<D>,
    made: Option<&D::Point>,
) -> ur_hal::Result<Option<D::Point>> {
    if D::is_captured(queue)? {
        return Ok(None);
    }
    let waits: SmallVec<[_; 1]> = made.into_iter().map(Wait::End).collect();
    let (barrier, completion) = (Submission::new(&Command::Barrier), Completion::Point);
    let end = D::submit(queue.stream(), &Submission { waits: &waits, completion, ..barrier });
    match end {
        Ok(Some(end)) => Ok(Some(end)),
        // The command has been submitted: what it writes must not be taken for complete.
        Ok(None) | Err(_) => D::finish(queue.stream()).map(|()| None),
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
        arrivals.iter().try_for_each(|point| <D as Streams>::wait(point, None).map(drop))?;
        Ok(found)
    }
}
impl<D: HasStreams> Storage<D> {
    /// Copies the pixels of a new image from the caller's memory, and waits for that.
    ///
    /// # Errors
    /// `INVALID_SIZE` for memory that would exceed the address space; the driver's error.
    pub(crate) fn write_pixels(&self, image: &Image, host: UsmPtr) -> Result<()> {
        let (there, whole) = (image.whole_on_host(host)?, image.whole());
        if let Found::Pixels(pixels) = self.first()? {
            let to = ImageEnd::Image(pixels, whole.origin);
            let from = ImageEnd::Memory(host.into(), there.pitches);
            let copy = ImageCopy { to, from, region: whole.region };
            let (command, completion) =
                (Command::ImageCopy(&copy), Completion::Done { point: false });
            D::submit(self.copier(0)?, &Submission { completion, ..Submission::new(&command) })?;
        }
        self.written_first();
        Ok(())
    }
    /// The stream of copies to the device with this index.
    fn copier(&self, index: usize) -> ur_hal::Result<&D::Stream> {
        let devices = self.context().driver_devices();
        let Copiers(all) = self.context().kept().get::<Copiers<D>>();
        let one = &all.get_or_init(|| devices.iter().map(|_| OnceLock::new()).collect())[index];
        if let Some(stream) = one.get() {
            return Ok(stream);
        }
        let request = StreamRequest {
            context: self.context().as_handle().addr(),
            is_out_of_order: true,
            ..StreamRequest::default()
        };
        let fresh = D::stream(self.context().driver(), &devices[index], request)?;
        Ok(one.get_or_init(|| fresh)) // unless another thread was faster
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
        for segment in newest.within(bytes) {
            forget_what_is_over::<D>(&mut segment.sides);
            let source = segment.source(index).filter(|_| need != Need::Room);
            if let Some(from) = source {
                let Side { arrival, written, .. } = &segment.sides[from];
                let arrival = arrival.as_ref().and_then(|arrival| arrival.behind.as_ref());
                let behind = written.as_ref().or(arrival).cloned();
                if need == Need::CompleteContents && behind.is_some() {
                    continue; // a later command brings them
                }
                let mut after = Arrivals::<D>::new();
                after.extend(segment.sides[from].written.clone());
                for side in [from, index].map(|one| &segment.sides[one]) {
                    after.extend(side.arrival.as_ref().map(|one| Arc::clone(&one.point)));
                }
                let (to, from) = (&all[index], &all[from]);
                let (Some(to), Some(from)) = (to.get(), from.get()) else { continue }; // both are in use
                let what = (segment.bytes.clone(), image.as_ref().map(|(image, _)| image));
                match self.copy((to, index), from, what, &after) {
                    Ok(point) => {
                        segment.sides[index].is_newest = true;
                        segment.sides[index].arrival = Some(Arrival { point, behind });
                    }
                    Err(error) => {
                        submitted = Err(error);
                        break;
                    }
                }
            }
            let arrival = segment.sides[index].arrival.as_ref();
            let is_waited =
                |one: &&Arrival<_>| need != Need::CompleteContents || one.behind.is_none();
            arrivals.extend(arrival.filter(is_waited).map(|one| Arc::clone(&one.point)));
        }
        newest.join();
        submitted
    }
    /// Submits a copy of these bytes, or of all pixels of an image.
    fn copy(
        &self,
        (to, index): (&Copy<D>, usize),
        from: &Copy<D>,
        (bytes, image): (Range<usize>, Option<&Image>),
        after: &Arrivals<D>,
    ) -> ur_hal::Result<Arc<D::Point>> {
        let at = |copy: &Copy<D>| -> ur_hal::Result<Address> {
            let base = copy.at.ok_or(ur_hal::ErrorKind::Unknown)?; // the copies of a buffer have addresses
            Ok(base.offset(bytes.start)?.into())
        };
        let pixels;
        let command = match (image, &to.pixels, &from.pixels) {
            (Some(image), Some(to), Some(from)) => {
                let (to, from) = (ImageEnd::Image(to, [0; 3]), ImageEnd::Image(from, [0; 3]));
                pixels = ImageCopy { to, from, region: image.sides() };
                Command::ImageCopy(&pixels)
            }
            _ => Command::Copy { to: at(to)?, from: at(from)?, bytes: bytes.len() },
        };
        let waits: SmallVec<[_; 4]> = after.iter().map(|point| Wait::End(&**point)).collect();
        let (completion, order) = (Completion::Point, Order::Free);
        let how = Submission { waits: &waits, completion, order, ..Submission::new(&command) };
        D::submit(self.copier(index)?, &how)?.map(Arc::new).ok_or_else(no_point)
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
        side.written.take_if(|point| is_over(point));
        let Some(arrival) = &mut side.arrival else { continue };
        arrival.behind.take_if(|point| is_over(point));
        match status(&arrival.point) {
            Status::Submitted | Status::Running => continue,
            Status::Complete => {}
            Status::Failed => side.is_newest &= !others_have,
        }
        side.arrival = None;
    }
}
