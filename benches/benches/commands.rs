//! Measures commands through the C entries of the CPU adapter, beside plain Rust that does the same: a thread
//! that gets the work and reports when it is done, and rayon for work on all cores.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
use causeway_benches::*;
use rayon::prelude::*;
use std::{
    ffi::c_void,
    hint::black_box,
    ptr::{null, null_mut},
    sync::{
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};
use ur_cpu::TABLE;
use ur_sys::*;

/// Commands in one block.
const MANY: u32 = 500;
const LARGE: usize = 256 << 20;

macro_rules! ur { ($table:ident.$entry:ident($($argument:expr),* $(,)?)) => { {
    let code = unsafe { TABLE.$table.$entry.expect("no slot is empty")($($argument),*) };
    if code != ur_result_t::SUCCESS {
        return Err(format!("{}: {code:?}", stringify!($entry)).into());
    }
} } }

/// A device's context and one queue of each kind.
struct Stage {
    device: ur_device_handle_t,
    context: ur_context_handle_t,
    in_order: ur_queue_handle_t,
    out_of_order: ur_queue_handle_t,
}

fn main() -> Result<()> {
    let stage = stage()?;
    for (name, queue) in [("in order", stage.in_order), ("out of order", stage.out_of_order)] {
        barriers(name, queue)?;
    }
    for bytes in [64, 1 << 10, 64 << 10, 1 << 20] {
        copies(&stage, bytes)?;
    }
    fills(&stage)?;
    for commands in [1, 16] {
        command_buffers(&stage, commands, 64, true)?;
    }
    for (bytes, is_in_order) in [(64 << 10, true), (64, false), (1 << 20, false)] {
        command_buffers(&stage, 16, bytes, is_in_order)?;
    }
    for items in [1, 1_000, 1_000_000] {
        kernels(&stage, items)?;
    }
    bandwidth(&stage)
}

fn stage() -> Result<Stage> {
    let mut adapter = ur_adapter_handle_t::NULL;
    ur!(adapter.get(1, &mut adapter, null_mut()));
    let mut platform = ur_platform_handle_t::NULL;
    ur!(platform.get(adapter, 1, &mut platform, null_mut()));
    let mut device = ur_device_handle_t::NULL;
    ur!(device.get(platform, ur_device_type_t::ALL, 1, &mut device, null_mut()));
    let mut context = ur_context_handle_t::NULL;
    ur!(context.create(1, &device, null(), &mut context));
    let queue = |flags| -> Result<ur_queue_handle_t> {
        let stype = ur_structure_type_t::QUEUE_PROPERTIES;
        let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
        let mut queue = ur_queue_handle_t::NULL;
        ur!(queue.create(context, device, &properties, &mut queue));
        Ok(queue)
    };
    let in_order = queue(ur_queue_flags_t::default())?;
    let out_of_order = queue(ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE)?;
    Ok(Stage { device, context, in_order, out_of_order })
}
fn usm(stage: &Stage, bytes: usize) -> Result<*mut c_void> {
    let (mut at, none) = (null_mut(), ur_usm_pool_handle_t::NULL);
    ur!(usm.device_alloc(stage.context, stage.device, null(), none, bytes, &mut at));
    ur!(enqueue.usm_fill(
        stage.in_order,
        at,
        1,
        [7u8].as_ptr().cast(),
        bytes,
        0,
        null(),
        null_mut()
    ));
    ur!(queue.finish(stage.in_order));
    Ok(at)
}
fn wait(event: ur_event_handle_t) -> Result<()> {
    ur!(event.wait(1, &event));
    ur!(event.release(event));
    Ok(())
}
/// Times `MANY` runs of `each`.
fn block(mut each: impl FnMut() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    for _ in 0..MANY {
        each()?;
    }
    Ok(start.elapsed())
}
/// A thread that runs `work` on request and reports when it is done.
struct Worker(mpsc::SyncSender<()>, mpsc::Receiver<()>);
impl Worker {
    fn doing(mut work: impl FnMut() + Send + 'static) -> Self {
        let (ask, asked) = mpsc::sync_channel(1);
        let (say, said) = mpsc::sync_channel(1);
        thread::spawn(move || {
            while asked.recv().is_ok() {
                work();
                if say.send(()).is_err() {
                    return;
                }
            }
        });
        Self(ask, said)
    }
    fn once(&self) -> Result<()> {
        self.0.send(())?;
        Ok(self.1.recv()?)
    }
}
fn say(c: &Comparison, yardstick: &str) {
    let (ours, bare) = (c.ours / MANY, c.bare / MANY);
    println!(
        "{:<44} {ours:>10.3?}  {yardstick} {bare:>10.3?}  ratio {:.3}, control {:.2}",
        c.what,
        c.ratio(),
        c.control
    );
}

/// Measures the overhead of a queue with commands that do nothing.
fn barriers(name: &str, queue: ur_queue_handle_t) -> Result<()> {
    let mut stream = Vec::new();
    let mut each = Vec::new();
    for _ in 0..BLOCKS {
        let start = Instant::now();
        for _ in 0..MANY {
            ur!(enqueue.events_wait_with_barrier(queue, 0, null(), null_mut()));
        }
        ur!(queue.finish(queue));
        stream.push(start.elapsed());
        each.push(block(|| {
            let mut event = ur_event_handle_t::NULL;
            ur!(enqueue.events_wait_with_barrier(queue, 0, null(), &mut event));
            wait(event)
        })?);
    }
    println!(
        "empty barrier, {name}: {:.3?} in a stream, {:.3?} with an event that is waited for (at most 2 µs)",
        median(&mut stream) / MANY,
        median(&mut each) / MANY
    );
    Ok(())
}

fn copies(stage: &Stage, bytes: usize) -> Result<()> {
    let (from, to) = (usm(stage, bytes)?, usm(stage, bytes)?);
    let ours = || {
        block(|| {
            let mut event = ur_event_handle_t::NULL;
            ur!(enqueue.usm_memcpy(stage.in_order, false, to, from, bytes, 0, null(), &mut event));
            wait(event)
        })
    };
    let (source, mut target) = (vec![7u8; bytes], vec![0u8; bytes]);
    let worker =
        Worker::doing(move || black_box(&mut target[..]).copy_from_slice(black_box(&source)));
    let bare = || block(|| worker.once());
    let what = format!("copy of {bytes} bytes, enqueued and waited for");
    say(&Comparison::of(what, BLOCKS, ours, bare)?, "a thread asked to");
    ur!(usm.free(stage.context, from));
    ur!(usm.free(stage.context, to));
    Ok(())
}
fn fills(stage: &Stage) -> Result<()> {
    const BYTES: usize = 1 << 10;
    let to = usm(stage, BYTES)?;
    let pattern = 0x0102_0304u32.to_ne_bytes();
    let ours = || {
        block(|| {
            let mut event = ur_event_handle_t::NULL;
            let from = pattern.as_ptr().cast();
            ur!(enqueue.usm_fill(stage.in_order, to, 4, from, BYTES, 0, null(), &mut event));
            wait(event)
        })
    };
    let mut target = vec![0u32; BYTES / 4];
    let worker = Worker::doing(move || black_box(&mut target[..]).fill(black_box(0x0102_0304)));
    let bare = || block(|| worker.once());
    say(&Comparison::of("fill of 1 KiB, waited for", BLOCKS, ours, bare)?, "a thread asked to");
    ur!(usm.free(stage.context, to));
    Ok(())
}

/// Compares a command buffer of copies, each of which follows the one before, with the same commands in a queue.
fn command_buffers(stage: &Stage, commands: usize, bytes: usize, is_in_order: bool) -> Result<()> {
    let all = bytes * commands;
    let (from, to) = (usm(stage, all)?, usm(stage, all)?);
    let part = |at: *mut c_void, number: usize| at.wrapping_byte_add(number * bytes);
    let stype = ur_structure_type_t::EXP_COMMAND_BUFFER_DESC;
    let desc = ur_exp_command_buffer_desc_t {
        stype,
        pNext: null(),
        isUpdatable: 0,
        isInOrder: is_in_order.into(),
        enableProfiling: 0,
    };
    let mut buffer = ur_exp_command_buffer_handle_t::NULL;
    ur!(command_buffer_exp.create_exp(stage.context, stage.device, &desc, &mut buffer));
    for number in 0..commands {
        ur!(command_buffer_exp.append_usm_memcpy_exp(
            buffer,
            part(to, number),
            part(from, number),
            bytes,
            0,
            null(),
            0,
            null(),
            null_mut(),
            null_mut(),
            null_mut()
        ));
    }
    ur!(command_buffer_exp.finalize_exp(buffer));
    let queue = stage.in_order;
    let ours = || {
        block(|| {
            let mut event = ur_event_handle_t::NULL;
            ur!(enqueue_exp.command_buffer_exp(queue, buffer, 0, null(), &mut event));
            wait(event)
        })
    };
    let one_by_one = || {
        block(|| {
            let mut event = ur_event_handle_t::NULL;
            for number in 0..commands {
                let wanted = if number + 1 == commands { &raw mut event } else { null_mut() };
                let (to, from) = (part(to, number), part(from, number));
                ur!(enqueue.usm_memcpy(queue, false, to, from, bytes, 0, null(), wanted));
            }
            wait(event)
        })
    };
    let kind = if is_in_order { "in order" } else { "free" };
    let what = format!("command buffer of {commands} copies of {bytes} B, {kind}");
    say(&Comparison::of(what, BLOCKS, ours, one_by_one)?, "one by one");
    ur!(command_buffer_exp.release_exp(buffer));
    ur!(usm.free(stage.context, from));
    ur!(usm.free(stage.context, to));
    Ok(())
}

/// The beginning of the state of a native CPU kernel: the global id of the work item.
#[repr(C)]
struct State {
    global_id: [usize; 3],
}
static TOUCHED: AtomicU64 = AtomicU64::new(0);
/// One work item: a few operations on its own element.
fn item(data: *mut u64, at: usize) {
    unsafe { data.add(at).write((at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7) };
}
unsafe extern "C" fn kernel(arguments: *const *mut c_void, state: *const State) {
    unsafe { item((*arguments).cast(), (*state).global_id[0]) };
}
#[repr(C)]
struct Pair(*const std::ffi::c_char, *const c_void);

fn kernels(stage: &Stage, items: usize) -> Result<()> {
    let table = [Pair(c"item".as_ptr(), kernel as *const c_void), Pair(null(), null())];
    let (length, binary) = (size_of_val(&table), table.as_ptr().cast::<u8>());
    let mut program = ur_program_handle_t::NULL;
    let devices = [stage.device];
    ur!(program.create_with_binary(
        stage.context,
        1,
        devices.as_ptr().cast_mut(),
        &raw const length as *mut usize,
        (&raw const binary).cast_mut(),
        null(),
        &mut program
    ));
    ur!(program.build(stage.context, program, null()));
    let mut kernel = ur_kernel_handle_t::NULL;
    ur!(kernel.create(program, c"item".as_ptr(), &mut kernel));
    let data = usm(stage, items * 8)?;
    let argument = ur_exp_kernel_arg_properties_t {
        stype: ur_structure_type_t::EXP_KERNEL_ARG_PROPERTIES,
        pNext: null_mut(),
        r#type: ur_exp_kernel_arg_type_t::POINTER,
        index: 0,
        size: size_of::<*mut c_void>(),
        value: ur_exp_kernel_arg_value_t { pointer: data },
    };
    let many = if items > 100_000 { 5 } else { MANY };
    let ours = || -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..many {
            let mut event = ur_event_handle_t::NULL;
            ur!(enqueue_exp.kernel_launch_with_args_exp(
                stage.in_order,
                kernel,
                1,
                null(),
                &items,
                null(),
                1,
                &argument,
                null(),
                0,
                null(),
                &mut event
            ));
            wait(event)?;
        }
        Ok(start.elapsed() * MANY / many)
    };
    let mut own = vec![0u64; items];
    let at = own.as_mut_ptr().expose_provenance();
    let bare = || -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..many {
            (0..items).into_par_iter().for_each(|n| {
                item(black_box(std::ptr::with_exposed_provenance_mut::<u64>(at)), n);
            });
        }
        Ok(start.elapsed() * MANY / many)
    };
    let c = Comparison::of(format!("kernel of {items} items, waited for"), BLOCKS, ours, bare)?;
    say(&c, "rayon");
    TOUCHED.fetch_add(own.iter().copied().fold(0, u64::wrapping_add), Relaxed);
    ur!(usm.free(stage.context, data));
    ur!(kernel.release(kernel));
    ur!(program.release(program));
    Ok(())
}

