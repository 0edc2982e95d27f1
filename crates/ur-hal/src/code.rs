//! Code that devices run: what modules are built of, what is known of a function, what a launch is.
use crate::{Access, Address, Types};

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
    /// Groups in each dimension; none is 0.
    pub groups: [u32; 3],
    /// Items of a group in each dimension; none is 0.
    pub local: [u32; 3],
    /// What the first item is called.
    pub offset: [usize; 3],
}
/// One argument. Buffers are addresses here: where their bytes are was settled before.
#[derive(Debug)]
pub enum Argument<'a, D: Types> {
    /// These bytes.
    Value(&'a [u8]),
    /// An address, or none.
    Address(Option<Address>),
    /// So many bytes of local memory for each group.
    Local(usize),
    /// An image, and what the function does with it.
    Image(&'a D::Image, Access),
    /// A sampler.
    Sampler(&'a D::Sampler),
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
    pub function: &'a D::Function,
    /// How often, and where.
    pub geometry: Geometry,
    /// Its arguments, in their order.
    pub arguments: &'a [Argument<'a, D>],
    /// Bytes of local memory for each group that no argument is for.
    pub local_memory: usize,
    /// Whether all groups run at once. Needs
    /// [`Capability::CooperativeLaunch`](crate::Capability::CooperativeLaunch).
    pub is_cooperative: bool,
    /// Groups of a cluster. Needs [`Capability::Clusters`](crate::Capability::Clusters).
    pub cluster: Option<[u32; 3]>,
}
