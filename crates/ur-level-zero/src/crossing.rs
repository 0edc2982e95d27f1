//! Copies and fills of device memory that a queue's device cannot access, which the driver refuses. A thread
//! of the adapter does them, ordered by an event before and one after them, with command lists of the devices
//! that have the memory; data from one device to another passes through host memory. Memory objects are
//! placed where all devices of their context can access them (`storage.rs`). Mapped physical memory is not
//! checked here: the driver decides.
use super::{
    device::DriverDevice,
    native::{
        execute::{rows, spot},
        list::{BoxPlace3d, List},
    },
    p2p,
    registry::{Place, registry},
    utility_lists::UtilityLists,
};
use std::sync::Arc;
use ur_hal::{Command, MemoryKind, Pattern, Result, Rows, Types};

/// Bytes that pass through the host at a time.
const PIECE: usize = 4 << 20;

/// A device, and command lists of a context, that can access some memory.
#[derive(Debug)]
pub struct Way {
    device: Arc<DriverDevice>,
    lists: Arc<UtilityLists>,
}
impl Way {
    fn new(lists: &Arc<UtilityLists>, device: &Arc<DriverDevice>) -> Self {
        Self { device: Arc::clone(device), lists: Arc::clone(lists) }
    }
    /// Executes `work` on its device and waits for it.
    ///
    /// # Errors
    /// Those of `work`; else the driver's error.
    pub(super) fn with(&self, work: impl FnOnce(&List<'_>) -> Result<()>) -> Result<()> {
        self.lists.with(&self.device, work)
    }
}
/// Whether there can be memory that a device does not reach.
#[inline]
pub(super) fn is_possible(device: &DriverDevice) -> bool {
    device.platform().devices().len() > 1
}
/// How to access device memory at `at` that `device` cannot access; `None` for all other memory.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn beyond(device: &Arc<DriverDevice>, at: usize) -> Result<Option<Way>> {
    if !is_possible(device) {
        return Ok(None);
    }
    let Some(Some(Place { kind: MemoryKind::Device, device: owner, lists })) =
        registry().claims.find(at)
    else {
        return Ok(None);
    };
    if p2p::can_access(device, &owner)? {
        return Ok(None);
    }
    Ok(Some(Way { device: owner, lists }))
}
/// How to access both ends of a copy.
#[derive(Debug)]
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
        lists: &Arc<UtilityLists>,
        device: &Arc<DriverDevice>,
        (to, from): (usize, usize),
    ) -> Result<Option<Self>> {
        let ways = (beyond(device, to)?, beyond(device, from)?);
        if let (None, None) = ways {
            return Ok(None);
        }
        let within = || Way::new(lists, device);
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
#[derive(Debug)]
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
        lists: &Arc<UtilityLists>,
        device: &Arc<DriverDevice>,
        command: &Command<'_, T>,
    ) -> Result<Option<Box<Self>>> {
        let copy = |ends: (BoxPlace3d, BoxPlace3d), size| -> Result<Option<Box<Self>>> {
            let found = Ends::beyond(lists, device, (ends.0.at, ends.1.at))?;
            Ok(found.map(|ways| Box::new(Self::Copy(ways, ends, size))))
        };
        let fill = |to: Rows, size, pattern: Pattern<'_>| -> Result<Option<Box<Self>>> {
            let found = beyond(device, to.start.get())?;
            Ok(found.map(|way| Box::new(Self::Fill(way, to, size, pattern.bytes().into()))))
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
