//! Devices: enumeration, engines and sub-devices. Answers to info queries are in `device_info.rs`,
//! partitioning is in `partition.rs`.
use super::{
    Device, LevelZero,
    clock::Clock,
    context::DriverContext,
    device_info,
    driver::{RawContext, RawDevice, RawModule},
    image,
    native::{
        context::NativeContext,
        device::{self as native, Told},
        module::NativeModule,
    },
    partition,
    platform::{self, DriverPlatform},
    sampler, sync_point,
};
use std::sync::{Arc, OnceLock};
use ur_adapter::{error, info::Answer, object::Object, partition::Rule};
use ur_core::over_driver::device::HasDevices;
use ur_hal::{
    Adopted, Clocks, Error, ErrorKind, NativeHandle, NativeHandles, NativeKind, NativeObject,
    OpensDevices, PlatformFacts, Result,
};
use ur_sys::{ur_device_info_t, ur_device_type_t};
use ze_sys::*;

/// A group of engines of one kind, from which a queue is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The driver's ordinal.
    pub ordinal: u32,
    /// The number of engines.
    pub engines: u32,
    /// The longest fill pattern of its engines, in bytes.
    pub longest_pattern: usize,
}

/// A root device or a sub-device.
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
/// What makes a device a sub-device.
#[derive(Debug)]
pub(super) struct Part {
    /// The device that was partitioned.
    pub(super) parent: Arc<DriverDevice>,
    /// For a slice, which shares its parent's driver handle: the engine of the compute group that it is
    /// limited to.
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
        // Since version 1.2 drivers report the ticks of a second.
        let has_cycles = platform.api_version() >= ze_sys::ZE_API_VERSION_1_2;
        let cycles = has_cycles.then(|| native::cycles_per_second(raw)).transpose()?;
        let clock = Clock::new(&properties, cycles);
        let made =
            Self { raw, platform, properties, clock, limits, code, groups, part, parts, slices };
        Ok(Arc::new(made))
    }
    /// The driver's handle. A slice has that of its parent.
    pub fn raw(&self) -> RawDevice {
        self.raw
    }
    /// The driver that it belongs to.
    pub fn platform(&self) -> &Arc<DriverPlatform> {
        &self.platform
    }
    /// The driver's properties of the device.
    pub fn properties(&self) -> &ze_device_properties_t {
        &self.properties
    }
    /// The limits of work-groups and of local memory.
    pub fn limits(&self) -> &ze_device_compute_properties_t {
        &self.limits
    }
    /// The supported program formats and capabilities of kernels.
    pub fn code(&self) -> &ze_device_module_properties_t {
        &self.code
    }
    /// Its UUID, the same in every process.
    pub fn uuid(&self) -> [u8; 16] {
        self.properties.uuid.id
    }
    /// The device that it is a part of; `None` for a root device.
    pub fn parent(&self) -> Option<&Arc<DriverDevice>> {
        self.part.as_ref().map(|part| &part.parent)
    }
    /// The root device that it is a part of, or itself.
    pub fn root(&self) -> &Self {
        self.parent().map_or(self, |parent| parent.root())
    }
    /// The composite device that a root device is a component of, if the driver reports it
    /// (`ZE_FLAT_DEVICE_HIERARCHY=COMBINED`).
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
    /// The components of a composite device; empty for other devices.
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
    /// For a slice: the engine of the compute group that it is limited to.
    pub fn engine(&self) -> Option<u32> {
        self.part.as_ref().and_then(|part| part.engine)
    }
    /// Whether both are the same device.
    pub fn is(&self, other: &Self) -> bool {
        (self.raw, self.engine()) == (other.raw, other.engine())
    }
    /// Whether it is integrated: host, device and shared memory are the same.
    pub fn is_integrated(&self) -> bool {
        self.properties.flags & ZE_DEVICE_PROPERTY_FLAG_INTEGRATED != 0
    }
    /// Whether commands' writes are visible to the host when a list is complete, without an event. Not so on
    /// integrated graphics and Arc A: there Intel's driver submits a flush when the completion of a list is
    /// queried whose last command signals no event.
    pub fn shows_ends_of_lists(&self) -> bool {
        // Architecture and release of the hardware; 12.60 and 12.61 are the Data Center GPU Max.
        let ip = device_info::ip_version(self).unwrap_or(0);
        let (architecture, release) = (ip >> 22, ip >> 14 & 0xff);
        !self.is_integrated() && (architecture != 12 || (60..70).contains(&release))
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
    /// The engines that execute kernels.
    ///
    /// # Errors
    /// `UNKNOWN` for a device without such engines.
    pub fn compute(&self) -> Result<Group> {
        let compute = ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE;
        self.group(|flags, _| flags & compute != 0).ok_or_else(|| {
            Error::new(ErrorKind::Unknown, "the driver tells of no engine that runs kernels")
        })
    }
    /// The main copy engine, if there is one.
    pub fn copier(&self) -> Option<Group> {
        self.group(|flags, engines| is_copier(flags) && engines == 1)
    }
    /// The copy engines for transfers between devices, if there are any.
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
    /// Its clock; sub-devices have that of the root device.
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
/// The root devices of a driver that this adapter supports.
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
/// The composite devices that `devices` are components of, each once.
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
/// The root devices of all drivers.
pub fn all() -> impl Iterator<Item = &'static Arc<DriverDevice>> {
    platform::all().iter().flat_map(|one| one.devices())
}
/// The device with that driver handle: a root device, a sub-device or a composite device.
pub(super) fn with_handle(handle: RawDevice) -> Option<Arc<DriverDevice>> {
    let is_it = |one: &Arc<DriverDevice>| one.raw.addr() == handle.addr();
    let mut composites = platform::all().iter().flat_map(|one| one.composites());
    if let Some(whole) = composites.find(|one| is_it(one)) {
        return Some(Arc::clone(whole));
    }
    all().find_map(|root| match is_it(root) {
        true => Some(Arc::clone(root)),
        // If the sub-devices cannot be queried, callers cannot have a handle of one either.
        false => partition::parts(root).unwrap_or_default().into_iter().find(is_it),
    })
}

