//! Platforms and their devices, and their properties.
use crate::{Backend, Error, ErrorKind, Result, ffi};
use serde::Serialize;
use std::fmt;
use ur_sys::{ur_backend_t, ur_device_info_t as info, ur_device_type_t, ur_platform_info_t};

/// A driver and its devices.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// for platform in causeway::Platform::all()? {
///     println!("{} ({}), {} device(s)", platform.name()?, platform.backend()?, platform.devices().len());
/// }
/// # Ok(()) }
/// # check().unwrap();
/// ```
#[derive(Clone, Copy)]
pub struct Platform {
    pub(crate) raw: &'static ffi::Platform,
}

impl Platform {
    /// All platforms of this process. The list does not change while it runs.
    ///
    /// # Errors
    /// Returns the error of an adapter that could not start.
    pub fn all() -> Result<Vec<Self>> {
        Ok(ffi::platforms()?.iter().map(|raw| Self { raw }).collect())
    }
    /// Its devices. If `ONEAPI_DEVICE_SELECTOR` is set, only those that it selects, in the order in which it names
    /// them.
    pub fn devices(&self) -> Vec<Device> {
        self.raw.devices.iter().map(|raw| Device { raw }).collect()
    }
    /// Its name.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn name(&self) -> Result<String> {
        self.raw.text(ur_platform_info_t::NAME)
    }
    /// The vendor of the driver.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn vendor(&self) -> Result<String> {
        self.raw.text(ur_platform_info_t::VENDOR_NAME)
    }
    /// The driver's version.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn version(&self) -> Result<String> {
        self.raw.text(ur_platform_info_t::VERSION)
    }
    /// The interface through which it is driven.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn backend(&self) -> Result<Backend> {
        let backend: u32 = self.raw.value(ur_platform_info_t::BACKEND)?;
        Ok(Backend::of(ur_backend_t(backend)))
    }
}

/// The kind of a device.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DeviceKind {
    /// The host's processors.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// Another accelerator.
    Accelerator,
}
impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Cpu => "CPU",
            Self::Gpu => "GPU",
            Self::Accelerator => "accelerator",
        })
    }
}

/// One device.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// let device = causeway::Device::first()?;
/// println!("{}: {} compute units", device.name()?, device.compute_units()?);
/// assert!(device.shares_memory()? && device.shares_events()?);
/// # Ok(()) }
/// # check().unwrap();
/// ```
#[derive(Clone, Copy)]
pub struct Device {
    pub(crate) raw: &'static ffi::Device,
}

/// All properties of a device in one struct.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// let info = causeway::Device::first()?.info()?;
/// assert!(info.compute_units > 0 && info.global_memory >= info.max_allocation);
/// # Ok(()) }
/// # check().unwrap();
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// Its name.
    pub name: String,
    /// The vendor.
    pub vendor: String,
    /// The driver's version.
    pub driver_version: String,
    /// The platform's name.
    pub platform: String,
    /// The interface through which it is driven.
    pub backend: Backend,
    /// Its kind.
    pub kind: DeviceKind,
    /// The number of compute units; on a CPU, its cores.
    pub compute_units: u32,
    /// The device's memory in bytes.
    pub global_memory: u64,
    /// The local memory of a compute unit in bytes.
    pub local_memory: u64,
    /// The largest allocation, in bytes.
    pub max_allocation: u64,
    /// The highest clock, in MHz; 0 if unknown.
    pub max_clock_mhz: u32,
    /// Whether its memory can be shared with other processes.
    pub shares_memory: bool,
    /// Whether its physical memory objects can be shared with other processes.
    pub shares_physical_memory: bool,
    /// Whether its events can be shared with other processes.
    pub shares_events: bool,
}

