//! Devices: which there are, which engines each has, and how each comes apart. What each can do is
//! `device_info.rs`'s, the parts are `partition.rs`'s.
use super::{
    Device, LevelZero,
    clock::Clock,
    context::DriverContext,
    device_info,
    driver::{RawContext, RawDevice},
    native::{
        context::NativeContext,
        device::{self as native, Told},
    },
    partition,
    platform::{self, DriverPlatform},
    sync_point,
};
use std::sync::{Arc, OnceLock};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::Object,
    partition::Rule,
};
use ur_core::over_driver::device::HasDevices;
use ur_hal::{
    Adopted, Clocks, ErrorKind, NativeHandle, NativeHandles, NativeKind, NativeObject,
    OpensDevices, PlatformFacts,
};
use ur_sys::{ur_device_info_t, ur_device_type_t};
use ze_sys::*;

/// Engines of one kind; what a queue chooses from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The driver's number of it.
    pub ordinal: u32,
    /// How many engines it has.
    pub engines: u32,
    /// The longest pattern that its engines fill with, in bytes.
    pub longest_pattern: usize,
}

/// A device, or a part of one.
#[derive(Debug)]
pub struct DriverDevice {
    raw: RawDevice,
    platform: Arc<DriverPlatform>,
    properties: Told<ze_device_properties_t>,
    clock: Clock,
    limits: Told<ze_device_compute_properties_t>,
    code: Told<ze_device_module_properties_t>,
    groups: Vec<Told<ze_command_queue_group_properties_t>>,
    part: Option<Part>,
    parts: OnceLock<Vec<Arc<DriverDevice>>>,
    slices: OnceLock<Vec<Arc<DriverDevice>>>,
}
/// What makes a sub-device.
#[derive(Debug)]
pub(super) struct Part {
    /// What was partitioned.
    pub(super) parent: Arc<DriverDevice>,
    /// For one that shares its parent's driver handle: the only engine of its compute group.
    pub(super) engine: Option<u32>,
}
impl PartialEq for DriverDevice {
    fn eq(&self, other: &Self) -> bool {
        self.is(other)
    }
}
impl DriverDevice {
    pub(super) fn new(
        raw: RawDevice,
        platform: Arc<DriverPlatform>,
        part: Option<Part>,
    ) -> Result<Arc<Self>> {
        let (properties, groups) = (native::properties(raw)?, native::groups(raw)?);
        let (limits, code) = (native::compute(raw)?, native::module(raw)?);
        let (parts, slices) = Default::default();
        // Specification 1.2 and later tell the ticks of a second.
        let has_cycles = platform.api_version() >= ze_sys::ZE_API_VERSION_1_2;
        let cycles = has_cycles.then(|| native::cycles_per_second(raw)).transpose()?;
        let clock = Clock::new(&properties, cycles);
        let made =
            Self { raw, platform, properties, clock, limits, code, groups, part, parts, slices };
        Ok(Arc::new(made))
    }
    /// The driver's handle. A slice has its parent's.
    pub fn raw(&self) -> RawDevice {
        self.raw
    }
    /// The driver it is of.
    pub fn platform(&self) -> &Arc<DriverPlatform> {
        &self.platform
    }
    /// What the driver says of it under one heading.
    pub fn properties(&self) -> &ze_device_properties_t {
        &self.properties
    }
    /// How large its groups can be, and how much local memory each has.
    pub fn limits(&self) -> &ze_device_compute_properties_t {
        &self.limits
    }
    /// What programs it takes, and what they can do there.
    pub fn code(&self) -> &ze_device_module_properties_t {
        &self.code
    }
    /// Its UUID, the same in every process.
    pub fn uuid(&self) -> [u8; 16] {
        self.properties.uuid.id
    }
    /// What it is a part of; `None` for a root device.
    pub fn parent(&self) -> Option<&Arc<DriverDevice>> {
        self.part.as_ref().map(|part| &part.parent)
    }
    /// The root device that it is a part of, or itself.
    pub fn root(&self) -> &Self {
        self.parent().map_or(self, |parent| parent.root())
    }
    /// The whole that a root device is a part of, where the driver tells of it (`ZE_FLAT_DEVICE_HIERARCHY=COMBINED`).
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn composite(&self) -> Result<Option<&Arc<DriverDevice>>> {
        let composites = self.platform.composites();
        if composites.is_empty() || self.part.is_some() {
            return Ok(None);
        }
        let whole = native::whole(self.raw)?;
        Ok(composites.iter().find(|one| Some(one.raw) == whole))
    }
    /// The root devices that are parts of it, where it is such a whole.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn components(&self) -> Result<Vec<&Arc<DriverDevice>>> {
        if self.platform.composites().iter().all(|one| one.raw != self.raw) {
            return Ok(vec![]);
        }
        let parts = native::parts(self.raw)?;
        let devices = self.platform.devices().iter();
        Ok(devices.filter(|one| parts.contains(&one.raw)).collect())
    }
    /// For a slice: the one engine of the compute group that it has.
    pub fn engine(&self) -> Option<u32> {
        self.part.as_ref().and_then(|part| part.engine)
    }
    /// Whether both are the same device.
    pub fn is(&self, other: &Self) -> bool {
        (self.raw, self.engine()) == (other.raw, other.engine())
    }
    /// Whether host, device and shared memory are one: integrated graphics.
    pub fn is_integrated(&self) -> bool {
        self.properties.flags & ZE_DEVICE_PROPERTY_FLAG_INTEGRATED != 0
    }
    /// Whether what commands write is the host's to see when a list is done, without an event: not on integrated graphics
    /// and Arc A, where Intel's driver submits a flush whenever a list is asked for the end of a command that signals none.
    pub fn shows_ends_of_lists(&self) -> bool {
        // Architecture and release; 12.60 and 12.61 are the Data Center GPU Max.
        let ip = device_info::ip_version(self).unwrap_or(0);
        let (architecture, release) = (ip >> 22, ip >> 14 & 0xff);
        !self.is_integrated() && (architecture != 12 || (60..70).contains(&release))
    }
    /// Its groups of engines, by their ordinals.
    pub fn queue_groups(&self) -> &[Told<ze_command_queue_group_properties_t>] {
        &self.groups
    }
    fn group(&self, fits: impl Fn(u32, u32) -> bool) -> Option<Group> {
        let found = self.groups.iter().position(|one| fits(one.flags, one.numQueues))?;
        let one = &self.groups[found];
        Some(Group {
            ordinal: found as u32,
            engines: one.numQueues,
            longest_pattern: one.maxMemoryFillPatternSize,
        })
    }
    /// The engines that run kernels: every device has some.
    ///
    /// # Errors
    /// `UNKNOWN` for a device without.
    pub fn compute(&self) -> Result<Group> {
        let compute = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE;
        self.group(|flags, _| flags & compute != 0).ok_or_else(|| {
            Error::new(ErrorCode::Unknown, "the driver tells of no engine that runs kernels")
        })
    }
    /// The main engine that only copies, if there is one.
    pub fn copier(&self) -> Option<Group> {
        self.group(|flags, engines| is_copier(flags) && engines == 1)
    }
    /// The engines that copy between devices, if there are any.
    pub fn linker(&self) -> Option<Group> {
        let main = self.copier().map(|one| one.ordinal as usize);
        let found =
            self.groups.iter().enumerate().position(|(at, one)| {
                is_copier(one.flags) && one.numQueues >= 1 && Some(at) != main
            })?;
        let one = &self.groups[found];
        let (ordinal, longest_pattern) = (found as u32, one.maxMemoryFillPatternSize);
        Some(Group { ordinal, engines: one.numQueues, longest_pattern })
    }
    /// Its clock, which its parts have too.
    pub(super) fn clock(&self) -> &Clock {
        &self.root().clock
    }
    pub(super) fn parts(&self) -> &OnceLock<Vec<Arc<DriverDevice>>> {
        &self.parts
    }
    pub(super) fn slices(&self) -> &OnceLock<Vec<Arc<DriverDevice>>> {
        &self.slices
    }
}
fn is_copier(flags: u32) -> bool {
    flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE == 0
        && flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY != 0
}
/// The root devices of a driver that this adapter is for.
pub(super) fn find(platform: &Arc<DriverPlatform>) -> Result<Vec<Arc<DriverDevice>>> {
    let mut all = vec![];
    for raw in native::all(platform.raw())? {
        let device = DriverDevice::new(raw, Arc::clone(platform), None);
        let Some(device) = platform::works("a device", device) else { continue };
        let is_gpu = device.properties().type_ == ZE_DEVICE_TYPE_GPU;
        if is_gpu || super::options().every_kind {
            all.push(device);
        }
    }
    Ok(all)
}
/// The wholes that `devices` are parts of, each once.
pub(super) fn composites(
    platform: &Arc<DriverPlatform>,
    devices: &[Arc<DriverDevice>],
) -> Result<Vec<Arc<DriverDevice>>> {
    let mut all: Vec<Arc<DriverDevice>> = vec![];
    for device in devices {
        let Some(raw) = native::whole(device.raw)? else { continue };
        if all.iter().all(|known| known.raw != raw) {
            all.push(DriverDevice::new(raw, Arc::clone(platform), None)?);
        }
    }
    Ok(all)
}
/// Every root device, of every driver.
pub fn all() -> impl Iterator<Item = &'static Arc<DriverDevice>> {
    platform::all().iter().flat_map(|one| one.devices())
}
/// The device with that driver handle: a root device, a part of one, or a whole of several.
pub(super) fn with_handle(handle: RawDevice) -> Option<Arc<DriverDevice>> {
    let is_it = |one: &Arc<DriverDevice>| one.raw.addr() == handle.addr();
    let mut composites = platform::all().iter().flat_map(|one| one.composites());
    if let Some(whole) = composites.find(|one| is_it(one)) {
        return Some(Arc::clone(whole));
    }
    all().find_map(|root| match is_it(root) {
        true => Some(Arc::clone(root)),
        // A device that cannot tell its parts has none that callers could name.
        false => partition::parts(root).unwrap_or_default().into_iter().find(is_it),
    })
}

