//! The memory of memory objects. A buffer has one address that every device of the context can access: memory
//! of the device that uses it first, if all others can access that and it has memory of its own, else host
//! memory. An image is on the context's first device.
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

/// The memory of a memory object and of its sub-buffers.
#[derive(Debug)]
pub struct Storage {
    context: Owned<Context>,
    /// `None` only during drop.
    place: Option<Place>,
}
/// Where the contents are.
#[derive(Debug)]
pub(super) enum Place {
    /// A buffer of this many bytes; allocated when a command first needs it.
    Bytes(usize, OnceLock<Block>),
    /// Memory of the application.
    Given {
        /// Its address for devices.
        at: u64,
        /// Its address for the host.
        host: Option<UsmPtr>,
        /// Dropped with the memory object, if ownership was transferred to it.
        _piece: Option<Piece>,
    },
    /// An image.
    Image(Arc<Pixels>),
}
/// An allocation like one of USM.
type Block = ur_core::over_driver::block::Block<LevelZero>;
/// Whether each device of a context can access the memory of all others.
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
    /// A buffer without contents; allocated at first use.
    pub(super) fn bytes(context: Owned<Context>, bytes: usize) -> Self {
        Self { context, place: Some(Place::Bytes(bytes, OnceLock::new())) }
    }
    /// A buffer in host memory.
    ///
    /// # Errors
    /// As for USM allocations.
    pub(super) fn pinned(context: Owned<Context>, bytes: usize) -> Result<Self> {
        let block = Block::new(&context, None, bytes)?;
        Ok(Self { context, place: Some(Place::Bytes(bytes, OnceLock::from(block))) })
    }
    /// Memory that the application allocated; with `piece` the object owns it.
    pub(super) fn given(
        context: Owned<Context>,
        at: u64,
        host: Option<UsmPtr>,
        _piece: Option<Piece>,
    ) -> Self {
        Self { context, place: Some(Place::Given { at, host, _piece }) }
    }
    /// An image.
    pub(super) fn image(context: Owned<Context>, image: Arc<Pixels>) -> Self {
        Self { context, place: Some(Place::Image(image)) }
    }
    /// The device of the context that `device` is, or is a sub-device of.
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
    /// The address for commands on `device`.
    ///
    /// # Errors
    /// `INVALID_CONTEXT` for a device of another context; `INVALID_MEM_OBJECT` for an image; else the
    /// driver's error.
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
                // If another thread was faster, this one is dropped unused.
                Ok(block.get_or_init(|| fresh).at().addr() as u64)
            }
            Some(Place::Image(_)) | None => Err(ErrorCode::InvalidMemObject.into()),
        }
    }
    /// The image, for commands on `device`.
    ///
    /// # Errors
    /// `INVALID_CONTEXT` for a device of another context; `UNSUPPORTED_FEATURE` for one that cannot access
    /// the image's device; `INVALID_MEM_OBJECT` for a buffer.
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
    /// Frees the memory when the commands enqueued so far are complete.
    fn drop(&mut self) {
        match self.place.take() {
            Some(place @ (Place::Given { .. } | Place::Image(_))) => {
                deferred_free::leave::<Memory>(self.context.as_handle().addr(), place);
            }
            block => drop(block), // blocks are freed deferred by themselves
        }
    }
}
