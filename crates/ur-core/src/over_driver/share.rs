//! Sharing memory with other processes: what an address or an object offers, and what is kept of what arrives. Who may
//! have it is `ur_ipc`'s, the entries are `ur_adapter::share`'s; how memory travels and what the driver opens is the backend's.
use super::{
    OverDriver,
    p2p::HasPeers,
    physical_mem::{HasPhysicalMemory, OpenedPhysical, PhysicalMem},
    usm_pool::{Context, Device, HasUsm},
};
use crate::{
    memory::{
        allocation::{Allocation, Hold, Usm},
        deferred_free,
    },
    queue::HasStreams,
};
use std::{fmt, sync::Arc};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Owned},
    share::{Located, Opens, Refusal, SharesMemory, SharesPhysicalMemory},
};
use ur_hal::Reach;
use ur_ipc::{Access, Arrived, ENVELOPE_LEN, Importer, Kind, Offer, Opened, Payload, Remote};

/// How memory travels, and the UUID of the device that it lies on.
pub type Travels = (Payload, [u8; 16]);

/// A driver whose memory processes share.
pub trait Shares: HasUsm + HasPhysicalMemory + HasPeers {
    /// Another process's memory, in this process's registry for as long as this lives.
    type Imported: Imported<Self>;
    /// Whether memory that is shared is the system's, in mappings of ours, so that tickets of every other backend of which that
    /// holds can be opened: the device that they name is the machine, and no backend's own.
    const IS_SYSTEMS: bool = false;
    /// What is open.
    fn opened_objects() -> &'static OpenedObjects<Self>;
    /// Whether memory of all devices of a context can be shared.
    fn shares_memory(context: &Context<Self>) -> bool;
    /// The same of physical memory.
    fn shares_physical_memory(context: &Context<Self>) -> bool {
        let _ = context;
        false
    }
    /// How others open an allocation, of which it is told here that they may.
    ///
    /// # Errors
    /// `INVALID_VALUE` for memory that cannot be opened by others; the driver's own.
    fn export(found: &Allocation<Self::Memory>) -> Result<Travels>;
    /// How others open physical memory of so many bytes.
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
    /// The device to import for where callers name `device` and the memory lies on the one with this UUID: the memory's
    /// own, if this process sees it ([`Home::reached`]).
    ///
    /// # Errors
    /// `INVALID_VALUE` where that cannot be; the driver's own.
    fn home(device: Borrowed<'_, Device<Self>>, uuid: [u8; 16]) -> Result<Home<Self>>;
    /// What arrived, as memory that the context's devices can use.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what contradicts its exporter ([`contradiction`]); the driver's own.
    fn import(
        context: Borrowed<'_, Context<Self>>,
        home: &Home<Self>,
        arrived: Arrived,
    ) -> Result<Self::Imported>;
    /// What arrived, as physical memory.
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
    /// Lets one more device reach memory that is open.
    ///
    /// # Errors
    /// The driver's own.
    fn admit(imported: &Self::Imported, device: &Device<Self>, home: &Home<Self>) -> Result<()> {
        let _ = (imported, device, home);
        Ok(())
    }
    /// What is at an address in no allocation of ours: memory that somebody else in this process allocated.
    ///
    /// # Errors
    /// The driver's own.
    fn locate_foreign(context: Borrowed<'_, Context<Self>>, at: UsmPtr) -> Result<Located<Offer>> {
        let _ = (context, at);
        Ok(Located::Nobodys)
    }
    /// Whether such memory is still there.
    fn is_foreign_live(object: u64) -> bool {
        let _ = object;
        false
    }
    /// Where such memory is, and how many bytes it has; a byte `offset` of it is going to be used.
    ///
    /// # Errors
    /// `INVALID_VALUE` for what is not there any more.
    fn find_foreign(object: u64, offset: u64) -> Result<(UsmPtr, usize)> {
        let _ = (object, offset);
        Err(Error::new(ErrorCode::InvalidValue, "the memory was freed"))
    }
}
/// Another process's memory that is open here.
pub trait Imported<D: Shares>: Send + Sync + fmt::Debug {
    /// The whole of the object.
    fn allocation(&self) -> &Allocation<D::Memory>;
}
/// Where memory is imported.
#[derive(Debug)]
pub struct Home<D: Shares> {
    /// The device that it is imported for.
    pub device: Owned<Device<D>>,
    /// The memory's own, if that is hidden from this process.
    pub hidden: Option<[u8; 16]>,
}
impl<D: Shares> Home<D> {
    /// The device itself.
    pub fn of(device: Owned<Device<D>>) -> Self {
        Self { device, hidden: None }
    }
    /// `home`, which `device` is to reach.
    ///
    /// # Errors
    /// `INVALID_VALUE` where there is no link; the driver's own.
    pub fn reached(device: Borrowed<'_, Device<D>>, home: Owned<Device<D>>) -> Result<Self> {
        if !device.same(&home) && D::reach(device.driver(), home.driver())? == Reach::None {
            return Err(Error::new(
                ErrorCode::InvalidValue,
                "the memory lies on another device, and there is no peer access from this one to it: open \
                 it for the exporter's device, and copy",
            ));
        }
        Ok(Self::of(home))
    }
}
/// What a process has open of others.
pub struct OpenedObjects<D: Shares> {
    memory: Importer<D::Imported>,
    physical: Importer<OpenedPhysical<D>>,
    opens: Opens<Open<D>>,
}
impl<D: Shares> OpenedObjects<D> {
    /// Nothing yet.
    #[expect(clippy::new_without_default, reason = "statics are made of it")]
    pub const fn new() -> Self {
        let backend = D::BACKEND as u16;
        Self {
            memory: importer(Kind::Memory, backend, D::IS_SYSTEMS),
            physical: importer(Kind::PhysicalMemory, backend, D::IS_SYSTEMS),
            opens: Opens::new(),
        }
    }
}
const fn importer<T: Send + Sync + 'static>(
    kind: Kind,
    backend: u16,
    takes_any: bool,
) -> Importer<T> {
    match takes_any {
        true => Importer::of_any_backend(kind, backend),
        false => Importer::new(kind, backend),
    }
}
impl<D: Shares> fmt::Debug for OpenedObjects<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenedObjects").finish_non_exhaustive()
    }
}
/// One open of device memory.
#[derive(Debug)]
#[expect(dead_code, reason = "held to be dropped")]
enum Open<D: Shares> {
    /// Of this process's own.
    Local(Hold<D::Memory>),
    /// Of what somebody else in this process allocated; its owner keeps it.
    Foreign(u64),
    /// Of another process's.
    Remote(Remote<D::Imported>),
}
impl<D: Shares> Open<D> {
    /// The number of the object before whose time no command knew the memory; 0: unknown.
    fn since(&self) -> u64 {
        match self {
            Self::Local(hold) => hold.allocation().since(),
            Self::Foreign(_) => 0,
            Self::Remote(remote) => remote.allocation().since(),
        }
    }
}

