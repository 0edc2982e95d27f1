//! Memory objects of this backend: an address that all devices of a context can access, or an image.
//!
//! Native handles: of a buffer its address on the device, of an image the driver's handle.
use super::{
    Context, DriverDevice, LevelZero,
    driver::RawImage,
    image::{self, Pixels},
    native::{
        image::NativeImage,
        memory::{self, Piece},
    },
    p2p,
};
use std::{convert::Infallible, sync::Arc};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Owned,
};
use ur_core::{
    memory::image_layout::Image,
    over_driver::mem::{
        BufferBackend, HasStorage, ImagePlace, Lent, Placement, Storage, bytes_from,
    },
};
use ur_hal::Access;
use ur_sys::{ur_image_format_t, ur_mem_flags_t, ur_native_handle_t};
use ze_sys::ZE_MEMORY_TYPE_DEVICE;

/// What `ur_mem_handle_t` points at.
pub type Mem = ur_core::over_driver::mem::Mem<LevelZero>;

/// Whether each device of a context can access the memory of all others.
fn is_in_reach(context: &Context) -> Result<bool> {
    let devices = context.devices();
    let mut pairs = devices.iter().flat_map(|home| devices.iter().map(move |one| (one, home)));
    pairs.try_fold(true, |all, (one, home)| Ok(all && p2p::can_access(one, home)?))
}
impl HasStorage for LevelZero {
    type Kept = Piece;
    type Object = Infallible;
    /// Memory of the first device, if all others access that and it has memory of its own, else host memory.
    fn placement(context: &Context) -> Result<Placement> {
        let on_device = !context.devices()[0].is_integrated() && is_in_reach(context)?;
        Ok(if on_device { Placement::First } else { Placement::Host })
    }
    /// The driver has no way to use it.
    fn lend(_: &Owned<Context>, _: UsmPtr, _: usize, _: Access) -> Lent<Piece> {
        Lent::Copied
    }
    fn image(
        context: &Owned<Context>,
        _: ImagePlace<'_, Self>,
        flags: ur_mem_flags_t,
        image: &Image,
    ) -> Result<Pixels> {
        image::create(context, flags, image)
    }
    fn check_image_reach(device: &Arc<DriverDevice>, first: &Arc<DriverDevice>) -> Result<()> {
        let why = "the image lies on the first device of its context, which this one does not reach: make a context for each device";
        Error::unless(p2p::can_access(device, first)?, ErrorCode::UnsupportedFeature, || why)
    }
}
impl BufferBackend for LevelZero {
    /// Wraps existing memory: from `native` to the end of the allocation there.
    fn adopted(
        context: Owned<Context>,
        native: ur_native_handle_t,
        given: bool,
    ) -> Result<Owned<Mem>> {
        let unknown = || {
            let why = format!("{native:#x} is no memory that Level Zero knows");
            Error::new(ErrorCode::InvalidMemObject, why)
        };
        let at = UsmPtr::from_addr(native).ok_or_else(unknown)?;
        let known = memory::known(context.native(), native as u64)?.ok_or_else(unknown)?;
        let bytes = bytes_from::<Self>(at, (known.base, known.bytes));
        let host = Some(at).filter(|_| known.kind != ZE_MEMORY_TYPE_DEVICE);
        let piece = given.then(|| Piece::adopted(context.native(), native as u64));
        Ok(Mem::of_bytes(Storage::given(context, (at, bytes), host, piece)))
    }
    fn pixel_bytes(format: ur_image_format_t) -> Result<usize> {
        let (_, channels, bytes) = image::elements(format)?;
        Ok(channels * bytes)
    }
    /// The description cannot be verified, because the driver has no query for it.
    fn adopted_image(
        context: Owned<Context>,
        native: ur_native_handle_t,
        said: impl FnOnce() -> Result<Image>,
        given: bool,
    ) -> Result<Owned<Mem>> {
        let image = said()?;
        let none = || Error::new(ErrorCode::InvalidMemObject, "0 is no image");
        let raw = RawImage::from_addr(native).ok_or_else(none)?;
        let made = NativeImage::adopted(raw, given, context.native().clone());
        Mem::of_image(context, Pixels::new(made, &image), image)
    }
    fn native_image(image: &Pixels) -> Result<ur_native_handle_t> {
        Ok(image.raw().addr())
    }
}
