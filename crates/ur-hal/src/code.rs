//! Device code: what modules are built from, the facts of a function, and launches.
use crate::{Access, Address, Error, ErrorKind, Result, Types};
use std::sync::Arc;

/// The largest size of one argument in bytes; no driver accepts more.
pub const LONGEST_ARGUMENT: usize = 32764;

/// The form of code that the application passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodeForm {
    /// Code for any device of the driver, which is compiled when a module is built.
    Intermediate,
    /// Code compiled for a particular device.
    Binary,
}
/// A specialization constant: its number in the code, and its bytes.
pub type Constant = (u32, Vec<u8>);
/// A suggested group size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupChoice {
    /// This many items in each dimension; it need not divide the number of items of the launch.
    Of([usize; 3]),
    /// About this many items in total.
    About(usize),
}
/// What a function prefers, on a device that divides memory between local memory and cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CachePreference {
    /// No preference.
    None,
    /// More local memory.
    LocalMemory,
    /// More cache.
    Cache,
}
/// The facts of a function on its device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FunctionFacts {
    /// The largest number of items of a group, where that differs from the device's limit.
    pub items: Option<usize>,
    /// The group size that the function was compiled for, if any.
    pub required_group: Option<[usize; 3]>,
    /// The sub-group size that the function was compiled for, if any.
    pub sub_group: Option<u32>,
    /// Bytes of local memory that the function declares.
    pub local_memory: usize,
    /// Bytes of private memory of each item.
    pub private_memory: usize,
    /// How many arguments it takes, if that is known.
    pub arguments: Option<u32>,
    /// The size in bytes of each argument, where the driver or the code tells it.
    pub argument_sizes: Option<Vec<u32>>,
    /// The largest size in bytes of one argument, where that is less than any driver accepts.
    pub longest_argument: Option<usize>,
    /// Whether the limits of its group size are known completely: then a limit that neither these facts nor the code
    /// contains does not exist. Otherwise it may just be unknown.
    pub is_all_told: bool,
    /// The preferred multiple of a group's items, where that differs from the device's sub-group size.
    pub multiple: Option<usize>,
    /// The number of sub-groups per group that the function was compiled for, if any.
    pub sub_groups: Option<u32>,
    /// The largest number of items of a sub-group.
    pub most_sub_group: u32,
    /// The largest number of sub-groups of a group.
    pub most_sub_groups: u32,
    /// Bytes of registers that each item spills, where the driver tells it.
    pub spilled: Option<u32>,
    /// Registers of each item, where the driver tells it.
    pub registers: Option<u32>,
}

/// The items of a launch: `groups` groups of `local` items in each dimension, numbered from `offset`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Groups in each dimension; none is 0, and none is more than [`LaunchLimits::grid`](crate::LaunchLimits::grid).
    pub groups: [usize; 3],
    /// Items of a group in each dimension; none is 0.
    pub local: [u32; 3],
    /// The index of the first item.
    pub offset: [usize; 3],
    /// How many dimensions the caller named, 1 to 3, which kernels may ask for; the others have one item.
    pub dimensions: u32,
}
impl Geometry {
    /// The groups, for a driver whose limits fit into 32 bits.
    pub fn group_words(&self) -> [u32; 3] {
        self.groups.map(|n| n as u32)
    }
    /// The offset, for a driver whose kernels take 32-bit offsets; `None` if it is 0 in all dimensions.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidValue`] for an offset that does not fit.
    pub fn offset_words(&self) -> Result<Option<[u32; 3]>> {
        if self.offset == [0; 3] {
            return Ok(None);
        }
        let mut words = [0; 3];
        for (to, &from) in words.iter_mut().zip(&self.offset) {
            *to = u32::try_from(from).map_err(|_| {
                let why = format!("{from}: kernels take offsets of 32 bits");
                Error::new(ErrorKind::InvalidValue, why)
            })?;
        }
        Ok(Some(words))
    }
}
/// The largest alignment that [`place_local`] gives to the local memory of one argument, in bytes.
pub const LOCAL_ALIGNMENT: usize = 128;
/// Places `bytes` of local memory in a group's local memory of which `taken` bytes are in use; returns its start and
/// end. It is aligned to its size rounded up to a power of two, at most to [`LOCAL_ALIGNMENT`]. `None` if it exceeds
/// what a launch can have. Drivers that place local memory themselves align it at least as much.
pub fn place_local(taken: usize, bytes: usize) -> Option<(usize, usize)> {
    let alignment = bytes.max(1).checked_next_power_of_two()?.min(LOCAL_ALIGNMENT);
    let start = taken.checked_next_multiple_of(alignment)?;
    Some((start, start.checked_add(bytes).filter(|&end| end <= i32::MAX as usize)?))
}
/// One argument. Buffers have been resolved to addresses. Objects of the driver are passed with their reference count,
/// so that a driver that executes later can keep them.
#[derive(Debug)]
pub enum Argument<'a, D: Types> {
    /// The bytes of a value.
    Value(&'a [u8]),
    /// An address, or null.
    Address(Option<Address>),
    /// This many bytes of local memory for each group, placed as by [`place_local`].
    Local(usize),
    /// An image, and how the function accesses it.
    Image(&'a Arc<D::Image>, Access),
    /// A sampler.
    Sampler(&'a Arc<D::Sampler>),
}
impl<D: Types> Clone for Argument<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: Types> Copy for Argument<'_, D> {}

/// A function with its arguments and geometry.
#[derive(Debug)]
pub struct Launch<'a, D: Types> {
    /// The function to run.
    pub function: &'a Arc<D::Function>,
    /// How many items run, and in which groups.
    pub geometry: Geometry,
    /// The arguments, in order.
    pub arguments: &'a [Argument<'a, D>],
    /// Bytes of local memory for each group in addition to that of the arguments. They come first.
    pub local_memory: usize,
    /// Whether all groups must run at the same time. Needs
    /// [`Capability::CooperativeLaunch`](crate::Capability::CooperativeLaunch).
    pub is_cooperative: bool,
    /// Groups of a cluster in each dimension. Needs [`Capability::Clusters`](crate::Capability::Clusters).
    pub cluster: Option<[u32; 3]>,
}

