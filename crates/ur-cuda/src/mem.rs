//! Memory objects of this backend: each device has its own array or allocation.
//!
//! Native handles: of a buffer its address on the device, of an image the driver's array.
use super::{
    Context, Family,
    driver::Dialect,
    image::{self, Pixels},
    native::memory::{self, Piece, Registered},
};
use std::convert::Infallible;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::Owned,
};
use ur_core::{
    memory::image_layout::Image,
    over_driver::mem::{self, BufferBackend, HasStorage, ImagePlace, Lent, Placement, Storage},
};
use ur_hal::Access;
use ur_sys::{ur_image_format_t, ur_mem_flags_t, ur_native_handle_t};

/// What `ur_mem_handle_t` points at.
pub type Mem<D> = mem::Mem<Family<D>>;

/// Memory that the driver keeps as long as this exists.
#[derive(Debug)]
pub enum Kept<D: Dialect> {
    /// The application's host memory is registered.
    Registered(Registered<D>),
    /// The application has given its memory away.
    Given(Piece<D>),
}
impl<D: Dialect> HasStorage for Family<D> {
    const IMAGES: Placement = Placement::Each;
    type Kept = Kept<D>;
    type Object = Infallible;
    fn placement(_: &Context<D>) -> Result<Placement> {
        Ok(Placement::Each)
    }
    fn lend(
        context: &Owned<Context<D>>,
        at: UsmPtr,
        bytes: usize,
        access: Access,
    ) -> Lent<Kept<D>> {
        let (device, read_only) = (&context.devices()[0], access == Access::Read);
        match Registered::new(device, at.addr() as u64, bytes, read_only) {
            Ok(registered) => Lent::At(Some(Kept::Registered(registered))),
            Err(_) => Lent::Copied, // the driver refuses some memory
        }
    }
    fn image(
        context: &Owned<Context<D>>,
        place: ImagePlace<'_, Self>,
        _: ur_mem_flags_t,
        image: &Image,
    ) -> Result<Pixels<D>> {
        let device = match place {
            ImagePlace::On(device) => device,
            ImagePlace::At(_) => &context.devices()[0],
        };
        image::create(device, image)
    }
}
impl<D: Dialect> BufferBackend for Family<D> {
    /// Wraps existing memory: from `native` to the end of the allocation there.
    fn adopted(
        context: Owned<Context<D>>,
        native: ur_native_handle_t,
        given: bool,
    ) -> Result<Owned<Mem<D>>> {
        let home = &context.devices()[0];
        let unknown = || {
            let why = format!("{native:#x} is no memory that {} knows", D::NAME);
            Error::new(ErrorCode::InvalidMemObject, why)
        };
        let at = UsmPtr::from_addr(native).ok_or_else(unknown)?;
        let known = memory::known::<D>(&home.enter()?, native as u64)?.ok_or_else(unknown)?;
        let bytes = mem::bytes_from::<Self>(at, (known.base, known.bytes));
        let piece = given.then(|| Piece::adopted(home, native as u64)).transpose()?;
        let kept = piece.map(Kept::Given);
        Ok(Mem::of_bytes(Storage::given(context, (at, bytes), None, kept)))
    }
    fn pixel_bytes(format: ur_image_format_t) -> Result<usize> {
        image::check_support::<D>()?;
        let (_, channels, bytes) = image::elements(format)?;
        Ok(channels as usize * bytes)
    }
    fn adopted_image(
        context: Owned<Context<D>>,
        native: ur_native_handle_t,
        said: impl FnOnce() -> Result<Image>,
        given: bool,
    ) -> Result<Owned<Mem<D>>> {
        let image = said()?;
        let pixels = image::adopt(&context.devices()[0], native, &image, given)?;
        Mem::of_image(context, pixels, image)
    }
    fn native_image(image: &Pixels<D>) -> Result<ur_native_handle_t> {
        Ok(image.array().raw().addr())
    }
}
