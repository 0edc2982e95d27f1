//! Where USM comes from: chunks of device memory (virtual memory, or the driver's old kind), of pinned
//! host memory and of managed memory. How they are cut is `ur_adapter::pool`'s, whose they are the
//! core's.
use super::{
    Attribute,
    device::DriverDevice,
    driver::Dialect,
    native::{
        device as native, ipc,
        memory::{Piece, Sort},
        virtual_memory::{self, Mapped, Physical},
    },
};
use std::{
    os::fd::OwnedFd,
    sync::{Arc, PoisonError},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    log,
};
use ur_hal::{Address, Granularity, Memory, MemoryKind, Range};

/// The largest alignment on offer, in bytes: the granule of virtual memory.
pub const ALIGNMENT: usize = 2 << 20;
/// What the driver aligns every allocation to at least, whatever its kind.
const NATURAL: usize = 256;

/// What the environment says, once a process: `UR_CUDA_USM` (or `UR_HIP_USM`).
fn is_legacy_wished<D: Dialect>() -> bool {
    *D::statics().memory.get().is_legacy_wished.get_or_init(|| {
        let name = format!("UR_{}_USM", D::NAME);
        match std::env::var(&name).as_deref() {
            Ok("legacy") => true,
            Ok("virtual" | "") | Err(_) => false,
            Ok(other) => {
                log::warn_of_environment(
                    D::BACKEND,
                    format!("{name} is {other:?} and can be legacy or virtual: it is ignored"),
                );
                false
            }
        }
    })
}
fn is_virtual<D: Dialect>(device: &DriverDevice<D>) -> Result<bool> {
    Ok(!is_legacy_wished::<D>() && virtual_memory::is_supported(device)?)
}
/// Whether other processes can be given memory that is allocated on the device: by descriptors where it
/// is virtual, else by the driver's old handles.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn is_shared<D: Dialect>(device: &DriverDevice<D>) -> Result<bool> {
    match is_virtual(device)? {
        true => virtual_memory::has_descriptors(device),
        false => device.has(Attribute::Ipc),
    }
}
/// Whether other processes can be given its physical memory.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn is_physical_shared<D: Dialect>(device: &DriverDevice<D>) -> Result<bool> {
    Ok(virtual_memory::is_supported(device)? && virtual_memory::has_descriptors(device)?)
}

/// The numbers of those of `devices` that can reach the memory of `home`, itself first. Access is given to
/// those that are started: the rest get theirs from `peers.rs` when they are.
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

/// What lengths and addresses of the device's virtual memory are multiples of, asked once.
pub(super) fn granularity<D: Dialect>(device: &DriverDevice<D>) -> Result<Granularity> {
    let known = &D::statics().memory.get().granules;
    let locked = || known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = locked().get(&device.number()).copied() {
        return Ok(known);
    }
    let of = |recommended| virtual_memory::granularity(device, recommended);
    let granularity = Granularity { minimum: of(false)?, recommended: of(true)? };
    locked().insert(device.number(), granularity);
    Ok(granularity)
}
/// What they have to be multiples of.
pub(super) fn granule<D: Dialect>(device: &DriverDevice<D>) -> Result<usize> {
    Ok(granularity(device)?.minimum)
}

/// How another process opens a chunk.
#[derive(Clone, Debug)]
pub enum Behind {
    /// By its descriptor.
    Descriptor(Arc<OwnedFd>),
    /// By the driver's bytes.
    Handle([u8; 64]),
}

/// Memory in one piece.
#[derive(Debug)]
pub struct Chunk<D: Dialect> {
    range: Range,
    made: ChunkSource<D>,
    device: Arc<DriverDevice<D>>,
}
#[derive(Debug)]
enum ChunkSource<D: Dialect> {
    Virtual(Mapped<D>),
    Piece(Piece<D>),
}
impl<D: Dialect> Chunk<D> {
    /// At least `bytes` at a multiple of `align`, at most [`ALIGNMENT`]; device memory is made readable
    /// and writable for those of `devices` that can reach it.
    ///
    /// # Errors
    /// The driver's own; `UNSUPPORTED_FEATURE` for shared memory on a device without it.
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
                    ErrorCode::UnsupportedFeature,
                    "this device has no managed memory, of which shared USM is made: use device or \
                     host USM",
                ));
            }
            MemoryKind::Managed => Sort::Managed,
        };
        let whole = bytes.checked_next_multiple_of(NATURAL).ok_or_else(too_large)?;
        let piece = Piece::new(device, sort, whole)?;
        if (piece.at() as usize).is_multiple_of(align) {
            return Self::of(device, piece.at(), whole, ChunkSource::Piece(piece));
        }
        drop(piece); // the driver promises less: so much more is taken that it has such an address
        let piece = Piece::new(device, sort, whole.checked_add(align).ok_or_else(too_large)?)?;
        let at = (piece.at() as usize).next_multiple_of(align) as u64;
        Self::of(device, at, whole, ChunkSource::Piece(piece))
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
        let memory = Arc::new(Physical::create(device, whole)?);
        let mapped = Mapped::new(device, memory, align.max(granule))?;
        let peers = &D::statics().memory.get().peers;
        peers.enter_mapping(device, (mapped.at(), whole), access, 3)?;
        Self::of(device, mapped.at(), whole, ChunkSource::Virtual(mapped))
    }
    fn of(
        device: &Arc<DriverDevice<D>>,
        at: u64,
        bytes: usize,
        made: ChunkSource<D>,
    ) -> Result<Self> {
        let null = || Error::new(ErrorCode::Unknown, "the driver gave a null address");
        let base = Address::new(at as usize).ok_or_else(null)?;
        let range = Range::new(base, bytes)?;
        D::statics().memory.get().claim(base.get(), bytes);
        Ok(Self { range, made, device: device.clone() })
    }
    /// Whose memory it is.
    pub(super) fn device(&self) -> &Arc<DriverDevice<D>> {
        &self.device
    }
    /// Whether the driver takes it back only when its context is idle, and has the caller wait for that.
    pub(super) fn goes_when_idle(&self) -> bool {
        matches!(self.made, ChunkSource::Piece(_))
    }
    /// How another process can open it, and where in what it opens the chunk starts.
    ///
    /// # Errors
    /// `INVALID_VALUE` for memory that cannot be shared; else the driver's error.
    pub(super) fn behind(&self) -> Result<(Behind, usize)> {
        match &self.made {
            ChunkSource::Virtual(mapped) if virtual_memory::has_descriptors(&self.device)? => {
                Ok((Behind::Descriptor(mapped.memory().export(&self.device)?), 0))
            }
            ChunkSource::Piece(piece) if piece.sort() == Sort::Device => {
                let handle = ipc::handle_of(&self.device, piece.at())?;
                Ok((Behind::Handle(handle), self.range.start().get() - piece.at() as usize))
            }
            _ => Err(Error::new(
                ErrorCode::InvalidValue,
                format!(
                    "this device exports no descriptors of its memory: set UR_{}_USM=legacy and \
                     allocate again, which shares by the driver's old handles",
                    D::NAME
                ),
            )),
        }
    }
}
impl<D: Dialect> Drop for Chunk<D> {
    fn drop(&mut self) {
        let store = D::statics().memory.get();
        store.give_up(self.range.start().get()); // before the driver has it
        if let ChunkSource::Virtual(mapped) = &self.made {
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
    Error::new(ErrorCode::InvalidUsmSize, "no memory has as many bytes")
}