impl OpensDevices for LevelZero {
    fn devices() -> ur_hal::Result<Vec<Arc<DriverDevice>>> {
        Ok(all().cloned().collect())
    }
    fn composites() -> Vec<Arc<DriverDevice>> {
        platform::all().iter().flat_map(|one| one.composites()).cloned().collect()
    }
    fn platform(device: &Arc<DriverDevice>) -> ur_hal::Result<PlatformFacts> {
        Ok(device.platform().facts())
    }
    fn parent(device: &Arc<DriverDevice>) -> Option<Arc<DriverDevice>> {
        device.parent().cloned()
    }
    fn clocks(device: &Arc<DriverDevice>) -> ur_hal::Result<Clocks> {
        let (host, ticks) = device.clock().read(device.raw)?;
        Ok(Clocks { device: device.clock().nanoseconds(ticks), host })
    }
    fn open(devices: &[Arc<DriverDevice>]) -> ur_hal::Result<DriverContext> {
        let raws: Vec<_> = devices.iter().map(|one| one.raw()).collect();
        let native = NativeContext::create(devices[0].platform().raw(), &raws)?;
        Ok(DriverContext::new(native, devices.to_vec()))
    }
}
impl NativeHandles for LevelZero {
    const HAS_HANDLES: bool = true;
    fn native(object: NativeObject<'_, Self>) -> ur_hal::Result<NativeHandle> {
        Ok(NativeHandle(match object {
            NativeObject::Device(device) => device.raw.addr() as u64,
            NativeObject::Context(context) => context.raw().addr() as u64,
            _ => return ur_hal::Error::unsupported("a native handle of this object"),
        }))
    }
    /// A context for which no device is named is for those of the first driver.
    fn adopt(
        devices: &[Arc<DriverDevice>],
        _: Option<&DriverContext>,
        (kind, handle): (NativeKind, NativeHandle),
        is_owned: bool,
    ) -> ur_hal::Result<Adopted<Self>> {
        let raw = RawContext::from_addr(handle.0 as usize);
        let (NativeKind::Context, Some(raw)) = (kind, raw) else {
            return ur_hal::Error::unsupported("an object of this native handle");
        };
        let of_first = || platform::all().first().map_or(&[][..], |one| one.devices());
        let all = if devices.is_empty() { of_first() } else { devices };
        if all.is_empty() {
            let why = "the context would have no device";
            return Err(ur_hal::Error::new(ErrorKind::InvalidDevice, why));
        }
        let native = NativeContext::adopt(raw, is_owned);
        Ok(Adopted::Context(DriverContext::new(native, all.to_vec()), all.to_vec()))
    }
}
impl HasDevices for LevelZero {
    fn kind(device: &Arc<DriverDevice>) -> ur_device_type_t {
        match device.properties().type_ {
            ZE_DEVICE_TYPE_CPU => ur_device_type_t::CPU,
            ZE_DEVICE_TYPE_FPGA => ur_device_type_t::FPGA,
            ZE_DEVICE_TYPE_MCA => ur_device_type_t::MCA,
            ZE_DEVICE_TYPE_VPU => ur_device_type_t::VPU,
            _ => ur_device_type_t::GPU,
        }
    }
    fn tell(
        device: &Arc<DriverDevice>,
        name: ur_device_info_t,
        answer: &mut Answer<'_>,
    ) -> Option<Result<()>> {
        device_info::tell(device, name, answer)
    }
    fn vector_widths(device: &Arc<DriverDevice>) -> Result<[[u32; 7]; 2]> {
        Ok(device_info::vector_widths(device))
    }
    fn parts(device: &Arc<DriverDevice>, rule: &Rule) -> Result<Vec<Arc<DriverDevice>>> {
        partition::partition(device, rule)
    }
    /// A device that cannot tell its parts has none that callers could name.
    fn parts_with_handles(device: &Arc<DriverDevice>) -> Vec<Arc<DriverDevice>> {
        partition::parts(device).unwrap_or_default()
    }
    fn wait_for_device(device: &Object<Device>) -> Result<()> {
        sync_point::wait_for_device(device)
    }
}
