//! Memory objects. A buffer is memory at an address that the devices and the host reach, an image the driver's.
use super::{
    Context, OpenCl,
    cl::*,
    driver::RawMem,
    native::{
        image,
        memory::{Reach, buffer_over, buffer_part},
        own::{Own, Tells},
    },
};
use std::convert::Infallible;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Object, Owned},
};
use ur_core::{
    memory::image_layout::Image,
    over_driver::{
        mem::{self, BufferBackend, Found, HasStorage, ImagePlace, Lent, Storage},
        usm_pool::check_size,
    },
};
use ur_hal::Access;
use ur_sys::*;

/// What `ur_mem_handle_t` points at.
pub type Mem = mem::Mem<OpenCl>;

/// An image, as the driver has it.
#[derive(Debug)]
pub struct Pixels {
    pub(super) object: Own<RawMem>,
    /// Which sides it has.
    pub(super) kind: ur_mem_type_t,
}
impl HasStorage for OpenCl {
    type Kept = Infallible;
    type Object = Own<RawMem>;
    fn lend(context: &Owned<Context>, _: UsmPtr, _: usize, _: Access) -> Lent<Infallible> {
        match context.driver().reach() {
            Reach::System => Lent::At(None),
            _ => Lent::Copied,
        }
    }
    fn image(
        context: &Owned<Context>,
        _: ImagePlace<'_, Self>,
        _: ur_mem_flags_t,
        image: &Image,
    ) -> Result<Pixels> {
        let made = image::create(context.raw(), wished(image));
        let object = made.map_err(|error| match error.code() {
            ErrorCode::InvalidValue | ErrorCode::InvalidImageFormatDescriptor => {
                error.with_code(ErrorCode::InvalidImageSize)
            }
            ErrorCode::UnsupportedFeature => error.with_code(ErrorCode::UnsupportedImageFormat),
            _ => error,
        })?;
        Ok(Pixels { object, kind: image.kind() })
    }
}
impl BufferBackend for OpenCl {
    /// A buffer that stands for memory of the host's: of any other the bytes have no address that is known.
    fn adopted(
        context: Owned<Context>,
        native: ur_native_handle_t,
        given: bool,
    ) -> Result<Owned<Mem>> {
        let (raw, kind) = known(&context, native)?;
        let host = host(raw)?;
        let uses = raw.number(CL_MEM_FLAGS)? & CL_MEM_USE_HOST_PTR != 0;
        let Some(at) = host.filter(|_| uses && kind == CL_MEM_OBJECT_BUFFER) else {
            let why = "only buffers over memory of the host's (CL_MEM_USE_HOST_PTR) can be adopted";
            return Err(Error::new(ErrorCode::InvalidMemObject, why));
        };
        let bytes = raw.number(CL_MEM_SIZE)? as usize;
        let object = Own::adopted(raw, given)?;
        let storage = Storage::given(context, (at, bytes), Some(at), None);
        storage.object(|| Ok(object))?;
        Ok(Mem::of_bytes(storage))
    }
    fn check_object_size(context: &Context, bytes: usize, code: ErrorCode) -> Result<()> {
        check_size::<OpenCl>(&context.devices()[0], bytes, code)
    }
    fn pixel_bytes(format: ur_image_format_t) -> Result<usize> {
        pixel_bytes(format)
    }
    fn adopted_image(
        context: Owned<Context>,
        native: ur_native_handle_t,
        said: impl FnOnce() -> Result<Image>,
        given: bool,
    ) -> Result<Owned<Mem>> {
        let (raw, kind) = known(&context, native)?;
        let image = said()?;
        if wished(&image).1.kind != kind {
            let why = "the native image is of another kind";
            return Err(Error::new(ErrorCode::InvalidMemObject, why));
        }
        let pixels = Pixels { object: Own::adopted(raw, given)?, kind: image.kind() };
        Mem::of_image(context, pixels, image)
    }
    /// The driver's object, over the bytes if it is a buffer.
    fn native_mem(mem: &Object<Mem>, found: Found<'_, Self>) -> Result<ur_native_handle_t> {
        let raw = match found {
            Found::Pixels(pixels) => pixels.object.raw(),
            Found::At(base) => {
                let object = mem.object(
                    || buffer_over(mem.context().raw(), base.into(), mem.storage().bytes()),
                    |whole| buffer_part(whole.raw(), mem.origin(), mem.bytes()),
                )?;
                object.raw()
            }
        };
        Ok(raw.addr() as ur_native_handle_t)
    }
}
/// Where a buffer is in the host's memory. Of a part Intel's runtime tells another place, so that the whole is asked for it.
fn host(raw: RawMem) -> Result<Option<UsmPtr>> {
    let at = |of: RawMem| Ok(UsmPtr::from_addr(of.number(CL_MEM_HOST_PTR)? as usize));
    match RawMem::from_addr(raw.number(CL_MEM_ASSOCIATED_MEMOBJECT)? as usize) {
        Some(whole) => {
            let offset = raw.number(CL_MEM_OFFSET)? as usize;
            at(whole)?.map(|at| at.offset(offset)).transpose()
        }
        None => at(raw),
    }
}
/// A memory object that C made in this context, and its kind.
fn known(context: &Context, native: ur_native_handle_t) -> Result<(RawMem, u32)> {
    let none = || Error::new(ErrorCode::InvalidMemObject, "the native memory object is null");
    let raw = RawMem::from_addr(native).ok_or_else(none)?;
    raw.check_context(CL_MEM_CONTEXT, context.raw(), ErrorCode::InvalidContext)?;
    Ok((raw, raw.number(CL_MEM_TYPE)? as u32))
}
/// Where pixels are in memory, as OpenCL takes it: of a 1D array each row is a layer, and of an image with one slice
/// there is nothing from slice to slice.
pub(super) fn pitches(
    kind: ur_mem_type_t,
    at: usize,
    [row, slice]: [usize; 2],
) -> (usize, [usize; 2]) {
    use ur_mem_type_t as T;
    (
        at,
        match kind {
            T::IMAGE1D | T::IMAGE2D => [row, 0],
            T::IMAGE1D_ARRAY => [slice, slice],
            _ => [row, slice],
        },
    )
}
/// An image as OpenCL is asked for it: its channel order and type, and what it is like.
fn wished(image: &Image) -> ([cl_uint; 2], cl_image_desc) {
    use ur_mem_type_t as T;
    let [width, second, third] = image.sides();
    let (kind, [width, height, depth], array_size) = match image.kind() {
        T::IMAGE1D_ARRAY => (CL_MEM_OBJECT_IMAGE1D_ARRAY, [width, 0, 0], second),
        T::IMAGE2D => (CL_MEM_OBJECT_IMAGE2D, [width, second, 0], 0),
        T::IMAGE2D_ARRAY => (CL_MEM_OBJECT_IMAGE2D_ARRAY, [width, second, 0], third),
        T::IMAGE3D => (CL_MEM_OBJECT_IMAGE3D, [width, second, third], 0),
        _ => (CL_MEM_OBJECT_IMAGE1D, [width, 0, 0], 0),
    };
    let ur_image_format_t { channelOrder, channelType } = image.format();
    let order = ORDERS.iter().find(|(order, ..)| *order == channelOrder);
    let channel = CHANNELS.iter().find(|(channel, ..)| *channel == channelType);
    let format = [order.map_or(0, |one| one.1), channel.map_or(0, |one| one.1)];
    (format, cl_image_desc { kind, width, height, depth, array_size, ..Default::default() })
}
type Order = ur_image_channel_order_t;
/// UR's orders of channels: OpenCL's, and how many channels there are.
const ORDERS: [(Order, cl_uint, usize); 12] = [
    (Order::A, 0x10B1, 1),
    (Order::R, 0x10B0, 1),
    (Order::RG, 0x10B2, 2),
    (Order::RA, 0x10B3, 2),
    (Order::RGB, 0x10B4, 3),
    (Order::RGBA, 0x10B5, 4),
    (Order::BGRA, 0x10B6, 4),
    (Order::ARGB, 0x10B7, 4),
    (Order::INTENSITY, 0x10B8, 1),
    (Order::LUMINANCE, 0x10B9, 1),
    (Order::RX, 0x10BA, 1),
    (Order::SRGBA, 0x10C1, 4),
];
type Channel = ur_image_channel_type_t;
/// UR's types of channels: OpenCL's, and their bytes.
const CHANNELS: [(Channel, cl_uint, usize); 12] = [
    (Channel::SNORM_INT8, 0x10D0, 1),
    (Channel::SNORM_INT16, 0x10D1, 2),
    (Channel::UNORM_INT8, 0x10D2, 1),
    (Channel::UNORM_INT16, 0x10D3, 2),
    (Channel::SIGNED_INT8, 0x10D7, 1),
    (Channel::SIGNED_INT16, 0x10D8, 2),
    (Channel::SIGNED_INT32, 0x10D9, 4),
    (Channel::UNSIGNED_INT8, 0x10DA, 1),
    (Channel::UNSIGNED_INT16, 0x10DB, 2),
    (Channel::UNSIGNED_INT32, 0x10DC, 4),
    (Channel::HALF_FLOAT, 0x10DD, 2),
    (Channel::FLOAT, 0x10DE, 4),
];
/// How many bytes a pixel has.
///
/// # Errors
/// `UNSUPPORTED_IMAGE_FORMAT` for what OpenCL has no name for.
fn pixel_bytes(format: ur_image_format_t) -> Result<usize> {
    let order = ORDERS.iter().find(|(order, ..)| *order == format.channelOrder);
    let channel = CHANNELS.iter().find(|(channel, ..)| *channel == format.channelType);
    order.zip(channel).map(|(order, channel)| order.2 * channel.2).ok_or_else(|| {
        let (order, channel) = (format.channelOrder, format.channelType);
        let why = format!("OpenCL has no images with channels {order:?} of type {channel:?}");
        Error::new(ErrorCode::UnsupportedImageFormat, why)
    })
}
