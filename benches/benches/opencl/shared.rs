//! Memory that another process shares: how long it takes to open it, and how fast kernels run on it.
use super::{Adapter, Result, bare::Bare, built, place};
use causeway::{Buffer, Context, Device, Ticket};
use causeway_benches::*;
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    time::{Duration, Instant},
};
use ur_sys::*;

/// The role of the process that shares.
pub const EXPORTER: &str = "exporter";
/// What is opened.
const OPENED: usize = 1 << 30;
/// What a kernel reads, and what it writes.
const BYTES: usize = 128 << 20;
/// Blocks of what takes much longer than a short command.
const FEW: usize = 11;
/// Memory of one kind is driven as fast as of another: 0.98 of its bandwidth at least.
const BANDWIDTH: f64 = 1.0 / 0.98;
/// The kernel, in OpenCL C.
pub const ADD: &str = "kernel void add(global ulong4 *to, global const ulong4 *from) {
    to[get_global_id(0)] = from[get_global_id(0)] + 1;
}";
/// How many items a launch has, and how many of them are in a group.
pub const ITEMS: (usize, usize) = (BYTES / 32, 256);

/// For each request: allocates as many bytes as it says, and answers a ticket. All stays until the other process ends.
pub fn exporter() -> Result<()> {
    let context = Context::new(&Device::first()?)?;
    let mut exports = Vec::new();
    while let Some(request) = asked()? {
        let export = Buffer::<u8>::new(&context, request[0].parse()?)?.share()?;
        answer(&export.ticket().to_string())?;
        exports.push(export);
    }
    Ok(())
}
/// The handle of new memory of that process.
fn handle(exporter: &mut Peer, bytes: usize) -> Result<Vec<u8>> {
    let ticket: Ticket<Buffer<u8>> = exporter.ask(&bytes.to_string())?.parse()?;
    Ok(ticket.handle_bytes().to_vec())
}

/// Where an adapter opens memory.
struct Importer {
    table: &'static ur_dditable_t,
    context: ur_context_handle_t,
    device: ur_device_handle_t,
}
impl Importer {
    fn new(table: &'static ur_dditable_t) -> Result<Self> {
        let (context, device) = place(table)?;
        Ok(Self { table, context, device })
    }
    fn open(&self, handle: &[u8]) -> Result<*mut c_void> {
        let (data, length, mut at) = (handle.as_ptr().cast_mut().cast(), handle.len(), null_mut());
        let (context, device) = (self.context, self.device);
        ur!(self.table, ipc_exp.open_mem_handle_exp(context, device, data, length, &mut at))?;
        Ok(at)
    }
    fn close(&self, at: *mut c_void) -> Result<()> {
        Ok(ur!(self.table, ipc_exp.close_mem_handle_exp(self.context, at))?)
    }
    /// Times an open of memory that is not open, and closes it. Nothing is touched; an open itself fills in the page table.
    fn time(&self, handle: &[u8]) -> Result<Duration> {
        let start = Instant::now();
        let at = self.open(handle)?;
        let took = start.elapsed();
        self.close(at)?;
        Ok(took)
    }
}

/// Measures opens beside those of the CPU's adapter, and kernels on what was opened beside the driver's kernels on its own memory.
///
/// # Errors
/// The other process cannot be started; an adapter's or the driver's own.
pub fn measure(bare: &Bare) -> Result<()> {
    let mut exporter = Peer::start(EXPORTER)?;
    let (ours, cpu) = (Importer::new(&ur_opencl::TABLE)?, Importer::new(&ur_cpu::TABLE)?);
    let large = handle(&mut exporter, OPENED)?;
    Comparison::of("open of 1 GiB", FEW, || ours.time(&large), || cpu.time(&large))?.report(
        1,
        "CPU adapter",
        1.1,
    );
    let adapter = Adapter::start(ours.table, (ours.context, ours.device))?;
    let kernel = built(ours.table, (ours.context, ADD.as_bytes()), c"add")?;
    let (to, from) =
        (ours.open(&handle(&mut exporter, BYTES)?)?, ours.open(&handle(&mut exporter, BYTES)?)?);
    bare.own_memory(BYTES)?;
    Comparison::of(
        "kernel over 256 MiB of shared memory",
        FEW,
        || timed(|| add(&adapter, kernel, [to, from])),
        || timed(|| bare.add()),
    )?
    .report(1, "driver's memory", BANDWIDTH);
    ours.close(to)?;
    ours.close(from)
}
fn timed(body: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    body()?;
    Ok(start.elapsed())
}
/// Launches the kernel and waits for it.
fn add(adapter: &Adapter, kernel: ur_kernel_handle_t, memory: [*mut c_void; 2]) -> Result<()> {
    let argument = |index| ur_exp_kernel_arg_properties_t {
        stype: ur_structure_type_t::EXP_KERNEL_ARG_PROPERTIES,
        pNext: null_mut(),
        r#type: ur_exp_kernel_arg_type_t::POINTER,
        index,
        size: size_of::<usize>(),
        value: ur_exp_kernel_arg_value_t { pointer: memory[index as usize] },
    };
    let (arguments, queue) = ([argument(0), argument(1)], adapter.queue);
    let (items, group) = ITEMS;
    adapter.waited(|event| {
        Ok(ur!(
            adapter.table,
            enqueue_exp.kernel_launch_with_args_exp(
                queue,
                kernel,
                1,
                &0,
                &items,
                &group,
                2,
                arguments.as_ptr(),
                null(),
                0,
                null(),
                event,
            )
        )?)
    })
}
