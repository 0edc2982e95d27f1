//! Memory objects: host memory of the adapter or of the application, at a fixed address. Images are in
//! `image.rs`; the core implements the commands.
use super::{
    Context, Cpu,
    image::{self, Pixels},
};
use std::convert::Infallible;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Object, Owned},
};
use ur_core::memory::image_layout::Image;
use ur_core::over_driver::{
    mem::{self, BufferBackend, Found, HasStorage, ImagePlace, Placement},
    own_handle,
    usm_pool::check_size,
};
use ur_sys::{ur_image_format_t, ur_mem_flags_t, ur_native_handle_t};

/// What `ur_mem_handle_t` points at.
pub type Mem = mem::Mem<Cpu>;

/// The memory object of a native handle, which is the object's own handle.
fn of_native(context: &Owned<Context>, native: ur_native_handle_t) -> Result<Owned<Mem>> {
    let mem = own_handle::find::<Mem>(native)?;
    own_handle::check_context(mem.context(), context)?;
    Ok(mem)
}

impl HasStorage for Cpu {
    const IMAGES: Placement = Placement::Host;
    type Kept = Infallible;
    type Object = Infallible;
    fn image(
        _: &Owned<Context>,
        place: ImagePlace<'_, Self>,
        _: ur_mem_flags_t,
        image: &Image,
    ) -> Result<Pixels> {
        match place {
            ImagePlace::At(base) => Ok(Pixels::new(base, image)),
            ImagePlace::On(_) => Error::unsupported("images that are not in host memory"),
        }
    }
}
impl BufferBackend for Cpu {
    fn adopted(
        context: Owned<Context>,
        native: ur_native_handle_t,
        _given: bool,
    ) -> Result<Owned<Mem>> {
        let mem = of_native(&context, native)?;
        mem.check_buffer()?;
        Ok(mem)
    }
    fn check_object_size(context: &Context, bytes: usize, code: ErrorCode) -> Result<()> {
        let device = context.devices()[0].driver();
        check_size::<Cpu>(device, bytes, code)
    }
    const LONGEST_SIDE: usize = image::LONGEST_SIDE;
    fn pixel_bytes(format: ur_image_format_t) -> Result<usize> {
        image::pixel_bytes(format)
    }
    fn image_bytes(image: &Image) -> Option<usize> {
        image::bytes(image)
    }
    fn adopted_image(
        context: Owned<Context>,
        native: ur_native_handle_t,
        _said: impl FnOnce() -> Result<Image>,
        _given: bool,
    ) -> Result<Owned<Mem>> {
        let mem = of_native(&context, native)?;
        mem.image()?;
        Ok(mem)
    }
    fn native_mem(mem: &Object<Mem>, _: Found<'_, Self>) -> Result<ur_native_handle_t> {
        own_handle::of(mem)
    }
}