impl Device {
    /// All devices of all platforms. If `ONEAPI_DEVICE_SELECTOR` is set, only those that it selects. The list does not
    /// change while the process runs.
    ///
    /// # Errors
    /// Returns the error of an adapter that could not start, or says what is wrong with the selector.
    pub fn all() -> Result<Vec<Self>> {
        Ok(ffi::platforms()?.iter().flat_map(|p| &p.devices).map(|raw| Self { raw }).collect())
    }
    /// The first device.
    ///
    /// # Errors
    /// [`ErrorKind::NoDevice`] if there is none.
    pub fn first() -> Result<Self> {
        Self::all()?.into_iter().next().ok_or_else(|| {
            none("no device was found: install a driver, or build with the CPU adapter")
        })
    }
    /// The first device that is driven through `backend`.
    ///
    /// ```
    /// # fn check() -> causeway::Result<()> {
    /// use causeway::{Backend, Device};
    ///
    /// let device = Device::first_with(Backend::NativeCpu)?;
    /// assert_eq!(device.platform()?.backend()?, Backend::NativeCpu);
    /// # Ok(()) }
    /// # check().unwrap();
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NoDevice`] if there is none; otherwise the adapter's error.
    pub fn first_with(backend: Backend) -> Result<Self> {
        for device in Self::all()? {
            if device.platform()?.backend()? == backend {
                return Ok(device);
            }
        }
        Err(none(&format!("no device is driven through {backend}: install its driver")))
    }
    /// The device with this [`uuid`](Self::uuid), which does not change with the order or number of devices: 32
    /// hexadecimal digits in either case, with or without hyphens and NVIDIA's prefix `GPU-`.
    ///
    /// # Errors
    /// [`ErrorKind::NoDevice`] if there is none; otherwise the adapter's error.
    pub fn with_uuid(uuid: &str) -> Result<Self> {
        let digits = uuid.trim().to_ascii_lowercase().replace('-', "");
        let digits = digits.strip_prefix("gpu").unwrap_or(&digits);
        for device in Self::all()? {
            match device.uuid() {
                Ok(found) if found == digits => return Ok(device),
                Err(error) if error.kind() != ErrorKind::Unsupported => return Err(error),
                _ => {}
            }
        }
        Err(none(&format!("no device has the UUID {uuid}: `causeway info` shows those there are")))
    }
    /// The device's UUID, which identifies it among all devices, as 32 hexadecimal digits.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the driver provides none; otherwise the adapter's error.
    pub fn uuid(&self) -> Result<String> {
        let bytes: [u8; 16] = self.raw.value(info::UUID)?;
        Ok(hex::encode(bytes))
    }
    /// Its platform.
    ///
    /// # Errors
    /// None, once devices have been listed.
    pub fn platform(&self) -> Result<Platform> {
        Ok(Platform { raw: &ffi::platforms()?[self.raw.platform] })
    }
    /// All of its properties.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn info(&self) -> Result<DeviceInfo> {
        let platform = self.platform()?;
        Ok(DeviceInfo {
            name: self.name()?,
            vendor: self.vendor()?,
            driver_version: self.driver_version()?,
            platform: platform.name()?,
            backend: platform.backend()?,
            kind: self.kind()?,
            compute_units: self.compute_units()?,
            global_memory: self.global_memory()?,
            local_memory: self.local_memory()?,
            max_allocation: self.max_allocation()?,
            max_clock_mhz: self.max_clock_mhz()?,
            shares_memory: self.shares_memory()?,
            shares_physical_memory: self.shares_physical_memory()?,
            shares_events: self.shares_events()?,
        })
    }
    /// Its kind.
    ///
    /// # Errors
    /// Returns the adapter's error.
    pub fn kind(&self) -> Result<DeviceKind> {
        Ok(match ur_device_type_t(self.raw.value(info::TYPE)?) {
            ur_device_type_t::CPU => DeviceKind::Cpu,
            ur_device_type_t::GPU => DeviceKind::Gpu,
            _ => DeviceKind::Accelerator,
        })
    }
    /// A boolean property, which is false on devices that do not know it.
    fn claims(&self, name: info) -> Result<bool> {
        match self.raw.value::<u8>(name) {
            Ok(claim) => Ok(claim != 0),
            Err(error) if error.code() == Some(crate::Code::ERROR_UNSUPPORTED_ENUMERATION) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// The error that no such device exists; it names the environment variable that may hide one.
fn none(sentence: &str) -> Error {
    let hides = match std::env::var("ONEAPI_DEVICE_SELECTOR") {
        Ok(selector) if !selector.is_empty() => {
            format!(
                " (ONEAPI_DEVICE_SELECTOR is {selector}, which hides other devices: unset it to see all)"
            )
        }
        _ => String::new(),
    };
    Error::new(ErrorKind::NoDevice, format!("{sentence}{hides}"))
}

macro_rules! properties {
    ($($(#[$doc:meta])* $name:ident -> $type:ty: $how:ident($info:ident);)*) => {
        impl Device { $(
            $(#[$doc])*
            ///
            /// # Errors
            /// Returns the adapter's error.
            pub fn $name(&self) -> Result<$type> {
                properties!(@$how self, $info)
            }
        )* }
    };
    (@text $self:ident, $info:ident) => { $self.raw.text(info::$info) };
    (@value $self:ident, $info:ident) => { $self.raw.value(info::$info) };
    (@claim $self:ident, $info:ident) => { $self.claims(info::$info) };
}
properties! {
    /// Its name.
    name -> String: text(NAME);
    /// The vendor.
    vendor -> String: text(VENDOR);
    /// The driver's version.
    driver_version -> String: text(DRIVER_VERSION);
    /// The number of compute units; on a CPU, its cores.
    compute_units -> u32: value(MAX_COMPUTE_UNITS);
    /// The device's memory in bytes.
    global_memory -> u64: value(GLOBAL_MEM_SIZE);
    /// The local memory of a compute unit in bytes.
    local_memory -> u64: value(LOCAL_MEM_SIZE);
    /// The largest allocation, in bytes.
    max_allocation -> u64: value(MAX_MEM_ALLOC_SIZE);
    /// The highest clock, in MHz; 0 if unknown.
    max_clock_mhz -> u32: value(MAX_CLOCK_FREQUENCY);
    /// Whether its memory ([`Buffer`](crate::Buffer)) can be shared with other processes.
    shares_memory -> bool: claim(IPC_MEMORY_SUPPORT_EXP);
    /// Whether its [`PhysicalMemory`](crate::PhysicalMemory) can be shared with other processes.
    shares_physical_memory -> bool: claim(IPC_PHYSICAL_MEMORY_SUPPORT_EXP);
    /// Whether its [`Event`](crate::Event)s can be shared with other processes.
    shares_events -> bool: claim(IPC_EVENT_SUPPORT_EXP);
    /// Whether its queues run host tasks ([`Queue::host_task`](crate::Queue::host_task)).
    runs_host_tasks -> bool: claim(ENQUEUE_HOST_TASK_SUPPORT_EXP);
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.raw, other.raw)
    }
}
impl Eq for Device {}
impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.name().unwrap_or_else(|error| error.to_string()))
    }
}
impl fmt::Debug for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Platform({})", self.name().unwrap_or_else(|error| error.to_string()))
    }
}
