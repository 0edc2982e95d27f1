//! The memory of memory objects. Each device of the context has a copy, which is created at its first use. If
//! a command runs on a device whose copy is out of date, a copy from an up-to-date device is enqueued before
//! it in the same stream. Host memory, and memory that the application allocated, has one address for all
//! devices.
//!
//! The application orders commands that use the same memory object, on whichever devices they run. So the
//! copy before a command runs after all commands that may have written its source.
use super::{
    Context, Device, Family,
    driver::{Dialect, layout::ArrayDesc},
    image::Pixels,
    memory::Memory,
    native::{
        array::Array,
        event::Pooled,
        memory::{Piece, Registered},
        stream::Stream,
    },
};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Owned,
};
use ur_core::memory::{deferred_free, image_layout::Layout};
use ur_core::over_driver::{block::Block, mem};
use ur_lock::locked;

/// The memory of a memory object and of its sub-buffers.
#[derive(Debug)]
pub struct Storage<D: Dialect> {
    context: Owned<Context<D>>,
    shape: Shape,
    place: Place<D>,
}
/// What each device's copy consists of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// Linear memory of this many bytes.
    Bytes(usize),
    /// A driver array, and the layout of its pixels.
    Pixels(ArrayDesc, Layout),
}
#[derive(Debug)]
enum Place<D: Dialect> {
    /// One address for all devices.
    One { at: u64, host: Option<UsmPtr>, _keep: Keep<D> },
    /// One copy for each device of the context, in its order.
    Each { copies: Box<[OnceLock<Copy<D>>]>, state: Mutex<Box<[State<D>]>> },
}
/// Keeps memory with one address alive.
#[derive(Debug)]
#[expect(dead_code, reason = "dropped with the storage, no more")]
enum Keep<D: Dialect> {
    /// The application owns it.
    Nothing,
    /// Memory whose ownership was transferred to the memory object.
    Piece(Piece<D>),
    Block(Block<Family<D>>),
    Registered(Registered<D>),
}
/// The copy of one device.
#[derive(Debug)]
pub(super) enum Copy<D: Dialect> {
    /// Linear memory.
    Bytes(Block<Family<D>>),
    /// An array.
    Pixels(Arc<Pixels<D>>),
}
/// Whether a device's copy is up to date.
#[derive(Debug)]
enum State<D: Dialect> {
    /// Another one is newer, or nothing was ever written.
    Old,
    /// Being copied in some stream; the event is recorded behind the copy.
    Coming(Arc<Pooled<D>>),
    Good,
}
/// What must happen before a device's copy is used.
enum Before<D: Dialect> {
    Nothing,
    Wait(Arc<Pooled<D>>),
    Copy { from: usize, after: Option<Arc<Pooled<D>>> },
}

