//! Kernel launches as work that queues execute. The groups are divided into pieces for all cores of the device.
use super::{
    Cpu,
    code::PIECES_A_CORE,
    device::DriverDevice,
    engine::{Task, Work},
    native_code::{self, Arguments},
};
use std::sync::Arc;
use ur_hal::{Error, ErrorKind, Launch, Result};

/// The work of a launch; it contains the function and copies of the arguments.
///
/// # Errors
/// As for [`Arguments::new`].
pub(super) fn work(device: &DriverDevice, launch: &Launch<'_, Cpu>) -> Result<Work> {
    let geometry = launch.geometry;
    let groups: usize = geometry.groups.iter().product();
    let piece = groups.div_ceil(device.compute_units() * PIECES_A_CORE);
    let pieces = groups.div_ceil(piece);
    let cpus: Option<Arc<[usize]>> = device.cpus().map(Into::into);
    let (function, arguments) = (Arc::clone(launch.function), Arguments::new(launch)?);
    Ok(Work::Run(Box::new(move || {
        let task = Task::new(pieces, cpus.as_deref(), move |n| {
            let first = n * piece;
            native_code::run(&function, &arguments, &geometry, first, piece.min(groups - first));
        });
        match task.run() {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Unknown, "a kernel panicked")),
        }
    })))
}