/// Measures large copies of USM and of buffers, relative to memcpy by rayon's threads.
fn bandwidth(stage: &Stage) -> Result<()> {
    let (from, to) = (usm(stage, LARGE)?, usm(stage, LARGE)?);
    let finish = |start: Instant| -> Result<Duration> {
        ur!(queue.finish(stage.in_order));
        Ok(start.elapsed())
    };
    let (source, mut target) = (vec![7u8; LARGE], vec![1u8; LARGE]);
    let piece = LARGE / (processors() * 4);
    let mut bare = || -> Result<Duration> {
        let start = Instant::now();
        let pieces = target.par_chunks_mut(piece).zip(source.par_chunks(piece));
        pieces.for_each(|(to, from)| to.copy_from_slice(from));
        Ok(start.elapsed())
    };
    let copy = || {
        let start = Instant::now();
        ur!(enqueue.usm_memcpy(stage.in_order, false, to, from, LARGE, 0, null(), null_mut()));
        finish(start)
    };
    let c = Comparison::of("USM copy of 256 MiB", 21, copy, &mut bare)?;
    c.report(1, "rayon's memcpy", 1.0 / 0.9);
    let buffer = || -> Result<ur_mem_handle_t> {
        let mut buffer = ur_mem_handle_t::NULL;
        let flags = ur_mem_flags_t::READ_WRITE;
        ur!(mem.buffer_create(stage.context, flags, LARGE, null(), &mut buffer));
        let seven = [7u8].as_ptr().cast();
        ur!(enqueue.mem_buffer_fill(
            stage.in_order,
            buffer,
            seven,
            1,
            0,
            LARGE,
            0,
            null(),
            null_mut()
        ));
        ur!(queue.finish(stage.in_order));
        Ok(buffer)
    };
    let (one, other) = (buffer()?, buffer()?);
    let copy = || {
        let start = Instant::now();
        ur!(enqueue.mem_buffer_copy(
            stage.in_order,
            one,
            other,
            0,
            0,
            LARGE,
            0,
            null(),
            null_mut()
        ));
        finish(start)
    };
    let c = Comparison::of("buffer copy of 256 MiB", 21, copy, &mut bare)?;
    c.report(1, "rayon's memcpy", 1.0 / 0.9);
    for mem in [one, other] {
        ur!(mem.release(mem));
    }
    for at in [from, to] {
        ur!(usm.free(stage.context, at));
    }
    Ok(())
}