/// A stored launch that can be executed repeatedly. It owns copies of what the launch refers to.
#[derive(Debug)]
pub struct KeptLaunch<D: Types> {
    function: Arc<D::Function>,
    geometry: Geometry,
    arguments: Box<[KeptArgument<D>]>,
    local_memory: usize,
    is_cooperative: bool,
    cluster: Option<[u32; 3]>,
}
/// One argument of a stored launch.
#[derive(Debug)]
enum KeptArgument<D: Types> {
    Value(Box<[u8]>),
    Address(Option<Address>),
    Local(usize),
    Image(Arc<D::Image>, Access),
    Sampler(Arc<D::Sampler>),
}
impl<D: Types> KeptArgument<D> {
    fn lend(&self) -> Argument<'_, D> {
        match self {
            Self::Value(bytes) => Argument::Value(bytes),
            Self::Address(at) => Argument::Address(*at),
            Self::Local(bytes) => Argument::Local(*bytes),
            Self::Image(image, access) => Argument::Image(image, *access),
            Self::Sampler(sampler) => Argument::Sampler(sampler),
        }
    }
}
impl<D: Types> KeptLaunch<D> {
    /// Copies a launch.
    pub fn of(launch: &Launch<'_, D>) -> Self {
        let keep = |argument: &Argument<'_, D>| match *argument {
            Argument::Value(bytes) => KeptArgument::Value(bytes.into()),
            Argument::Address(at) => KeptArgument::Address(at),
            Argument::Local(bytes) => KeptArgument::Local(bytes),
            Argument::Image(image, access) => KeptArgument::Image(Arc::clone(image), access),
            Argument::Sampler(sampler) => KeptArgument::Sampler(Arc::clone(sampler)),
        };
        Self {
            function: Arc::clone(launch.function),
            geometry: launch.geometry,
            arguments: launch.arguments.iter().map(keep).collect(),
            local_memory: launch.local_memory,
            is_cooperative: launch.is_cooperative,
            cluster: launch.cluster,
        }
    }
    /// Whether both run the same function.
    pub fn has_function_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.function, &other.function)
    }
    /// Passes the launch to `to`.
    pub fn lend<R>(&self, to: impl FnOnce(&Launch<'_, D>) -> R) -> R {
        const FEW: usize = 8; // up to this many arguments need no heap allocation
        let (mut few, mut many) = ([Argument::Address(None); FEW], vec![]);
        let count = self.arguments.len();
        let arguments = if count <= FEW {
            &mut few[..count]
        } else {
            many.resize(count, Argument::Address(None));
            &mut many[..]
        };
        for (place, argument) in arguments.iter_mut().zip(&self.arguments) {
            *place = argument.lend();
        }
        to(&Launch {
            function: &self.function,
            geometry: self.geometry,
            arguments,
            local_memory: self.local_memory,
            is_cooperative: self.is_cooperative,
            cluster: self.cluster,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_memory_is_one_block_of_aligned_parts() {
        assert_eq!(place_local(0, 4), Some((0, 4)));
        assert_eq!(place_local(4, 12), Some((16, 28)));
        assert_eq!(place_local(28, 4096), Some((128, 4224)));
        assert_eq!(place_local(129, 0), Some((129, 129)));
        assert_eq!(place_local(1, usize::MAX), None);
        assert_eq!(place_local(0, 1 << 31), None);
    }
    #[test]
    fn offsets_have_32_bits_where_kernels_take_no_more() {
        let offset = |offset| {
            Geometry { groups: [1; 3], local: [1; 3], offset, dimensions: 3 }.offset_words()
        };
        assert_eq!(offset([0; 3]).unwrap(), None);
        assert_eq!(offset([0, 9, 0]).unwrap(), Some([0, 9, 0]));
        assert_eq!(offset([1 << 32, 0, 0]).unwrap_err().kind(), ErrorKind::InvalidValue);
    }
}
