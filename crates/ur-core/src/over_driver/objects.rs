//! Adapter, platforms, devices and contexts: handles over the driver's objects. The driver lists its devices once in a
//! process. The entries are in `adapter.rs`, `device_entries.rs` and `context.rs`.
use crate::process_mutex::ProcessMutex;
use std::{
    ffi::CStr,
    marker::PhantomData,
    ops::Deref,
    sync::{Arc, OnceLock},
};
use ur_adapter::{
    api::Objects,
    callback::ContextDeleter,
    error::{Error, ErrorCode, Result},
    log,
    object::{Backend, Borrowed, Object, Owned},
    statics::{Statics, TypeMap},
};
use ur_hal::{NativeHandles, OpensDevices, PlatformFacts, Types};
use ur_mapping::PerProcess;
use ur_sys::{ur_backend_t, ur_logger_level_t};

/// The driver's object for a device.
pub type DriverDevice<D> = <D as Types>::Device;
/// The driver's object for a context.
pub type DriverContext<D> = <D as Types>::Context;
/// The address of an object's handle, which tells it from all others that exist.
pub(super) fn handle<T>(object: &Object<T>) -> usize {
    object.as_handle().addr()
}

/// A driver over which the core implements devices and contexts, and the properties of its adapter.
pub trait Contexts:
    OpensDevices
    + NativeHandles
    + Objects<
        Adapter = Adapter<Self>,
        Platform = Platform<Self>,
        Device = Device<Self>,
        Context = Context<Self>,
    >
{
    /// The backend in the tags of its handles.
    const BACKEND: Backend;
    /// Whether partitioning a device again returns the same objects for the same parts.
    const KEEPS_PARTS: bool = true;
    /// The adapter's objects that exist once in a process.
    fn statics() -> &'static Statics;
    /// The name of the adapter in logs, and in the environment variable that configures its log: `UR_LOG_…`.
    fn log_name() -> &'static str;
    /// The backend that callers see. May read the environment, and log what is wrong there.
    fn shown_as() -> ur_backend_t {
        ur_backend_t(Self::BACKEND as u32)
    }
    /// Tells several adapters over the same driver apart.
    fn adapter_version() -> u32 {
        1
    }
    /// Called before anything else under the name of this version, if the driver's adapter has names for several
    /// ([`adapter_of_version`](crate::adapter_of_version)).
    fn loaded_as(version: u32) {
        let _ = version;
    }
    /// Whether this adapter lists its devices, if several adapters over the same driver exist.
    fn is_chosen() -> bool {
        true
    }
    /// The option of the driver's compiler that corresponds to a standard compiler option.
    fn compiler_option(option: &[u8]) -> Option<&'static CStr> {
        matches!(option, b"-O0" | b"-O1" | b"-O2" | b"-O3" | b"").then_some(c"")
    }
    /// Checks that the driver can be used in this process.
    ///
    /// # Errors
    /// `UNINITIALIZED` in a forked child of a process whose driver works in that process alone.
    fn check_fork() -> Result<()> {
        Ok(())
    }
}
/// What `ur_adapter_handle_t` points at.
#[derive(Debug)]
pub struct Adapter<D>(PhantomData<fn() -> D>);
impl<D> Adapter<D> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }
}
body!(Adapter: Contexts, Adapter, InvalidValue);
/// What `ur_platform_handle_t` points at.
#[derive(Debug)]
pub struct Platform<D: Contexts> {
    pub(super) facts: PlatformFacts,
    roots: OnceLock<Vec<Owned<Device<D>>>>,
    /// Devices that are composed of several of the roots.
    composites: OnceLock<Vec<Owned<Device<D>>>>,
}
body!(Platform: Contexts, Platform, InvalidPlatform);
impl<D: Contexts> Platform<D> {
    /// A platform with devices that refer to it.
    fn new(
        facts: PlatformFacts,
        devices: Vec<DriverDevice<D>>,
        composites: Vec<DriverDevice<D>>,
    ) -> Owned<Self> {
        let (roots, none) = (OnceLock::new(), OnceLock::new());
        let new = Owned::new(Self { facts, roots, composites: none });
        let device = |one| Device::new(one, new.clone(), None);
        let devices: Vec<_> = devices.into_iter().map(device).collect();
        let composites: Vec<_> = composites.into_iter().map(device).collect();
        // Entries return composite devices only as answers to queries, which do not publish a handle. So publish them
        // now; otherwise their handles would be refused as not live.
        composites.iter().for_each(|one| _ = one.clone().publish());
        new.roots.get_or_init(|| devices);
        new.composites.get_or_init(|| composites);
        new
    }
    /// Its devices that are not parts of others, in the driver's order.
    pub fn roots(&self) -> &[Owned<Device<D>>] {
        self.roots.get().map_or(&[], Vec::as_slice)
    }
}
/// What `ur_device_handle_t` points at.
#[derive(Debug)]
pub struct Device<D: Contexts> {
    driver: DriverDevice<D>,
    pub(super) platform: Owned<Platform<D>>,
    parent: Option<Owned<Device<D>>>,
    /// Facts about it that were asked for already.
    pub(super) known: TypeMap,
    /// Its parts that have handles, if the same part always has the same handle. A forked child makes handles of its own.
    parts: PerProcess<ProcessMutex<Vec<Owned<Device<D>>>>>,
}
body!(Device: Contexts, Device, InvalidDevice, {
    /// Root devices exist as long as the process.
    fn is_counted(&self) -> bool {
        self.parent.is_some()
    }
});
impl<D: Contexts> Deref for Device<D> {
    type Target = DriverDevice<D>;
    fn deref(&self) -> &DriverDevice<D> {
        &self.driver
    }
}
impl<D: Contexts> Device<D> {
    fn new(
        driver: DriverDevice<D>,
        platform: Owned<Platform<D>>,
        parent: Option<Owned<Self>>,
    ) -> Owned<Self> {
        let (known, parts) = (TypeMap::new(), PerProcess::new());
        Owned::new(Self { driver, platform, parent, known, parts })
    }
    /// The driver's object.
    pub fn driver(&self) -> &DriverDevice<D> {
        &self.driver
    }
    /// The device of which it is a part.
    pub fn parent(&self) -> Option<&Owned<Self>> {
        self.parent.as_ref()
    }
    /// The handle of a device of the driver.
    ///
    /// # Errors
    /// `INVALID_DEVICE` for a device that the driver has not listed.
    pub fn of(driver: &DriverDevice<D>) -> Result<Owned<Self>> {
        if let Some(parent) = D::parent(driver) {
            return Self::part(&Self::of(&parent)?, driver.clone());
        }
        listed().find(|one| one.driver == *driver).cloned().ok_or_else(|| {
            Error::new(ErrorCode::InvalidDevice, "the driver did not list this device at first")
        })
    }
    /// The handle of a part of a device.
    ///
    /// # Errors
    /// As for [`ProcessMutex::lock`].
    pub(super) fn part(of: &Owned<Self>, driver: DriverDevice<D>) -> Result<Owned<Self>> {
        let make = |driver| Self::new(driver, of.platform.clone(), Some(of.clone()));
        if !D::KEEPS_PARTS {
            return Ok(make(driver));
        }
        let mut parts = of.parts.get().lock()?;
        if let Some(known) = parts.iter().find(|one| one.driver == driver) {
            return Ok(known.clone());
        }
        parts.push(make(driver));
        Ok(parts[parts.len() - 1].clone())
    }
}

