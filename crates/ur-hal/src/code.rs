//! Code that devices run: what modules are built of, what is known of a function, what a launch is.
use crate::{Access, Address, Types};

/// One piece of what a module is built of.
#[derive(Debug)]
pub enum Source<'a, D: Types> {
    /// SPIR-V, with values for its specialization constants, each by its number.
    SpirV {
        /// The words of the module.
        code: &'a [u8],
        /// Which constant has which bytes.
        constants: &'a [(u32, &'a [u8])],
    },
    /// A binary, or text, that the driver knows.
    Binary(&'a [u8]),
    /// A module that was built with [`BuildOptions::is_library`].
    Module(&'a D::Module),
}
/// How a module is built.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuildOptions<'a> {
    /// What the user passes to the driver's compiler.
    pub flags: &'a str,
    /// Whether other modules are going to be linked with it, so that its symbols may be undefined.
    pub is_library: bool,
}
/// What is known of a function on its device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FunctionFacts {
    /// Items of a group at most.
    pub items: usize,
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
