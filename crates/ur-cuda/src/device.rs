//! Devices: enumeration, properties and the primary context of each.
use super::{
    Family,
    attribute::Attribute,
    backing,
    clock::{Base, Clock},
    context::{ContextState, DriverContext},
    driver::{Dialect, RawContext},
    native::{
        context::{self, Entered},
        device as native,
        event::EventPool,
        pool::DriverPool,
    },
    patience::Sleepers,
};
use crate::notice;
use std::sync::{Arc, OnceLock};
use ur_hal::{Clocks, Error, ErrorKind, OpensDevices, PlatformFacts, Result, Severity};
use ur_lock::get_or_try;

/// A device. It lives as long as the process.
#[derive(Debug)]
pub struct DriverDevice<D: Dialect> {
    number: i32,
    uuid: [u8; 16],
    context: OnceLock<RawContext>,
    events: Arc<EventPool<D>>,
    sleepers: Sleepers<D>,
    clock: OnceLock<Clock<D>>,
    /// Bytes of local memory that a work-group may use.
    local_memory: OnceLock<u32>,
    /// Bytes of its memory.
    memory: OnceLock<usize>,
    /// Whether it has pools that can be shared.
    has_pools: OnceLock<bool>,
    /// Whether memory allocated on it can be shared with other processes.
    is_shared: OnceLock<bool>,
}

/// The devices of a dialect, enumerated once in a process.
#[derive(Debug)]
pub struct System<D: Dialect>(OnceLock<Found<D>>);
#[derive(Debug)]
struct Found<D: Dialect> {
    /// The process's fork count when the driver was initialised.
    fork: u64,
    devices: Vec<Arc<DriverDevice<D>>>,
}
impl<D: Dialect> System<D> {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }
    fn found(&self) -> &Found<D> {
        self.0.get_or_init(|| {
            let devices = find::<D>().unwrap_or_else(|error| {
                notice::<D>(Severity::Warning, &error);
                vec![]
            });
            Found { fork: ur_mapping::fork_count(), devices }
        })
    }
}
/// Enumerates the devices. Without a driver the list is empty; that is no error.
fn find<D: Dialect>() -> Result<Vec<Arc<DriverDevice<D>>>> {
    if !D::driver().is_there() {
        return Ok(vec![]);
    }
    context::init::<D>()?;
    native::all::<D>()?
        .into_iter()
        .map(|number| {
            Ok(Arc::new(DriverDevice {
                number,
                uuid: native::uuid::<D>(number)?,
                context: OnceLock::new(),
                events: Arc::new(EventPool::new(number)),
                sleepers: Sleepers::new(),
                clock: OnceLock::new(),
                local_memory: OnceLock::new(),
                memory: OnceLock::new(),
                has_pools: OnceLock::new(),
                is_shared: OnceLock::new(),
            }))
        })
        .collect()
}
/// All devices that are visible to this process, in the driver's order. Initialises the driver.
pub fn all<D: Dialect>() -> &'static [Arc<DriverDevice<D>>] {
    &D::statics().system.found().devices
}
/// The device with this number of the driver's.
pub(super) fn numbered<D: Dialect>(number: i32) -> Option<&'static Arc<DriverDevice<D>>> {
    all::<D>().iter().find(|device| device.number == number)
}
/// # Errors
/// `UNINITIALIZED` in a child process that was forked after the driver was initialised: the driver does not
/// work there.
pub fn check_fork<D: Dialect>() -> Result<()> {
    match D::statics().system.found().fork == ur_mapping::fork_count() {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::Uninitialized,
            format!(
                "{} was started before this process was forked and does not work in the child: fork \
                 first, or start another program",
                D::NAME
            ),
        )),
    }
}