/// All platforms that have devices. The first call asks the driver.
pub(super) fn platforms<D: Contexts>() -> &'static [Owned<Platform<D>>] {
    D::statics().get::<OnceLock<Vec<Owned<Platform<D>>>>>().get_or_init(find)
}
/// All devices that are not parts of others.
pub fn roots<D: Contexts>() -> impl Iterator<Item = &'static Owned<Device<D>>> {
    platforms::<D>().iter().flat_map(|one| one.roots())
}
/// Like [`roots`], and the composite devices.
pub(super) fn listed<D: Contexts>() -> impl Iterator<Item = &'static Owned<Device<D>>> {
    let composites = |one: &'static Owned<Platform<D>>| one.composites.get().into_iter().flatten();
    roots::<D>().chain(platforms::<D>().iter().flat_map(composites))
}
/// Lists the driver's platforms and devices. What fails is logged and left out.
fn find<D: Contexts>() -> Vec<Owned<Platform<D>>> {
    let logged = |error: &ur_hal::Error| log::say(D::BACKEND, ur_logger_level_t::WARN, error);
    let mut all: Vec<(PlatformFacts, [Vec<DriverDevice<D>>; 2])> = vec![];
    let roots = D::devices().inspect_err(logged).unwrap_or_default();
    for (which, devices) in [roots, D::composites()].into_iter().enumerate() {
        for device in devices {
            let Ok(facts) = D::platform(&device).inspect_err(logged) else { continue };
            let at = all.iter().position(|(known, _)| *known == facts).unwrap_or_else(|| {
                all.push((facts, [vec![], vec![]]));
                all.len() - 1
            });
            all[at].1[which].push(device);
        }
    }
    let all = all.into_iter();
    all.map(|(facts, [roots, composites])| Platform::new(facts, roots, composites)).collect()
}

