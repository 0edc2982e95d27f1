//! Command buffers: commands that are recorded once and run repeatedly.
use crate::{
    adapter::Adapter,
    ask,
    bench::{Bench, Usm, word},
    call,
    case::{Case, Stop, Verdict},
    cases, ensure, info, must,
    raw::Word,
    refused, same,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU8, Ordering::SeqCst},
    },
};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    let mut all = cases! { "command_buffer";
        "urCommandBufferCreateExp, urCommandBufferGetInfoExp", "UR_EXP_COMMAND_BUFFER_INFO_DESCRIPTOR", "a command buffer answers the descriptor it was made with", descriptor;
        "urEnqueueCommandBufferExp", "recorded commands run", "a fill and a copy that were recorded run each time it is enqueued", runs;
        "urEnqueueCommandBufferExp", "nothing runs while it is recorded", "recording and finalizing touches no memory", nothing_yet;
        "urEnqueueCommandBufferExp", "only finalized buffers run", "what is not finalized is refused", not_finalized;
        "urCommandBufferAppendUSMFillExp", "nothing is appended to what is finalized", "an append after the end is refused", appended_late;
        "urCommandBufferFinalizeExp", "a buffer is finalized once", "a second finalize is refused or changes nothing", finalized_twice;
        "urCommandBufferAppendUSMMemcpyExp", "sync points order commands", "a copy that waits for a fill sees it", sync_points;
        "urCommandBufferAppendUSMMemcpyExp", "UR_RESULT_ERROR_INVALID_COMMAND_BUFFER_SYNC_POINT_EXP", "a sync point of nobody's is refused", no_sync_point;
        "urCommandBufferReleaseExp", "commands keep what they run", "a command buffer is released while it waits to run", released_at_work;
        "urCommandBufferAppendMemBufferFillExp, urCommandBufferAppendMemBufferCopyExp", "buffers are recorded", "a fill and a copy of buffers run", buffers;
        "urEnqueueCommandBufferExp", "the event is complete when all has run", "what waits for the event sees what ran", event;
    };
    all.extend(cases! { "graph";
        "urQueueGetGraphExp", "UR_RESULT_ERROR_INVALID_OPERATION: the queue is not currently recording a graph", "a queue that does not record has no graph", no_graph;
        "urQueueBeginCaptureIntoGraphExp", "UR_RESULT_ERROR_INVALID_ARGUMENT: the graph holds commands already, or its last capture failed", "a graph that holds commands is not captured into", full_graph;
        "urGraphInstantiateGraphExp", "UR_RESULT_ERROR_INVALID_ARGUMENT: a queue still records into the graph, or its last capture failed", "a graph that records is not instantiated", open_graph;
        "urGraphDestroyExp", "UR_RESULT_ERROR_INVALID_ARGUMENT: a queue still records into the graph", "a graph that records is not destroyed", open_graph_destroyed;
        "urGraphDumpContentsExp", "UR_RESULT_ERROR_INVALID_ARGUMENT: the file cannot be written", "a path that leads nowhere is INVALID_ARGUMENT", bad_path;
        "urGraphCreateExp, urGraphIsEmptyExp", "a new graph is empty", "a new graph is empty and has a number of its own", empty_graph;
        "urQueueBeginGraphCaptureExp, urQueueEndGraphCaptureExp, urGraphInstantiateGraphExp, urEnqueueGraphExp", "what is captured runs when the graph does", "captured commands run with the graph, twice, and not before", capture;
        "urEnqueueHostTaskExp, urEnqueueGraphExp", "what is captured runs when the graph does", "a captured host task runs in its place between the commands before and after it", host_task;
        "urEnqueueGraphExp", "the graph and the queue may be released as soon as its commands run", "a captured host task destroys its graph, or releases its queue, while the graph is still being enqueued", release_own;
    });
    all
}
type Buffer = ur_exp_command_buffer_handle_t;

