//! CUDA arrays and the texture and surface objects by which kernels access them: memory with three
//! dimensions.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    code::{Answer, INVALID_HANDLE, INVALID_VALUE, OUT_OF_MEMORY},
    context, device,
    layout::{ArrayDesc, ResourceDesc},
    raw::{get, put},
    state::handle,
};
use std::{
    collections::{HashMap, HashSet},
    ffi::c_void,
    sync::{Arc, LazyLock, Mutex, MutexGuard},
};
use ur_lock::locked;

/// An array. Its layout is private to the driver; here it is rows and slices.
pub struct Array {
    desc: ArrayDesc,
    element: u64,
    device: i32,
    bytes: Box<[u64]>,
}
#[derive(Default)]
struct Arrays {
    live: HashMap<u64, Arc<Array>>,
    textures: HashSet<u64>,
    surfaces: HashSet<u64>,
}
static ARRAYS: LazyLock<Mutex<Arrays>> = LazyLock::new(Mutex::default);
fn arrays() -> MutexGuard<'static, Arrays> {
    locked(&ARRAYS)
}
/// Returns an array that exists.
pub fn of(id: u64) -> Answer<Arc<Array>> {
    arrays().live.get(&id).cloned().ok_or(INVALID_HANDLE)
}
impl Array {
    fn new(desc: ArrayDesc, device: i32) -> Answer<Self> {
        let channel = match desc.format {
            0x01 | 0x08 => 1,
            0x02 | 0x09 | 0x10 => 2,
            0x03 | 0x0a | 0x20 => 4,
            _ => return Err(INVALID_VALUE),
        };
        let layered = desc.flags & 1 != 0;
        let most = if desc.depth == 0 || layered { 131_072 } else { 16384 };
        let flat = desc.height == 0 && desc.depth != 0 && !layered;
        let wrong = desc.width == 0
            || desc.width > most
            || desc.height > 65536
            || desc.depth > 16384
            || flat;
        if wrong || !matches!(desc.channels, 1 | 2 | 4) || desc.flags & !3 != 0 {
            return Err(INVALID_VALUE);
        }
        let element = channel * u64::from(desc.channels);
        let words = element * (desc.width * desc.height.max(1) * desc.depth.max(1)) as u64;
        device::of(device)?.take(words)?;
        let mut bytes = Vec::new();
        let words = words.div_ceil(8) as usize;
        bytes.try_reserve_exact(words).map_err(|_| OUT_OF_MEMORY)?;
        bytes.resize(words, 0);
        Ok(Self { desc, element, device, bytes: bytes.into() })
    }
    /// The bytes of a row; `slice` returns those of a slice.
    pub fn pitch(&self) -> u64 {
        self.element * self.desc.width as u64
    }
    pub fn slice(&self) -> u64 {
        self.pitch() * self.desc.height.max(1) as u64
    }
    /// The address of its bytes.
    pub fn address(&self) -> u64 {
        self.bytes.as_ptr().expose_provenance() as u64
    }
    /// The offset of an element, given the byte in the row, the row and the slice.
    pub fn offset(&self, at: [u64; 3]) -> u64 {
        at[0] + at[1] * self.pitch() + at[2] * self.slice()
    }
    /// Checks that the position lies in the array, at the beginning of an element.
    pub fn fits(&self, at: [u64; 3]) -> Answer {
        let inside = at[0] < self.pitch() && at[1] < self.desc.height.max(1) as u64;
        let right = at[0].is_multiple_of(self.element) && at[2] < self.desc.depth.max(1) as u64;
        if inside && right { Ok(()) } else { Err(INVALID_VALUE) }
    }
    /// Checks that a block of this size fits at that offset.
    pub fn holds(&self, at: u64, size: [u64; 3]) -> Answer {
        let (x, y, z) = (at % self.pitch(), at % self.slice() / self.pitch(), at / self.slice());
        let rows = y + size[1] <= self.desc.height.max(1) as u64;
        let fits =
            x + size[0] <= self.pitch() && rows && z + size[2] <= self.desc.depth.max(1) as u64;
        if fits && size[0].is_multiple_of(self.element) { Ok(()) } else { Err(INVALID_VALUE) }
    }
}
impl Drop for Array {
    fn drop(&mut self) {
        if let Ok(device) = device::of(self.device) {
            device.give(self.slice() * self.desc.depth.max(1) as u64);
        }
    }
}
/// Returns the array of a resource descriptor.
fn resource(from: *const ResourceDesc) -> Answer<Arc<Array>> {
    let resource = get(from)?;
    if resource.kind != 0 || resource.flags != 0 {
        return Err(INVALID_VALUE);
    }
    of(resource.array)
}

entries! {
    fn cuArray3DCreate_v2(to: *mut u64, wanted: *const ArrayDesc) {
        let context = context::current()?;
        put(to, 0)?;
        let (array, id) = (Array::new(get(wanted)?, context.device)?, handle(0x0d));
        arrays().live.insert(id, Arc::new(array));
        put(to, id)
    }
    fn cuArray3DGetDescriptor_v2(to: *mut ArrayDesc, array: u64) {
        context::current()?;
        put(to, of(array)?.desc)
    }
    fn cuArrayDestroy(array: u64) {
        context::current()?.synchronize()?;
        arrays().live.remove(&array).map(drop).ok_or(INVALID_HANDLE)
    }
    fn cuTexObjectCreate(to: *mut u64, from: *const ResourceDesc, texture: *const c_void, view: *const c_void) {
        context::current()?;
        resource(from)?;
        if texture.is_null() || !view.is_null() {
            return Err(INVALID_VALUE);
        }
        let id = handle(0x07);
        arrays().textures.insert(id);
        put(to, id)
    }
    fn cuTexObjectDestroy(texture: u64) {
        context::current()?;
        if arrays().textures.remove(&texture) { Ok(()) } else { Err(INVALID_VALUE) }
    }
    fn cuSurfObjectCreate(to: *mut u64, from: *const ResourceDesc) {
        context::current()?;
        if resource(from)?.desc.flags & 2 == 0 {
            return Err(INVALID_VALUE); // the array was not created for surface loads and stores
        }
        let id = handle(0x08);
        arrays().surfaces.insert(id);
        put(to, id)
    }
    fn cuSurfObjectDestroy(surface: u64) {
        context::current()?;
        if arrays().surfaces.remove(&surface) { Ok(()) } else { Err(INVALID_VALUE) }
    }
}
