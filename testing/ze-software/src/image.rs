//! Images: rows of texels in memory of this process. Copies access boxes of texels; kernels access single
//! ones.
#![expect(unsafe_code, reason = "exports symbols of the driver; texels that several threads share")]
use crate::{
    context, device,
    handle::{self, Object, raw},
    inject::Answer,
    raw,
    texel::Format,
};
use std::{
    ffi::c_void,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use ze_sys::*;

/// The memory of an image.
enum Texels {
    /// Memory of its own.
    Own(Box<[AtomicU64]>),
    /// Memory of the caller, which must exist as long as the image.
    Given(usize),
    /// Another image, of which this one is a view.
    View(Arc<Image>),
}
/// An image.
pub struct Image {
    texels: Texels,
    format: Format,
    kind: ze_image_type_t,
    /// Texels in each dimension; the layers of an array are the last one.
    size: [u32; 3],
    /// Bytes from row to row.
    row: usize,
    /// Unique in this process.
    id: u64,
}
impl Object for Image {
    const TAG: u64 = 0x7a65_696d_6167_6521;
}
/// The largest number of texels in one dimension.
const WIDEST: u64 = 16384;

/// The sizes of an image with this description.
fn sizes(d: &ze_image_desc_t) -> Option<[u32; 3]> {
    let (width, layers) = (u32::try_from(d.width).ok()?, d.arraylevels.max(1));
    let size = match d.type_ {
        ZE_IMAGE_TYPE_1D | ZE_IMAGE_TYPE_BUFFER => [width, 1, 1],
        ZE_IMAGE_TYPE_1DARRAY => [width, layers, 1],
        ZE_IMAGE_TYPE_2D => [width, d.height, 1],
        ZE_IMAGE_TYPE_2DARRAY => [width, d.height, layers],
        ZE_IMAGE_TYPE_3D => [width, d.height, d.depth],
        _ => return None,
    };
    let most = if d.type_ == ZE_IMAGE_TYPE_BUFFER { 1 << 27 } else { WIDEST };
    size.iter().all(|s| *s != 0 && u64::from(*s) <= most).then_some(size)
}
fn checked(desc: *const ze_image_desc_t) -> Answer<(ze_image_desc_t, Format, [u32; 3])> {
    let d = raw::get(desc)?;
    let size = sizes(&d).ok_or(ZE_RESULT_ERROR_INVALID_SIZE)?;
    let format = Format::new(&d.format).ok_or(ZE_RESULT_ERROR_UNSUPPORTED_IMAGE_FORMAT)?;
    if d.miplevels > 1 {
        return Err(ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
    }
    Ok((d, format, size))
}
/// A new id.
fn next_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}
fn create(desc: *const ze_image_desc_t) -> Answer<Image> {
    let (d, format, size) = checked(desc)?;
    let stype = ZE_STRUCTURE_TYPE_PITCHED_IMAGE_EXP_DESC;
    let pitched = raw::find::<ze_image_pitched_exp_desc_t>(d.pNext, stype);
    let given =
        pitched.map(|p| raw::get(p.cast_const())).transpose()?.map(|p| p.ptr.expose_provenance());
    let (mut row, id) = (size[0] as usize * format.bytes(), next_id());
    let texels = match given {
        Some(0) => return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER),
        Some(at) => {
            row = row.next_multiple_of(PITCH);
            Texels::Given(at)
        }
        None => {
            let bytes = (row as u64) * u64::from(size[1]) * u64::from(size[2]);
            if bytes > 1 << 32 {
                return Err(ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
            }
            Texels::Own((0..bytes.div_ceil(8)).map(|_| AtomicU64::new(0)).collect())
        }
    };
    Ok(Image { texels, format, kind: d.type_, size, row, id })
}
fn view(desc: *const ze_image_desc_t, of: Arc<Image>) -> Answer<Image> {
    let (d, format, size) = checked(desc)?;
    if format.bytes() != of.format.bytes() || size.iter().zip(of.size).any(|(a, b)| *a > b) {
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    let (row, id) = (of.row, of.id);
    Ok(Image { texels: Texels::View(of), format, kind: d.type_, size, row, id })
}
/// The alignment of the rows of images in linear memory.
const PITCH: usize = 64;
/// A box of texels: its position and its size.
struct Part {
    at: [u32; 3],
    size: [u32; 3],
}
impl Image {
    fn base(&self) -> usize {
        match &self.texels {
            Texels::Own(words) => words.as_ptr().expose_provenance(),
            Texels::Given(at) => *at,
            Texels::View(of) => of.base(),
        }
    }
    /// Rows from layer to layer; a view has those of the image that it is a view of.
    fn rows(&self) -> usize {
        match &self.texels {
            Texels::View(of) => of.rows(),
            _ => self.size[1] as usize,
        }
    }
    /// The address of a texel.
    fn texel(&self, [x, y, z]: [u32; 3]) -> *mut u8 {
        let row = z as usize * self.rows() + y as usize;
        let at = self.base() + row * self.row + x as usize * self.format.bytes();
        std::ptr::with_exposed_provenance_mut(at)
    }
    /// The box of a region; without one, the whole image.
    fn part(&self, region: Option<ze_image_region_t>) -> Answer<Part> {
        let part = match region {
            None => Part { at: [0; 3], size: self.size },
            Some(r) => Part {
                at: [r.originX, r.originY, r.originZ],
                size: [r.width.max(1), r.height.max(1), r.depth.max(1)],
            },
        };
        let inside = |n: usize| {
            let end = u64::from(part.at[n]) + u64::from(part.size[n]);
            end <= u64::from(self.size[n])
        };
        if (0..3).all(inside) { Ok(part) } else { Err(ZE_RESULT_ERROR_INVALID_SIZE) }
    }
    /// Copies a box of another image into a box of this one.
    ///
    /// # Errors
    /// `INVALID_SIZE` for boxes outside of the images or of different sizes; `INVALID_ARGUMENT` for texels of
    /// different sizes.
    pub fn copy_from(
        &self,
        from: &Image,
        to_region: Option<ze_image_region_t>,
        from_region: Option<ze_image_region_t>,
    ) -> Answer {
        let (to, part) = (self.part(to_region)?, from.part(from_region)?);
        if to.size != part.size {
            return Err(ZE_RESULT_ERROR_INVALID_SIZE);
        }
        if self.format.bytes() != from.format.bytes() {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        let bytes = to.size[0] as usize * self.format.bytes();
        each_row(to.size, |y, z| {
            let into = self.texel([to.at[0], to.at[1] + y, to.at[2] + z]);
            let row = from.texel([part.at[0], part.at[1] + y, part.at[2] + z]);
            raw::copy(into, row, bytes);
        });
        Ok(())
    }
    /// Copies a box into memory. Pitches are in bytes; 0: contiguous.
    ///
    /// # Errors
    /// `INVALID_SIZE` for a box outside of the image.
    pub fn read(
        &self,
        part: Option<ze_image_region_t>,
        to: *mut c_void,
        row: u32,
        slice: u32,
    ) -> Answer {
        self.rows_of(part, to.cast(), (row, slice), |memory, texel, bytes| {
            raw::copy(memory, texel, bytes);
        })
    }
    /// Copies memory into a box. Pitches are in bytes; 0: contiguous.
    ///
    /// # Errors
    /// `INVALID_SIZE` for a box outside of the image.
    pub fn write(
        &self,
        part: Option<ze_image_region_t>,
        from: *const c_void,
        row: u32,
        slice: u32,
    ) -> Answer {
        self.rows_of(part, from.cast_mut().cast(), (row, slice), |memory, texel, bytes| {
            raw::copy(texel, memory, bytes);
        })
    }
    fn rows_of(
        &self,
        part: Option<ze_image_region_t>,
        memory: *mut u8,
        (row, slice): (u32, u32),
        copy: impl Fn(*mut u8, *mut u8, usize),
    ) -> Answer {
        let part = self.part(part)?;
        let bytes = part.size[0] as usize * self.format.bytes();
        let row = if row == 0 { bytes } else { row as usize };
        let slice = if slice == 0 { row * part.size[1] as usize } else { slice as usize };
        each_row(part.size, |y, z| {
            let there = memory.wrapping_add(z as usize * slice + y as usize * row);
            copy(there, self.texel([part.at[0], part.at[1] + y, part.at[2] + z]), bytes);
        });
        Ok(())
    }
    /// Whether its texels are signed integers.
    pub fn is_signed(&self) -> bool {
        self.format.is_signed()
    }
    /// Texels in each dimension, and the number of dimensions of a kernel's coordinates.
    pub fn extent(&self) -> ([u32; 3], usize) {
        let directions = match self.kind {
            ZE_IMAGE_TYPE_1D | ZE_IMAGE_TYPE_BUFFER => 1,
            ZE_IMAGE_TYPE_1DARRAY | ZE_IMAGE_TYPE_2D => 2,
            _ => 3,
        };
        (self.size, directions)
    }
    /// The number of dimensions in which filters mix neighbours: not between layers of an array.
    pub fn mixed(&self) -> usize {
        match self.kind {
            ZE_IMAGE_TYPE_1DARRAY | ZE_IMAGE_TYPE_2DARRAY => self.extent().1 - 1,
            _ => self.extent().1,
        }
    }
    /// The components of a texel; `None` outside of the image.
    pub fn fetch(&self, at: [i64; 3]) -> Option<[f64; 4]> {
        let mut bytes = vec![0; self.format.bytes()];
        raw::copy(bytes.as_mut_ptr(), self.texel(self.inside(at)?), bytes.len());
        Some(self.format.read(&bytes))
    }
    /// Sets the components of a texel; no effect outside of the image.
    pub fn store(&self, at: [i64; 3], components: [f64; 4]) {
        if let Some(at) = self.inside(at) {
            let bytes = self.format.write(components);
            raw::copy(self.texel(at), bytes.as_ptr(), bytes.len());
        }
    }
    fn inside(&self, at: [i64; 3]) -> Option<[u32; 3]> {
        let mut place = [0; 3];
        for n in 0..3 {
            place[n] = u32::try_from(at[n]).ok().filter(|c| *c < self.size[n])?;
        }
        Some(place)
    }
}
fn each_row([_, height, depth]: [u32; 3], mut row: impl FnMut(u32, u32)) {
    (0..depth).for_each(|z| (0..height).for_each(|y| row(y, z)));
}
/// The image behind `raw`.
pub fn get(raw: ze_image_handle_t) -> Answer<Arc<Image>> {
    handle::get(raw!(raw))
}
fn make_view(
    context: ze_context_handle_t,
    device: ze_device_handle_t,
    desc: *const ze_image_desc_t,
    image: ze_image_handle_t,
    to: *mut ze_image_handle_t,
) -> Answer {
    let (_context, _device) = (context::get(context)?, device::get(device)?);
    let view = view(desc, get(image)?)?;
    if to.is_null() {
        return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    }
    raw::put(to, handle::make(view).cast())
}
entries! {
    fn zeImageCreate(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        desc: *const ze_image_desc_t,
        to: *mut ze_image_handle_t,
    ) {
        let (_context, _device) = (context::get(context)?, device::get(device)?);
        let image = create(desc)?;
        if to.is_null() {
            return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
        }
        raw::put(to, handle::make(image).cast())
    }
    fn zeImageDestroy(image: ze_image_handle_t) {
        handle::destroy::<Image>(raw!(image)).map(drop)
    }
    fn zeImageGetProperties(
        device: ze_device_handle_t,
        desc: *const ze_image_desc_t,
        to: *mut ze_image_properties_t,
    ) {
        device::get(device)?;
        let (_, _, _) = checked(desc)?;
        raw::amend(to, |properties| {
            properties.samplerFilterFlags =
                ZE_IMAGE_SAMPLER_FILTER_FLAG_POINT | ZE_IMAGE_SAMPLER_FILTER_FLAG_LINEAR;
            Ok(())
        })
    }
    fn zeImageGetMemoryPropertiesExp(
        image: ze_image_handle_t,
        to: *mut ze_image_memory_properties_exp_t,
    ) {
        let image = get(image)?;
        let slice = (image.row * image.size[1] as usize) as u64;
        raw::amend(to, |properties| {
            properties.rowPitch = image.row as u64;
            properties.slicePitch = slice;
            properties.size = slice * u64::from(image.size[2]);
            Ok(())
        })
    }
    fn zeImageGetAllocPropertiesExt(
        context: ze_context_handle_t,
        image: ze_image_handle_t,
        to: *mut ze_image_allocation_ext_properties_t,
    ) {
        context::get(context)?;
        let image = get(image)?;
        raw::amend(to, |properties| {
            properties.id = image.id;
            Ok(())
        })
    }
    fn zeImageViewCreateExt(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        desc: *const ze_image_desc_t,
        image: ze_image_handle_t,
        to: *mut ze_image_handle_t,
    ) {
        make_view(context, device, desc, image, to)
    }
    fn zeImageViewCreateExp(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        desc: *const ze_image_desc_t,
        image: ze_image_handle_t,
        to: *mut ze_image_handle_t,
    ) {
        make_view(context, device, desc, image, to)
    }
    fn zeImageGetDeviceOffsetExp(image: ze_image_handle_t, to: *mut u64) {
        raw::put(to, get(image)?.base() as u64)
    }
}