/// What is said of a ticket that does not keep what it says.
pub fn contradiction(what: &str) -> Error {
    Error::new(ErrorCode::InvalidValue, format!("the ticket contradicts its exporter: {what}"))
}
/// What is said of sizes that this process has no addresses for.
pub fn too_large<E>(_: E) -> Error {
    contradiction("it is larger than this process's addresses")
}
/// What a driver's bytes say: their form, which is the first, and what the driver said.
pub fn bytes_of(form: u8, said: &[u8]) -> Arc<[u8]> {
    [&[form], said].concat().into()
}
/// What the driver said, if the bytes are of that form.
///
/// # Errors
/// `INVALID_VALUE` for any other, and for another length.
pub fn said<const LENGTH: usize>(form: u8, bytes: &[u8]) -> Result<[u8; LENGTH]> {
    match bytes.split_first() {
        Some((&first, rest)) if first == form => {
            rest.try_into().map_err(|_| contradiction("its bytes have another length"))
        }
        _ => Err(contradiction("its bytes are of another form")),
    }
}
/// What an offer says beside what it consists of.
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
        D::check_fork()?;
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
        D::check_fork()?;
        context.check(device)?;
        let import = |arrived, home: &Home<D>| {
            deferred_free::sweep::<D::Memory>();
            D::import(context, home, arrived)
        };
        let desk = D::opened_objects();
        let (opened, home) = desk.memory.open(ticket, |uuid| D::home(device, uuid), import)?;
        let of = |allocation: &Allocation<D::Memory>| (allocation.base(), allocation.bytes());
        let (open, (base, bytes), offset) = match opened {
            Opened::Local { object, offset, .. } => match Hold::of(object) {
                Some(hold) => {
                    let whole = of(hold.allocation());
                    (Open::Local(hold), whole, offset)
                }
                None => (Open::Foreign(object), D::find_foreign(object, offset)?, offset),
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
        let open = D::opened_objects().opens.take(at)?;
        let before = D::submitted(&context, open.since());
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
        D::check_fork()?;
        context.check(device)?;
        let import = |arrived, home: &Home<D>| -> Result<_, Refusal> {
            Ok(OpenedPhysical(D::import_physical(context, home, arrived)?))
        };
        let home = |uuid| Ok(D::home(device, uuid)?);
        let (opened, home) = D::opened_objects().physical.open(ticket, home, import)?;
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
