//! The memory of memory objects. A buffer is the caller's memory, or memory of the pools that serve USM; an image is an
//! object of the driver. Where that is depends on what the devices of the context access ([`Placement`]):
//!
//! - At one address, or as one image, for all devices.
//! - As a copy on each device, made at its first use there. `queue/newest.rs` brings the newest contents to the device
//!   that a command runs on.
use super::{
    block::Block,
    usm_pool::{Context, Device, HasUsm},
};
use crate::memory::{deferred_free, newest::Newest};
use std::sync::{Arc, Mutex, OnceLock};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Owned,
};
use ur_hal::{Access, ImageDesc, MakesBuffers, MakesImages, Placement, Range, Types};
use ur_lock::{get_or_try, locked};
use ur_sys::ur_mem_flags_t;

/// A driver that provides memory for buffers and images.
pub trait HasStorage: HasUsm + MakesBuffers + MakesImages {}
impl<D: HasUsm + MakesBuffers + MakesImages> HasStorage for D {}
/// What a command finds.
#[derive(Debug)]
pub enum Found<'s, D: HasStorage> {
    /// A buffer's first byte.
    At(UsmPtr),
    /// An image.
    Pixels(&'s Arc<<D as Types>::Image>),
}

/// The memory of a memory object and of its sub-buffers. Dropping it is a deferred free.
#[derive(Debug)]
pub struct Storage<D: HasStorage> {
    context: Owned<Context<D>>,
    /// Its size in bytes; of an image, that of its pixels in host memory.
    bytes: usize,
    /// `None` only during drop.
    copies: Option<Copies<D>>,
    /// The driver's object for the whole buffer, which is made when it is asked for, or what frees adopted memory.
    object: OnceLock<D::Buffer>,
}
#[derive(Debug)]
pub(crate) enum Copies<D: HasStorage> {
    /// One for all devices.
    One(Copy<D>),
    /// One for each device of the context, in its order.
    Each {
        /// What each is, if it is an image.
        image: Option<ImageDesc>,
        all: Box<[OnceLock<Copy<D>>]>,
        state: Mutex<Newest<<D as Types>::Point>>,
    },
}
#[derive(Debug)]
pub(crate) struct Copy<D: HasStorage> {
    /// Its address for devices; `None` for an image that has none.
    pub(crate) at: Option<UsmPtr>,
    /// Its address for the host, if the host can access it.
    host: Option<UsmPtr>,
    pub(crate) pixels: Option<Arc<<D as Types>::Image>>,
    keep: Keep<D>,
}
/// Keeps a copy's memory.
#[derive(Debug)]
enum Keep<D: HasStorage> {
    /// The caller, the image itself, or the storage's `object`.
    Nothing,
    Block {
        _block: Block<D>,
    },
    /// Memory of the caller's, which devices use in place.
    Pinned {
        _pinned: D::Pinned,
    },
}
impl<D: HasStorage> Copy<D> {
    fn image(image: <D as Types>::Image) -> Self {
        Self { at: None, host: None, pixels: Some(Arc::new(image)), keep: Keep::Nothing }
    }
    /// Memory at an address for devices, and for the host if the host can access it.
    fn at(at: UsmPtr, host: Option<UsmPtr>, keep: Keep<D>) -> Self {
        Self { at: Some(at), host, pixels: None, keep }
    }
    fn block(block: Block<D>) -> Self {
        let at = block.at();
        Self::at(at, block.is_hosts().then_some(at), Keep::Block { _block: block })
    }
    fn found(&self) -> Result<Found<'_, D>> {
        match (&self.pixels, self.at) {
            (Some(pixels), _) => Ok(Found::Pixels(pixels)),
            (None, Some(at)) => Ok(Found::At(at)),
            (None, None) => Err(ErrorCode::InvalidMemObject.into()),
        }
    }
}

