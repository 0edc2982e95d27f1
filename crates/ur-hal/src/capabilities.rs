//! Optional features of a driver or a device. The core checks them in one place: where a capability is missing, the
//! query for it returns false, the entry that needs it returns `UNSUPPORTED_FEATURE`, and no method that needs it is
//! called.
use crate::{Error, Result};
use std::fmt;

/// Defines the enum, the list of all capabilities, and their names for messages that begin with "this device does not
/// have".
macro_rules! capabilities {
    ($($(#[$doc:meta])* $one:ident = $name:literal,)*) => {
        /// An optional feature of a device.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Capability {
            $($(#[$doc])* $one,)*
        }
        impl Capability {
            const ALL: &[Self] = &[$(Self::$one),*];

            const fn bit(self) -> u64 {
                1 << self as u8
            }
            const fn name(self) -> &'static str {
                match self {
                    $(Self::$one => $name,)*
                }
            }
        }
    };
}
capabilities! {
    /// Memory is allocated and freed in stream order, by the driver's streams
    /// ([`Streams::allocates`](crate::Streams::allocates)) or else by the core.
    OrderedAllocation = "memory that is allocated in a queue's order",
    /// Host memory that the application allocated can be pinned: [`Pins::pin`](crate::Pins::pin).
    Pinning = "pinned memory of others",
    /// The driver compiles source or intermediate code.
    Compiler = "a compiler",
    /// The driver links several pieces of code into one module.
    Linker = "a linker",
    /// The driver links modules that are loaded already: [`Modules::resolve`](crate::Modules::resolve).
    LoadedLinker = "a linker of programs that are loaded already",
    /// The addresses of a module's variables can be queried.
    Variables = "global variables of programs",
    /// All groups of a launch can run at the same time and wait for each other.
    CooperativeLaunch = "groups that wait for each other",
    /// Launches can have clusters of groups.
    Clusters = "clusters of groups",
    /// Launches can have local memory in addition to that of their arguments.
    ScratchMemory = "local memory that no argument is for",
    /// Programs can be built for parts of the device.
    BuildsForParts = "programs for parts of the device",
    /// The driver compiles one module for several devices.
    JointCompiler = "a compiler for several devices at once",
    /// Values of specialization constants can be set.
    SpecializationConstants = "specialization constants",
    /// Kernels can be written with explicit SIMD.
    ExplicitSimd = "kernels with explicit SIMD",
    /// Functions of the host can be executed as kernels.
    NativeKernels = "native kernels",
    /// Failed assertions of kernels are reported by the driver itself.
    NativeAssert = "assertions of its own",
    /// Arithmetic with bfloat16.
    Bfloat16 = "arithmetic with bfloat16",
    /// Instructions that convert bfloat16.
    Bfloat16Conversions = "conversions of bfloat16",
    /// Barriers at which work-items arrive and wait separately.
    AsyncBarrier = "asynchronous barriers",
    /// Atomic operations on 64 bits.
    Atomics64 = "atomic operations on 64 bits",
    /// Atomic operations and fences can be sequentially consistent.
    SequentialConsistency = "sequentially consistent atomic operations",
    /// Sub-groups of a group make progress independently of each other.
    IndependentSubGroups = "independent progress of sub-groups",
    /// Kernels read the clocks of their sub-group, their group and the device.
    KernelClocks = "clocks for kernels",
    /// The device's memory has error correction.
    ErrorCorrection = "error correction",
    /// Images can have sRGB colours.
    SrgbImages = "sRGB images",
}

/// Which capabilities a device has.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(u64);
impl Capabilities {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// The set of these capabilities.
    pub const fn of(all: &[Capability]) -> Self {
        let (mut set, mut next) = (Self::NONE, 0);
        while next < all.len() {
            set = set.with(all[next]);
            next += 1;
        }
        set
    }
    /// The set with one more capability.
    #[must_use]
    pub const fn with(self, one: Capability) -> Self {
        Self(self.0 | one.bit())
    }
    /// The set with one more capability if the device `has` it.
    #[must_use]
    pub const fn with_if(self, one: Capability, has: bool) -> Self {
        if has { self.with(one) } else { self }
    }
    /// The set with these capabilities too if the device `has` them.
    #[must_use]
    pub const fn with_all_if(self, all: &[Capability], has: bool) -> Self {
        if has { Self(self.0 | Self::of(all).0) } else { self }
    }
    /// Whether the set contains this capability.
    #[inline]
    pub const fn has(self, one: Capability) -> bool {
        self.0 & one.bit() != 0
    }
    /// Checks that the set contains this capability.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if it does not.
    #[inline]
    pub fn require(self, one: Capability) -> Result<()> {
        if self.has(one) { Ok(()) } else { lacks(one) }
    }
}
#[cold]
fn lacks(one: Capability) -> Result<()> {
    let why = format!("this device does not have {}", one.name());
    Err(Error::new(crate::ErrorKind::Unsupported, why))
}
impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(Capability::ALL.iter().filter(|one| self.has(**one))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{Capability::*, *};

    #[test]
    fn a_device_has_what_it_was_given_and_nothing_else() {
        const HAS: Capabilities = Capabilities::of(&[Linker, Compiler]);
        assert!(HAS.has(Linker) && HAS.has(Compiler) && !HAS.has(Clusters));
        assert!(HAS.require(Compiler).is_ok());
        let refused = HAS.require(Pinning).unwrap_err();
        assert_eq!(refused.kind(), crate::ErrorKind::Unsupported);
        assert_eq!(
            refused.to_string(),
            "this device does not have pinned memory of others (Unsupported)"
        );
        assert_eq!(format!("{HAS:?}"), "{Compiler, Linker}");
        assert_eq!(HAS.with_if(Clusters, false), HAS);
        assert!(HAS.with_if(Clusters, true).has(Clusters));
    }
    #[test]
    fn every_capability_has_a_bit() {
        assert!(Capability::ALL.len() <= u64::BITS as usize);
        let all = Capability::ALL.iter().copied();
        assert!(all.clone().zip(0..).all(|(one, at)| one.bit() == 1 << at));
    }
}
