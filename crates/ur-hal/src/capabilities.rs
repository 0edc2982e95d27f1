//! What a driver or a device may lack. The core checks it in one place: where a capability is off, the query for it is
//! answered false, the entry that needs it returns `UNSUPPORTED_FEATURE`, and no verb that needs it is called.
use crate::{Error, Result};
use std::fmt;

/// The enum, the list of all, and what users call each, for sentences that begin with "this device does not have".
macro_rules! capabilities {
    ($($(#[$doc:meta])* $one:ident = $name:literal,)*) => {
        /// Something that not every device has.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Capability {
            $($(#[$doc])* $one,)*
        }
        impl Capability {
            const ALL: &[Self] = &[$(Self::$one),*];

            const fn bit(self) -> u32 {
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
    /// Memory that moves between host and device: [`MemoryKind::Managed`](crate::MemoryKind::Managed).
    ManagedMemory = "shared USM",
    /// Memory that a stream allocates and frees in its own order:
    /// [`Command::AllocAsync`](crate::Command::AllocAsync).
    OrderedAllocation = "memory that is allocated in a queue's order",
    /// Host memory that others allocated can be pinned: [`Driver::pin`](crate::Driver::pin).
    Pinning = "pinned memory of others",
    /// Memory that others allocated is recognised: [`Allocates::recognise`](crate::Allocates::recognise).
    ForeignMemory = "knowledge of memory that others allocated",
    /// Reserved addresses, and physical memory to map there.
    VirtualMemory = "virtual memory",
    /// Physical memory can be mapped from elsewhere than its first byte.
    PartialMappings = "mappings of a part of physical memory",
    /// Other processes can be given its memory.
    SharedMemory = "memory that processes share",
    /// Other processes can be given its physical memory.
    SharedPhysical = "physical memory that processes share",
    /// Its streams write words that processes share, and wait for them: [`Wait::Word`](crate::Wait::Word) and
    /// [`Signal::Word`](crate::Signal::Word).
    SharedWords = "queues that wait for words of shared memory",
    /// Its points can be signalled again and again: [`Streams::reusable`](crate::Streams::reusable).
    ReusablePoints = "events that are signalled again",
    /// Such points can be given to other processes.
    SharedPoints = "events that processes share",
    /// Its streams call functions of the host.
    HostCalls = "host tasks",
    /// The application can put commands of its own into its streams, in their order:
    /// [`Command::Native`](crate::Command::Native).
    NativeCommands = "native commands",
    /// Its points call back: [`Streams::notify`](crate::Streams::notify). Without it the core looks at them.
    Notifications = "notifications of its own",
    /// It can be used in parts.
    Parts = "parts that can be used by themselves",
    /// It runs functions of modules.
    Modules = "programs",
    /// It compiles source or intermediate code.
    Compiler = "a compiler",
    /// It joins several pieces of code to one module.
    Linker = "a linker",
    /// It links modules that are loaded already: [`Modules::resolve`](crate::Modules::resolve).
    LoadedLinker = "a linker of programs that are loaded already",
    /// Modules have variables whose addresses it tells.
    Variables = "global variables of programs",
    /// All groups of a launch can run at once and wait for each other.
    CooperativeLaunch = "groups that wait for each other",
    /// Launches in clusters of groups.
    Clusters = "clusters of groups",
    /// Launches with local memory that no argument is for.
    ScratchMemory = "local memory that no argument is for",
    /// It has images.
    Images = "images",
    /// Kernels take samplers.
    Samplers = "samplers",
    /// Commands can be recorded and submitted as one: [`Driver::graph`](crate::Driver::graph).
    Graphs = "graphs",
}

/// Which capabilities a device has.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(u32);
impl Capabilities {
    /// None of them.
    pub const NONE: Self = Self(0);

    /// These.
    pub const fn of(all: &[Capability]) -> Self {
        let (mut set, mut next) = (Self::NONE, 0);
        while next < all.len() {
            set = set.with(all[next]);
            next += 1;
        }
        set
    }
    /// These and one more.
    #[must_use]
    pub const fn with(self, one: Capability) -> Self {
        Self(self.0 | one.bit())
    }
    /// These, and one more if the device says so.
    #[must_use]
    pub const fn with_if(self, one: Capability, has: bool) -> Self {
        if has { self.with(one) } else { self }
    }
    /// Whether this one is among them.
    #[inline]
    pub const fn has(self, one: Capability) -> bool {
        self.0 & one.bit() != 0
    }
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where it is not.
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
        const HAS: Capabilities = Capabilities::of(&[Images, Graphs]);
        assert!(HAS.has(Images) && HAS.has(Graphs) && !HAS.has(Samplers));
        assert!(HAS.require(Graphs).is_ok());
        let refused = HAS.require(HostCalls).unwrap_err();
        assert_eq!(refused.kind(), crate::ErrorKind::Unsupported);
        assert_eq!(refused.to_string(), "this device does not have host tasks");
        assert_eq!(format!("{HAS:?}"), "{Images, Graphs}");
        assert_eq!(HAS.with_if(Samplers, false), HAS);
        assert!(HAS.with_if(Samplers, true).has(Samplers));
    }
    #[test]
    fn every_capability_has_a_bit() {
        assert!(Capability::ALL.len() <= u32::BITS as usize);
        let all = Capability::ALL.iter().copied();
        assert!(all.clone().zip(0..).all(|(one, at)| one.bit() == 1 << at));
    }
}
