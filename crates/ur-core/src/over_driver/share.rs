//! Sharing of memory between processes: its export, and what is done with imported memory. `ur_ipc` decides who may
//! open it, and the entries are in `ur_adapter::share`; the backend makes the payload and imports it.
use super::{
    OverDriver,
    p2p::HasPeers,
    physical_mem::{HasPhysicalMemory, OpenedPhysical, PhysicalMem},
    usm_pool::{Context, Device, HasUsm},
};
use crate::{
    memory::{
        allocation::{Allocation, Hold, Memory as _, Registered, Usm},
        deferred_free,
    },
    queue::HasStreams,
};
use std::{fmt, sync::Arc};
use ur_adapter::{
    error::{Error, ErrorCode, Reason, Result},
    memory::UsmPtr,
    object::{Borrowed, Owned},
    share::{Located, Opens, Refusal, SharesMemory, SharesPhysicalMemory},
};
use ur_hal::Reach;
use ur_ipc::{Access, Arrived, ENVELOPE_LEN, Importer, Kind, Offer, Opened, Payload, Remote};

/// The payload of exported memory, and the UUID of the device on which it is located.
pub type Travels = (Payload, [u8; 16]);

/// A driver whose memory can be shared between processes.
pub trait Shares: HasUsm + HasPhysicalMemory + HasPeers {
    /// Imported memory of another process. It is in this process's registry of allocations while this exists.
    type Imported: Imported<Self>;
    /// Whether shared memory is host memory that this process maps. Then tickets of all other backends for which this
    /// is true can be opened too: the device in them stands for the machine, and not for a device of one backend.
    const IS_SYSTEMS: bool = false;
    /// Whether memory of all devices of a context can be shared.
    fn shares_memory(context: &Context<Self>) -> bool;
    /// Whether physical memory of all devices of a context can be shared.
    fn shares_physical_memory(context: &Context<Self>) -> bool {
        let _ = context;
        false
    }
    /// Marks an allocation as exported, and returns its payload.
    ///
    /// # Errors
    /// `INVALID_VALUE` for memory that cannot be exported. Returns the driver's error, mapped as in `error.rs`.
    fn export(found: &Allocation<Self::Memory>) -> Result<Travels>;
    /// The payload of a physical memory of `bytes` bytes.
    ///
    /// # Errors
    /// As for [`export`](Self::export).
    fn export_physical(
        device: &Device<Self>,
        memory: &Self::Physical,
        bytes: usize,
    ) -> Result<Travels> {
        let _ = (device, memory, bytes);
        Error::unsupported("urIPCGetPhysMemHandleExp")
    }
    /// The device for which to import memory that is located on the device with this UUID, if the caller passes
    /// `device`: the device on which the memory is located, if this process can see it ([`Home::reached`]).
    ///
    /// # Errors
    /// `INVALID_VALUE` if the memory cannot be accessed from `device`. Returns the driver's error, mapped as in
    /// `error.rs`.
    fn home(device: Borrowed<'_, Device<Self>>, uuid: [u8; 16]) -> Result<Home<Self>>;
    /// Imports memory for the context's devices.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the payload contradicts the ticket ([`contradiction`]). Returns the driver's error, mapped as
    /// in `error.rs`.
    fn import(
        context: Borrowed<'_, Context<Self>>,
        home: &Home<Self>,
        arrived: Arrived,
    ) -> Result<Self::Imported>;
    /// Imports physical memory.
    ///
    /// # Errors
    /// As for [`import`](Self::import).
    fn import_physical(
        context: Borrowed<'_, Context<Self>>,
        home: &Home<Self>,
        arrived: Arrived,
    ) -> Result<Self::Physical, Refusal> {
        let _ = (context, home, arrived);
        Ok(Error::unsupported("urIPCOpenPhysMemHandleExp")?)
    }
    /// Gives one more device access to imported memory.
    ///
    /// # Errors
    /// Returns the driver's error, mapped as in `error.rs`.
    fn admit(imported: &Self::Imported, device: &Device<Self>, home: &Home<Self>) -> Result<()> {
        let _ = (imported, device, home);
        Ok(())
    }
    /// Locates an address outside this adapter's allocations, which may be in memory that other code in this process
    /// allocated.
    ///
    /// # Errors
    /// Returns the driver's error, mapped as in `error.rs`.
    fn locate_foreign(context: Borrowed<'_, Context<Self>>, at: UsmPtr) -> Result<Located<Offer>> {
        let _ = (context, at);
        Ok(Located::Nobodys)
    }
    /// Whether memory that other code allocated still exists.
    fn is_foreign_live(object: u64) -> bool {
        let _ = object;
        false
    }
    /// The address and the size in bytes of memory that other code allocated, of which the byte at `offset` will be
    /// used; `None` if it was freed.
    fn find_foreign(object: u64, offset: u64) -> Option<(UsmPtr, usize)> {
        let _ = (object, offset);
        None
    }
}
/// Imported memory of another process.
pub trait Imported<D: Shares>: Send + Sync + fmt::Debug {
    /// The whole object.
    fn allocation(&self) -> &Allocation<D::Memory>;
}
impl<D: Shares> Imported<D> for Registered<D::Memory> {
    fn allocation(&self) -> &Allocation<D::Memory> {
        self.allocation()
    }
}
/// Where memory is imported.
#[derive(Debug)]
pub struct Home<D: Shares> {
    /// The device for which it is imported.
    pub device: Owned<Device<D>>,
    /// The UUID of the device on which the memory is located, if this process cannot see that device.
    pub hidden: Option<[u8; 16]>,
}
impl<D: Shares> Home<D> {
    /// The device on which the memory is located.
    pub fn of(device: Owned<Device<D>>) -> Self {
        Self { device, hidden: None }
    }
    /// The device `home` on which the memory is located, if `device` can access its memory.
    ///
    /// # Errors
    /// `INVALID_VALUE` if it cannot. Returns the driver's error, mapped as in `error.rs`.
    pub fn reached(device: Borrowed<'_, Device<D>>, home: Owned<Device<D>>) -> Result<Self> {
        if !device.same(&home) && D::reach(device.driver(), home.driver())? == Reach::None {
            return Error::refuse(
                ErrorCode::InvalidValue,
                "the memory lies on another device, and there is no peer access from this one to it: open \
                 it for the exporter's device, and copy",
            );
        }
        Ok(Self::of(home))
    }
}
/// The objects of other processes that this process has open.
struct OpenedObjects<D: Shares> {
    memory: Importer<D::Imported>,
    physical: Importer<OpenedPhysical<D>>,
    opens: Opens<Open<D>>,
}
impl<D: Shares> OpenedObjects<D> {
    fn get() -> &'static Self {
        D::statics().get()
    }
}
impl<D: Shares> Default for OpenedObjects<D> {
    /// Nothing is open.
    fn default() -> Self {
        let backend = D::BACKEND as u16;
        Self {
            memory: importer(Kind::Memory, backend, D::IS_SYSTEMS),
            physical: importer(Kind::PhysicalMemory, backend, D::IS_SYSTEMS),
            opens: Opens::new(),
        }
    }
}
fn importer<T: Send + Sync + 'static>(kind: Kind, backend: u16, takes_any: bool) -> Importer<T> {
    match takes_any {
        true => Importer::of_any_backend(kind, backend),
        false => Importer::new(kind, backend),
    }
}
/// One open of device memory.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
enum Open<D: Shares> {
    /// Memory of this process.
    Local(Hold<D::Memory>),
    /// Memory that other code in this process allocated, and keeps alive.
    Foreign(u64),
    /// Memory of another process.
    Remote(Remote<D::Imported>),
}
impl<D: Shares> Open<D> {
    /// The memory's object number: commands submitted before an object had it cannot use the memory. 0 if that is
    /// unknown.
    fn since(&self) -> u64 {
        match self {
            Self::Local(hold) => hold.allocation().since(),
            Self::Foreign(_) => 0,
            Self::Remote(remote) => remote.allocation().since(),
        }
    }
}

