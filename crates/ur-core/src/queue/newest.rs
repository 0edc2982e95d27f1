//! Which device has the newest contents of a memory object of which devices have copies, and how they come to the others.
use super::objects::{HasStreams, Queue, no_point};
use crate::{
    command::Ready,
    memory::image_layout::Image,
    over_driver::mem::{Copies, Copy, Found, State, Storage},
};
use smallvec::SmallVec;
use std::sync::Arc;
use ur_adapter::{api::Objects, error::Result, memory::UsmPtr, object::Owned};
use ur_hal::{
    Command, Completion, ImageCopy, ImageEnd, Order, StreamRequest, Streams, Submission, Types,
    Wait,
};
use ur_lock::locked;

/// What must happen before a device's copy is used.
enum Before<D: Types> {
    Nothing,
    Wait(Arc<D::Point>),
    Copy { from: usize, after: Option<Arc<D::Point>> },
}
/// The points for which a command waits because of its memory objects; mostly none.
type Arrivals<D> = SmallVec<[Arc<<D as Types>::Point>; 1]>;

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
            self.aside(0, |stream| {
                D::submit(stream, &Submission::new(&Command::ImageCopy(&copy))).map(drop)
            })?;
        }
        self.written_first();
        Ok(())
    }
    /// Submits work to a stream of its own, and waits for it. For work that must be done before an entry returns, while no
    /// command uses the memory.
    fn aside(
        &self,
        index: usize,
        submit: impl FnOnce(&<D as Types>::Stream) -> ur_hal::Result<()>,
    ) -> Result<()> {
        let device = &self.context().driver_devices()[index];
        let context = self.context().as_handle().addr();
        let request = StreamRequest { context, ..StreamRequest::default() };
        let stream = D::stream(self.context().driver(), device, request)?;
        submit(&stream)?;
        Ok(D::finish(&stream)?)
    }
    /// What is on `device`, or on the context's first device, up to date on return. Waits for copies between devices, not
    /// for commands.
    ///
    /// # Errors
    /// As for [`found`](Self::found).
    pub fn now(&self, device: Option<&Owned<<D as Objects>::Device>>) -> Result<Found<'_, D>> {
        let device = device.unwrap_or(&self.context().devices()[0]);
        let found = self.found(device)?;
        if self.is_copied() {
            let index = self.index(device)?;
            self.aside(index, |stream| {
                let arrival = self.bring(stream, index, (&[], Order::Free), false)?;
                arrival.map_or(Ok(()), |point| <D as Streams>::wait(&point, None).map(drop))
            })?;
        }
        Ok(found)
    }
    /// Whether devices have different copies.
    fn is_copied(&self) -> bool {
        matches!(self.copies(), Some(Copies::Each { all, .. }) if all.len() > 1)
    }
    /// Submits a copy to the device with this index if its contents are out of date. Returns the point at which they no
    /// longer are, unless they are now. If the command that follows `writes`, the other copies are out of date afterwards.
    fn bring(
        &self,
        stream: &<D as Types>::Stream,
        index: usize,
        (waits, order): (&[Wait<'_, D>], Order),
        writes: bool,
    ) -> ur_hal::Result<Option<Arc<D::Point>>> {
        let Some(Copies::Each { image, all, state }) = self.copies() else { return Ok(None) };
        let before = before(&locked(state), index);
        let arrival = match before {
            Before::Nothing => None,
            Before::Wait(point) if D::status(&point)?.is_final() => None,
            Before::Wait(point) => Some(point),
            Before::Copy { from, after } => {
                let mut list: SmallVec<[_; 8]> = waits.iter().copied().collect();
                list.extend(after.as_deref().map(Wait::Point));
                let [to, from] = [index, from].map(|one| all[one].get());
                let (Some(to), Some(from)) = (to, from) else {
                    return Err(no_point()); // both were used before
                };
                let how_much = (self.bytes(), image.as_ref().map(|(image, _)| image.sides()));
                copy_between(to, from, how_much, |command| {
                    let how = Submission::new(command);
                    let completion = Completion::Point;
                    let made =
                        D::submit(stream, &Submission { waits: &list, order, completion, ..how })?;
                    made.map(Arc::new).ok_or_else(no_point).map(Some)
                })?
            }
        };
        let now = arrival.as_ref().map_or(State::Good, |point| State::Coming(Arc::clone(point)));
        self.settle(state, index, now, writes);
        Ok(arrival)
    }
}
/// Passes the command that copies all contents of one copy to another to `submit`: `bytes`, or the pixels of an image with
/// these sides.
fn copy_between<D: HasStreams, R>(
    to: &Copy<D>,
    from: &Copy<D>,
    (bytes, sides): (usize, Option<[usize; 3]>),
    submit: impl FnOnce(&Command<'_, D>) -> ur_hal::Result<R>,
) -> ur_hal::Result<R> {
    match (to, from, sides) {
        (Copy { at: Some(to), .. }, Copy { at: Some(from), .. }, None) => {
            submit(&Command::Copy { to: (*to).into(), from: (*from).into(), bytes })
        }
        (Copy { pixels: Some(to), .. }, Copy { pixels: Some(from), .. }, Some(region)) => {
            let (to, from) = (ImageEnd::Image(to, [0; 3]), ImageEnd::Image(from, [0; 3]));
            submit(&Command::ImageCopy(&ImageCopy { to, from, region }))
        }
        _ => Err(ur_hal::Error::new(
            ur_hal::ErrorKind::Unknown,
            "the copies of one memory object are of one kind",
        )),
    }
}
fn before<D: Types>(all: &[State<D>], index: usize) -> Before<D> {
    match &all[index] {
        State::Good => Before::Nothing,
        State::Coming(arrival) => Before::Wait(Arc::clone(arrival)),
        State::Old => {
            let newest = all.iter().enumerate().find_map(|(from, one)| match one {
                State::Old => None,
                State::Good => Some(Before::Copy { from, after: None }),
                State::Coming(point) => Some(Before::Copy { from, after: Some(Arc::clone(point)) }),
            });
            newest.unwrap_or(Before::Nothing)
        }
    }
}
/// Submits to a queue what must precede a command because of the memory objects that it uses. Returns the points for which
/// the command waits, beside its own `waits`.
///
/// # Errors
/// As for [`Storage::found`] and [`Streams::submit`].
#[inline(always)] // most commands use no memory object
pub(crate) fn bring_newest<D: HasStreams>(
    queue: &Queue<D>,
    ready: &Ready<'_, D>,
    how: (&[Wait<'_, D>], Order),
) -> ur_hal::Result<Arrivals<D>> {
    let mut arrivals = Arrivals::<D>::new();
    for (mem, writes) in ready.buffers() {
        let storage = mem.storage();
        if storage.is_copied() {
            let (_, index) = storage.on(queue.device())?;
            arrivals.extend(storage.bring(queue.stream(), index, how, writes)?);
        }
    }
    Ok(arrivals)
}
