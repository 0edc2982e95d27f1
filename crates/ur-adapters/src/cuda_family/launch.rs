//! Launches, and copies to and from variables of programs: what was checked is made into what the driver takes, and put
//! into a queue.
use super::{
    Event, Kernel, Program, Queue,
    driver::Dialect,
    geometry::Range,
    memory::check_range,
    native::launch::{Arguments, Extras, Shape},
    submission::{Made, submit},
};
use crate::program::launch::{self, Asked, VariablePart};
use ur_adapter::{command::Report, object::Borrowed};
use ur_sys::*;

/// Enqueues a kernel with its arguments.
#[expect(clippy::too_many_arguments, reason = "as many as C's")]
pub(super) fn kernel_launch_with_args_exp<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    kernel: Borrowed<'_, Kernel<D>>,
    offset: Option<&[usize]>,
    global: &[usize],
    local: Option<&[usize]>,
    arguments: Option<&[ur_exp_kernel_arg_properties_t]>,
    properties: Option<&ur_kernel_launch_ext_properties_t>,
    events: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
    let on = launch::on_queue(queue, &kernel)?;
    let Asked { is_cooperative: cooperative, cluster, scratch } = Asked::of(on, properties)?;
    let range = Range::new(offset, global)?;
    let sizes = on.facts().argument_sizes.as_deref();
    let arguments = Arguments::new::<D>(arguments.unwrap_or_default(), sizes, scratch)?;
    let (command, report) = (ur_command_t::KERNEL_LAUNCH, Report::event(want_event));
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
/// Enqueues a copy to or from a program's variable. While it is on its way, its code stays loaded: that is
/// unloaded behind whatever was submitted before.
///
/// # Errors
/// `INVALID_VALUE` for a name that is none, and for more than the variable has.
pub(super) fn device_global_variable<D: Dialect>(
    queue: Borrowed<'_, Queue<D>>,
    program: Borrowed<'_, Program<D>>,
    part: &VariablePart<'_>,
    write: bool,
    events: &[Borrowed<'_, Event<D>>],
    want_event: bool,
) -> Made<D> {
    let at = part.find(queue, &program)?;
    check_range::<D>(part.host, part.count)?;
    let (to, from, command) = part.ends(at, write);
    let (to, from, report) =
        (to.addr() as u64, from.addr() as u64, Report::of(part.blocking, want_event));
    submit(queue, command, events, report, |stream| stream.copy(to, from, part.count))
}
