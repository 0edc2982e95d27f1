//! Memory that processes share: what the driver exports, and what it makes of what has arrived. `ur_ipc` handles
//! tickets, broker, leases and access policies; the core decides which objects may be exported.
use crate::{Address, Allocates, Error, ErrorKind, Memory, Object, Range, Result, VirtualMemory};
use std::{convert::Infallible, sync::Arc};
use ur_ipc::{Arrived, Payload};

/// Memory to be exported to other processes.
#[derive(Debug)]
pub enum Export<'a, D: Allocates> {
    /// What lies at an offset in bytes in an allocation.
    Memory(&'a D::Allocation, usize),
    /// Physical memory.
    Physical(&'a D::Physical),
}
/// The payload of exported memory, and the UUID of the device on which it is located.
pub type Travels = (Payload, [u8; 16]);

/// Memory that other processes open.
///
/// No method blocks. All return the driver's error, with the kind that fits best and the driver's status, and
/// [`ErrorKind::InvalidValue`] for memory that cannot be shared.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait Shares: Allocates + VirtualMemory {
    /// Memory of another process.
    type Opened: Memory;
    /// What identifies memory that was allocated by other code in this process; `Infallible` if the driver does not
    /// share such memory.
    type Foreign: Foreign<Self>;
    /// Whether shared memory is host memory that this process maps. Then tickets of all other backends for which this
    /// is true can be opened too: the device in them stands for the machine, and not for a device of one backend.
    const IS_SYSTEMS: bool = false;
    /// Whether memory of a device can be shared.
    fn shares_memory(device: &Self::Device) -> Result<bool> {
        let _ = device;
        Ok(false)
    }
    /// Whether physical memory of a device can be shared.
    fn shares_physical(device: &Self::Device) -> Result<bool> {
        let _ = device;
        Ok(false)
    }
    /// The payload from which another process's driver makes the same memory.
    fn export(what: Export<'_, Self>) -> Result<Travels> {
        let _ = what;
        Error::unsupported("memory that processes share")
    }
    /// The device on which memory with this device's UUID is located, for a caller that names `device`. `None` if this
    /// process does not see it, but the driver may open the memory for `device` all the same.
    fn home(device: &Self::Device, uuid: [u8; 16]) -> Result<Option<Self::Device>> {
        let _ = (device, uuid);
        Error::unsupported("memory of other processes")
    }
    /// Explains an error of an import for a device that this process does not see.
    fn explain_hidden(uuid: [u8; 16], error: Error) -> Error {
        let _ = uuid;
        error
    }
    /// Whether closing memory of another process makes the driver wait until the context is idle.
    fn waits_when_closed(memory: &Self::Opened) -> bool {
        let _ = memory;
        false
    }
    /// Imports memory that is located on `device`, for the devices of the context. `ur_ipc` has verified what can be
    /// verified through the kernel. Everything else in `arrived` is only claimed by the exporter; returns
    /// [`contradiction`] if it is inconsistent.
    fn import(
        context: &Self::Context,
        device: &Self::Device,
        arrived: Arrived,
    ) -> Result<Self::Opened> {
        let _ = (context, device, arrived);
        Error::unsupported("memory of other processes")
    }
    /// Imports physical memory, like [`import`](Self::import).
    fn import_physical(
        context: &Self::Context,
        device: &Self::Device,
        arrived: Arrived,
    ) -> Result<Self::Physical> {
        let _ = (context, device, arrived);
        Error::unsupported("physical memory of other processes")
    }
    /// Gives one more device access to imported memory that is located on `home`.
    fn admit(opened: &Self::Opened, device: &Self::Device, home: &Self::Device) -> Result<()> {
        let _ = (opened, device, home);
        Ok(())
    }
    /// Whether this process may only read imported memory, because the exporter said so.
    fn is_read_only(opened: &Self::Opened) -> bool {
        let _ = opened;
        false
    }
}

