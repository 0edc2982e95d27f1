//! Checks of a launch before it is submitted: context, group size, cluster, and the capabilities of the device.
use super::{Context, Device, Kernel, OnDevice, Placed, Program, RunsCode};
use crate::kernels::{
    arguments::{check_all, local_memory},
    geometry::Range,
};
use std::ffi::CStr;
use ur_adapter::{
    api::Objects,
    chain,
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Object, Owned},
};
use ur_hal::{Address, Capability};
use ur_sys::*;

/// The launch properties that a caller passes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Whether all groups must run at the same time, so that they can wait for each other.
    pub is_cooperative: bool,
    /// The cluster size, in groups.
    pub cluster: Option<[u32; 3]>,
    /// Local memory in addition to that of the arguments, in bytes. It precedes theirs.
    pub scratch: usize,
}
impl Asked {
    /// Reads the launch properties.
    ///
    /// # Errors
    /// `INVALID_OPERATION` for a property that the device does not support; `INVALID_VALUE` for a chain that does not
    /// end.
    #[inline(always)] // so that no result passes through memory, which takes longer than all checks
    pub fn of<D: RunsCode>(
        on: &OnDevice<D>,
        properties: Option<&ur_kernel_launch_ext_properties_t>,
    ) -> Result<Self> {
        match properties {
            None => Ok(Self::default()),
            Some(properties) => Self::read(on, properties),
        }
    }
    #[inline(never)]
    fn read<D: RunsCode>(
        on: &OnDevice<D>,
        properties: &ur_kernel_launch_ext_properties_t,
    ) -> Result<Self> {
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

/// Checks that a program belongs to the queue's context.
///
/// # Errors
/// `INVALID_CONTEXT` if it belongs to another one.
pub fn check_context<D: RunsCode>(
    context: &Object<Context<D>>,
    program: &Program<D>,
) -> Result<()> {
    Error::unless(
        program.context().same(context),
        ErrorCode::InvalidContext,
        || "the program and the queue are of different contexts",
    )
}
/// The kernel on a queue's device.
///
/// # Errors
/// `INVALID_CONTEXT` or `INVALID_DEVICE` for a kernel that was made for another context or device.
pub fn on_queue<'kernel, D: RunsCode>(
    queue: Borrowed<'_, D::Queue>,
    kernel: &'kernel Kernel<D>,
) -> Result<&'kernel OnDevice<D>> {
    let (context, device) = queue.place();
    check_context(context, kernel.program())?;
    kernel.on(device)
}
/// Checks that an empty range may be launched, which does nothing.
///
/// # Errors
/// `INVALID_WORK_DIMENSION` if the backend refuses it.
pub fn check_empty<D: RunsCode>(range: &Range) -> Result<()> {
    let global = range.global;
    match D::REFUSES_EMPTY_RANGES {
        false => Ok(()),
        true => Error::refuse(
            ErrorCode::InvalidWorkDimension,
            format!("a range of {global:?} items has none: leave the launch out"),
        ),
    }
}
/// The group size that a launch would have if the caller passed none.
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
    let range = Range::of(Some(offset), global);
    range.check()?;
    let memory = arguments.map_or(Ok(0), |arguments| {
        check_all::<D::Mem, <D as Objects>::Sampler>(arguments, on.takes())?;
        local_memory::<D::Mem, <D as Objects>::Sampler>(arguments)
    })?;
    D::allow_local(on.function(), memory)?;
    let local = if range.is_empty() { [1; 3] } else { on.choose(&range, memory)? };
    Ok(local[..global.len()].to_vec())
}

/// The address of a part of a program's variable on a device.
///
/// # Errors
/// `INVALID_CONTEXT` or `INVALID_DEVICE` for a program that was made for another context or device; `INVALID_VALUE` for
/// an unknown name, for 0 bytes, and for a part that exceeds the variable.
pub fn variable<D: RunsCode>(
    (context, device): (&Owned<Context<D>>, &Owned<Device<D>>),
    program: &Program<D>,
    name: &CStr,
    (offset, count): (usize, usize),
) -> Result<Address> {
    check_context(context, program)?;
    let (at, size) = program.variable(device, name)?;
    if count == 0 || offset.checked_add(count).is_none_or(|end| end > size) {
        return Error::refuse(
            ErrorCode::InvalidValue,
            format!("{count} bytes from {offset} on are not in {name:?}, which has {size}"),
        );
    }
    Ok(at.offset(offset)?.into())
}
