//! Devices: which there are, which engines each has, and how each comes apart. What each can do is
//! `device_info.rs`'s, the parts are `partition.rs`'s.
use super::{
    LevelZero, Platform,
    clock::Clock,
    device_info,
    driver::RawDevice,
    native::device::{self as native, Told},
    partition, platform, queue,
};
use std::sync::OnceLock;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Borrowed, Object, Owned},
    partition::Rule,
};
use ur_core::over_driver::device::HasDevices;
use ur_hal::Clocks;
use ur_sys::{ur_device_info_t, ur_device_type_t, ur_native_handle_t};
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

/// What `ur_device_handle_t` points at.
#[derive(Debug)]
pub struct Device {
    raw: RawDevice,
    platform: Owned<Platform>,
    properties: Told<ze_device_properties_t>,
    clock: Clock,
    limits: Told<ze_device_compute_properties_t>,
    code: Told<ze_device_module_properties_t>,
    groups: Vec<Told<ze_command_queue_group_properties_t>>,
    part: Option<Part>,
    parts: OnceLock<Vec<Owned<Device>>>,
    slices: OnceLock<Vec<Owned<Device>>>,
}
/// What makes a sub-device.
#[derive(Debug)]
pub(super) struct Part {
    /// What was partitioned.
    pub(super) parent: Owned<Device>,
    /// For one that shares its parent's driver handle: the only engine of its compute group.
    pub(super) engine: Option<u32>,
}
impl Device {
    pub(super) fn new(
        raw: RawDevice,
        platform: Owned<Platform>,
        part: Option<Part>,
    ) -> Result<Owned<Self>> {
        let (properties, groups) = (native::properties(raw)?, native::groups(raw)?);
        let (limits, code) = (native::compute(raw)?, native::module(raw)?);
        let (parts, slices) = Default::default();
        // Specification 1.2 and later tell the ticks of a second.
        let has_cycles = platform.api_version() >= ze_sys::ZE_API_VERSION_1_2;
        let cycles = has_cycles.then(|| native::cycles_per_second(raw)).transpose()?;
        let clock = Clock::new(&properties, cycles);
        let made =
            Self { raw, platform, properties, clock, limits, code, groups, part, parts, slices };
        Ok(Owned::new(made))
    }
    /// The driver's handle. A slice has its parent's.
    pub fn raw(&self) -> RawDevice {
        self.raw
    }
    /// The driver it is of.
    pub fn platform(&self) -> &Owned<Platform> {
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
    pub fn parent(&self) -> Option<&Owned<Device>> {
        self.part.as_ref().map(|part| &part.parent)
    }
    /// The root device that it is a part of, or itself.
    pub fn root(&self) -> &Self {
        self.parent().map_or(self, |parent| parent.root())
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
    pub(super) fn parts(&self) -> &OnceLock<Vec<Owned<Device>>> {
        &self.parts
    }
    pub(super) fn slices(&self) -> &OnceLock<Vec<Owned<Device>>> {
        &self.slices
    }
}
fn is_copier(flags: u32) -> bool {
    flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE == 0
        && flags & ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY != 0
}
/// The root devices of a driver that this adapter is for.
pub(super) fn find(platform: &Owned<Platform>) -> Result<Vec<Owned<Device>>> {
    let mut all = vec![];
    for raw in native::all(platform.raw())? {
        let device = Device::new(raw, platform.clone(), None);
        let Some(device) = platform::works("a device", device) else { continue };
        let is_gpu = device.properties().type_ == ZE_DEVICE_TYPE_GPU;
        if is_gpu || super::options().every_kind {
            all.push(device);
        }
    }
    Ok(all)
}
/// Every root device, of every driver.
pub fn all() -> impl Iterator<Item = &'static Owned<Device>> {
    platform::all().iter().flat_map(|one| one.devices())
}
/// Every device with that driver handle: root devices and their parts.
pub(super) fn with_handle(handle: ur_native_handle_t) -> Option<Owned<Device>> {
    let is_it = |one: &Owned<Device>| one.raw.addr() as ur_native_handle_t == handle;
    for root in all() {
        if is_it(root) {
            return Some(root.clone());
        }
        // A device that cannot tell its parts has none that C could name.
        let parts = partition::parts(root.borrow()).unwrap_or_default();
        if let Some(part) = parts.iter().find(|one| is_it(one)) {
            return Some(part.clone());
        }
    }
    None
}

impl HasDevices for LevelZero {
    fn roots(platform: &Platform) -> Vec<Owned<Device>> {
        platform.devices().to_vec()
    }
    fn kind(device: &Device) -> ur_device_type_t {
        match device.properties().type_ {
            ZE_DEVICE_TYPE_CPU => ur_device_type_t::CPU,
            ZE_DEVICE_TYPE_FPGA => ur_device_type_t::FPGA,
            ZE_DEVICE_TYPE_MCA => ur_device_type_t::MCA,
            ZE_DEVICE_TYPE_VPU => ur_device_type_t::VPU,
            _ => ur_device_type_t::GPU,
        }
    }
    fn platform(device: &Device) -> Owned<Platform> {
        device.platform().clone()
    }
    fn tell(
        device: Borrowed<'_, Device>,
        name: ur_device_info_t,
        answer: &mut Answer<'_>,
    ) -> Option<Result<()>> {
        device_info::tell(device, name, answer)
    }
    fn vector_widths(device: &Device) -> Result<[[u32; 7]; 2]> {
        Ok(device_info::vector_widths(device))
    }
    fn parts(device: Borrowed<'_, Device>, rule: &Rule) -> Result<Vec<Owned<Device>>> {
        partition::partition(device, rule)
    }
    fn native_device(device: &Object<Device>) -> ur_native_handle_t {
        device.raw.addr() as ur_native_handle_t
    }
    fn device_of_native(native: ur_native_handle_t) -> Result<Owned<Device>> {
        with_handle(native).ok_or_else(|| {
            let why = format!("no device of Level Zero has the handle {native:#x}");
            Error::new(ErrorCode::InvalidDevice, why)
        })
    }
    fn clocks(device: &Device) -> Result<Clocks> {
        let (host, ticks) = device.clock().read(device.raw)?;
        Ok(Clocks { device: device.clock().nanoseconds(ticks), host })
    }
    fn wait_for_device(device: &Object<Device>) -> Result<()> {
        queue::wait_for_device(device)
    }
}
