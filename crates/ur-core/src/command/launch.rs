//! Kernel launches: checks range, group size and arguments once, for queues and command buffers of all backends, and
//! makes a [`Launch`] in the device's terms: buffers become addresses, images and samplers become the device's objects.
use super::ready::{Place, Ready, TakesCommands, Usage, Used};
use crate::{
    kernels::{
        arguments::{self, Given, add_local, check_all},
        geometry::{Range, check_cluster},
    },
    over_driver::mem::Mem,
    program::{
        Kernel,
        launch::{self, check_context},
    },
};
use smallvec::SmallVec;
use ur_adapter::{api::Objects, error::Result, object::Borrowed};
use ur_hal::{Access, Address, Argument, Command, Geometry, Launch, Order};
use ur_sys::{ur_command_t, ur_kernel_launch_ext_properties_t, ur_mem_flags_t};

/// Up to this many arguments are resolved on the stack, more on the heap. Hardly any kernel has more.
const FEW: usize = 32;

/// A launch as the caller describes it.
pub(crate) struct Asked<'a, D: TakesCommands, G: ?Sized> {
    /// The kernel to run.
    pub(crate) kernel: Borrowed<'a, Kernel<D>>,
    /// The global offset; `None` for 0.
    pub(crate) offset: Option<&'a [usize]>,
    /// The global size, in items, for each dimension.
    pub(crate) global: &'a [usize],
    /// The group size, in items; `None` lets the adapter choose.
    pub(crate) local: Option<&'a [usize]>,
    /// The arguments.
    pub(crate) arguments: &'a G,
    /// Optional launch properties.
    pub(crate) properties: Option<&'a ur_kernel_launch_ext_properties_t>,
}
/// Checks a launch, and passes the resulting command to `to`.
///
/// # Errors
/// As `urEnqueueKernelLaunchWithArgsExp` documents them, and those of `to`.
#[inline(always)] // each entry resolves one form of arguments
pub(crate) fn resolve<'a, D, G, R>(
    (context, device): Place<'_, D>,
    asked: &Asked<'a, D, G>,
    to: impl FnOnce(&Ready<'_, D>) -> Result<R>,
) -> Result<R>
where
    D: TakesCommands,
    G: Given<Mem<D>, <D as Objects>::Sampler> + ?Sized,
{
    check_context(context, asked.kernel.program())?;
    let on = asked.kernel.on(device)?;
    let launch::Asked { is_cooperative, cluster, scratch } =
        launch::Asked::of(on, asked.properties)?;
    let range = Range::of(asked.offset, asked.global);
    range.check()?;
    let given = asked.arguments;
    check_all(given, on.takes())?;
    // Filled in place: a list that is returned is moved with all its places.
    let (mut all, mut used) = (SmallVec::<[_; FEW]>::new(), SmallVec::<[_; FEW]>::new());
    all.resize(given.count(), Argument::Address(None));
    for position in 0..given.count() {
        all[given.index(position) as usize] = match given.argument(position)? {
            arguments::Argument::Value(bytes) => Argument::Value(bytes),
            arguments::Argument::Address(at) => Argument::Address(Address::new(at)),
            arguments::Argument::Local(bytes) => Argument::Local(bytes),
            arguments::Argument::Sampler(sampler) => {
                Argument::Sampler(sampler.get().on(on.device())?)
            }
            arguments::Argument::Memory(None) => Argument::Address(None),
            arguments::Argument::Memory(Some((buffer, flags))) => {
                let is_read = flags.contains(ur_mem_flags_t::READ_ONLY) || buffer.is_read_only();
                if !is_read {
                    buffer.check_write::<D::Known>(0, buffer.bytes())?;
                }
                let usage = if is_read { Usage::Reads } else { Usage::Changes };
                used.push(Some(Used::Buffer { buffer, bytes: 0..buffer.bytes(), usage }));
                let access = if is_read { Access::Read } else { Access::ReadWrite };
                match buffer.is_image() {
                    true => Argument::Image(buffer.get().pixels(device)?, access),
                    false => Argument::Address(Some(buffer.at(device)?)),
                }
            }
        };
    }
    let local_memory = all.iter().try_fold(scratch, |taken, argument| match argument {
        Argument::Local(bytes) => add_local(taken, *bytes),
        _ => Ok(taken),
    })?;
    let name = ur_command_t::KERNEL_LAUNCH;
    if range.is_empty() {
        launch::check_empty::<D>(&range)?;
        return to(&Ready::barrier(name, Order::Free)); // only its place in the order remains
    }
    D::allow_local(on.function(), local_memory)?;
    let local = match asked.local {
        Some(local) => Range::local(local),
        None => on.choose(&range, local_memory)?,
    };
    on.limits().check_local(&range, local)?;
    let groups = range.groups(local);
    on.limits().check_groups(&range, groups)?;
    cluster.map_or(Ok(()), |cluster| check_cluster(cluster, groups))?;
    let local = [local[0] as u32, local[1] as u32, local[2] as u32]; // none is larger than the device's limit
    let dimensions = asked.global.len() as u32; // 1 to 3
    let geometry = Geometry { groups, local, offset: range.offset, dimensions };
    let launch = Launch {
        function: on.function(),
        geometry,
        arguments: &all,
        local_memory: scratch,
        is_cooperative,
        cluster,
    };
    to(&Ready { more: &used, ..Ready::new(name, Command::Launch(&launch)) })
}
