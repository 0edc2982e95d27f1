//! The driver's attributes of a device that this adapter asks for, by name. CUDA and HIP number them
//! differently and neither has all: what a driver cannot say is no failure of the device.
use super::{device::DriverDevice, driver::Dialect};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::Backend,
};

macro_rules! attributes {
    ($($(#[$doc:meta])* $name:ident: $cuda:literal | $hip:literal;)*) => {
        /// An attribute, whatever number the driver gives it.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Attribute { $($(#[$doc])* $name,)* }
        impl Attribute {
            /// CUDA's number and HIP's; `NONE` where the driver has no such attribute.
            const fn numbers(self) -> (i32, i32) {
                match self { $(Self::$name => ($cuda, $hip),)* }
            }
        }
    };
}
/// No attribute's number.
const NONE: i32 = -1;
attributes! {
    //                  CUDA | HIP
    /// Work-items of a group.
    GroupItems:           1 | 56;
    /// Work-items of a group along its first dimension.
    GroupX:               2 | 26;
    /// ... its second.
    GroupY:               3 | 27;
    /// ... its third.
    GroupZ:               4 | 28;
    /// Groups along the first dimension.
    GridX:                5 | 29;
    /// ... the second.
    GridY:                6 | 30;
    /// ... the third.
    GridZ:                7 | 31;
    /// Bytes of local memory that every kernel may use.
    LocalMemory:          8 | 74;
    /// Bytes of local memory that a kernel may use which asks for it.
    LocalMemoryOptIn:    97 | -1;
    /// Bytes of constant memory.
    ConstantMemory:       9 | 83;
    /// Work-items of a sub-group.
    SubGroup:            10 | 87;
    /// Registers of a group.
    Registers:           12 | 71;
    /// In kHz.
    Clock:               13 | 5;
    /// Bytes.
    TextureAlignment:    14 | 81;
    /// Multiprocessors.
    Units:               16 | 63;
    /// Whether it shares the host's memory.
    Integrated:          18 | 16;
    /// Whether it reaches host memory.
    MapsHostMemory:      19 | 3;
    /// Pixels.
    Texture2dWidth:      22 | 43;
    /// Pixels.
    Texture2dHeight:     23 | 44;
    /// Pixels.
    Texture3dWidth:      24 | 49;
    /// Pixels.
    Texture3dHeight:     25 | 50;
    /// Pixels.
    Texture3dDepth:      26 | 51;
    /// Layers.
    TextureLayers:       29 | -1;
    /// Whether memory errors are found and corrected.
    Ecc:                 32 | 0;
    /// In kHz.
    MemoryClock:         36 | 60;
    /// In bits.
    BusWidth:            37 | 59;
    /// Bytes.
    L2Cache:             38 | 19;
    /// Whether addresses mean the same for host and devices.
    UnifiedAddressing:   41 | 85;
    /// Pixels.
    Surface2dWidth:      56 | -1;
    /// Pixels.
    Surface2dHeight:     57 | -1;
    /// Pixels.
    Surface3dWidth:      58 | -1;
    /// Pixels.
    Surface3dHeight:     59 | -1;
    /// Pixels.
    Surface3dDepth:      60 | -1;
    /// Layers.
    SurfaceLayers:       65 | -1;
    /// Pixels of an image that lies in plain memory.
    LinearWidth:         69 | 41;
    /// Major version of the compute capability.
    Major:               75 | 23;
    /// Its minor version.
    Minor:               76 | 61;
    /// Whether there is managed memory.
    Managed:             83 | 24;
    /// Whether its atomic operations on host memory are seen as such by the host.
    HostAtomics:         86 | 15;
    /// Whether it reaches any host memory.
    Pageable:            88 | 65;
    /// Whether host and device may use managed memory at the same time.
    ConcurrentManaged:   89 | 9;
    /// Whether groups can wait for each other.
    Cooperative:         95 | 10;
    /// Whether C's host memory can be made known to the driver.
    HostRegister:        99 | 90;
    /// Whether there is virtual memory.
    VirtualMemory:      102 | 89;
    /// Whether memory has descriptors that other processes can be given.
    Descriptors:        103 | -1;
    /// Whether there are memory pools.
    Pools:              115 | 88;
    /// Whether groups form clusters.
    Clusters:           120 | -1;
    /// Whether streams write and wait for words of 64 bits.
    StreamWords:        122 | 10013;
    /// Whether the driver's handles lead other processes to memory and events.
    Ipc:                125 | -1;
}

impl<D: Dialect> DriverDevice<D> {
    /// One attribute.
    ///
    /// # Errors
    /// `UNSUPPORTED_ENUMERATION` where this driver does not say; else the driver's error.
    pub fn get(&self, attribute: Attribute) -> Result<i32> {
        let (cuda, hip) = attribute.numbers();
        let unsaid = || {
            let why = format!("this driver of {} does not tell {attribute:?}", D::NAME);
            Error::new(ErrorCode::UnsupportedEnumeration, why)
        };
        match if D::BACKEND == Backend::Cuda { cuda } else { hip } {
            NONE => Err(unsaid()),
            number => self.attribute(number).map_err(|error| match error.code() {
                ErrorCode::InvalidValue => unsaid(), // newer than the driver
                _ => error,
            }),
        }
    }
    /// Whether the device has what an attribute says; not so where the driver does not say.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn has(&self, attribute: Attribute) -> Result<bool> {
        match self.get(attribute) {
            Ok(value) => Ok(value != 0),
            Err(error) if error.code() == ErrorCode::UnsupportedEnumeration => Ok(false),
            Err(error) => Err(error),
        }
    }
    /// Major and minor version of the compute capability.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn capability(&self) -> Result<(i32, i32)> {
        Ok((self.get(Attribute::Major)?, self.get(Attribute::Minor)?))
    }
}
