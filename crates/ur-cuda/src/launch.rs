//! Launches: what was checked is made into what the driver takes, and put into a queue.
use super::{
    Event, Kernel, Queue,
    driver::Dialect,
    geometry::Range,
    native::launch::{Arguments, Extras, Shape},
    submission::{Made, submit},
};
use ur_adapter::{command::Report, object::Borrowed};
use ur_core::program::launch::{self, Asked};
use ur_sys::*;

/// Enqueues a kernel with its arguments.
///
/// # Errors
/// As `urEnqueueKernelLaunchWithArgsExp` documents them.
pub(super) fn enqueue<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    kernel: &Kernel<D>,
    (offset, global, local): (Option<&[usize]>, &[usize], Option<&[usize]>),
    arguments: &[ur_exp_kernel_arg_properties_t],
    properties: Option<&ur_kernel_launch_ext_properties_t>,
    events: &[Borrowed<'_, Event<D>>],
    report: Report,
) -> Made<D> {
    let on = launch::on_queue(queue, kernel)?;
    let Asked { is_cooperative: cooperative, cluster, scratch } = Asked::of(on, properties)?;
    let range = Range::new(offset, global)?;
    let sizes = on.facts().argument_sizes.as_deref();
    let arguments = Arguments::new::<D>(arguments, sizes, scratch)?;
    let command = ur_command_t::KERNEL_LAUNCH;
    let dynamic = arguments.local();
    let Some(geometry) = launch::geometry(on, &range, local, dynamic, cluster)? else {
        return submit(queue, command, events, report, |_| Ok(()));
    };
    let shape = Shape { grid: geometry.groups, block: geometry.local, shared: dynamic as u32 };
    let twin = on.function().twin().zip(range.offset_words()?);
    let (function, offset) =
        twin.map_or((on.function().function(), None), |(f, words)| (f, Some(words)));
    let extras = Extras { cooperative, cluster };
    submit(queue, command, events, report, |stream| {
        stream.launch(on.device(), function, &shape, extras, &arguments, offset)
    })
}