/// Memory that was allocated by other code in this process, such as PyTorch or CuPy, and that was shared with other
/// processes. Its owner does not announce frees, so the driver tells whether the memory still exists.
#[expect(clippy::missing_errors_doc, reason = "said at `Shares` for all verbs")]
pub trait Foreign<D: Shares>: Object + Clone {
    /// Device memory that contains the byte at `at`, and how it travels.
    fn of(
        context: &D::Context,
        known: &crate::KnownMemory<D::Device>,
        at: Address,
    ) -> Result<(Self, Travels)>;
    /// What can be shared of it.
    fn range(&self) -> Range;
    /// Whether both are the same memory, regardless of what follows it.
    fn is_same(&self, other: &Self) -> bool;
    /// Whether the memory from `at` on is still what was shared.
    fn is_there(&self, at: Address) -> bool;
    /// Whether a caller who names the context would share the same memory again: it is still there from `at` on, and
    /// nothing was added behind it.
    fn is_unchanged(&self, context: &D::Context, at: Address) -> bool;
    /// The payload of the export, if an export of it still exists.
    fn payload(&self) -> Option<Payload>;
}
impl<D: Shares> Foreign<D> for Infallible {
    fn of(
        _: &D::Context,
        _: &crate::KnownMemory<D::Device>,
        _: Address,
    ) -> Result<(Self, Travels)> {
        let why = "this driver shares only memory that was allocated through it";
        Err(Error::new(ErrorKind::InvalidValue, why))
    }
    fn range(&self) -> Range {
        match *self {}
    }
    fn is_same(&self, _: &Self) -> bool {
        match *self {}
    }
    fn is_there(&self, _: Address) -> bool {
        match *self {}
    }
    fn is_unchanged(&self, _: &D::Context, _: Address) -> bool {
        match *self {}
    }
    fn payload(&self) -> Option<Payload> {
        match *self {}
    }
}

/// The error for a payload that does not match its ticket.
pub fn contradiction(what: &str) -> Error {
    Error::new(ErrorKind::InvalidValue, format!("the ticket contradicts its exporter: {what}"))
}
/// The error for a size that does not fit `usize`.
pub fn too_large<E>(_: E) -> Error {
    contradiction("it is larger than this process's address space")
}
/// The error for something that another process sent and the driver refused: the exporter's fault, unless resources ran out,
/// the device failed, or the driver does not have the function.
pub fn refused_import(error: Error) -> Error {
    if error.kind().is_want() || error.status().is_none() {
        return error;
    }
    let why = format!("the driver refuses what the exporter sent: {error}");
    Error::new(ErrorKind::InvalidValue, why)
}
/// The payload bytes of a driver: a byte that identifies the format, then the driver's data.
pub fn payload_bytes(form: u8, data: &[u8]) -> Arc<[u8]> {
    [&[form], data].concat().into()
}
/// The driver's data in payload bytes of this format.
///
/// # Errors
/// [`contradiction`] for another format or length.
pub fn payload_data<const LENGTH: usize>(form: u8, bytes: &[u8]) -> Result<[u8; LENGTH]> {
    match bytes.split_first() {
        Some((&first, rest)) if first == form => {
            rest.try_into().map_err(|_| contradiction("its bytes have another length"))
        }
        _ => Err(contradiction("its bytes are of another form")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_refuses_of_another_process_is_that_ones_fault_unless_something_ran_out() {
        let blamed = |kind, status: Option<i32>| {
            let error = Error::new(kind, "no");
            refused_import(status.map_or(error.clone(), |status| error.with_status(status))).kind()
        };
        assert_eq!(blamed(ErrorKind::InvalidMemory, Some(1)), ErrorKind::InvalidValue);
        assert_eq!(blamed(ErrorKind::OutOfResources, Some(1)), ErrorKind::OutOfResources);
        assert_eq!(blamed(ErrorKind::Unsupported, None), ErrorKind::Unsupported);
    }
    #[test]
    fn the_drivers_data_reads_back_in_its_own_form_only() {
        let bytes = payload_bytes(2, &[7; 64]);
        assert_eq!(payload_data(2, &bytes).unwrap(), [7; 64]);
        for (form, bytes) in [(3, &bytes[..]), (2, &bytes[..64]), (2, &[]), (2, &[2])] {
            let error = payload_data::<64>(form, bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidValue);
            assert!(error.to_string().contains("contradicts"), "{error}");
        }
    }
}
