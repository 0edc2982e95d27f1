//! Where the bytes of memory objects are: in one place, which every device of the context reaches. That
//! is the memory of the device that first uses a buffer, if the others reach it; else, and for devices
//! that have no memory of their own, the host's. An image is the context's first device's.
use super::{
    Context, Device, LevelZero, image::Pixels, memory::Memory, native::memory::Piece, p2p,
};
use std::sync::{Arc, OnceLock};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Owned,
};
use ur_core::memory::deferred_free;
use ur_core::over_driver::mem;

/// The bytes of a memory object and of its parts.
#[derive(Debug)]
pub struct Storage {
    context: Owned<Context>,
    /// Taken by drop.
    place: Option<Place>,
}
/// Where they are.
#[derive(Debug)]
pub(super) enum Place {
    /// So many bytes, somewhere once a command needs them.
    Bytes(usize, OnceLock<Block>),
    /// Memory of C's.
    Given {
        /// Where devices have it.
        at: u64,
        /// Where the host has it.
        host: Option<UsmPtr>,
        /// Held to be dropped, where C gave it away.
        _piece: Option<Piece>,
    },
    /// Pixels.
    Image(Arc<Pixels>),
}
/// Memory that C could have allocated as well.
type Block = ur_core::over_driver::block::Block<LevelZero>;
/// Whether the memory of each device of a context is in reach of all the others.
fn is_in_reach(context: &Context) -> Result<bool> {
    let devices = context.devices();
    for home in devices {
        for one in devices {
            if !p2p::can_access(one, home)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

impl Storage {
    /// Bytes, of nothing yet.
    pub(super) fn bytes(context: Owned<Context>, bytes: usize) -> Self {
        Self { context, place: Some(Place::Bytes(bytes, OnceLock::new())) }
    }
    /// The host's memory.
    ///
    /// # Errors
    /// As for USM.
    pub(super) fn pinned(context: Owned<Context>, bytes: usize) -> Result<Self> {
        let block = Block::new(&context, None, bytes)?;
        Ok(Self { context, place: Some(Place::Bytes(bytes, OnceLock::from(block))) })
    }
    /// Memory that C made and keeps, or gives away with `piece`.
    pub(super) fn given(
        context: Owned<Context>,
        at: u64,
        host: Option<UsmPtr>,
        _piece: Option<Piece>,
    ) -> Self {
        Self { context, place: Some(Place::Given { at, host, _piece }) }
    }
    /// Pixels.
    pub(super) fn image(context: Owned<Context>, image: Arc<Pixels>) -> Self {
        Self { context, place: Some(Place::Image(image)) }
    }
    /// The device of the context that `device` is, or is a part of.
    fn home(&self, device: &Owned<Device>) -> Result<&Owned<Device>> {
        let mut next = Some(device);
        while let Some(one) = next {
            if let Some(home) = self.context.devices().iter().find(|home| home.is(one)) {
                return Ok(home);
            }
            next = one.parent();
        }
        Err(Error::new(
            ErrorCode::InvalidContext,
            "the memory object belongs to a context without this device",
        ))
    }
    /// Where its bytes are for commands on `device`.
    ///
    /// # Errors
    /// `INVALID_CONTEXT` for a device of another context; `INVALID_MEM_OBJECT` for an image; the
    /// driver's own.
    pub(super) fn at(&self, device: &Owned<Device>) -> Result<u64> {
        let home = self.home(device)?;
        match &self.place {
            Some(Place::Given { at, .. }) => Ok(*at),
            Some(Place::Bytes(bytes, block)) => {
                if let Some(block) = block.get() {
                    return Ok(block.at().addr() as u64);
                }
                let on_device = !home.is_integrated() && is_in_reach(&self.context)?;
                let home = on_device.then_some(home);
                let fresh = Block::new(&self.context, home, *bytes)?;
                // Another thread may have been faster: then nobody has seen this one.
                Ok(block.get_or_init(|| fresh).at().addr() as u64)
            }
            Some(Place::Image(_)) | None => Err(ErrorCode::InvalidMemObject.into()),
        }
    }
    /// The image, for commands on `device`.
    ///
    /// # Errors
    /// `INVALID_CONTEXT` for a device of another context, `UNSUPPORTED_FEATURE` for one that does not
    /// reach the image's; `INVALID_MEM_OBJECT` for a buffer.
    pub(super) fn pixels(&self, device: &Owned<Device>) -> Result<&Arc<Pixels>> {
        let Some(Place::Image(image)) = &self.place else {
            return Err(ErrorCode::InvalidMemObject.into());
        };
        let (home, first) = (self.home(device)?, &self.context.devices()[0]);
        match p2p::can_access(home, first)? {
            true => Ok(image),
            false => Err(Error::new(
                ErrorCode::UnsupportedFeature,
                "the image lies on the first device of its context, which this one does not reach: \
                 make a context for each device",
            )),
        }
    }
}
impl mem::Storage<LevelZero> for Storage {
    fn context(&self) -> &Owned<Context> {
        &self.context
    }
    fn host(&self) -> Option<UsmPtr> {
        match self.place.as_ref()? {
            Place::Bytes(_, block) => block.get().filter(|b| b.is_hosts()).map(Block::at),
            Place::Given { host, .. } => *host,
            Place::Image(_) => None,
        }
    }
}
impl Drop for Storage {
    /// Commands that were enqueued before may use it still.
    fn drop(&mut self) {
        match self.place.take() {
            Some(place @ (Place::Given { .. } | Place::Image(_))) => {
                deferred_free::leave::<Memory>(self.context.as_handle().addr(), place);
            }
            block => drop(block), // it waits for these commands by itself
        }
    }
}
