//! Where the bytes of memory objects are. Each device of the context has a copy, made when a command
//! first needs it; a command on a device whose copy is out of date is preceded by a copy from one
//! that is not, in the same stream. Host memory, and memory that C made, has one address for all.
//!
//! Commands that use one memory object are ordered by C, on whichever devices they run: so a copy that
//! precedes a command comes after everything that may have written what it copies.
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
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Owned,
};
use ur_core::memory::{deferred_free, image_layout::Layout};
use ur_core::over_driver::{block::Block, mem};

/// The bytes of a memory object and of its parts.
#[derive(Debug)]
pub struct Storage<D: Dialect> {
    context: Owned<Context<D>>,
    shape: Shape,
    place: Place<D>,
}
/// What there is a copy of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// Bytes in a row.
    Bytes(usize),
    /// An array of the driver's, and how its pixels are counted.
    Pixels(ArrayDesc, Layout),
}
#[derive(Debug)]
enum Place<D: Dialect> {
    /// One address for everybody.
    One { at: u64, host: Option<UsmPtr>, _keep: Keep<D> },
    /// One copy for each device of the context, in its order.
    Each { copies: Box<[OnceLock<Copy<D>>]>, state: Mutex<Box<[State<D>]>> },
}
/// What holds memory with one address in place.
#[derive(Debug)]
#[expect(dead_code, reason = "dropped with the storage, no more")]
enum Keep<D: Dialect> {
    /// C does.
    Nothing,
    /// It was given away.
    Piece(Piece<D>),
    Block(Block<Family<D>>),
    Registered(Registered<D>),
}
/// What a device has.
#[derive(Debug)]
pub(super) enum Copy<D: Dialect> {
    /// Bytes.
    Bytes(Block<Family<D>>),
    /// Pixels.
    Pixels(Arc<Pixels<D>>),
}
/// How good a device's copy is.
#[derive(Debug)]
enum State<D: Dialect> {
    /// Another one is newer, or nothing was ever written.
    Old,
    /// On its way, in some stream.
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
    /// A copy for each device, of nothing yet.
    pub(super) fn each(context: Owned<Context<D>>, shape: Shape) -> Self {
        deferred_free::sweep::<Memory<D>>();
        let count = context.devices().len();
        let copies = (0..count).map(|_| OnceLock::new()).collect();
        let state = Mutex::new((0..count).map(|_| State::Old).collect());
        Self { context, shape, place: Place::Each { copies, state } }
    }
    /// An array that C made on `device`, where alone it is.
    pub(super) fn of_array(
        context: Owned<Context<D>>,
        device: usize,
        array: Array<D>,
        shape: Shape,
    ) -> Self {
        let made = Self::each(context, shape);
        if let (Place::Each { copies, state }, Shape::Pixels(_, layout)) = (&made.place, shape) {
            let pixels = Arc::new(Pixels::new(array, layout));
            let _ = copies[device].set(Copy::Pixels(pixels)); // it was just made empty
            lock(state)[device] = State::Good;
        }
        made
    }
    /// Pinned memory of the host.
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
    /// C's own memory, made known to the driver. `None` where the driver does not take it.
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
    /// Memory that C made and keeps, or gives away with `piece`.
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
        // Another thread may have been faster: then nobody has seen this one.
        Ok(copies[index].get_or_init(|| fresh))
    }
    /// Makes the first device have a copy, so that it is known that one can be made.
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
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
/// What a command finds.
pub(super) enum Found<'s, D: Dialect> {
    /// Bytes at an address.
    At(u64),
    /// Pixels.
    Pixels(&'s Arc<Pixels<D>>),
}
impl<D: Dialect> Storage<D> {
    /// Where bytes are for commands on `device`; they may be out of date there.
    ///
    /// # Errors
    /// As for [`Storage::at`]; `INVALID_MEM_OBJECT` for pixels.
    pub(super) fn address(&self, device: &Owned<Device<D>>) -> Result<u64> {
        match &self.place {
            Place::One { at, .. } => Ok(*at),
            Place::Each { copies, .. } => match self.copy(copies, self.index(device)?)? {
                Copy::Bytes(block) => Ok(block.at().addr() as u64),
                Copy::Pixels(_) => Err(ErrorCode::InvalidMemObject.into()),
            },
        }
    }
    /// The image for commands on `device`; it may be out of date there.
    ///
    /// # Errors
    /// As for [`Storage::at`]; `INVALID_MEM_OBJECT` for bytes.
    pub(super) fn pixels(&self, device: &Owned<Device<D>>) -> Result<&Arc<Pixels<D>>> {
        let Place::Each { copies, .. } = &self.place else {
            return Err(ErrorCode::InvalidMemObject.into());
        };
        match self.copy(copies, self.index(device)?)? {
            Copy::Pixels(pixels) => Ok(pixels),
            Copy::Bytes(_) => Err(ErrorCode::InvalidMemObject.into()),
        }
    }
    /// What a command on `device` uses, up to date at this point of `stream`; if it `writes`, the
    /// other devices' copies are out of date from here on.
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
        let mut gone = Vec::new(); // events go back to their pool, but not under the lock
        let mut all = lock(state);
        let nobody = all.iter().all(|one| matches!(one, State::Old));
        if writes {
            gone.extend(all.iter_mut().map(|one| std::mem::replace(one, State::Old)));
        }
        // What was never written is as good on any device: none is newer than another.
        if writes || !nobody {
            gone.push(std::mem::replace(&mut all[index], now));
        }
        drop(all);
    }
    /// Puts the bytes of one device's copy into another's.
    fn bring(&self, stream: &Stream<D>, to: &Copy<D>, from: &Copy<D>) -> Result<()> {
        match (to, from, &self.shape) {
            (Copy::Bytes(to), Copy::Bytes(from), Shape::Bytes(bytes)) => {
                let [to, from] = [to, from].map(|block| block.at().addr() as u64);
                stream.copy(to, from, *bytes)
            }
            (Copy::Pixels(to), Copy::Pixels(from), Shape::Pixels(what, layout)) => {
                let whole = [what.width * layout.pixel, what.height.max(1), what.depth.max(1)];
                stream.copy_array(to.array(), from.array(), whole)
            }
            _ => Err(Error::new(ErrorCode::Unknown, "the copies of one storage are of one kind")),
        }
    }
    /// What `device` has, up to date when this returns; the first device of the context if none is
    /// named. Waits for copies, not for commands.
    ///
    /// # Errors
    /// As for [`Storage::at`].
    pub(super) fn now(&self, device: Option<&Owned<Device<D>>>) -> Result<Found<'_, D>> {
        self.aside(device, |_, _| Ok(()))
    }
    /// Runs `work` on a device, in a stream of its own, and waits for it. For what C wants done
    /// before the call returns, and when nothing else uses the memory yet.
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
    /// The first device has the newest bytes.
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
    /// Commands that were enqueued before may use it still.
    fn drop(&mut self) {
        let nothing = Place::One { at: 0, host: None, _keep: Keep::Nothing };
        let place = std::mem::replace(&mut self.place, nothing);
        match (place, &self.shape) {
            // Blocks wait for these commands by themselves.
            (Place::Each { copies, .. }, Shape::Bytes(_)) => drop(copies),
            (place, _) => {
                deferred_free::leave::<Memory<D>>(self.context.as_handle().addr(), place);
            }
        }
    }
}
