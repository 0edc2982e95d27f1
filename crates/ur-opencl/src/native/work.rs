//! What commands do: copies and fills by the driver's own functions where it has any, else by functions of ours that its
//! queue runs (native kernels), else row by row.
#![expect(unsafe_code, reason = "reads what queues hand back")]
use super::{
    memory::Reach,
    own::Own,
    queue::{Linked, NativeQueue, given},
};
use crate::{OpenCl, driver::RawEvent, image};
use std::{ffi::c_void, mem::size_of};
use ur_hal::{
    Address, BoxCopy, BoxSpan, Command, Error, ImageCopy, ImageEnd, Order, Pattern, Range, Result,
    Rows,
};
use ur_system::bytes;

/// Work for a queue to run, by our function: plain values, of which it takes a copy. A pattern lies behind them.
#[derive(Clone, Copy)]
enum Work {
    Nothing,
    Copy { to: Address, from: Address, bytes: usize },
    Rows { to: Rows, from: Rows, width: usize, height: usize },
    Box(BoxCopy),
    Fill { to: Range, length: usize },
    FillRows { to: Rows, width: usize, height: usize, length: usize },
}
impl Work {
    fn run(&self, pattern: &[u8]) {
        match *self {
            Self::Nothing => {}
            Self::Copy { to, from, bytes } => bytes::copy(to, from, bytes),
            Self::Fill { to, .. } => bytes::fill(to.start(), pattern, to.bytes()),
            Self::FillRows { to, width, height, .. } => bytes::fill_2d(to, pattern, width, height),
            Self::Rows { to, from, width, height } => bytes::copy_2d(to, from, width, height),
            // A box that leaves the address space is no memory of anybody's.
            Self::Box(copy) => _ = bytes::execute::<OpenCl>(&Command::Copy3d(&copy)),
        }
    }
    /// The copies that it consists of: where to, where from, how many bytes.
    fn rows(&self) -> Vec<(usize, usize, usize)> {
        match *self {
            Self::Copy { to, from, bytes } => vec![(to.get(), from.get(), bytes)],
            Self::Rows { to, from, width, height } => {
                let row = |rows: Rows, n| rows.start.get() + n * rows.pitch;
                (0..height).map(|n| (row(to, n), row(from, n), width)).collect()
            }
            Self::Box(BoxCopy { to, from, region: [width, height, depth] }) => {
                let row = |(base, span): (Address, BoxSpan), n: usize| {
                    base.get() + span.start + n / height * span.slice + n % height * span.row
                };
                (0..height * depth).map(|n| (row(to, n), row(from, n), width)).collect()
            }
            _ => vec![],
        }
    }
}
/// What queues call: the work and its pattern are at the word.
unsafe extern "C" fn run(arguments: *mut c_void) {
    // SAFETY: the queue's copy of what `submit_work` gave it, which begins with the work.
    let work = unsafe { arguments.cast::<Work>().read_unaligned() };
    let length = match work {
        Work::Fill { length, .. } | Work::FillRows { length, .. } => length,
        _ => 0,
    };
    let pattern = arguments.cast::<u8>().wrapping_add(size_of::<Work>());
    // SAFETY: as above: as many bytes of a pattern are behind it.
    let pattern = unsafe { std::slice::from_raw_parts(pattern, length) };
    // A panic must not reach the driver.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work.run(pattern)));
}
fn submit_work(
    queue: &NativeQueue,
    (work, pattern): (Work, &[u8]),
    linked: Linked<'_>,
) -> Result<()> {
    let mut arguments = vec![0_u8; size_of::<Work>() + pattern.len()];
    // SAFETY: there is room for the work, at any alignment.
    unsafe { arguments.as_mut_ptr().cast::<Work>().write_unaligned(work) };
    arguments[size_of::<Work>()..].copy_from_slice(pattern);
    queue.native(run, &mut arguments, linked)
}

