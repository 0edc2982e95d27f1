//! The memory beneath USM: chunks of device memory (virtual memory, or classic allocations of `cuMemAlloc`),
//! of pinned host memory and of managed memory. `ur_adapter::pool` divides chunks; the core owns them.
use super::{
    Attribute,
    device::DriverDevice,
    driver::{Dialect, RawStream},
    native::{
        device as native,
        memory::{Piece, Sort},
        pool::FromPool,
        virtual_memory::{self, Mapped, Physical},
    },
};
use crate::notice;
use std::sync::Arc;
use ur_hal::{Address, Error, ErrorKind, Granularity, Memory, MemoryKind, Range, Result, Severity};

/// The largest alignment in bytes that can be requested: the granularity of virtual memory.
pub const ALIGNMENT: usize = 2 << 20;
/// The driver aligns every allocation to at least this many bytes, whatever its kind.
const NATURAL: usize = 256;

/// Whether `UR_CUDA_USM` (or `UR_HIP_USM`) requests classic allocations. The environment is read once.
fn is_legacy_wished<D: Dialect>() -> bool {
    *D::statics().memory.get().is_legacy_wished.get_or_init(|| {
        let name = format!("UR_{}_USM", D::NAME);
        match std::env::var(&name).as_deref() {
            Ok("legacy") => true,
            Ok("virtual" | "") | Err(_) => false,
            Ok(other) => {
                notice::<D>(
                    Severity::Environment,
                    &format_args!(
                        "{name} is {other:?} and can be legacy or virtual: it is ignored"
                    ),
                );
                false
            }
        }
    })
}
fn is_virtual<D: Dialect>(device: &DriverDevice<D>) -> Result<bool> {
    Ok(!is_legacy_wished::<D>() && virtual_memory::is_supported(device)?)
}
/// Whether device memory can be shared with other processes: by descriptors if it is virtual memory, else by
/// the driver's IPC handles.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn is_shared<D: Dialect>(device: &DriverDevice<D>) -> Result<bool> {
    match is_virtual(device)? {
        true => virtual_memory::has_descriptors(device),
        false => device.has(Attribute::Ipc),
    }
}
/// Whether physical memory can be shared with other processes.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn is_physical_shared<D: Dialect>(device: &DriverDevice<D>) -> Result<bool> {
    Ok(virtual_memory::is_supported(device)? && virtual_memory::has_descriptors(device)?)
}

/// The numbers of those of `devices` that can access the memory of `home`, itself first. Access is given to
/// devices whose context exists; `peers.rs` adds the others when their context is created.
pub(super) fn reaching<D: Dialect>(
    home: &DriverDevice<D>,
    devices: &[Arc<DriverDevice<D>>],
) -> Result<Vec<i32>> {
    let mut all = vec![home.number()];
    for one in devices.iter().filter(|one| one.number() != home.number()) {
        if native::can_access::<D>(one.number(), home.number())? {
            all.push(one.number());
        }
    }
    Ok(all)
}

/// The granularity of lengths and addresses of the device's virtual memory. The driver is queried once.
pub(super) fn granularity<D: Dialect>(device: &DriverDevice<D>) -> Result<Granularity> {
    D::statics().memory.get().granules.get(device.number(), || {
        let of = |recommended| virtual_memory::granularity(device, recommended);
        Ok(Granularity { minimum: of(false)?, recommended: of(true)? })
    })
}
/// The minimum granularity in bytes.
pub(super) fn granule<D: Dialect>(device: &DriverDevice<D>) -> Result<usize> {
    Ok(granularity(device)?.minimum)
}