impl<D: HasStorage> Storage<D> {
    fn new(context: Owned<Context<D>>, bytes: usize, copies: Copies<D>) -> Self {
        Self { context, bytes, copies: Some(copies), object: OnceLock::new() }
    }
    fn each(context: Owned<Context<D>>, bytes: usize, image: Option<ImageDesc>) -> Self {
        let count = context.devices().len();
        let all = (0..count).map(|_| OnceLock::new()).collect();
        let state = Mutex::new(Newest::new(bytes, count));
        Self::new(context, bytes, Copies::Each { image, all, state })
    }
    /// A buffer over memory of the application, and the driver's object for it or what frees it.
    pub(super) fn adopted(
        context: Owned<Context<D>>,
        (at, bytes): (UsmPtr, usize),
        host: Option<UsmPtr>,
        object: Option<D::Buffer>,
    ) -> Self {
        let mut made = Self::new(context, bytes, Copies::One(Copy::at(at, host, Keep::Nothing)));
        made.object = object.map_or_else(OnceLock::new, OnceLock::from);
        made
    }
    /// An image of the driver's on the context's first device.
    pub(super) fn of_image(
        context: Owned<Context<D>>,
        pixels: <D as Types>::Image,
        (image, bytes): (ImageDesc, usize),
    ) -> Self {
        if D::PLACEMENT != Placement::Each {
            return Self::new(context, bytes, Copies::One(Copy::image(pixels)));
        }
        let made = Self::each(context, bytes, Some(image));
        if let Some(Copies::Each { all, .. }) = &made.copies {
            let _ = all[0].set(Copy::image(pixels)); // it was created empty above
        }
        made.written_first();
        made
    }
    /// A new buffer of `bytes`; those at `host`, if it is given, are its initial contents. The second value is the
    /// caller's memory that it represents, if devices cannot access that memory directly.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES`, `OUT_OF_HOST_MEMORY`. Returns the driver's error, mapped as in `error.rs`.
    pub(super) fn buffer(
        context: Owned<Context<D>>,
        flags: ur_mem_flags_t,
        bytes: usize,
        host: Option<UsmPtr>,
    ) -> Result<(Self, Option<UsmPtr>)> {
        use ur_mem_flags_t as F;
        let stays = host.filter(|_| flags.contains(F::USE_HOST_POINTER));
        if let Some(at) = stays.filter(|_| D::USES_HOST_MEMORY) {
            let read_only = flags.contains(F::READ_ONLY);
            let access = if read_only { Access::Read } else { Access::ReadWrite };
            // If the driver refuses this memory, the buffer has memory of its own.
            if let Ok(_pinned) = D::pin(context.driver(), Range::new(at.into(), bytes)?, access) {
                let copy = Copy::at(at, stays, Keep::Pinned { _pinned });
                return Ok((Self::new(context, bytes, Copies::One(copy)), None));
            }
        }
        deferred_free::sweep::<D::Memory>();
        let placement = match flags.contains(F::ALLOC_HOST_POINTER) {
            true => Placement::Host,
            false => D::placement(context.driver())?,
        };
        let lack = |error: Error| match error.code() {
            ErrorCode::OutOfDeviceMemory => error.with_code(ErrorCode::OutOfResources),
            _ => error,
        };
        let (made, at) = match placement {
            Placement::Each => {
                let made = Self::each(context, bytes, None);
                // Allocated now, so that a lack of memory is reported now.
                let Found::At(at) = made.first().map_err(lack)? else {
                    return Err(ErrorCode::InvalidMemObject.into());
                };
                (made, at)
            }
            placement => {
                let first = (placement == Placement::First).then(|| &context.devices()[0]);
                let block = Block::new(&context, first, bytes).map_err(lack)?;
                let at = block.at();
                (Self::new(context, bytes, Copies::One(Copy::block(block))), at)
            }
        };
        if let Some(host) = host {
            D::copy(made.context.driver(), at.into(), host.into(), bytes)?;
            made.written_first();
        }
        Ok((made, stays))
    }
    /// The memory of a new image, which has `bytes` in host memory, without contents.
    ///
    /// # Errors
    /// As for [`make_image`].
    pub(super) fn image(
        context: Owned<Context<D>>,
        flags: ur_mem_flags_t,
        (image, bytes): (ImageDesc, usize),
        host: Option<UsmPtr>,
    ) -> Result<Self> {
        match D::PLACEMENT {
            Placement::Host => {
                let (mut made, _) = Self::buffer(context, flags, bytes, host)?;
                if let Some(Copies::One(copy)) = &mut made.copies {
                    let pixels = make_image(&made.context, 0, copy.at, &image)?;
                    copy.pixels = Some(Arc::new(pixels));
                }
                Ok(made)
            }
            Placement::First => {
                let pixels = make_image(&context, 0, None, &image)?;
                Ok(Self::of_image(context, pixels, (image, bytes)))
            }
            Placement::Each => {
                let made = Self::each(context, bytes, Some(image));
                made.first()?;
                Ok(made)
            }
        }
    }
    /// The context whose devices access it.
    pub fn context(&self) -> &Owned<Context<D>> {
        &self.context
    }
    /// Its size in bytes; of an image, that of its pixels in host memory.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Its copies; `None` only during drop.
    pub(crate) fn copies(&self) -> Option<&Copies<D>> {
        self.copies.as_ref()
    }
    /// Its address for the host; `None` if the host cannot access it.
    pub fn host(&self) -> Option<UsmPtr> {
        match &self.copies {
            Some(Copies::One(copy)) => copy.host,
            Some(Copies::Each { .. }) | None => None,
        }
    }
    /// The driver's object for the whole buffer, which is at this address.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn object(&self, at: UsmPtr) -> Result<&D::Buffer> {
        let memory = Range::new(at.into(), self.bytes)?;
        Ok(get_or_try(&self.object, || D::buffer(self.context.driver(), memory))?)
    }
    /// The device's copy, and its index. Contents may be out of date there.
    pub(crate) fn on(&self, device: &Owned<Device<D>>) -> Result<(&Copy<D>, usize)> {
        let index = self.index(device)?;
        match &self.copies {
            Some(Copies::One(copy)) => Ok((copy, index)),
            Some(Copies::Each { image, all, .. }) => {
                let device = &self.context.devices()[index];
                let fresh = || match image {
                    None => Block::new(&self.context, Some(device), self.bytes).map(Copy::block),
                    Some(image) => make_image(&self.context, index, None, image).map(Copy::image),
                };
                Ok((get_or_try(&all[index], fresh)?, index))
            }
            None => Err(ErrorCode::InvalidMemObject.into()),
        }
    }
    /// What is on the context's first device.
    ///
    /// # Errors
    /// As for [`found`](Self::found).
    pub(crate) fn first(&self) -> Result<Found<'_, D>> {
        self.on(&self.context.devices()[0])?.0.found()
    }
    /// The place in the context of a device, or of the device of which it is a part.
    pub(crate) fn index(&self, device: &Owned<Device<D>>) -> Result<usize> {
        let mut above = Some(device);
        while let Some(one) = above {
            let all = self.context.driver_devices();
            if let Some(index) = all.iter().position(|known| known == one.driver()) {
                return Ok(index);
            }
            above = one.parent();
        }
        let why = "the memory object belongs to a context without this device";
        Err(Error::new(ErrorCode::InvalidContext, why))
    }
    /// What a command on `device` uses; its contents may be out of date there until the newest are brought there.
    ///
    /// # Errors
    /// `INVALID_CONTEXT` for a device of another context; `UNSUPPORTED_FEATURE` for an image that the device does not
    /// reach. Returns the driver's error, mapped as in `error.rs`.
    pub fn found(&self, device: &Owned<Device<D>>) -> Result<Found<'_, D>> {
        let (copy, index) = self.on(device)?;
        let found = copy.found()?;
        if D::PLACEMENT == Placement::First && index > 0 && matches!(found, Found::Pixels(_)) {
            let devices = self.context.driver_devices();
            let reaches = D::reaches_images(&devices[index], &devices[0])?;
            Error::unless(
                reaches,
                ErrorCode::UnsupportedFeature,
                || "the image lies on the first device of its context, which this one does not reach: make a context for each device",
            )?;
        }
        Ok(found)
    }
    /// Records that the first device has the newest contents.
    pub(crate) fn written_first(&self) {
        if let Some(Copies::Each { state, .. }) = &self.copies {
            locked(state).write(0..self.bytes, 0, None, true);
        }
    }
}
/// Makes an image of the driver's on the device with this index.
///
/// # Errors
/// `INVALID_IMAGE_SIZE` for sizes that the driver does not support; `OUT_OF_RESOURCES`. Returns the driver's error, mapped
/// as in `error.rs`.
fn make_image<D: HasStorage>(
    context: &Context<D>,
    index: usize,
    memory: Option<UsmPtr>,
    image: &ImageDesc,
) -> Result<<D as Types>::Image> {
    let device = &context.driver_devices()[index];
    let made = D::image(context.driver(), device, memory.map(Into::into), image);
    made.map_err(Error::from).map_err(|error| match error.code() {
        ErrorCode::InvalidValue | ErrorCode::InvalidSize => Error::new(
            ErrorCode::InvalidImageSize,
            format!("the device has no images of {:?} pixels: {error}", image.sides),
        ),
        ErrorCode::OutOfDeviceMemory => error.with_code(ErrorCode::OutOfResources),
        _ => error,
    })
}
impl<D: HasStorage> Drop for Storage<D> {
    /// Frees the memory when the commands submitted so far are complete.
    fn drop(&mut self) {
        let (object, copies) = (self.object.take(), self.copies.take());
        let is_block =
            |copy: &Copy<D>| copy.pixels.is_none() && matches!(copy.keep, Keep::Block { .. });
        let is_blocks = object.is_none()
            && match &copies {
                Some(Copies::One(copy)) => is_block(copy),
                Some(Copies::Each { all, .. }) => all.iter().flat_map(OnceLock::get).all(is_block),
                None => true,
            };
        // Blocks alone are freed deferred by themselves.
        if !is_blocks {
            let context = self.context.as_handle().addr();
            deferred_free::leave::<D::Memory>(context, (object, copies));
        }
    }
}
