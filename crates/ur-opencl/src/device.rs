//! Devices and parts of them: what is known of one, and what the core asks of it. What callers ask is `device_info.rs`'s.
use super::{
    DriverPlatform, OpenCl,
    cl::*,
    context::DriverContext,
    driver::RawDevice,
    native::{
        device as native, event,
        memory::Reach,
        own::{Own, Tells},
        queue::{Linked, NativeQueue, QueueKind, given},
        work::Ability,
    },
    platform,
};
use rustix::time::ClockId;
use std::sync::{Arc, OnceLock};
use ur_hal::{
    Clocks, DescribesDevices, DeviceFacts, DeviceKind, Error, ErrorKind, OpensDevices, Partition,
    PartitionsDevices, PlatformFacts, Result, VectorWidths,
};

/// A device, or a part of one.
#[derive(Debug)]
pub struct DriverDevice {
    native: Own<RawDevice>,
    platform: Arc<DriverPlatform>,
    part: Option<Part>,
    facts: Facts,
    clock: OnceLock<ClockId>,
}
/// What makes it a part.
#[derive(Debug)]
struct Part {
    parent: Arc<DriverDevice>,
    how: Partition,
    number: usize,
}
/// What is decided by, asked once.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// How it reaches memory, and whether it runs functions of the host's.
    pub(super) can: Ability,
    /// Bytes of all its memory, and of one allocation at most.
    pub(super) memory: [u64; 2],
    /// Items of a group, in all and along each side.
    pub(super) items: (usize, [usize; 3]),
    /// Sizes of sub-groups.
    pub(super) sub_groups: Vec<u32>,
    /// Bytes of local memory.
    pub(super) local: usize,
    pub(super) uuid: [u8; 16],
}
impl Facts {
    fn of(platform: &DriverPlatform, raw: RawDevice) -> Result<Self> {
        let or_none = |name| raw.number(name).unwrap_or(0);
        let extensions = platform.extensions();
        let svm = or_none(CL_DEVICE_SVM_CAPABILITIES);
        let is_host = or_none(CL_DEVICE_HOST_UNIFIED_MEMORY) != 0
            && or_none(CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU != 0;
        let shared_system = or_none(CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL) & 1 != 0;
        let reach = match () {
            () if is_host && (svm & CL_DEVICE_SVM_FINE_GRAIN_SYSTEM != 0 || shared_system) => {
                Reach::System
            }
            () if extensions.has("device_alloc") => Reach::Usm,
            () if svm & CL_DEVICE_SVM_FINE_GRAIN_BUFFER != 0 && extensions.has("svm_alloc") => {
                Reach::Svm
            }
            () => Reach::None,
        };
        let has_native = or_none(CL_DEVICE_EXECUTION_CAPABILITIES) & CL_EXEC_NATIVE_KERNEL != 0;
        let sizes = raw.numbers(CL_DEVICE_MAX_WORK_ITEM_SIZES)?;
        let side = |n: usize| sizes.get(n).copied().unwrap_or(1);
        let told = raw.numbers(CL_DEVICE_SUB_GROUP_SIZES_INTEL).unwrap_or_default();
        let sub_groups: Vec<_> = told.into_iter().map(|n| n as u32).collect();
        let memory = raw.number(CL_DEVICE_GLOBAL_MEM_SIZE)?;
        let largest = match reach {
            Reach::System => memory, // which is the system's
            _ => raw.number(CL_DEVICE_MAX_MEM_ALLOC_SIZE)?,
        };
        let told = raw.told(CL_DEVICE_UUID_KHR).ok().and_then(|bytes| bytes.try_into().ok());
        let name = || format!("{:?} {:?}", raw.text(CL_DEVICE_NAME), raw.text(CL_DRIVER_VERSION));
        let uuid = match reach {
            // Memory is shared with whoever reaches the system's: it is the same device to them.
            Reach::System => ur_system::host::uuid()?,
            _ => told.unwrap_or_else(|| ur_system::host::digest(&name())),
        };
        Ok(Self {
            can: Ability { reach, has_native },
            memory: [memory, largest],
            items: (
                raw.number(CL_DEVICE_MAX_WORK_GROUP_SIZE)? as usize,
                [side(0), side(1), side(2)],
            ),
            sub_groups: if sub_groups.is_empty() { vec![1] } else { sub_groups },
            local: raw.number(CL_DEVICE_LOCAL_MEM_SIZE)? as usize,
            uuid,
        })
    }
}
/// A root device of a platform. The driver does not count its references.
pub(super) fn root(platform: &Arc<DriverPlatform>, raw: RawDevice) -> Result<Arc<DriverDevice>> {
    DriverDevice::new(platform, Own::given(raw), None)
}
impl PartialEq for DriverDevice {
    fn eq(&self, other: &Self) -> bool {
        self.raw() == other.raw()
    }
}
impl DriverDevice {
    fn new(
        platform: &Arc<DriverPlatform>,
        native: Own<RawDevice>,
        part: Option<Part>,
    ) -> Result<Arc<Self>> {
        let (facts, clock) = (Facts::of(platform, native.raw())?, OnceLock::new());
        Ok(Arc::new(Self { native, platform: Arc::clone(platform), part, facts, clock }))
    }
    /// The driver's name of it.
    pub fn raw(&self) -> RawDevice {
        self.native.raw()
    }
    /// The platform that it is of.
    pub fn platform(&self) -> &Arc<DriverPlatform> {
        &self.platform
    }
    /// What it is a part of.
    pub fn parent(&self) -> Option<&Arc<Self>> {
        self.part.as_ref().map(|part| &part.parent)
    }
    pub(super) fn facts(&self) -> &Facts {
        &self.facts
    }
    /// The clock of the host that is this device's, where the driver tells no time of its own.
    fn clock(&self) -> ClockId {
        let found = || clock_of(self).ok().flatten().unwrap_or(ClockId::Monotonic);
        *self.clock.get_or_init(found)
    }
    /// Tells it from other devices, and from other parts.
    pub(super) fn uuid(&self) -> [u8; 16] {
        self.part.as_ref().map_or(self.facts.uuid, |part| {
            let whole = part.parent.uuid();
            ur_system::host::digest(&format!("{whole:?}{:?}{}", part.how, part.number))
        })
    }
}

impl OpensDevices for OpenCl {
    const NAME: &'static str = "OpenCL";
    fn devices() -> Result<Vec<Arc<DriverDevice>>> {
        Ok(platform::devices().cloned().collect())
    }
    fn platform(device: &Arc<DriverDevice>) -> Result<PlatformFacts> {
        device.platform.facts()
    }
    fn parent(device: &Arc<DriverDevice>) -> Option<Arc<DriverDevice>> {
        device.as_ref().parent().cloned()
    }
    fn uuid(device: &Arc<DriverDevice>) -> Result<[u8; 16]> {
        Ok(device.uuid())
    }
    fn clocks(device: &Arc<DriverDevice>) -> Result<Clocks> {
        let own = || (now_on(device.clock()), now_on(ClockId::Monotonic));
        let (device, host) =
            native::clocks(device.platform.extensions(), device.raw()).unwrap_or_else(own);
        Ok(Clocks { device, host })
    }
    fn open(devices: &[Arc<DriverDevice>]) -> Result<DriverContext> {
        let raws: Vec<_> = devices.iter().map(|one| one.raw()).collect();
        let native = native::context(devices[0].platform.raw(), &raws)?;
        Ok(DriverContext::new(native, devices.to_vec()))
    }
}
impl DescribesDevices for OpenCl {
    fn kind(device: &Arc<DriverDevice>) -> DeviceKind {
        use DeviceKind as K;
        match device.raw().number(CL_DEVICE_TYPE).unwrap_or(0) {
            kind if kind & CL_DEVICE_TYPE_GPU != 0 => K::Gpu,
            kind if kind & CL_DEVICE_TYPE_CPU != 0 => K::Cpu,
            kind if kind & CL_DEVICE_TYPE_ACCELERATOR != 0 => K::Fpga,
            _ => K::Mca,
        }
    }
    fn facts(_: &Arc<DriverDevice>) -> Result<DeviceFacts> {
        Ok(DeviceFacts::default())
    }
    fn vector_widths(device: &Arc<DriverDevice>) -> Result<[VectorWidths; 2]> {
        let width = |name| device.raw().number(name).map_or(0, |n| n as u32);
        // Those of `half` came later than the others, which follow each other in the order of UR.
        let preferred = |n| {
            width(if n < 6 {
                CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR + n
            } else {
                CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF
            })
        };
        let native = |n| width(CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR + n);
        let each = [0, 1, 2, 3, 4, 5, 6];
        Ok([each.map(preferred), each.map(native)])
    }
}
impl PartitionsDevices for OpenCl {
    fn partition_of(device: &Arc<DriverDevice>) -> Option<Partition> {
        device.part.as_ref().map(|part| part.how.clone())
    }
    fn parts(device: &Arc<DriverDevice>, how: &Partition) -> Result<Vec<Arc<DriverDevice>>> {
        platform::check_process()?;
        let list: Vec<isize> = match how {
            Partition::Equally(units) => vec![CL_DEVICE_PARTITION_EQUALLY, *units as isize, 0],
            Partition::ByCounts(counts) => {
                let mut list = vec![CL_DEVICE_PARTITION_BY_COUNTS];
                // A count of none makes no part, and is OpenCL's end of the list.
                list.extend(counts.iter().filter(|n| **n != 0).map(|n| *n as isize));
                list.extend([CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0]);
                list
            }
            Partition::ByDomain(domain) => {
                vec![CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, domain.bits() as isize, 0]
            }
            Partition::BySlice => {
                let why = "OpenCL has no slices: ask SUPPORTED_PARTITIONS";
                return Err(Error::new(ErrorKind::InvalidValue, why));
            }
        };
        let made =
            native::parts(device.raw(), &list).map_err(|error| match (error.status(), how) {
                (Some(CL_INVALID_VALUE), Partition::ByDomain(_) | Partition::Equally(_))
                | (Some(CL_DEVICE_NOT_FOUND), _) => error.with_kind(ErrorKind::PartitionFailed),
                _ => error,
            })?;
        let part = |(number, native): (usize, Own<RawDevice>)| {
            let part = Part { parent: Arc::clone(device), how: how.clone(), number };
            DriverDevice::new(&device.platform, native, Some(part))
        };
        made.into_iter().enumerate().map(part).collect()
    }
}
/// The clocks of the host by which drivers may note times, the likeliest first.
const HOST_CLOCKS: [ClockId; 3] = [ClockId::Monotonic, ClockId::MonotonicRaw, ClockId::Realtime];

fn now_on(clock: ClockId) -> u64 {
    let t = rustix::time::clock_gettime(clock);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
/// The time on a device's clock, in nanoseconds.
pub(super) fn now(device: &DriverDevice) -> u64 {
    let told = native::clocks(device.platform.extensions(), device.raw());
    told.map_or_else(|| now_on(device.clock()), |(own, _)| own)
}
/// By which of the host's clocks a driver notes when commands end: the one that read the same just before and after.
fn clock_of(device: &DriverDevice) -> Result<Option<ClockId>> {
    let context = native::context(device.platform.raw(), &[device.raw()])?;
    let extensions = device.platform.extensions();
    let kind = QueueKind { is_in_order: true, has_times: true };
    let queue = NativeQueue::new(context.raw(), device.raw(), kind, extensions)?;
    let mut made = None;
    let before = HOST_CLOCKS.map(now_on);
    queue.marker(Linked::noted(&mut made))?;
    queue.finish()?;
    let after = HOST_CLOCKS.map(now_on);
    let (_, ended) = event::span(&given(made)?)?;
    let is_its = |n: &usize| (before[*n]..=after[*n]).contains(&ended);
    Ok((0..HOST_CLOCKS.len()).find(is_its).map(|n| HOST_CLOCKS[n]))
}
