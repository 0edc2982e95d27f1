//! Code that devices run: what modules are built of, what is known of a function, what a launch is.
use crate::{Access, Address, Error, ErrorKind, Result, Types};
use std::sync::Arc;

/// What code that the application passes is meant to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodeForm {
    /// Code for any device of the driver's, which is compiled when it is built.
    Intermediate,
    /// Code that was made for a device.
    Binary,
}
/// A specialization constant: its number in the code, and its bytes.
pub type Constant = (u32, Vec<u8>);
/// What size of groups goes best.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupChoice {
    /// So many items in each dimension; it need not divide the items that there are.
    Of([usize; 3]),
    /// About so many items in all.
    About(usize),
}
/// What a function wants more of, where a device divides memory between the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CachePreference {
    /// Neither.
    None,
    /// Local memory.
    LocalMemory,
    /// Cache.
    Cache,
}
/// What is known of a function on its device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FunctionFacts {
    /// Items of a group at most, where that differs from the device's limit.
    pub items: Option<usize>,
    /// The size of groups that it was compiled for, if it was.
    pub required_group: Option<[usize; 3]>,
    /// Items that it wants to go in step, where it was compiled for a number of them.
    pub sub_group: Option<u32>,
    /// Bytes of local memory that it declares itself.
    pub local_memory: usize,
    /// Bytes of memory that each item has for itself.
    pub private_memory: usize,
    /// How many arguments it takes, if that is known.
    pub arguments: Option<u32>,
    /// Bytes of each argument, where the driver or the code tells.
    pub argument_sizes: Option<Vec<u32>>,
    /// Bytes of one argument at most, where that is less than any driver takes.
    pub longest_argument: Option<usize>,
    /// Whether what is not told of its groups here or beside the code was not asked for. Otherwise it may be unknown.
    pub is_all_told: bool,
    /// What the items of a group are best a multiple of, where that differs from the device's sub-groups.
    pub multiple: Option<usize>,
    /// Sub-groups that a group has, where it was compiled for a number of them.
    pub sub_groups: Option<u32>,
    /// Items of a sub-group at most.
    pub most_sub_group: u32,
    /// Sub-groups of a group at most.
    pub most_sub_groups: u32,
    /// Bytes of registers that an item spills, where the driver tells.
    pub spilled: Option<u32>,
    /// Registers of an item, where the driver tells.
    pub registers: Option<u32>,
}

/// Which items a launch has: `groups` groups of `local` items in each dimension, counted from `offset` on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Groups in each dimension; none is 0, and none is more than [`LaunchLimits::grid`](crate::LaunchLimits::grid).
    pub groups: [usize; 3],
    /// Items of a group in each dimension; none is 0.
    pub local: [u32; 3],
    /// The index of the first item.
    pub offset: [usize; 3],
}
impl Geometry {
    /// The groups, for a driver whose limits have no more than 32 bits.
    pub fn group_words(&self) -> [u32; 3] {
        self.groups.map(|n| n as u32)
    }
    /// The offset, for a driver whose kernels take offsets of 32 bits; `None` for none.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidValue`] for one that has more.
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
/// Local memory of two arguments is at least so many bytes apart where each has as many, and as aligned.
pub const LOCAL_ALIGNMENT: usize = 128;
/// Where local memory of `bytes` bytes starts and ends in a group's local memory of which `taken` bytes are taken. `None` for
/// more than a launch can have. Drivers that place it themselves place it so, or further apart.
pub fn place_local(taken: usize, bytes: usize) -> Option<(usize, usize)> {
    let alignment = bytes.max(1).checked_next_power_of_two()?.min(LOCAL_ALIGNMENT);
    let start = taken.checked_next_multiple_of(alignment)?;
    Some((start, start.checked_add(bytes).filter(|&end| end <= i32::MAX as usize)?))
}
/// One argument. Buffers are addresses here: where their bytes are was settled before. What a driver made is lent with its
/// count, so that a driver that executes later can keep it.
#[derive(Debug)]
pub enum Argument<'a, D: Types> {
    /// These bytes.
    Value(&'a [u8]),
    /// An address, or none.
    Address(Option<Address>),
    /// So many bytes of local memory for each group: [`place_local`] says where.
    Local(usize),
    /// An image, and what the function does with it.
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

/// A function with arguments, and how often it runs.
#[derive(Debug)]
pub struct Launch<'a, D: Types> {
    /// What runs.
    pub function: &'a Arc<D::Function>,
    /// How often, and where.
    pub geometry: Geometry,
    /// Its arguments, in their order.
    pub arguments: &'a [Argument<'a, D>],
    /// Bytes of local memory for each group that no argument is for. They come first.
    pub local_memory: usize,
    /// Whether all groups run at once. Needs
    /// [`Capability::CooperativeLaunch`](crate::Capability::CooperativeLaunch).
    pub is_cooperative: bool,
    /// Groups of a cluster. Needs [`Capability::Clusters`](crate::Capability::Clusters).
    pub cluster: Option<[u32; 3]>,
}

/// A launch that is kept, to be executed again and again, with a copy of what it points at.
#[derive(Debug)]
pub struct KeptLaunch<D: Types> {
    function: Arc<D::Function>,
    geometry: Geometry,
    arguments: Box<[KeptArgument<D>]>,
    local_memory: usize,
    is_cooperative: bool,
    cluster: Option<[u32; 3]>,
}
/// One argument of it.
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
    /// A copy of a launch.
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
    /// Lends the launch to `to`.
    pub fn lend<R>(&self, to: impl FnOnce(&Launch<'_, D>) -> R) -> R {
        let arguments: Vec<_> = self.arguments.iter().map(KeptArgument::lend).collect();
        to(&Launch {
            function: &self.function,
            geometry: self.geometry,
            arguments: &arguments,
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
        let offset = |offset| Geometry { groups: [1; 3], local: [1; 3], offset }.offset_words();
        assert_eq!(offset([0; 3]).unwrap(), None);
        assert_eq!(offset([0, 9, 0]).unwrap(), Some([0, 9, 0]));
        assert_eq!(offset([1 << 32, 0, 0]).unwrap_err().kind(), ErrorKind::InvalidValue);
    }
}