/// What `ur_context_handle_t` points at: devices whose objects can be used together.
#[derive(Debug)]
pub struct Context<D: Contexts> {
    // Fields are dropped in this order: objects made with the driver's context are dropped before it.
    kept: TypeMap,
    driver: Arc<DriverContext<D>>,
    driver_devices: Vec<DriverDevice<D>>,
    devices: Vec<Owned<Device<D>>>,
    /// Called in the process that made the context.
    pub(super) deleters: ProcessMutex<Vec<ContextDeleter>>,
}
body!(Context: Contexts, Context, InvalidContext);
impl<D: Contexts> Deref for Context<D> {
    type Target = DriverContext<D>;
    fn deref(&self) -> &DriverContext<D> {
        &self.driver
    }
}
impl<D: Contexts> Drop for Context<D> {
    fn drop(&mut self) {
        let deleters = self.deleters.get_mut().map(std::mem::take);
        deleters.into_iter().flatten().for_each(ContextDeleter::call);
    }
}
impl<D: Contexts> Context<D> {
    pub(super) fn new(driver: DriverContext<D>, devices: Vec<Owned<Device<D>>>) -> Owned<Self> {
        let driver_devices = devices.iter().map(|one| one.driver().clone()).collect();
        let (kept, driver, deleters) = (TypeMap::new(), Arc::new(driver), ProcessMutex::default());
        Owned::new(Self { kept, driver, driver_devices, devices, deleters })
    }
    /// The driver's object.
    pub fn driver(&self) -> &Arc<DriverContext<D>> {
        &self.driver
    }
    /// Objects that exist once in each context.
    pub fn kept(&self) -> &TypeMap {
        &self.kept
    }
    /// The devices for which it was made; never empty.
    pub fn devices(&self) -> &[Owned<Device<D>>] {
        &self.devices
    }
    /// The driver's objects of these devices.
    pub fn driver_devices(&self) -> &[DriverDevice<D>] {
        &self.driver_devices
    }
    /// Checks that a device belongs to the context. A part of a device belongs to every context that the whole device
    /// belongs to.
    ///
    /// # Errors
    /// `INVALID_DEVICE` if neither the device nor a device of which it is a part belongs to the context.
    pub fn check(&self, device: Borrowed<'_, Device<D>>) -> Result<()> {
        let mut above: Option<&Object<_>> = Some(&device);
        while let Some(one) = above {
            if self.driver_devices.contains(one.driver()) {
                return Ok(());
            }
            above = one.parent().map(|parent| &**parent);
        }
        let why = "the device does not belong to the context: make the context with it";
        Error::refuse(ErrorCode::InvalidDevice, why)
    }
}