impl<D: Dialect> PartialEq for DriverDevice<D> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl<D: Dialect> DriverDevice<D> {
    /// The driver's number (`CUdevice`). Valid in this process only; other processes may number devices
    /// differently.
    pub fn number(&self) -> i32 {
        self.number
    }
    /// Its UUID, the same in every process.
    pub fn uuid(&self) -> [u8; 16] {
        self.uuid
    }
    /// Its primary context, retained at first use because creating one takes time and device memory.
    ///
    /// # Errors
    /// Returns the driver's error; `UNINITIALIZED` in a forked child.
    pub fn context(&self) -> Result<RawContext> {
        check_fork::<D>()?;
        let context = get_or_try(&self.context, || {
            let retained = context::retain_primary::<D>(self.number)?;
            // Before the first use of the context: gives it the peer accesses that were requested earlier.
            D::statics().memory.get().peers.started(self.number)?;
            Ok::<_, Error>(retained)
        });
        context.copied()
    }
    /// Whether `context` is its primary context. A primary context that is not active is not activated by
    /// this query.
    ///
    /// # Errors
    /// As for [`DriverDevice::context`].
    pub fn is_primary(&self, context: RawContext) -> Result<bool> {
        check_fork::<D>()?;
        Ok(context::is_primary_active::<D>(self.number)? && self.context()? == context)
    }
    /// Makes its primary context current on this thread until the returned guard is dropped.
    ///
    /// # Errors
    /// As for [`DriverDevice::context`].
    pub fn enter(&self) -> Result<Entered<D>> {
        Entered::enter(self.context()?)
    }
    /// The value of a device attribute, by the driver's number for it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn attribute(&self, attribute: i32) -> Result<i32> {
        check_fork::<D>()?;
        native::attribute::<D>(self.number, attribute)
    }
    /// Bytes of local memory that a work-group may use: what a kernel can opt in to, or less if the
    /// environment variable `UR_CUDA_MAX_LOCAL_MEM_SIZE` (HIP: `UR_HIP_MAX_LOCAL_MEM_SIZE`) says so.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn local_memory(&self) -> Result<u32> {
        let bytes = get_or_try(&self.local_memory, || {
            let most = match self.told(Attribute::LocalMemoryOptIn)? {
                Some(most) => most,
                None => self.get(Attribute::LocalMemory)?,
            };
            let bytes = wished_local_memory::<D>().map_or(most, |wished| wished.min(most));
            Ok(bytes.max(0) as u32)
        });
        bytes.copied()
    }
    /// Bytes of its memory. The driver is queried once.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn memory(&self) -> Result<usize> {
        get_or_try(&self.memory, || native::memory::<D>(self.number)).copied()
    }
    /// Whether it has pools that can be shared with other processes. The driver is queried once.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn has_pools(&self) -> Result<bool> {
        get_or_try(&self.has_pools, || DriverPool::is_supported(self)).copied()
    }
    /// Whether memory allocated on it can be shared with other processes. The driver is queried once.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn is_shared(&self) -> Result<bool> {
        get_or_try(&self.is_shared, || backing::is_shared(self)).copied()
    }
    /// Its pool of driver events for reuse.
    pub fn events(&self) -> &Arc<EventPool<D>> {
        &self.events
    }
    /// The events on which threads sleep that wait for the device.
    pub(super) fn sleepers(&self) -> &Sleepers<D> {
        &self.sleepers
    }
    fn clock(&self) -> Result<&Clock<D>> {
        get_or_try(&self.clock, || Clock::start(self))
    }
    /// The reference point for the times of events recorded from now on.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn base(&self) -> Result<Arc<Base<D>>> {
        self.clock()?.base(self)
    }
}
/// Whether the driver supports images: arrays and surfaces.
pub(super) fn has_images<D: Dialect>() -> bool {
    let driver = D::driver();
    driver.has("array_create") && driver.has("surface_create") && driver.has("copy_3d")
}
/// The limit of local memory from the environment, if there is a valid one.
fn wished_local_memory<D: Dialect>() -> Option<i32> {
    let name = format!("UR_{}_MAX_LOCAL_MEM_SIZE", D::NAME);
    let text = std::env::var(&name).ok()?;
    let bytes = text.trim().parse().ok().filter(|&bytes| bytes > 0);
    if bytes.is_none() {
        let why = format!("{name}={text} is no number of bytes: it is ignored");
        notice::<D>(Severity::Warning, &Error::new(ErrorKind::InvalidValue, why));
    }
    bytes
}

impl<D: Dialect> OpensDevices for Family<D> {
    const NAME: &'static str = D::NAME;
    fn devices() -> Result<Vec<Arc<DriverDevice<D>>>> {
        Ok(all::<D>().to_vec())
    }
    fn platform(_: &Arc<DriverDevice<D>>) -> Result<PlatformFacts> {
        let version = native::version::<D>()?;
        Ok(PlatformFacts {
            name: format!("Causeway {}", D::NAME),
            vendor: "Causeway".into(),
            version: format!("{} {}.{}", D::NAME, version / 1000, version % 1000 / 10),
            extensions: String::new(),
            handle: None, // the driver has no platform objects
        })
    }
    fn uuid(device: &Arc<DriverDevice<D>>) -> Result<[u8; 16]> {
        Ok(device.uuid)
    }
    fn clocks(device: &Arc<DriverDevice<D>>) -> Result<Clocks> {
        let (device, host) = device.clock()?.read(device)?;
        Ok(Clocks { device, host })
    }
    /// Creates no driver context: a device's primary context is retained at its first use.
    fn open(devices: &[Arc<DriverDevice<D>>]) -> Result<DriverContext<D>> {
        Ok(ContextState::new(devices.to_vec()))
    }
}