impl OpensDevices for LevelZero {
    const NAME: &'static str = super::driver::NAME;
    fn devices() -> Result<Vec<Arc<DriverDevice>>> {
        Ok(all().cloned().collect())
    }
    fn composites() -> Vec<Arc<DriverDevice>> {
        platform::all().iter().flat_map(|one| one.composites()).cloned().collect()
    }
    fn platform(device: &Arc<DriverDevice>) -> Result<PlatformFacts> {
        Ok(device.platform().facts())
    }
    fn parent(device: &Arc<DriverDevice>) -> Option<Arc<DriverDevice>> {
        device.parent().cloned()
    }
    fn uuid(device: &Arc<DriverDevice>) -> Result<[u8; 16]> {
        Ok(device.uuid())
    }
    fn clocks(device: &Arc<DriverDevice>) -> Result<Clocks> {
        let (host, ticks) = device.clock().read(device.raw)?;
        Ok(Clocks { device: device.clock().nanoseconds(ticks), host })
    }
    fn open(devices: &[Arc<DriverDevice>]) -> Result<DriverContext> {
        let raws: Vec<_> = devices.iter().map(|one| one.raw()).collect();
        let native = NativeContext::create(devices[0].platform().raw(), &raws)?;
        Ok(DriverContext::new(native, devices.to_vec()))
    }
}
impl NativeHandles for LevelZero {
    const HAS_HANDLES: bool = true;
    fn native(object: NativeObject<'_, Self>) -> Result<NativeHandle> {
        Ok(NativeHandle(match object {
            NativeObject::Device(device) => device.raw.addr() as u64,
            NativeObject::Context(context) => context.raw().addr() as u64,
            NativeObject::Image(image) => image.raw().addr() as u64,
            NativeObject::Sampler(sampler) => sampler.raw().addr() as u64,
            NativeObject::Module(module) => module.raw().addr() as u64,
            // The application may set arguments of it.
            NativeObject::Function(kernel) => {
                kernel.lend();
                kernel.raw().addr() as u64
            }
            _ => return Error::unsupported("a native handle of this object"),
        }))
    }
    /// Without devices a context is for those of the first driver. A module is for all devices.
    fn adopt(
        devices: &[Arc<DriverDevice>],
        context: Option<&DriverContext>,
        (kind, handle): (NativeKind, NativeHandle),
        is_owned: bool,
    ) -> Result<Adopted<Self>> {
        let raw = match (kind, context, RawContext::from_addr(handle.0 as usize)) {
            (NativeKind::Context, _, Some(raw)) => raw,
            (NativeKind::Image(desc), Some(context), _) => {
                return image::adopt(context, handle, &desc, is_owned).map(Adopted::Image);
            }
            (NativeKind::Sampler, Some(context), _) => {
                let (sampler, desc) = sampler::adopt(context, handle, is_owned)?;
                return Ok(Adopted::Sampler(sampler, desc));
            }
            (NativeKind::Module, Some(context), _) => {
                let null = || Error::from(ErrorKind::InvalidValue);
                let raw = RawModule::from_addr(handle.0 as usize).ok_or_else(null)?;
                let module = NativeModule::adopted(raw, is_owned, Arc::clone(context.native()));
                let module = Arc::new(module);
                let each = devices.iter().map(|one| (Arc::clone(one), Arc::clone(&module)));
                return Ok(Adopted::Modules(each.collect()));
            }
            _ => return Error::unsupported("an object of this native handle"),
        };
        let of_first = || platform::all().first().map_or(&[][..], |one| one.devices());
        let all = if devices.is_empty() { of_first() } else { devices };
        if all.is_empty() {
            let why = "the context would have no device";
            return Err(Error::new(ErrorKind::InvalidDevice, why));
        }
        let native = NativeContext::adopted(raw, is_owned, ());
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
    ) -> error::Result<bool> {
        device_info::tell(device, name, answer)
    }
    fn vector_widths(device: &Arc<DriverDevice>) -> error::Result<[[u32; 7]; 2]> {
        Ok(device_info::vector_widths(device))
    }
    fn parts(device: &Arc<DriverDevice>, rule: &Rule) -> error::Result<Vec<Arc<DriverDevice>>> {
        partition::partition(device, rule)
    }
    /// Empty if they cannot be queried: callers cannot have a handle of one either.
    fn parts_with_handles(device: &Arc<DriverDevice>) -> Vec<Arc<DriverDevice>> {
        partition::parts(device).unwrap_or_default()
    }
    fn wait_for_device(device: &Object<Device>) -> error::Result<()> {
        Ok(sync_point::wait_for_device(device)?)
    }
}
