//! The device attributes that this adapter queries, by name. CUDA and HIP number them differently, and
//! neither has all of them: an attribute that the driver does not have is not an error of the device.
use super::{
    device::DriverDevice,
    driver::{Api, Dialect},
};
use ur_hal::{Error, ErrorKind, Result};

macro_rules! attributes {
    ($($(#[$doc:meta])* $name:ident: $cuda:literal | $hip:literal;)*) => {
        /// A device attribute, independent of the driver's number for it.
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
/// The number of an attribute that the driver does not have.
const NONE: i32 = -1;
attributes! {
    //                  CUDA | HIP
    /// Maximum number of work-items in a group.
    GroupItems:           1 | 56;
    /// Maximum number of work-items in a group in the first dimension.
    GroupX:               2 | 26;
    /// The same in the second dimension.
    GroupY:               3 | 27;
    /// The same in the third dimension.
    GroupZ:               4 | 28;
    /// Maximum number of groups in the first dimension.
    GridX:                5 | 29;
    /// The same in the second dimension.
    GridY:                6 | 30;
    /// The same in the third dimension.
    GridZ:                7 | 31;
    /// Bytes of local memory that every kernel may use.
    LocalMemory:          8 | 74;
    /// Bytes of local memory that a kernel may use after it opted in.
    LocalMemoryOptIn:    97 | -1;
    /// Bytes of constant memory.
    ConstantMemory:       9 | 83;
    /// Work-items of a sub-group (warp size).
    SubGroup:            10 | 87;
    /// Registers available to a group.
    Registers:           12 | 71;
    /// Clock rate in kHz.
    Clock:               13 | 5;
    /// Alignment of textures in bytes.
    TextureAlignment:    14 | 81;
    /// Number of multiprocessors.
    Units:               16 | 63;
    /// Whether the device is integrated with the host's memory.
    Integrated:          18 | 16;
    /// Whether host memory can be mapped into the device's address space.
    MapsHostMemory:      19 | 3;
    /// Limit in pixels.
    Texture2dWidth:      22 | 43;
    /// Limit in pixels.
    Texture2dHeight:     23 | 44;
    /// Limit in pixels.
    Texture3dWidth:      24 | 49;
    /// Limit in pixels.
    Texture3dHeight:     25 | 50;
    /// Limit in pixels.
    Texture3dDepth:      26 | 51;
    /// Limit in layers.
    TextureLayers:       29 | -1;
    /// Whether ECC is enabled.
    Ecc:                 32 | 0;
    /// Memory clock rate in kHz.
    MemoryClock:         36 | 60;
    /// Width of the memory bus in bits.
    BusWidth:            37 | 59;
    /// Size of the L2 cache in bytes.
    L2Cache:             38 | 19;
    /// Limit in pixels.
    Surface2dWidth:      56 | -1;
    /// Limit in pixels.
    Surface2dHeight:     57 | -1;
    /// Limit in pixels.
    Surface3dWidth:      58 | -1;
    /// Limit in pixels.
    Surface3dHeight:     59 | -1;
    /// Limit in pixels.
    Surface3dDepth:      60 | -1;
    /// Limit in layers.
    SurfaceLayers:       65 | -1;
    /// Maximum width in pixels of a one-dimensional image in linear memory.
    LinearWidth:         69 | 41;
    /// Major version of the compute capability.
    Major:               75 | 23;
    /// Minor version of the compute capability.
    Minor:               76 | 61;
    /// Whether managed memory is supported.
    Managed:             83 | 24;
    /// Whether the device's atomic operations on host memory are atomic for the host too.
    HostAtomics:         86 | 15;
    /// Whether the device can access pageable host memory.
    Pageable:            88 | 65;
    /// Whether host and device may access managed memory at the same time.
    ConcurrentManaged:   89 | 9;
    /// Whether cooperative launches are supported.
    Cooperative:         95 | 10;
    /// Whether host memory can be registered with the driver.
    HostRegister:        99 | 90;
    /// Whether virtual memory management is supported.
    VirtualMemory:      102 | 89;
    /// Whether memory pools are supported.
    Pools:              115 | 88;
    /// Whether thread block clusters are supported.
    Clusters:           120 | -1;
    /// Whether streams can write and wait for 64-bit words.
    StreamWords:        122 | 10013;
    /// Whether the driver's IPC handles of memory and events are supported.
    Ipc:                125 | -1;
}

impl<D: Dialect> DriverDevice<D> {
    /// The value of an attribute; `None` if this driver does not have the attribute.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn told(&self, attribute: Attribute) -> Result<Option<i32>> {
        let (cuda, hip) = attribute.numbers();
        match if D::API == Api::Cuda { cuda } else { hip } {
            NONE => Ok(None),
            number => match self.attribute(number) {
                Err(error) if error.kind() == ErrorKind::InvalidValue => Ok(None), // it is newer than the driver
                told => told.map(Some),
            },
        }
    }
    /// The value of an attribute.
    ///
    /// # Errors
    /// `UNSUPPORTED_ENUMERATION` if this driver does not have the attribute; else the driver's error.
    pub fn get(&self, attribute: Attribute) -> Result<i32> {
        self.told(attribute)?.ok_or_else(|| {
            let why = format!("this driver of {} does not tell {attribute:?}", D::NAME);
            Error::new(ErrorKind::UnknownOption, why)
        })
    }
    /// Whether the attribute is nonzero; `false` if the driver does not have it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn has(&self, attribute: Attribute) -> Result<bool> {
        Ok(self.told(attribute)?.is_some_and(|value| value != 0))
    }
    /// Major and minor version of the compute capability.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn capability(&self) -> Result<(i32, i32)> {
        Ok((self.get(Attribute::Major)?, self.get(Attribute::Minor)?))
    }
}
