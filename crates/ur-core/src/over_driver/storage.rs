//! The memory of memory objects. A buffer is the caller's memory, or memory of the pools that serve USM; an image is an
//! object of the driver. Where that is depends on what the devices of the context access ([`Placement`]):
//!
//! - At one address, or as one image, for all devices.
//! - As a copy on each device, made at its first use there. `queue/newest.rs` brings the newest contents to the device
//!   that a command runs on.
use super::{
    DriverDevice,
    block::Block,
    usm_pool::{Context, Device, HasUsm},
};
use crate::memory::{deferred_free, image_layout::Image, newest::Newest};
use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Owned,
};
use ur_hal::{Access, Types};
use ur_lock::locked;
use ur_sys::ur_mem_flags_t;

/// A driver that provides memory for buffers and images.
pub trait HasStorage: HasUsm {
    /// Where images are.
    const IMAGES: Placement = Placement::First;
    /// What keeps memory that no pool of the core's provides: a registration of the caller's memory, or the ownership of
    /// memory that the caller allocated.
    type Kept: Send + Sync + fmt::Debug + 'static;
    /// The driver's object over the bytes of a buffer, or of a part of one, if native handles of buffers are not addresses.
    type Object: Send + Sync + fmt::Debug + 'static;
    /// Where buffers of a context are.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn placement(context: &Context<Self>) -> Result<Placement> {
        let _ = context;
        Ok(Placement::Host)
    }
    /// How the devices of a context use the caller's memory.
    fn lend(
        context: &Owned<Context<Self>>,
        at: UsmPtr,
        bytes: usize,
        access: Access,
    ) -> Lent<Self::Kept> {
        let _ = (context, at, bytes, access);
        Lent::At(None)
    }
    /// A new image without contents; see [`IMAGES`](Self::IMAGES).
    ///
    /// # Errors
    /// `INVALID_IMAGE_SIZE` for sizes that the driver does not support; `OUT_OF_RESOURCES`. Returns the driver's error,
    /// mapped as in `error.rs`.
    fn image(
        context: &Owned<Context<Self>>,
        place: ImagePlace<'_, Self>,
        flags: ur_mem_flags_t,
        image: &Image,
    ) -> Result<<Self as Types>::Image> {
        let _ = (context, place, flags, image);
        Error::unsupported("urMemImageCreate")
    }
    /// Checks that a device of a context accesses an image on the first one.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` if it does not. Returns the driver's error.
    fn check_image_reach(device: &DriverDevice<Self>, first: &DriverDevice<Self>) -> Result<()> {
        let _ = (device, first);
        Ok(())
    }
}
/// Where new memory objects are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// In host memory, which all devices of the context access.
    Host,
    /// On the context's first device, whose memory all others access.
    First,
    /// On each device that uses it.
    Each,
}
/// How devices use the caller's memory.
#[derive(Debug)]
pub enum Lent<K> {
    /// At the caller's address, for as long as this exists, if it is there.
    At(Option<K>),
    /// They cannot: the buffer has memory of its own, with a copy of the bytes.
    Copied,
}
/// Where a new image is to be made.
#[derive(Clone, Copy, Debug)]
pub enum ImagePlace<'a, D: HasStorage> {
    /// In host memory from this address on, if [`HasStorage::IMAGES`] is [`Placement::Host`].
    At(UsmPtr),
    /// On this device.
    On(&'a Owned<Device<D>>),
}
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
    /// The driver's object over the bytes; made when it is asked for.
    object: OnceLock<D::Object>,
}
#[derive(Debug)]
pub(crate) enum Copies<D: HasStorage> {
    /// One for all devices.
    One(Copy<D>),
    /// One for each device of the context, in its order.
    Each {
        /// What each is, if it is an image.
        image: Option<(Image, ur_mem_flags_t)>,
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
    /// The caller, or the image itself.
    Nothing,
    Block {
        _block: Block<D>,
    },
    Driver {
        _kept: D::Kept,
    },
}
impl<D: HasStorage> Copy<D> {
    fn image(image: <D as Types>::Image) -> Self {
        Self { at: None, host: None, pixels: Some(Arc::new(image)), keep: Keep::Nothing }
    }
    fn block(block: Block<D>) -> Self {
        let at = Some(block.at());
        let host = at.filter(|_| block.is_hosts());
        Self { at, host, pixels: None, keep: Keep::Block { _block: block } }
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
    fn each(
        context: Owned<Context<D>>,
        bytes: usize,
        image: Option<(Image, ur_mem_flags_t)>,
    ) -> Self {
        let count = context.devices().len();
        let all = (0..count).map(|_| OnceLock::new()).collect();
        let state = Mutex::new(Newest::new(bytes, count));
        Self::new(context, bytes, Copies::Each { image, all, state })
    }
    /// Memory of the caller's, or of the driver's, which `kept` keeps: its address for devices, and for the host if the
    /// host can access it.
    pub fn given(
        context: Owned<Context<D>>,
        (at, bytes): (UsmPtr, usize),
        host: Option<UsmPtr>,
        kept: Option<D::Kept>,
    ) -> Self {
        let keep = kept.map_or(Keep::Nothing, |_kept| Keep::Driver { _kept });
        Self::new(context, bytes, Copies::One(Copy { at: Some(at), host, pixels: None, keep }))
    }
    /// An image of the driver's on the context's first device.
    pub fn of_image(
        context: Owned<Context<D>>,
        pixels: <D as Types>::Image,
        (image, bytes): (&Image, usize),
        flags: ur_mem_flags_t,
    ) -> Self {
        if D::IMAGES != Placement::Each {
            return Self::new(context, bytes, Copies::One(Copy::image(pixels)));
        }
        let made = Self::each(context, bytes, Some((image.clone(), flags)));
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
        if let Some(at) = stays {
            let read_only = flags.contains(F::READ_ONLY);
            let access = if read_only { Access::Read } else { Access::ReadWrite };
            if let Lent::At(kept) = D::lend(&context, at, bytes, access) {
                return Ok((Self::given(context, (at, bytes), stays, kept), None));
            }
        }
        deferred_free::sweep::<D::Memory>();
        let placement = match flags.contains(F::ALLOC_HOST_POINTER) {
            true => Placement::Host,
            false => D::placement(&context)?,
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
    /// As for [`HasStorage::image`].
    pub(super) fn image(
        context: Owned<Context<D>>,
        flags: ur_mem_flags_t,
        (image, bytes): (&Image, usize),
        host: Option<UsmPtr>,
    ) -> Result<Self> {
        match D::IMAGES {
            Placement::Host => {
                let (mut made, _) = Self::buffer(context, flags, bytes, host)?;
                if let Some(Copies::One(copy)) = &mut made.copies
                    && let Some(at) = copy.at
                {
                    let pixels = D::image(&made.context, ImagePlace::At(at), flags, image)?;
                    copy.pixels = Some(Arc::new(pixels));
                }
                Ok(made)
            }
            Placement::First => {
                let first = ImagePlace::On(&context.devices()[0]);
                let pixels = D::image(&context, first, flags, image)?;
                Ok(Self::of_image(context, pixels, (image, bytes), flags))
            }
            Placement::Each => {
                let made = Self::each(context, bytes, Some((image.clone(), flags)));
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
    /// The driver's object over its bytes; `make` makes it at first.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn object(&self, make: impl FnOnce() -> Result<D::Object>) -> Result<&D::Object> {
        object(&self.object, make)
    }
    /// The device's copy, and its index. Contents may be out of date there.
    pub(crate) fn on(&self, device: &Owned<Device<D>>) -> Result<(&Copy<D>, usize)> {
        let index = self.index(device)?;
        match &self.copies {
            Some(Copies::One(copy)) => Ok((copy, index)),
            Some(Copies::Each { image, all, .. }) => {
                if let Some(copy) = all[index].get() {
                    return Ok((copy, index));
                }
                let device = &self.context.devices()[index];
                let fresh = match image {
                    None => Copy::block(Block::new(&self.context, Some(device), self.bytes)?),
                    Some((image, flags)) => {
                        let place = ImagePlace::On(device);
                        Copy::image(D::image(&self.context, place, *flags, image)?)
                    }
                };
                // If another thread was faster, this one is dropped unused.
                Ok((all[index].get_or_init(|| fresh), index))
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
        if D::IMAGES == Placement::First && index > 0 && matches!(found, Found::Pixels(_)) {
            let devices = self.context.driver_devices();
            D::check_image_reach(&devices[index], &devices[0])?;
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
/// Returns the driver's object over some bytes; `make` makes it at first.
///
/// # Errors
/// Those of `make`.
pub(super) fn object<O>(slot: &OnceLock<O>, make: impl FnOnce() -> Result<O>) -> Result<&O> {
    if let Some(made) = slot.get() {
        return Ok(made);
    }
    let fresh = make()?;
    Ok(slot.get_or_init(|| fresh)) // unless another thread was faster
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