/// A contiguous range of memory.
#[derive(Debug)]
pub struct Chunk<D: Dialect> {
    range: Range,
    made: ChunkSource<D>,
    device: Arc<DriverDevice<D>>,
}
/// What a chunk consists of.
#[derive(Debug)]
pub(super) enum ChunkSource<D: Dialect> {
    /// Mapped physical memory.
    Virtual(Mapped<D>, Physical<D>),
    /// An allocation of the driver's, or the aligned part of one.
    Piece(Piece<D>),
    /// An allocation of a driver's pool, made in stream order.
    Ordered(FromPool<D>),
}
impl<D: Dialect> Chunk<D> {
    /// Allocates at least `bytes` at a multiple of `align`, which is at most [`ALIGNMENT`]. Device memory
    /// becomes readable and writable for those of `devices` that can access it.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` for shared USM on a device without managed memory; else the driver's error.
    pub(super) fn take(
        kind: MemoryKind,
        device: &Arc<DriverDevice<D>>,
        devices: &[Arc<DriverDevice<D>>],
        bytes: usize,
        align: usize,
    ) -> Result<Self> {
        let sort = match kind {
            MemoryKind::Device if is_virtual(device)? => {
                return Self::virtual_memory(device, devices, bytes, align);
            }
            MemoryKind::Device => Sort::Device,
            MemoryKind::Host => Sort::Host,
            MemoryKind::Managed if device.attribute(83)? == 0 => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "this device has no managed memory, of which shared USM is made: use device or \
                     host USM",
                ));
            }
            MemoryKind::Managed => Sort::Managed,
        };
        let whole = bytes.checked_next_multiple_of(NATURAL).ok_or_else(too_large)?;
        let piece = Piece::new(device, sort, whole)?;
        if (piece.at() as usize).is_multiple_of(align) {
            return Self::of((device, kind), piece.at(), whole, ChunkSource::Piece(piece));
        }
        drop(piece); // the driver aligns less strictly: allocate enough to contain an aligned range
        let piece = Piece::new(device, sort, whole.checked_add(align).ok_or_else(too_large)?)?;
        let at = (piece.at() as usize).next_multiple_of(align) as u64;
        Self::of((device, kind), at, whole, ChunkSource::Piece(piece))
    }
    fn virtual_memory(
        device: &Arc<DriverDevice<D>>,
        devices: &[Arc<DriverDevice<D>>],
        bytes: usize,
        align: usize,
    ) -> Result<Self> {
        let granule = granule(device)?;
        let whole = bytes.checked_next_multiple_of(granule).ok_or_else(too_large)?;
        let access = reaching(device, devices)?;
        let memory = Physical::create(device, whole)?;
        let mapped = Mapped::new(device, whole, [Ok(&memory)], align.max(granule))?;
        let peers = &D::statics().memory.get().peers;
        peers.enter_mapping(device, (mapped.at(), whole), access, 3)?;
        let (at, made) = (mapped.at(), ChunkSource::Virtual(mapped, memory));
        Self::of((device, MemoryKind::Device), at, whole, made)
    }
    fn of(
        (device, kind): (&Arc<DriverDevice<D>>, MemoryKind),
        at: u64,
        bytes: usize,
        made: ChunkSource<D>,
    ) -> Result<Self> {
        let null = || Error::new(ErrorKind::Unknown, "the driver gave a null address");
        let base = Address::new(at as usize).ok_or_else(null)?;
        let range = Range::new(base, bytes)?;
        // The driver may give memory that is freed in stream order to others at once, so that is not claimed.
        if !matches!(made, ChunkSource::Ordered(_)) {
            let place = Some((kind, device.number()));
            D::statics().memory.get().claims.claim(base.get(), bytes, place);
        }
        Ok(Self { range, made, device: device.clone() })
    }
    /// An allocation of a driver's pool.
    ///
    /// # Errors
    /// `UNKNOWN` if the driver returned a null address.
    pub(super) fn ordered(
        device: &Arc<DriverDevice<D>>,
        memory: FromPool<D>,
        bytes: usize,
    ) -> Result<Self> {
        Self::of((device, MemoryKind::Device), memory.at(), bytes, ChunkSource::Ordered(memory))
    }
    /// Frees it in the order of `stream`, if it was allocated so; a context must be current.
    ///
    /// # Errors
    /// Returns the driver's error; it is then freed on drop.
    pub(super) fn free_on(mut self, stream: Option<RawStream>) -> Result<()> {
        match &mut self.made {
            ChunkSource::Ordered(memory) => memory.free_on(stream),
            _ => Ok(()),
        }
    }
    /// The device that it was allocated on.
    pub(super) fn device(&self) -> &Arc<DriverDevice<D>> {
        &self.device
    }
    /// Whether freeing it makes the driver wait until the context is idle.
    pub(super) fn goes_when_idle(&self) -> bool {
        matches!(self.made, ChunkSource::Piece(_))
    }
    /// What it consists of.
    pub(super) fn source(&self) -> &ChunkSource<D> {
        &self.made
    }
}
impl<D: Dialect> Drop for Chunk<D> {
    fn drop(&mut self) {
        if matches!(self.made, ChunkSource::Ordered(_)) {
            return;
        }
        let store = D::statics().memory.get();
        store.claims.give_up(self.range.start().get()); // before the driver can give the address to another allocation
        if let ChunkSource::Virtual(mapped, _) = &self.made {
            store.peers.leave_mapping(mapped.at());
        }
    }
}
impl<D: Dialect> Memory for Chunk<D> {
    fn range(&self) -> Range {
        self.range
    }
}
fn too_large() -> Error {
    Error::new(ErrorKind::InvalidSize, "no memory has as many bytes")
}