impl<D: Dialect> Storage<D> {
    /// A copy for each device, without contents.
    pub(super) fn each(context: Owned<Context<D>>, shape: Shape) -> Self {
        deferred_free::sweep::<Memory<D>>();
        let count = context.devices().len();
        let copies = (0..count).map(|_| OnceLock::new()).collect();
        let state = Mutex::new((0..count).map(|_| State::Old).collect());
        Self { context, shape, place: Place::Each { copies, state } }
    }
    /// An array that the application created on `device`, which has the only copy.
    pub(super) fn of_array(
        context: Owned<Context<D>>,
        device: usize,
        array: Array<D>,
        shape: Shape,
    ) -> Self {
        let made = Self::each(context, shape);
        if let (Place::Each { copies, state }, Shape::Pixels(_, layout)) = (&made.place, shape) {
            let pixels = Arc::new(Pixels::new(array, layout));
            let _ = copies[device].set(Copy::Pixels(pixels)); // it was created empty above
            lock(state)[device] = State::Good;
        }
        made
    }
    /// Pinned host memory.
    ///
    /// # Errors
    /// `OUT_OF_HOST_MEMORY`; else the driver's error.
    pub(super) fn pinned(context: Owned<Context<D>>, bytes: usize) -> Result<Self> {
        deferred_free::sweep::<Memory<D>>();
        let block = Block::new(&context, None, bytes)?;
        let (at, host) = (block.at().addr() as u64, Some(block.at()));
        let place = Place::One { at, host, _keep: Keep::Block(block) };
        Ok(Self { context, shape: Shape::Bytes(bytes), place })
    }
    /// Memory of the application, registered with the driver. `None` if the driver refuses it.
    pub(super) fn registered(
        context: &Owned<Context<D>>,
        host: UsmPtr,
        bytes: usize,
        read_only: bool,
    ) -> Option<Self> {
        let (device, at) = (&context.devices()[0], host.addr() as u64);
        let registered = Registered::new(device, at, bytes, read_only).ok()?;
        let keep = Keep::Registered(registered);
        let place = Place::One { at, host: Some(host), _keep: keep };
        Some(Self { context: context.clone(), shape: Shape::Bytes(bytes), place })
    }
    /// Memory that the application allocated; with `piece` the object owns it.
    pub(super) fn foreign(
        context: Owned<Context<D>>,
        at: u64,
        bytes: usize,
        piece: Option<Piece<D>>,
    ) -> Self {
        let keep = piece.map_or(Keep::Nothing, Keep::Piece);
        Self {
            context,
            shape: Shape::Bytes(bytes),
            place: Place::One { at, host: None, _keep: keep },
        }
    }
    fn index(&self, device: &Owned<Device<D>>) -> Result<usize> {
        self.context.devices().iter().position(|one| one.same(device)).ok_or_else(|| {
            Error::new(
                ErrorCode::InvalidContext,
                "the memory object belongs to a context without this device",
            )
        })
    }
    fn copy<'s>(&self, copies: &'s [OnceLock<Copy<D>>], index: usize) -> Result<&'s Copy<D>> {
        if let Some(copy) = copies[index].get() {
            return Ok(copy);
        }
        let device = &self.context.devices()[index];
        let fresh = match &self.shape {
            Shape::Bytes(bytes) => Copy::Bytes(Block::new(&self.context, Some(device), *bytes)?),
            Shape::Pixels(what, layout) => {
                Copy::Pixels(Arc::new(Pixels::new(Array::new(device, what)?, *layout)))
            }
        };
        // If another thread was faster, this one is dropped unused.
        Ok(copies[index].get_or_init(|| fresh))
    }
    /// Allocates the copy of the first device, so that a lack of memory is reported now.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn ready(&self) -> Result<()> {
        match &self.place {
            Place::One { .. } => Ok(()),
            Place::Each { copies, .. } => self.copy(copies, 0).map(drop),
        }
    }
}
impl<D: Dialect> mem::Storage<Family<D>> for Storage<D> {
    fn context(&self) -> &Owned<Context<D>> {
        &self.context
    }
    fn host(&self) -> Option<UsmPtr> {
        match self.place {
            Place::One { host, .. } => host,
            Place::Each { .. } => None,
        }
    }
}
fn lock<D: Dialect>(state: &Mutex<Box<[State<D>]>>) -> MutexGuard<'_, Box<[State<D>]>> {
    locked(state)
}
/// What a command uses.
pub(super) enum Found<'s, D: Dialect> {
    /// Linear memory at this address.
    At(u64),
    /// An array.
    Pixels(&'s Arc<Pixels<D>>),
}
impl<D: Dialect> Storage<D> {
    /// The address for commands on `device`; the contents may be out of date there.
    ///
    /// # Errors
    /// As for [`Storage::at`]; `INVALID_MEM_OBJECT` for an image.
    pub(super) fn address(&self, device: &Owned<Device<D>>) -> Result<u64> {
        match &self.place {
            Place::One { at, .. } => Ok(*at),
            Place::Each { copies, .. } => match self.copy(copies, self.index(device)?)? {
                Copy::Bytes(block) => Ok(block.at().addr() as u64),
                Copy::Pixels(_) => Err(ErrorCode::InvalidMemObject.into()),
            },
        }
    }
    /// The image for commands on `device`; the contents may be out of date there.
    ///
    /// # Errors
    /// As for [`Storage::at`]; `INVALID_MEM_OBJECT` for a buffer.
    pub(super) fn pixels(&self, device: &Owned<Device<D>>) -> Result<&Arc<Pixels<D>>> {
        let Place::Each { copies, .. } = &self.place else {
            return Err(ErrorCode::InvalidMemObject.into());
        };
        match self.copy(copies, self.index(device)?)? {
            Copy::Pixels(pixels) => Ok(pixels),
            Copy::Bytes(_) => Err(ErrorCode::InvalidMemObject.into()),
        }
    }
    /// The copy for a command on `device`, up to date at this point of `stream`. If the command `writes`, the
    /// copies of the other devices are out of date from here on.
    ///
    /// # Errors
    /// `INVALID_CONTEXT` for a device of another context; else the driver's error.
    pub(super) fn at(
        &self,
        device: &Owned<Device<D>>,
        stream: &Stream<D>,
        writes: bool,
    ) -> Result<Found<'_, D>> {
        let (copies, state) = match &self.place {
            Place::One { at, .. } => return Ok(Found::At(*at)),
            Place::Each { copies, state } => (copies, state),
        };
        let index = self.index(device)?;
        let copy = self.copy(copies, index)?;
        let now = match before(&lock(state), index) {
            Before::Nothing => State::Good,
            Before::Wait(arrival) if arrival.is_complete()? => State::Good,
            Before::Wait(arrival) => {
                stream.wait_for(&arrival)?;
                State::Coming(arrival)
            }
            Before::Copy { from, after } => {
                if let Some(arrival) = after {
                    stream.wait_for(&arrival)?;
                }
                self.bring(stream, copy, self.copy(copies, from)?)?;
                let event = device.events().take(&device.enter()?, false)?;
                event.record(stream)?;
                State::Coming(Arc::new(event))
            }
        };
        self.settle(state, index, now, writes);
        Ok(match copy {
            Copy::Bytes(block) => Found::At(block.at().addr() as u64),
            Copy::Pixels(pixels) => Found::Pixels(pixels),
        })
    }
    fn settle(&self, state: &Mutex<Box<[State<D>]>>, index: usize, now: State<D>, writes: bool) {
        let mut gone = Vec::new(); // events return to their pool outside the lock
        let mut all = lock(state);
        let nobody = all.iter().all(|one| matches!(one, State::Old));
        if writes {
            gone.extend(all.iter_mut().map(|one| std::mem::replace(one, State::Old)));
        }
        // While nothing was written, no copy is newer than another: all stay as they are.
        if writes || !nobody {
            gone.push(std::mem::replace(&mut all[index], now));
        }
        drop(all);
    }
    /// Enqueues a copy of one device's copy to another's.
    fn bring(&self, stream: &Stream<D>, to: &Copy<D>, from: &Copy<D>) -> Result<()> {
        match (to, from, &self.shape) {
            (Copy::Bytes(to), Copy::Bytes(from), Shape::Bytes(bytes)) => {
                let [to, from] = [to, from].map(|block| block.at().addr() as u64);
                Ok(stream.copy(to, from, *bytes)?)
            }
            (Copy::Pixels(to), Copy::Pixels(from), Shape::Pixels(what, layout)) => {
                let whole = [what.width * layout.pixel, what.height.max(1), what.depth.max(1)];
                Ok(stream.copy_array(to.array(), from.array(), whole)?)
            }
            _ => Err(Error::new(ErrorCode::Unknown, "the copies of one storage are of one kind")),
        }
    }
    /// The copy of `device`, or of the context's first device, up to date on return. Waits for copies between
    /// devices, not for commands.
    ///
    /// # Errors
    /// As for [`Storage::at`].
    pub(super) fn now(&self, device: Option<&Owned<Device<D>>>) -> Result<Found<'_, D>> {
        self.aside(device, |_, _| Ok(()))
    }
    /// Runs `work` on a device in a temporary stream, and waits for it. For work that must be done before an
    /// entry returns, while no command uses the memory yet.
    ///
    /// # Errors
    /// As for [`Storage::at`], and those of `work`.
    pub(super) fn aside<'s>(
        &'s self,
        device: Option<&Owned<Device<D>>>,
        work: impl FnOnce(&Stream<D>, &Found<'s, D>) -> Result<()>,
    ) -> Result<Found<'s, D>> {
        let device = device.unwrap_or(&self.context.devices()[0]);
        let stream = Stream::create(&device.enter()?, 0)?.of(Arc::clone(device.driver()));
        let _on = device.enter()?;
        let found = self.at(device, &stream, false)?;
        work(&stream, &found)?;
        stream.synchronize()?;
        Ok(found)
    }
    /// Records that the first device has the newest contents.
    pub(super) fn written_first(&self) {
        if let Place::Each { state, .. } = &self.place {
            self.settle(state, 0, State::Good, true);
        }
    }
}
fn before<D: Dialect>(all: &[State<D>], index: usize) -> Before<D> {
    match &all[index] {
        State::Good => Before::Nothing,
        State::Coming(arrival) => Before::Wait(Arc::clone(arrival)),
        State::Old => all
            .iter()
            .enumerate()
            .find_map(|(from, one)| match one {
                State::Old => None,
                State::Good => Some(Before::Copy { from, after: None }),
                State::Coming(arrival) => {
                    Some(Before::Copy { from, after: Some(Arc::clone(arrival)) })
                }
            })
            .unwrap_or(Before::Nothing),
    }
}
impl<D: Dialect> Drop for Storage<D> {
    /// Frees the memory when the commands enqueued so far are complete.
    fn drop(&mut self) {
        let nothing = Place::One { at: 0, host: None, _keep: Keep::Nothing };
        let place = std::mem::replace(&mut self.place, nothing);
        match (place, &self.shape) {
            // Blocks are freed deferred by themselves.
            (Place::Each { copies, .. }, Shape::Bytes(_)) => drop(copies),
            (place, _) => {
                deferred_free::leave::<Memory<D>>(self.context.as_handle().addr(), place);
            }
        }
    }
}