/// The error for a payload that does not match its ticket.
pub fn contradiction(what: &str) -> Error {
    Error::new(ErrorCode::InvalidValue, format!("the ticket contradicts its exporter: {what}"))
}
/// The error for a size that does not fit `usize`.
pub fn too_large<E>(_: E) -> Error {
    contradiction("it is larger than this process's address space")
}
/// The payload bytes of a driver: a byte that identifies the format, then the driver's data.
pub fn bytes_of(form: u8, said: &[u8]) -> Arc<[u8]> {
    [&[form], said].concat().into()
}
/// The driver's data in payload bytes of this format.
///
/// # Errors
/// `INVALID_VALUE` for another format or length.
pub fn said<const LENGTH: usize>(form: u8, bytes: &[u8]) -> Result<[u8; LENGTH]> {
    match bytes.split_first() {
        Some((&first, rest)) if first == form => {
            rest.try_into().map_err(|_| contradiction("its bytes have another length"))
        }
        _ => Err(contradiction("its bytes are of another form")),
    }
}
/// An export with the fields that do not depend on the payload. `range`: offset and length in bytes.
pub fn offer<D: super::Contexts>(
    kind: Kind,
    object: u64,
    (payload, device): Travels,
    range: (usize, usize),
    size: usize,
) -> Offer {
    Offer {
        kind,
        backend: D::BACKEND as u16,
        device,
        object,
        offset: range.0 as u64,
        length: range.1 as u64,
        size: size as u64,
        payload,
        access: Access::SameUser,
    }
}

