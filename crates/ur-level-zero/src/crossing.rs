//! Copies and fills of device memory that a queue's device cannot access, which the driver refuses. A thread
//! of the adapter does them, ordered by an event before and one after them, with command lists of the devices
//! that have the memory; data from one device to another passes through host memory. Memory objects are
//! placed where all devices of their context can access them (`storage.rs`). Mapped physical memory is not
//! checked here: the driver decides.
use super::{
    Context, Device, DriverDevice,
    context::DriverContext,
    memory::{Allocation, Memory},
    native::{
        execute::{rows, spot},
        list::{BoxPlace3d, List},
    },
    p2p,
    usm::UtilityLists,
};
use std::sync::Arc;
use ur_adapter::{memory::UsmPtr, object::Owned};
use ur_core::memory::allocation::Usm;
use ur_hal::{Command, Pattern, Result, Rows, Types};

/// Bytes that pass through the host at a time.
const PIECE: usize = 4 << 20;

/// A device and a context whose command lists can access some memory.
pub struct Way {
    device: Arc<DriverDevice>,
    lists: Arc<UtilityLists>,
}
impl Way {
    fn new(context: &DriverContext, device: &Arc<DriverDevice>) -> Self {
        Self { device: Arc::clone(device), lists: Arc::clone(context.utility_lists()) }
    }
    /// Executes `work` on its device and waits for it.
    ///
    /// # Errors
    /// Those of `work`; else the driver's error.
    pub(super) fn with(&self, work: impl FnOnce(&List<'_>) -> Result<()>) -> Result<()> {
        self.lists.with(&self.device, work)
    }
}
/// How to access device memory at `at` that `device` cannot access; `None` for all other memory. `context` is
/// used for memory imported from other processes.
///
/// # Errors
/// Returns an error if the memory's context or device was released; else the driver's error.
pub(super) fn beyond(
    context: &DriverContext,
    device: &Arc<DriverDevice>,
    at: usize,
) -> Result<Option<Way>> {
    if context.platform().devices().len() < 2 {
        return Ok(None);
    }
    let found = UsmPtr::from_addr(at).and_then(Allocation::find);
    let Some(found) = found.filter(|found| found.usm() == Usm::Device) else { return Ok(None) };
    let home = found.home();
    let owner = match found.memory().and_then(Memory::device) {
        Some(owner) => Arc::clone(owner),
        None => match Owned::<Device>::find(home.device) {
            Ok(owner) => Arc::clone(owner.driver()),
            Err(_) => return Ok(None), // opened for a sub-device that was released: the driver decides
        },
    };
    if p2p::can_access(device, &owner)? {
        return Ok(None);
    }
    Ok(Some(match home.context {
        0 => Way::new(context, &owner),
        address => Way::new(Owned::<Context>::find(address)?.driver(), &owner),
    }))
}
/// How to access both ends of a copy.
pub struct Ends {
    to: Way,
    from: Way,
}
impl Ends {
    /// For a copy by `device`; `None` if it can access both ends.
    ///
    /// # Errors
    /// As for [`beyond`].
    pub(super) fn beyond(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        (to, from): (usize, usize),
    ) -> Result<Option<Self>> {
        let ways = (beyond(context, device, to)?, beyond(context, device, from)?);
        if let (None, None) = ways {
            return Ok(None);
        }
        let within = || Way::new(context, device);
        let (to, from) = (ways.0.unwrap_or_else(within), ways.1.unwrap_or_else(within));
        Ok(Some(Self { to, from }))
    }
    /// Copies a box and waits for it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn copy(
        &self,
        (to, from): (BoxPlace3d, BoxPlace3d),
        (width, height, depth): (usize, usize, usize),
    ) -> Result<()> {
        if self.to.device.is(&self.from.device) {
            return self.to.with(|list| match (height, depth) {
                (1, 1) => list.copy(to.at, from.at, width),
                _ => list.copy_region(to, from, (width, height, depth)),
            });
        }
        let mut room = vec![0_u8; width.min(PIECE)];
        let host = room.as_mut_ptr().expose_provenance();
        for (z, y) in (0..depth).flat_map(|z| (0..height).map(move |y| (z, y))) {
            let row = |spot: BoxPlace3d| spot.at + z * spot.slice_pitch + y * spot.row_pitch;
            for x in (0..width).step_by(PIECE) {
                let bytes = PIECE.min(width - x);
                self.from.with(|list| list.copy(host, row(from) + x, bytes))?;
                self.to.with(|list| list.copy(row(to) + x, host, bytes))?;
            }
        }
        Ok(())
    }
}
/// A command on memory that the queue's device cannot access.
pub enum Far {
    /// Copies a box.
    Copy(Ends, (BoxPlace3d, BoxPlace3d), (usize, usize, usize)),
    /// Fills rows: the destination, the width in bytes and the height, and the pattern.
    Fill(Way, Rows, (usize, usize), Box<[u8]>),
}
impl Far {
    /// `None` for commands whose memory the device can access.
    ///
    /// # Errors
    /// As for [`beyond`].
    #[inline]
    pub(super) fn of<T: Types>(
        context: &DriverContext,
        device: &Arc<DriverDevice>,
        command: &Command<'_, T>,
    ) -> Result<Option<Self>> {
        if context.platform().devices().len() < 2 {
            return Ok(None);
        }
        let copy = |ends: (BoxPlace3d, BoxPlace3d), size| -> Result<Option<Self>> {
            let found = Ends::beyond(context, device, (ends.0.at, ends.1.at))?;
            Ok(found.map(|ways| Self::Copy(ways, ends, size)))
        };
        let fill = |to: Rows, size, pattern: Pattern<'_>| -> Result<Option<Self>> {
            let found = beyond(context, device, to.start.get())?;
            Ok(found.map(|way| Self::Fill(way, to, size, pattern.bytes().into())))
        };
        match *command {
            Command::Copy { to, from, bytes } => {
                copy((line(to.get()), line(from.get())), (bytes, 1, 1))
            }
            Command::Copy2d { to, from, width, height } => {
                copy((rows(to), rows(from)), (width, height, 1))
            }
            Command::Copy3d(what) => copy((spot(what.to), spot(what.from)), what.region.into()),
            Command::Fill { to, pattern } => {
                fill(Rows { start: to.start(), pitch: to.bytes() }, (to.bytes(), 1), pattern)
            }
            Command::Fill2d { to, width, height, pattern } => fill(to, (width, height), pattern),
            _ => Ok(None),
        }
    }
    /// Executes it and waits for it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn run(&self) -> Result<()> {
        match self {
            Self::Copy(ways, ends, size) => ways.copy(*ends, *size),
            Self::Fill(way, to, size, pattern) => {
                way.with(|list| list.fill_2d((to.start.get(), to.pitch), pattern, *size))
            }
        }
    }
}
/// A single row as one end of a box.
pub(super) fn line(at: usize) -> BoxPlace3d {
    BoxPlace3d { at, row_pitch: 0, slice_pitch: 0 }
}
