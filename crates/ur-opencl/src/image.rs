//! Images, which are the driver's; the driver's name of one is its native handle.
use super::{
    DriverDevice, OpenCl,
    cl::*,
    context::DriverContext,
    driver::RawMem,
    native::{image, own::Own},
};
use std::sync::Arc;
use ur_hal::{
    Address, ChannelType, Channels, Error, ErrorKind, ImageDesc, ImageKind, MakesImages,
    NativeHandle, PixelFormat, Result,
};

/// An image, as the driver has it.
#[derive(Debug)]
pub struct Pixels {
    pub(super) object: Own<RawMem>,
    /// Which sides it has.
    pub(super) kind: ImageKind,
}
impl MakesImages for OpenCl {
    fn has_images() -> bool {
        true
    }
    fn has_format(format: PixelFormat) -> bool {
        format_of(format).is_some()
    }
    fn image(
        context: &DriverContext,
        _: &Arc<DriverDevice>,
        _: Option<Address>,
        desc: &ImageDesc,
    ) -> Result<Pixels> {
        let format = format_of(desc.format).ok_or(ErrorKind::UnsupportedFormat)?;
        let made = image::create(context.raw(), (format, wished(desc)));
        let object = made.map_err(|error| match error.kind() {
            ErrorKind::Unsupported => error.with_kind(ErrorKind::UnsupportedFormat),
            _ => error,
        })?;
        Ok(Pixels { object, kind: desc.kind })
    }
}
/// Wraps an image of the application, which belongs to the result if it `is_owned`.
///
/// # Errors
/// `InvalidMemory` for an image of another kind; as for [`DriverContext::mem_object`].
pub(super) fn adopt(
    context: &DriverContext,
    handle: NativeHandle,
    desc: &ImageDesc,
    is_owned: bool,
) -> Result<Pixels> {
    let (raw, kind) = context.mem_object(handle)?;
    if wished(desc).kind != kind {
        return Err(Error::new(ErrorKind::InvalidMemory, "the native image is of another kind"));
    }
    Ok(Pixels { object: Own::adopted(raw, is_owned)?, kind: desc.kind })
}
/// Where pixels are in memory, as OpenCL takes it: of a 1D array each row is a layer, and of an image with one slice
/// there is nothing from slice to slice.
pub(super) fn pitches(kind: ImageKind, [row, slice]: [usize; 2]) -> [usize; 2] {
    match kind {
        ImageKind::D1 | ImageKind::D2 => [row, 0],
        ImageKind::D1Array => [slice, slice],
        ImageKind::D2Array | ImageKind::D3 => [row, slice],
    }
}
/// What an image is like, as OpenCL is asked for it.
fn wished(image: &ImageDesc) -> cl_image_desc {
    use ImageKind as K;
    let [width, second, third] = image.sides;
    let (kind, [width, height, depth], array_size) = match image.kind {
        K::D1 => (CL_MEM_OBJECT_IMAGE1D, [width, 0, 0], 0),
        K::D1Array => (CL_MEM_OBJECT_IMAGE1D_ARRAY, [width, 0, 0], second),
        K::D2 => (CL_MEM_OBJECT_IMAGE2D, [width, second, 0], 0),
        K::D2Array => (CL_MEM_OBJECT_IMAGE2D_ARRAY, [width, second, 0], third),
        K::D3 => (CL_MEM_OBJECT_IMAGE3D, [width, second, third], 0),
    };
    cl_image_desc { kind, width, height, depth, array_size, ..Default::default() }
}
/// OpenCL's channel order and channel type; `None` for what OpenCL has no name for.
fn format_of(format: PixelFormat) -> Option<[cl_uint; 2]> {
    use ChannelType as T;
    use Channels as C;
    let order = match format.channels {
        C::R => 0x10B0,
        C::A => 0x10B1,
        C::Rg => 0x10B2,
        C::Ra => 0x10B3,
        C::Rgb => 0x10B4,
        C::Rgba => 0x10B5,
        C::Bgra => 0x10B6,
        C::Argb => 0x10B7,
        C::Intensity => 0x10B8,
        C::Luminance => 0x10B9,
        C::Rx => 0x10BA,
        C::Srgba => 0x10C1,
        C::Abgr | C::Rgx | C::Rgbx => return None,
    };
    let channel = match format.channel_type {
        T::Snorm8 => 0x10D0,
        T::Snorm16 => 0x10D1,
        T::Unorm8 => 0x10D2,
        T::Unorm16 => 0x10D3,
        T::Sint8 => 0x10D7,
        T::Sint16 => 0x10D8,
        T::Sint32 => 0x10D9,
        T::Uint8 => 0x10DA,
        T::Uint16 => 0x10DB,
        T::Uint32 => 0x10DC,
        T::Half => 0x10DD,
        T::Float => 0x10DE,
        T::Unorm565 | T::Unorm555 | T::Unorm101010 => return None,
    };
    Some([order, channel])
}