impl<D: Shares> SharesMemory for OverDriver<D> {
    fn shares_memory(context: &Context<D>) -> bool {
        D::shares_memory(context)
    }
    fn locate(context: Borrowed<'_, Context<D>>, at: UsmPtr) -> Result<Located<Offer>> {
        let Some(found) = Allocation::<D::Memory>::find(at) else {
            return D::locate_foreign(context, at);
        };
        match found.usm() {
            _ if found.is_opened() => return Ok(Located::Opened),
            _ if found.is_freed() => return Ok(Located::Freed),
            _ if !found.is_of(context.as_handle().addr()) => return Ok(Located::OtherContext),
            Usm::Host => return Ok(Located::Host),
            Usm::Shared => return Ok(Located::Shared),
            Usm::Device => {}
        }
        let travels = D::export(&found)?;
        let length = found.bytes_from(at);
        let range = (found.bytes() - length, length);
        let offer = offer::<D>(Kind::Memory, found.object(), travels, range, found.bytes());
        Ok(Located::Device(Offer { access: found.home().access, ..offer }))
    }
    fn is_allocated(object: u64) -> bool {
        Allocation::<D::Memory>::is_live(object) || D::is_foreign_live(object)
    }
    fn open_memory(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<UsmPtr> {
        context.check(device)?;
        let import = |arrived, home: &Home<D>| {
            deferred_free::sweep::<D::Memory>();
            D::import(context, home, arrived)
        };
        let desk = OpenedObjects::<D>::get();
        let (opened, home) = desk.memory.open(ticket, |uuid| D::home(device, uuid), import)?;
        let of = |allocation: &Allocation<D::Memory>| (allocation.base(), allocation.bytes());
        let (open, (base, bytes), offset) = match opened {
            Opened::Local { object, offset, .. } => match Hold::of(object) {
                Some(hold) => {
                    let whole = of(hold.allocation());
                    (Open::Local(hold), whole, offset)
                }
                None => {
                    let whole = D::find_foreign(object, offset).ok_or_else(|| {
                        let why =
                            "the memory was freed: keep it until all who need it have opened it";
                        Error::new(ErrorCode::InvalidValue, why).because(Reason::Freed)
                    })?;
                    (Open::Foreign(object), whole, offset)
                }
            },
            Opened::Remote(remote) => {
                D::admit(&remote, &device, &home)?;
                let (whole, offset) = (of(remote.allocation()), remote.offset());
                (Open::Remote(remote), whole, offset)
            }
        };
        let inside = usize::try_from(offset).ok().filter(|&offset| offset < bytes);
        let at =
            base.offset(inside.ok_or_else(|| contradiction("the range leaves its object"))?)?;
        desk.opens.add(at, open);
        Ok(at)
    }
    fn close_memory(context: Borrowed<'_, Context<D>>, at: UsmPtr) -> Result<()> {
        let open = OpenedObjects::<D>::get().opens.take(at)?;
        let before = D::Memory::submitted(context.as_handle().addr(), open.since());
        deferred_free::after::<D::Memory>(before, open);
        Ok(())
    }
}
impl<D: Shares> SharesPhysicalMemory for OverDriver<D> {
    fn shares_physical_memory(context: &Context<D>) -> bool {
        D::shares_physical_memory(context)
    }
    fn is_shareable(memory: &PhysicalMem<D>) -> bool {
        memory.is_shareable()
    }
    fn is_opened(memory: &PhysicalMem<D>) -> bool {
        memory.is_opened()
    }
    fn offer_physical_memory(memory: Borrowed<'_, PhysicalMem<D>>) -> Result<Offer> {
        memory.check_fork()?;
        let (object, bytes) = (memory.object(), memory.bytes());
        let travels = D::export_physical(memory.device(), memory.expose(), bytes)?;
        Ok(offer::<D>(Kind::PhysicalMemory, object, travels, (0, bytes), bytes))
    }
    fn open_physical_memory(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<Owned<PhysicalMem<D>>, Refusal> {
        context.check(device)?;
        let import = |arrived, home: &Home<D>| -> Result<_, Refusal> {
            Ok(OpenedPhysical(D::import_physical(context, home, arrived)?))
        };
        let home = |uuid| Ok(D::home(device, uuid)?);
        let (opened, home) = OpenedObjects::<D>::get().physical.open(ticket, home, import)?;
        let home = home.device.borrow();
        Ok(Owned::new(match opened {
            Opened::Local { object, .. } => PhysicalMem::again(context, home, object)?,
            Opened::Remote(remote) => PhysicalMem::opened(context, home, remote)?,
        }))
    }
}
ur_adapter::share_entries!(impl[D: Shares + HasStreams] OverDriver<D>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_said_reads_back_in_its_own_form_only() {
        let bytes = bytes_of(2, &[7; 64]);
        assert_eq!(said(2, &bytes).unwrap(), [7; 64]);
        for (form, bytes) in [(3, &bytes[..]), (2, &bytes[..64]), (2, &[]), (2, &[2])] {
            let error = said::<64>(form, bytes).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidValue);
            assert!(error.to_string().contains("contradicts"), "{error}");
        }
    }
}