pub fn new(b: &Bench, in_order: bool) -> Verdict<Buffer> {
    b.needs(ur_device_info_t::COMMAND_BUFFER_SUPPORT_EXP)?;
    let desc = ur_exp_command_buffer_desc_t {
        stype: ur_structure_type_t::EXP_COMMAND_BUFFER_DESC,
        pNext: null(),
        isUpdatable: 0,
        isInOrder: in_order.into(),
        enableProfiling: 0,
    };
    let (context, device, mut made) = (b.context()?, b.device()?, Buffer::NULL);
    must!(b, command_buffer_exp.create_exp(context, device, &desc, &mut made));
    Ok(made)
}
fn fill_code(b: &Bench, to: Buffer, at: *mut c_void, byte: u8) -> Verdict<(ur_result_t, u32)> {
    let (pattern, mut point, none) = ((&raw const byte).cast(), 0, null());
    let code = ask!(
        b,
        command_buffer_exp.append_usm_fill_exp(
            to,
            at,
            pattern,
            1,
            4096,
            0,
            none,
            0,
            null(),
            &mut point,
            null_mut(),
            null_mut()
        )
    );
    Ok((code, point))
}
pub fn fill(b: &Bench, to: Buffer, at: *mut c_void, byte: u8) -> Verdict<u32> {
    let (code, point) = fill_code(b, to, at, byte)?;
    b.succeeded("urCommandBufferAppendUSMFillExp", code)?;
    Ok(point)
}
fn copy(
    b: &Bench,
    into: Buffer,
    (to, from): (*mut c_void, *mut c_void),
    after: &[u32],
) -> Verdict<ur_result_t> {
    let entry = b.adapter.tables.command_buffer_exp.append_usm_memcpy_exp;
    let entry = entry.ok_or_else(|| Stop::skipped("the entry is null"))?;
    let list = if after.is_empty() { null() } else { after.as_ptr() };
    let count = u32::try_from(after.len()).expect("a short list");
    Ok(crate::call::Call::call(
        entry,
        (
            into,
            to,
            from.cast_const(),
            4096,
            count,
            list,
            0,
            null(),
            null_mut(),
            null_mut(),
            null_mut(),
        ),
    ))
}
fn run(b: &Bench, buffer: Buffer) -> Verdict {
    let queue = b.queue()?;
    must!(b, enqueue_exp.command_buffer_exp(queue, buffer, 0, null(), null_mut()));
    b.finish(queue)
}
fn release(b: &Bench, buffer: Buffer) -> Verdict {
    must!(b, command_buffer_exp.release_exp(buffer));
    Ok(())
}
/// Two allocations of 4,096 zero bytes.
fn pair(b: &Bench) -> Verdict<(*mut c_void, *mut c_void)> {
    let (one, two) = (b.alloc(Usm::Device, 4096)?, b.alloc(Usm::Device, 4096)?);
    b.write(one, &[0; 4096])?;
    b.write(two, &[0; 4096])?;
    Ok((one, two))
}
fn holds(b: &Bench, at: *mut c_void, byte: u8) -> Verdict {
    let read = b.read(at, 4096)?;
    ensure!(read.iter().all(|n| *n == byte), "{} where {byte} was expected", read[0]);
    Ok(())
}
fn descriptor(b: &Bench) -> Verdict {
    for in_order in [false, true] {
        let buffer = new(b, in_order)?;
        let name = ur_exp_command_buffer_info_t::DESCRIPTOR;
        let words = info!(b, command_buffer_exp.get_info_exp(buffer, name), [u8; 24]);
        same!(words[17], u8::from(in_order), "whether it is in order");
        release(b, buffer)?;
    }
    Ok(())
}
fn runs(b: &Bench) -> Verdict {
    let (buffer, (one, two)) = (new(b, true)?, pair(b)?);
    fill(b, buffer, one, 5)?;
    let code = copy(b, buffer, (two, one), &[])?;
    b.succeeded("urCommandBufferAppendUSMMemcpyExp", code)?;
    must!(b, command_buffer_exp.finalize_exp(buffer));
    for _ in 0..3 {
        b.write(two, &[0; 4096])?;
        run(b, buffer)?;
        holds(b, two, 5)?;
    }
    release(b, buffer)
}
fn nothing_yet(b: &Bench) -> Verdict {
    let (buffer, (one, _)) = (new(b, true)?, pair(b)?);
    fill(b, buffer, one, 5)?;
    must!(b, command_buffer_exp.finalize_exp(buffer));
    b.finish(b.queue()?)?;
    holds(b, one, 0)?;
    release(b, buffer)
}
fn not_finalized(b: &Bench) -> Verdict {
    let (buffer, (one, _)) = (new(b, true)?, pair(b)?);
    fill(b, buffer, one, 5)?;
    let (queue, none) = (b.queue()?, null_mut());
    let code = ask!(b, enqueue_exp.command_buffer_exp(queue, buffer, 0, null(), none));
    ensure!(code != ur_result_t::SUCCESS, "it runs");
    b.finish(queue)?;
    holds(b, one, 0)?;
    release(b, buffer)
}
fn appended_late(b: &Bench) -> Verdict {
    let (buffer, (one, _)) = (new(b, true)?, pair(b)?);
    must!(b, command_buffer_exp.finalize_exp(buffer));
    let (code, _) = fill_code(b, buffer, one, 5)?;
    ensure!(code != ur_result_t::SUCCESS, "it is appended");
    run(b, buffer)?;
    holds(b, one, 0)?;
    release(b, buffer)
}
fn finalized_twice(b: &Bench) -> Verdict {
    let (buffer, (one, _)) = (new(b, true)?, pair(b)?);
    fill(b, buffer, one, 5)?;
    must!(b, command_buffer_exp.finalize_exp(buffer));
    ask!(b, command_buffer_exp.finalize_exp(buffer));
    run(b, buffer)?;
    holds(b, one, 5)?;
    release(b, buffer)
}
fn sync_points(b: &Bench) -> Verdict {
    let (buffer, (one, two)) = (new(b, false)?, pair(b)?);
    let point = fill(b, buffer, one, 6)?;
    let code = copy(b, buffer, (two, one), &[point])?;
    b.succeeded("urCommandBufferAppendUSMMemcpyExp", code)?;
    must!(b, command_buffer_exp.finalize_exp(buffer));
    for _ in 0..20 {
        b.write(one, &[0; 4096])?;
        run(b, buffer)?;
        holds(b, two, 6)?;
    }
    release(b, buffer)
}
fn no_sync_point(b: &Bench) -> Verdict {
    let (buffer, (one, two)) = (new(b, false)?, pair(b)?);
    let code = copy(b, buffer, (two, one), &[0x7fff_0000])?;
    let expected = ur_result_t::ERROR_INVALID_COMMAND_BUFFER_SYNC_POINT_EXP;
    b.was_refused("urCommandBufferAppendUSMMemcpyExp", code, expected)?;
    release(b, buffer)
}
fn released_at_work(b: &Bench) -> Verdict {
    let (buffer, (one, _)) = (new(b, true)?, pair(b)?);
    fill(b, buffer, one, 7)?;
    must!(b, command_buffer_exp.finalize_exp(buffer));
    let queue = b.queue()?;
    let gate = b.gate(queue)?;
    must!(b, enqueue_exp.command_buffer_exp(queue, buffer, 0, null(), null_mut()));
    release(b, buffer)?;
    gate.open();
    b.finish(queue)?;
    holds(b, one, 7)
}
/// Appends a command without wait lists and outputs, by words, because the entry has too many arguments for
/// `Call`.
fn append(b: &Bench, entry: &str, buffer: Buffer, arguments: &[u64]) -> Verdict {
    let mut words = vec![word(buffer.0)];
    words.extend(arguments.iter().map(|n| Word::One(*n)));
    words.extend([0; 7].map(Word::One));
    let code = b.adapter.call(entry, &words);
    b.succeeded(entry, code.ok_or_else(|| Stop::skipped(format!("{entry} is null")))?)
}
fn buffers(b: &Bench) -> Verdict {
    let recorded = new(b, true)?;
    let flags = ur_mem_flags_t::READ_WRITE;
    let (one, two) = (b.new_buffer(flags, 4096)?, b.new_buffer(flags, 4096)?);
    let [first, second] = [one, two].map(|buffer| buffer.0.expose_provenance() as u64);
    let byte = [8_u8; 8];
    let pattern = byte.as_ptr().expose_provenance() as u64;
    let fill = "urCommandBufferAppendMemBufferFillExp";
    append(b, fill, recorded, &[first, pattern, 1, 0, 4096])?;
    let copy = "urCommandBufferAppendMemBufferCopyExp";
    append(b, copy, recorded, &[first, second, 0, 0, 4096])?;
    must!(b, command_buffer_exp.finalize_exp(recorded));
    run(b, recorded)?;
    same!(super::memory::read(b, two, 0, 4096)?, vec![8; 4096], "the second buffer");
    must!(b, mem.release(one));
    must!(b, mem.release(two));
    release(b, recorded)
}
fn event(b: &Bench) -> Verdict {
    let (buffer, (one, _)) = (new(b, true)?, pair(b)?);
    fill(b, buffer, one, 9)?;
    must!(b, command_buffer_exp.finalize_exp(buffer));
    let (queue, mut event) = (b.queue()?, ur_event_handle_t::NULL);
    must!(b, enqueue_exp.command_buffer_exp(queue, buffer, 0, null(), &mut event));
    let kind = info!(b, event.get_info(event, ur_event_info_t::COMMAND_TYPE), u32);
    same!(ur_command_t(kind), ur_command_t::ENQUEUE_COMMAND_BUFFER_EXP, "the event's type");
    b.wait(&[event.0])?;
    holds(b, one, 9)?;
    must!(b, event.release(event));
    release(b, buffer)
}
fn empty_graph(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::GRAPH_RECORD_AND_REPLAY_SUPPORT_EXP)?;
    let graphs = [b.make("ExpGraph")?, b.make("ExpGraph")?].map(ur_exp_graph_handle_t);
    let mut ids = [0; 2];
    for (graph, id) in graphs.iter().zip(&mut ids) {
        let mut is_empty = false;
        must!(b, graph_exp.is_empty_exp(*graph, &mut is_empty));
        ensure!(is_empty, "a new graph is not empty");
        must!(b, graph_exp.get_id_exp(*graph, id));
    }
    ensure!(ids[0] != ids[1], "two graphs have one number");
    for graph in graphs {
        must!(b, graph_exp.destroy_exp(graph));
    }
    Ok(())
}
fn capture(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::GRAPH_RECORD_AND_REPLAY_SUPPORT_EXP)?;
    let (queue, (one, _)) = (b.queue()?, pair(b)?);
    let (byte, none, mut graph) = (4_u8, null_mut(), ur_exp_graph_handle_t::NULL);
    let pattern = (&raw const byte).cast();
    must!(b, queue_exp.begin_graph_capture_exp(queue));
    must!(b, enqueue.usm_fill(queue, one, 1, pattern, 4096, 0, null(), none));
    must!(b, queue_exp.end_graph_capture_exp(queue, &mut graph));
    holds(b, one, 0)?;
    let mut runs = ur_exp_executable_graph_handle_t::NULL;
    must!(b, graph_exp.instantiate_graph_exp(graph, &mut runs));
    for _ in 0..2 {
        b.write(one, &[0; 4096])?;
        must!(b, enqueue_exp.graph_exp(queue, runs, 0, null(), null_mut()));
        b.finish(queue)?;
        holds(b, one, 4)?;
    }
    must!(b, graph_exp.executable_graph_destroy_exp(runs));
    must!(b, graph_exp.destroy_exp(graph));
    Ok(())
}
/// The number of calls of a captured host task, which is copied by the commands around it.
static CALLS: AtomicU8 = AtomicU8::new(0);
extern "C" fn count(_: *mut c_void) {
    CALLS.fetch_add(1, SeqCst);
}
fn host_task(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::GRAPH_RECORD_AND_REPLAY_SUPPORT_EXP)?;
    let (queue, (one, two)) = (b.queue()?, pair(b)?);
    let (calls, none) = (CALLS.as_ptr().cast_const().cast(), null_mut());
    let mut graph = ur_exp_graph_handle_t::NULL;
    let mut runs = ur_exp_executable_graph_handle_t::NULL;
    CALLS.store(0, SeqCst);
    must!(b, queue_exp.begin_graph_capture_exp(queue));
    must!(b, enqueue.usm_memcpy(queue, false, one, calls, 1, 0, null(), none));
    must!(b, enqueue_exp.host_task_exp(queue, Some(count), null_mut(), null(), 0, null(), none));
    must!(b, enqueue.usm_memcpy(queue, false, two, calls, 1, 0, null(), none));
    must!(b, queue_exp.end_graph_capture_exp(queue, &mut graph));
    must!(b, graph_exp.instantiate_graph_exp(graph, &mut runs));
    same!(CALLS.load(SeqCst), 0, "calls before the graph runs");
    for turn in 0..3 {
        must!(b, enqueue_exp.graph_exp(queue, runs, 0, null(), none));
        b.finish(queue)?;
        same!(b.read(one, 1)?, [turn], "calls as the command before it has them");
        same!(b.read(two, 1)?, [turn + 1], "calls as the command after it has them");
    }
    must!(b, graph_exp.executable_graph_destroy_exp(runs));
    must!(b, graph_exp.destroy_exp(graph));
    Ok(())
}
type Runs = ur_exp_executable_graph_handle_t;
/// What a captured host task releases, by handle: its own graph, or the queue.
static OWN: Mutex<Option<(&Adapter, Result<usize, usize>)>> = Mutex::new(None);
extern "C" fn release_one(_: *mut c_void) {
    let own = OWN.lock().unwrap_or_else(PoisonError::into_inner).take();
    let at = std::ptr::with_exposed_provenance_mut;
    let code = own.and_then(|(adapter, handle)| match handle {
        Ok(graph) => {
            let destroy = adapter.tables.graph_exp.executable_graph_destroy_exp?;
            Some(call::Call::call(destroy, (ur_exp_executable_graph_handle_t(at(graph)),)))
        }
        Err(queue) => {
            let release = adapter.tables.queue.release?;
            Some(call::Call::call(release, (ur_queue_handle_t(at(queue)),)))
        }
    });
    if code == Some(ur_result_t::SUCCESS) {
        CALLS.fetch_add(1, SeqCst);
    }
}
fn release_own(b: &Bench) -> Verdict {
    const FILLS: usize = 500;
    b.needs(ur_device_info_t::GRAPH_RECORD_AND_REPLAY_SUPPORT_EXP)?;
    let (at, none) = (b.alloc(Usm::Host, FILLS)?, null_mut());
    // The rounds wait for calls, which must come.
    let (queue, task): (_, unsafe extern "C" fn(_)) = (b.queue()?, count);
    CALLS.store(0, SeqCst);
    must!(b, enqueue_exp.host_task_exp(queue, Some(task), none, null(), 0, null(), null_mut()));
    b.finish(queue)?;
    same!(CALLS.load(SeqCst), 1, "calls of a host task");
    let out_of_order = ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE;
    for round in 0..80_u8 {
        let flags = if round & 2 == 0 { ur_queue_flags_t::default() } else { out_of_order };
        let (queue, of_queue) = (b.new_queue(flags)?, round & 1 == 0);
        let (mut graph, mut runs) = (ur_exp_graph_handle_t::NULL, Runs::NULL);
        must!(b, queue_exp.begin_graph_capture_exp(queue));
        let task: unsafe extern "C" fn(_) = release_one;
        must!(b, enqueue_exp.host_task_exp(queue, Some(task), none, null(), 0, null(), null_mut()));
        for n in 0..FILLS {
            let pattern = (&raw const round).cast();
            let to = at.wrapping_byte_add(n);
            must!(b, enqueue.usm_fill(queue, to, 1, pattern, 1, 0, null(), null_mut()));
        }
        let last: unsafe extern "C" fn(_) = count;
        let barrier = null_mut();
        must!(b, enqueue.events_wait_with_barrier(queue, 0, null(), barrier));
        must!(b, enqueue_exp.host_task_exp(queue, Some(last), none, null(), 0, null(), null_mut()));
        must!(b, queue_exp.end_graph_capture_exp(queue, &mut graph));
        must!(b, graph_exp.instantiate_graph_exp(graph, &mut runs));
        must!(b, graph_exp.destroy_exp(graph));
        CALLS.store(0, SeqCst);
        let own = match of_queue {
            true => Err(queue.0.expose_provenance()),
            false => Ok(runs.0.expose_provenance()),
        };
        *OWN.lock().unwrap_or_else(PoisonError::into_inner) = Some((b.adapter, own));
        must!(b, enqueue_exp.graph_exp(queue, runs, 0, null(), null_mut()));
        while CALLS.load(SeqCst) < 2 {
            std::thread::yield_now();
        }
        same!(b.read(at, FILLS)?, vec![round; FILLS], "what the commands behind the task wrote");
        match of_queue {
            true => must!(b, graph_exp.executable_graph_destroy_exp(runs)),
            false => must!(b, queue.release(queue)),
        }
    }
    b.free(at)
}
/// A graph into which the bench's queue records.
fn recording(b: &Bench) -> Verdict<ur_exp_graph_handle_t> {
    b.needs(ur_device_info_t::GRAPH_RECORD_AND_REPLAY_SUPPORT_EXP)?;
    let graph = ur_exp_graph_handle_t(b.make("ExpGraph")?);
    must!(b, queue_exp.begin_capture_into_graph_exp(b.queue()?, graph));
    Ok(graph)
}
/// Ends the capture and destroys the graph.
fn ended(b: &Bench, graph: ur_exp_graph_handle_t) -> Verdict {
    let mut same = ur_exp_graph_handle_t::NULL;
    must!(b, queue_exp.end_graph_capture_exp(b.queue()?, &mut same));
    same!(same, graph, "the graph that the capture ends with");
    must!(b, graph_exp.destroy_exp(graph));
    Ok(())
}
fn full_graph(b: &Bench) -> Verdict {
    let ((one, _), queue, graph) = (pair(b)?, b.queue()?, recording(b)?);
    let (byte, none, mut same) = (4_u8, null_mut(), ur_exp_graph_handle_t::NULL);
    let pattern = (&raw const byte).cast();
    must!(b, enqueue.usm_fill(queue, one, 1, pattern, 4096, 0, null(), none));
    must!(b, queue_exp.end_graph_capture_exp(queue, &mut same));
    refused!(b, ERROR_INVALID_ARGUMENT, queue_exp.begin_capture_into_graph_exp(queue, graph));
    must!(b, graph_exp.destroy_exp(graph));
    Ok(())
}
fn open_graph(b: &Bench) -> Verdict {
    let (graph, mut runs) = (recording(b)?, ur_exp_executable_graph_handle_t::NULL);
    refused!(b, ERROR_INVALID_ARGUMENT, graph_exp.instantiate_graph_exp(graph, &mut runs));
    ensure!(runs.is_null(), "the result is written to");
    ended(b, graph)
}
fn open_graph_destroyed(b: &Bench) -> Verdict {
    let graph = recording(b)?;
    refused!(b, ERROR_INVALID_ARGUMENT, graph_exp.destroy_exp(graph));
    ended(b, graph)
}
fn bad_path(b: &Bench) -> Verdict {
    b.needs(ur_device_info_t::GRAPH_RECORD_AND_REPLAY_SUPPORT_EXP)?;
    let (graph, path) = (ur_exp_graph_handle_t(b.make("ExpGraph")?), c"/there/is/no/such/folder");
    refused!(b, ERROR_INVALID_ARGUMENT, graph_exp.dump_contents_exp(graph, path.as_ptr()));
    must!(b, graph_exp.destroy_exp(graph));
    Ok(())
}
fn no_graph(b: &Bench) -> Verdict {
    let (queue, mut graph) = (b.queue()?, ur_exp_graph_handle_t::NULL);
    refused!(b, ERROR_INVALID_OPERATION, queue_exp.get_graph_exp(queue, &mut graph));
    ensure!(graph.is_null(), "the result is written to");
    Ok(())
}