/// What a queue's device can do of this.
#[derive(Clone, Copy, Debug)]
pub struct Ability {
    /// How it reaches memory.
    pub reach: Reach,
    /// Whether its queues run functions of the host's.
    pub has_native: bool,
}
impl Ability {
    /// Whether a function of ours may touch what a command is given.
    fn runs_work(self) -> bool {
        self.has_native && matches!(self.reach, Reach::System | Reach::Svm)
    }
}
/// A command that does nothing, and is behind these events alone. In an out-of-order queue a marker without a list is behind all before
/// it, and on PoCL one with a list, too.
///
/// # Errors
/// The driver's own.
pub fn behind(queue: &NativeQueue, can: Ability, linked: Linked<'_>) -> Result<()> {
    match can.has_native && !queue.is_in_order() {
        true => submit_work(queue, (Work::Nothing, &[]), linked),
        false => queue.marker(linked),
    }
}
/// A command that does nothing but hold its place. One that is behind all before it, and has a list, is behind both.
///
/// # Errors
/// The driver's own.
pub fn place(
    queue: &NativeQueue,
    can: Ability,
    order: Order,
    Linked { waits, event }: Linked<'_>,
) -> Result<()> {
    if queue.is_in_order() || order == Order::Free {
        return behind(queue, can, Linked { waits, event });
    }
    let (mut before, mut all) = (None, waits.to_vec());
    if !waits.is_empty() {
        queue.marker(Linked::noted(&mut before))?;
        all.extend(before);
    }
    let _kept = before.map(Own::given);
    let linked = Linked { waits: &all, event };
    match order {
        Order::Both => queue.barrier(linked),
        _ => queue.marker(linked),
    }
}
/// Puts a command into a queue. Of one that is refused there may be `rows`.
///
/// # Errors
/// `Unsupported` for what such a queue does not do; the driver's own.
pub fn execute(
    queue: &NativeQueue,
    can: Ability,
    (command, order): (&Command<'_, OpenCl>, Order),
    (linked, rows): (Linked<'_>, &mut Vec<Own<RawEvent>>),
) -> Result<()> {
    let (work, pattern) = match *command {
        // Hints are none here: memory is where it is used.
        Command::Barrier
        | Command::Timestamp
        | Command::Prefetch { .. }
        | Command::Advise { .. } => {
            return place(queue, can, order, linked);
        }
        Command::Copy { to, from, bytes } => {
            if to.get().abs_diff(from.get()) >= bytes {
                return queue.copy((to, from, bytes), linked);
            }
            (Work::Copy { to, from, bytes }, None)
        }
        Command::Copy2d { to, from, width, height } => {
            (Work::Rows { to, from, width, height }, None)
        }
        Command::Copy3d(copy) => (Work::Box(*copy), None),
        Command::Fill { to, pattern } => {
            let (at, length) = (to.start(), pattern.bytes().len());
            let is_simple = length.is_power_of_two() && length <= 128;
            if is_simple && at.get().is_multiple_of(length) {
                return queue.fill((at, pattern.bytes(), to.bytes()), linked);
            }
            (Work::Fill { to, length }, Some(pattern))
        }
        Command::Fill2d { to, width, height, pattern } => {
            let length = pattern.bytes().len();
            (Work::FillRows { to, width, height, length }, Some(pattern))
        }
        Command::Launch(launch) => {
            return launch.function.kernel.launch(queue.raw(), launch, linked);
        }
        Command::ImageCopy(&ImageCopy { image: pixels, origin, region, other }) => {
            let object = pixels.object.raw();
            let (is_written, at, pitches) = match other {
                ImageEnd::FromImage(from, out) => {
                    let from = (from.object.raw(), out);
                    return queue.image_copy(from, (object, origin), region, linked);
                }
                ImageEnd::FromMemory(at, pitches) => (true, at, pitches),
                ImageEnd::ToMemory(at, pitches) => (false, at, pitches),
            };
            let host = (at.get(), image::pitches(pixels.kind, pitches));
            return queue.pixels((object, is_written), (origin, region), host, linked);
        }
        // These do not come here: the core or `lane.rs` makes others of them, or refuses.
        Command::HostCall(_)
        | Command::Signal(_)
        | Command::AllocAsync { .. }
        | Command::FreeAsync(_)
        | Command::Native(_) => return Error::unsupported("this kind of command"),
    };
    if can.runs_work() {
        return submit_work(queue, (work, pattern.map_or(&[], Pattern::bytes)), linked);
    }
    if pattern.is_some() {
        return Error::unsupported("fills with patterns of such lengths");
    }
    row_by_row(queue, &work, (linked, rows))
}
/// Copies that one command stands for, each by itself.
fn row_by_row(
    queue: &NativeQueue,
    work: &Work,
    (linked, rows): (Linked<'_>, &mut Vec<Own<RawEvent>>),
) -> Result<()> {
    for (to, from, bytes) in work.rows() {
        let (to, from) = (Address::new(to), Address::new(from));
        let Some((to, from)) = to.zip(from) else { continue };
        let mut made = None;
        queue.copy((to, from, bytes), Linked { waits: linked.waits, event: Some(&mut made) })?;
        rows.push(given(made)?);
    }
    let waits: Vec<_> = rows.iter().map(Own::raw).collect();
    queue.marker(Linked { waits: &waits, ..linked })
}
