//! Sharing of memory between processes: its export, and what is done with imported memory. `ur_ipc` decides who may
//! open it, and the entries are in `ur_adapter::share`; the backend makes the payload and imports it.
use super::{
    OverDriver, foreign,
    leaving::Leaving,
    offer::{export, offer},
    physical_mem::{HasPhysicalMemory, OpenedPhysical, PhysicalMem},
    usm_pool::{Context, Device, HasUsm},
};
use crate::{
    memory::{
        allocation::{self, Allocation, Hold, Memory as _, Registered, Usm},
        deferred_free,
    },
    queue::HasStreams,
};
use ur_adapter::{
    error::{Error, ErrorCode, Reason, Result},
    memory::UsmPtr,
    object::{Borrowed, Owned},
    share::{Located, Opens, Refusal, SharesMemory, SharesPhysicalMemory},
};
use ur_hal::{Export, Memory as _, Reach, ReachesPeers, Types, contradiction};
use ur_ipc::{ENVELOPE_LEN, Importer, Kind, Offer, Opened, Remote};

/// Where memory is imported.
#[derive(Debug)]
struct Home<D: HasUsm> {
    /// The device for which it is imported: the one on which the memory is located, if this process can see that.
    device: Owned<Device<D>>,
    /// The UUID of the device on which the memory is located, if this process cannot see that device.
    hidden: Option<[u8; 16]>,
}
impl<D: HasPhysicalMemory + ReachesPeers> Home<D> {
    /// For memory that is located on the device with this UUID, if the caller passes `device`.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the memory cannot be accessed from `device`. Returns the driver's error, mapped as in
    /// `error.rs`.
    fn of(device: Borrowed<'_, Device<D>>, uuid: [u8; 16]) -> Result<Self> {
        let Some(home) = D::home(device.driver(), uuid)? else {
            return Ok(Self { device: device.own()?, hidden: Some(uuid) });
        };
        if *device.driver() == home {
            return Ok(Self { device: device.own()?, hidden: None });
        }
        if D::reach(device.driver(), &home)? == Reach::None {
            return Error::refuse(
                ErrorCode::InvalidValue,
                "the memory lies on another device, and there is no peer access from this one to it: open \
                 it for the exporter's device, and copy",
            );
        }
        Ok(Self { device: Device::of(&home)?, hidden: None })
    }
    /// The driver's error, explained if this process does not see the device.
    fn explained(&self, error: ur_hal::Error) -> Error {
        match self.hidden {
            Some(uuid) => D::explain_hidden(uuid, error).into(),
            None => error.into(),
        }
    }
}
/// The objects of other processes that this process has open.
struct OpenedObjects<D: HasPhysicalMemory> {
    memory: Importer<Registered<D::Memory>>,
    physical: Importer<OpenedPhysical<D>>,
    opens: Opens<Open<D>>,
}
impl<D: HasPhysicalMemory> OpenedObjects<D> {
    fn get() -> &'static Self {
        D::statics().get()
    }
}
impl<D: HasPhysicalMemory> Default for OpenedObjects<D> {
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
enum Open<D: HasUsm> {
    /// Memory of this process.
    Local(Hold<D::Memory>),
    /// Memory that other code in this process allocated, and keeps alive.
    Foreign(u64),
    /// Memory of another process.
    Remote(Remote<Registered<D::Memory>>),
}
impl<D: HasUsm> Open<D> {
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

impl<D: HasPhysicalMemory> Open<D> {
    /// Its bytes if the driver makes the caller wait when it is closed.
    fn waits(&self) -> Option<usize> {
        let Self::Remote(remote) = self else { return None };
        let opened = remote.allocation().memory().and_then(allocation::Memory::as_opened)?;
        D::waits_when_closed(opened).then(|| remote.allocation().bytes())
    }
}

/// Whether all devices of the context share something.
fn every<D: HasPhysicalMemory + ReachesPeers>(
    context: &Context<D>,
    shares: impl Fn(&<D as Types>::Device) -> ur_hal::Result<bool>,
) -> Result<bool> {
    let mut devices = context.devices().iter();
    let all = devices.try_fold(true, |all, device| Ok(all && shares(device.driver())?));
    all.map_err(|error: ur_hal::Error| error.into())
}
impl<D: HasPhysicalMemory + ReachesPeers> SharesMemory for OverDriver<D> {
    fn shares_memory(context: &Context<D>) -> Result<bool> {
        every(context, D::shares_memory)
    }
    fn locate(context: Borrowed<'_, Context<D>>, at: UsmPtr) -> Result<Located<Offer>> {
        let Some(found) = Allocation::<D::Memory>::find(at) else {
            return foreign::locate(context, at);
        };
        match found.usm() {
            _ if found.is_opened() => return Ok(Located::Opened),
            _ if found.is_freed() => return Ok(Located::Freed),
            _ if !found.is_of(context.as_handle().addr()) => return Ok(Located::OtherContext),
            Usm::Host => return Ok(Located::Host),
            Usm::Shared => return Ok(Located::Shared),
            Usm::Device => {}
        }
        let travels = export::<D>(&found)?;
        let length = found.bytes_from(at);
        let range = (found.bytes() - length, length);
        let offer = offer::<D>(Kind::Memory, found.object(), travels, range, found.bytes());
        Ok(Located::Device(Offer { access: found.home().access, ..offer }))
    }
    fn is_allocated(object: u64) -> bool {
        Allocation::<D::Memory>::is_live(object) || foreign::is_live::<D>(object)
    }
    fn open_memory(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<UsmPtr> {
        context.check(device)?;
        let import = |arrived, home: &Home<D>| {
            deferred_free::sweep::<D::Memory>();
            let opened = D::import(context.driver(), home.device.driver(), arrived);
            let opened = opened.map_err(|error| home.explained(error))?;
            let (range, device) = (opened.range(), home.device.as_handle().addr());
            let base = range.start().into();
            Ok(Registered::new(base, range.bytes(), device, allocation::Memory::opened(opened)))
        };
        let desk = OpenedObjects::<D>::get();
        let (opened, home) = desk.memory.open(ticket, |uuid| Home::of(device, uuid), import)?;
        let of = |allocation: &Allocation<D::Memory>| (allocation.base(), allocation.bytes());
        let (open, (base, bytes), offset) = match opened {
            Opened::Local { object, offset, .. } => match Hold::of(object) {
                Some(hold) => {
                    let whole = of(hold.allocation());
                    (Open::Local(hold), whole, offset)
                }
                None => {
                    let whole = foreign::find::<D>(object, offset).ok_or_else(|| {
                        let why =
                            "the memory was freed: keep it until all who need it have opened it";
                        Error::new(ErrorCode::InvalidValue, why).because(Reason::Freed)
                    })?;
                    (Open::Foreign(object), whole, offset)
                }
            },
            Opened::Remote(remote) => {
                if let Some(opened) =
                    remote.allocation().memory().and_then(allocation::Memory::as_opened)
                {
                    D::admit(opened, device.driver(), home.device.driver())?;
                }
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
        let waits = open.waits();
        deferred_free::after::<D::Memory>(before, Leaving::<D, _>::new(open, waits));
        Ok(())
    }
}
impl<D: HasPhysicalMemory + ReachesPeers> SharesPhysicalMemory for OverDriver<D> {
    fn shares_physical_memory(context: &Context<D>) -> Result<bool> {
        every(context, D::shares_physical)
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
        let travels = D::export(Export::Physical(memory.expose()))?;
        Ok(offer::<D>(Kind::PhysicalMemory, object, travels, (0, bytes), bytes))
    }
    fn open_physical_memory(
        context: Borrowed<'_, Context<D>>,
        device: Borrowed<'_, Device<D>>,
        ticket: &[u8; ENVELOPE_LEN],
    ) -> Result<Owned<PhysicalMem<D>>, Refusal> {
        context.check(device)?;
        let import = |arrived, home: &Home<D>| -> Result<_, Refusal> {
            let opened = D::import_physical(context.driver(), home.device.driver(), arrived);
            Ok(OpenedPhysical(opened.map_err(|error| home.explained(error))?))
        };
        let home = |uuid| Ok(Home::of(device, uuid)?);
        let (opened, home) = OpenedObjects::<D>::get().physical.open(ticket, home, import)?;
        let home = home.device.borrow();
        Ok(Owned::new(match opened {
            Opened::Local { object, .. } => PhysicalMem::again(context, home, object)?,
            Opened::Remote(remote) => PhysicalMem::opened(context, home, remote)?,
        }))
    }
}
ur_adapter::share_entries!(impl[D: HasPhysicalMemory + ReachesPeers + HasStreams] OverDriver<D>);
