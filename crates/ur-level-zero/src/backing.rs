//! The memory beneath USM: chunks of device memory, of host memory and of shared memory. `ur_adapter::pool`
//! divides chunks; the core owns them.
use super::{
    device::DriverDevice,
    native::{
        ipc::Handle,
        memory::{self, Piece, Sort},
    },
    options, p2p,
    registry::{Place, registry},
    utility_lists::UtilityLists,
};
use std::sync::{Arc, OnceLock};
use ur_hal::{Address, Error, ErrorKind, Memory, MemoryKind, Range, Result};
use ur_lock::get_or_try;

/// The largest alignment in bytes that can be requested.
pub const ALIGNMENT: usize = 2 << 20;
/// The alignment in bytes of every allocation requested from the driver.
const NATURAL: usize = 4096;

/// The devices for which memory is made resident.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Resident {
    Nobody,
    Own,
    Reaching,
}
fn resident(kind: MemoryKind, number: u32) -> Resident {
    let digit = match kind {
        MemoryKind::Device => number & 0xf,
        MemoryKind::Managed => number >> 4 & 0xf,
        MemoryKind::Host => number >> 8 & 0xf,
    };
    match digit {
        0 => Resident::Nobody,
        1 => Resident::Own,
        _ => Resident::Reaching,
    }
}

/// Those of `devices` that can access the memory of `home`, itself first.
pub(super) fn reaching<'d>(
    home: &'d Arc<DriverDevice>,
    devices: &'d [Arc<DriverDevice>],
) -> Result<Vec<&'d Arc<DriverDevice>>> {
    let mut all = vec![home];
    for one in devices.iter().filter(|one| *one != home) {
        if p2p::can_access(one, home)? {
            all.push(one);
        }
    }
    Ok(all)
}

/// A contiguous range of memory.
#[derive(Debug)]
pub struct Chunk {
    range: Range,
    piece: Piece,
    device: Arc<DriverDevice>,
    /// Created at the first export.
    handle: OnceLock<Arc<Handle>>,
}
impl Chunk {
    /// Allocates at least `bytes` at a multiple of `align`, which is at most [`ALIGNMENT`].
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn take(
        kind: MemoryKind,
        lists: &Arc<UtilityLists>,
        device: &Arc<DriverDevice>,
        devices: &[Arc<DriverDevice>],
        bytes: usize,
        align: usize,
    ) -> Result<Self> {
        let sort = match kind {
            MemoryKind::Device => Sort::Device,
            MemoryKind::Host => Sort::Host,
            MemoryKind::Managed => Sort::Shared,
        };
        let chunk = Self::of_sort(sort, lists, device, bytes, align)?;
        let who = match resident(kind, options().resident) {
            Resident::Nobody => vec![],
            Resident::Own => vec![device],
            Resident::Reaching => reaching(device, devices)?,
        };
        for one in who {
            let at = chunk.piece.at();
            memory::make_resident(lists.context(), one, at, chunk.range.bytes())?;
        }
        Ok(chunk)
    }
    /// Allocates memory of one driver kind, without making it resident.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn of_sort(
        sort: Sort,
        lists: &Arc<UtilityLists>,
        device: &Arc<DriverDevice>,
        bytes: usize,
        align: usize,
    ) -> Result<Self> {
        let whole = bytes.checked_next_multiple_of(NATURAL).ok_or_else(too_large)?;
        let align = align.max(NATURAL);
        let piece = Piece::allocate(lists.context(), device, sort, whole, align)?;
        let (piece, at) = if (piece.at() as usize).is_multiple_of(align) {
            let at = piece.at();
            (piece, at)
        } else {
            drop(piece); // the driver aligned less strictly: allocate enough to contain an aligned range
            let more = whole.checked_add(align).ok_or_else(too_large)?;
            let piece = Piece::allocate(lists.context(), device, sort, more, NATURAL)?;
            let at = (piece.at() as usize).next_multiple_of(align) as u64;
            (piece, at)
        };
        let null = || Error::new(ErrorKind::Unknown, "the driver gave a null address");
        let base = Address::new(at as usize).ok_or_else(null)?;
        let range = Range::new(base, whole)?;
        let kind = match sort {
            Sort::Host => MemoryKind::Host,
            Sort::Shared => MemoryKind::Managed,
            Sort::Device | Sort::Exportable(_) | Sort::Imported(..) => MemoryKind::Device,
        };
        let place = Place { kind, device: Arc::clone(device), lists: Arc::clone(lists) };
        registry().claims.claim(base.get(), whole, Some(place));
        Ok(Self { range, piece, device: device.clone(), handle: OnceLock::new() })
    }
    /// The device that it was allocated on.
    pub(super) fn device(&self) -> &Arc<DriverDevice> {
        &self.device
    }
    /// The driver's allocation.
    pub(super) fn piece(&self) -> &Piece {
        &self.piece
    }
    /// What another process needs to open it, and the chunk's offset in bytes in what it opens.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn behind(&self) -> Result<(Arc<Handle>, usize)> {
        let before = self.range.start().get() - self.piece.at() as usize;
        let fresh = || Handle::of(self.piece.within(), self.piece.at()).map(Arc::new);
        Ok((Arc::clone(get_or_try(&self.handle, fresh)?), before))
    }
}
impl Drop for Chunk {
    fn drop(&mut self) {
        // before the driver can give the address to another allocation
        registry().claims.give_up(self.range.start().get());
        drop(self.handle.take()); // before the memory it stands for is freed
    }
}
impl Memory for Chunk {
    fn range(&self) -> Range {
        self.range
    }
}
fn too_large() -> Error {
    Error::new(ErrorKind::InvalidSize, "no memory has as many bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residency_is_a_digit_for_each_kind_of_memory() {
        for (number, device, shared, host) in [
            (0x002, Resident::Reaching, Resident::Nobody, Resident::Nobody),
            (0x211, Resident::Own, Resident::Own, Resident::Reaching),
            (0, Resident::Nobody, Resident::Nobody, Resident::Nobody),
        ] {
            assert_eq!(resident(MemoryKind::Device, number), device, "{number:x}");
            assert_eq!(resident(MemoryKind::Managed, number), shared, "{number:x}");
            assert_eq!(resident(MemoryKind::Host, number), host, "{number:x}");
        }
    }
}
