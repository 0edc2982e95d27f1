//! What a launch is checked against before it is submitted: whose the kernel is, how many items there are in what groups,
//! and what the device has. How a launch gets into a queue is the backend's.
use super::{Context, Device, Kernel, OnDevice, Program, RunsCode};
use crate::kernels::{
    arguments::{check_all, local_memory},
    geometry::{Range, check_cluster},
};
use std::ffi::CStr;
use ur_adapter::{
    api::Objects,
    chain,
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Object, Owned},
};
use ur_hal::{Address, Capability, Geometry};
use ur_sys::*;

/// What a caller asks of a launch beside its range and its arguments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Whether all groups are to run at once, so that they can wait for each other.
    pub is_cooperative: bool,
    /// Groups of a cluster.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of local memory that no argument is for; they come first.
    pub scratch: usize,
}
impl Asked {
    /// # Errors
    /// `INVALID_OPERATION` for what this device does not have; `INVALID_VALUE` for a chain without an end.
    pub fn of<D: RunsCode>(
        on: &OnDevice<D>,
        properties: Option<&ur_kernel_launch_ext_properties_t>,
    ) -> Result<Self> {
        let Some(properties) = properties else { return Ok(Self::default()) };
        let needs = |what, is_asked: bool| match is_asked && !on.capabilities().has(what) {
            false => Ok(()),
            true => {
                let why = on.capabilities().require(what).map_err(Error::from);
                why.map_err(|error| error.with_code(ErrorCode::InvalidOperation))
            }
        };
        // OPPORTUNISTIC_QUEUE_SERIALIZE is a hint.
        let is_cooperative = properties.flags.contains(ur_kernel_launch_flags_t::COOPERATIVE);
        needs(Capability::CooperativeLaunch, is_cooperative)?;
        let cluster = chain::extension::<ur_kernel_launch_cluster_property_t>(properties)?;
        let cluster = cluster.map(|one| one.clusterDim).filter(|&groups| groups != [1; 3]);
        needs(Capability::Clusters, cluster.is_some())?;
        let scratch = chain::extension::<ur_kernel_launch_workgroup_property_t>(properties)?;
        let scratch = scratch.map_or(0, |one| one.workgroup_mem_size);
        needs(Capability::ScratchMemory, scratch != 0)?;
        Ok(Self { is_cooperative, cluster, scratch })
    }
}

/// # Errors
/// `INVALID_CONTEXT` for a program of another context than the queue's.
pub fn check_context<D: RunsCode>(
    context: &Object<Context<D>>,
    program: &Program<D>,
) -> Result<()> {
    match program.context().same(context) {
        true => Ok(()),
        false => Err(Error::new(
            ErrorCode::InvalidContext,
            "the program and the queue are of different contexts",
        )),
    }
}
/// The kernel on a queue's device.
///
/// # Errors
/// `INVALID_CONTEXT` and `INVALID_DEVICE` for a kernel that was made for others than the queue's.
pub fn on_queue<'kernel, D: RunsCode>(
    queue: Borrowed<'_, D::Queue>,
    kernel: &'kernel Kernel<D>,
) -> Result<&'kernel OnDevice<D>> {
    let (context, device) = D::place_of(&queue);
    check_context(context, kernel.program())?;
    kernel.on(device)
}
/// The groups of a launch; `None` where there is nothing to run: a range without items, unless the backend refuses it.
///
/// # Errors
/// `INVALID_WORK_DIMENSION` for a range without items that is refused; `INVALID_WORK_GROUP_SIZE`; `INVALID_VALUE` for clusters that do not divide the groups; `OUT_OF_RESOURCES` for more
/// local memory than there is. Returns the driver's error.
pub fn geometry<D: RunsCode>(
    on: &OnDevice<D>,
    range: &Range,
    local: Option<&[usize]>,
    local_memory: usize,
    cluster: Option<[u32; 3]>,
) -> Result<Option<Geometry>> {
    if range.is_empty() {
        let global = range.global;
        return match D::REFUSES_EMPTY_RANGES {
            false => Ok(None),
            true => Err(Error::new(
                ErrorCode::InvalidWorkDimension,
                format!("a range of {global:?} items has none: leave the launch out"),
            )),
        };
    }
    D::allow_local(on.function(), local_memory)?;
    let local = match local {
        Some(local) => on.limits().local(range, local)?,
        None => on.choose(range, local_memory)?,
    };
    let groups = on.limits().groups(range, local)?;
    cluster.map_or(Ok(()), |cluster| check_cluster(cluster, groups))?;
    Ok(Some(Geometry { groups, local: local.map(|n| n as u32), offset: range.offset }))
}
/// The size of groups that a launch would have if the caller left it open.
///
/// # Errors
/// As for a launch.
pub(super) fn suggest<D: RunsCode>(
    kernel: Borrowed<'_, Kernel<D>>,
    queue: Borrowed<'_, D::Queue>,
    offset: &[usize],
    global: &[usize],
    arguments: Option<&[ur_exp_kernel_arg_properties_t]>,
) -> Result<Vec<usize>> {
    let on = on_queue::<D>(queue, &kernel)?;
    let range = Range::new(Some(offset), global)?;
    let memory = arguments.map_or(Ok(0), |arguments| {
        check_all::<D::Mem, <D as Objects>::Sampler>(arguments, on.takes())?;
        local_memory::<D::Mem, <D as Objects>::Sampler>(arguments)
    })?;
    D::allow_local(on.function(), memory)?;
    let local = if range.is_empty() { [1; 3] } else { on.choose(&range, memory)? };
    Ok(local[..global.len()].to_vec())
}

/// Where a part of a program's variable is on a device.
///
/// # Errors
/// `INVALID_CONTEXT` and `INVALID_DEVICE` for a program that was made for others; `INVALID_VALUE` for a name that no
/// variable has, for no bytes, and for more than the variable has.
pub fn variable<D: RunsCode>(
    (context, device): (&Owned<Context<D>>, &Owned<Device<D>>),
    program: &Program<D>,
    name: &CStr,
    (offset, count): (usize, usize),
) -> Result<Address> {
    check_context(context, program)?;
    let (at, size) = program.variable(device, name)?;
    if count == 0 || offset.checked_add(count).is_none_or(|end| end > size) {
        return Err(Error::new(
            ErrorCode::InvalidValue,
            format!("{count} bytes from {offset} on are not in {name:?}, which has {size}"),
        ));
    }
    Ok(at.offset(offset)?.into())
}
