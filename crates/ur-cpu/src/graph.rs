//! Graphs as C knows them: what queues have recorded, and what is run of it. How a queue records is
//! `capture.rs`'s, how a recording runs `recording.rs`'s.
use super::{
    Context, Cpu, Event, Queue,
    capture::{self, Score},
    recording::{Recording, Replay},
    streams::Made,
};
use std::{
    ffi::{CStr, OsStr},
    fmt::Write,
    os::unix::ffi::OsStrExt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use ur_adapter::blank::withdraw;
use ur_adapter::{
    api::{GraphExpApi, QueueExpApi},
    callback::HostFunction,
    command::Report,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_core::from_c;
use ur_core::over_driver::own_handle;
use ur_sys::{ur_command_t, ur_exp_graph_destruction_callback_t, ur_native_handle_t};

/// What `ur_exp_graph_handle_t` points at.
#[derive(Debug)]
pub struct Graph {
    context: Owned<Context>,
    id: u64,
    score: Arc<Score>,
    farewells: Mutex<Vec<HostFunction>>,
}
impl Graph {
    fn new(context: Owned<Context>) -> Owned<Self> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let (score, farewells) = Default::default();
        Owned::new(Self { context, id: IDS.fetch_add(1, Relaxed), score, farewells })
    }
    pub(super) fn context(&self) -> &Owned<Context> {
        &self.context
    }
    pub(super) fn score(&self) -> &Arc<Score> {
        &self.score
    }
    /// # Errors
    /// `INVALID_ARGUMENT` while a queue records into it.
    fn check_closed(&self) -> Result<()> {
        match self.score.is_open() {
            false => Ok(()),
            true => Err(Error::new(
                ErrorCode::InvalidArgument,
                "a queue still records into the graph: end the capture first",
            )),
        }
    }
}
impl Drop for Graph {
    fn drop(&mut self) {
        let farewells = self.farewells.get_mut().unwrap_or_else(PoisonError::into_inner);
        farewells.drain(..).for_each(HostFunction::call);
    }
}

/// What `ur_exp_executable_graph_handle_t` points at: a graph as it was when it was instantiated.
#[derive(Debug)]
pub struct ExecutableGraph {
    replay: Replay,
    /// What is recorded lives in it.
    _context: Owned<Context>,
}

/// `urEnqueueGraphExp`.
pub(super) fn enqueue(
    queue: Borrowed<'_, Queue>,
    graph: Borrowed<'_, ExecutableGraph>,
    events: &[Borrowed<'_, Event>],
    report: Report,
) -> Made {
    replay(&graph.replay, queue, ur_command_t::ENQUEUE_GRAPH_EXP, events, report)
}
/// Has a queue execute a recording, or record it in turn.
pub(super) fn replay(
    replay: &Replay,
    queue: Borrowed<'_, Queue>,
    command: ur_command_t,
    events: &[Borrowed<'_, Event>],
    report: Report,
) -> Made {
    match capture::is_recording(&queue, events)? {
        true => capture::splice(queue, command, events, &replay.copy(), report),
        false => replay.enqueue(queue, command, events, report),
    }
}

/// The graph in the DOT language, a node for each command.
fn dot(id: u64, recording: &Recording) -> String {
    let mut text = format!("digraph graph_{id} {{\n");
    for (place, node) in recording.nodes.iter().enumerate() {
        let (command, waits) = (node.command, node.waits.len());
        let waits = if waits == 0 { String::new() } else { format!(" after {waits} events") };
        let _infallible = writeln!(text, "  n{place} [label=\"{command:?}{waits}\"];");
        for one in &node.after {
            let _infallible = writeln!(text, "  n{one} -> n{place};");
        }
    }
    text + "}\n"
}

impl GraphExpApi for Cpu {
    fn graph_create_exp(context: Borrowed<'_, Context>) -> Result<Owned<Graph>> {
        Ok(Graph::new(context.own()?))
    }
    fn graph_instantiate_graph_exp(graph: Borrowed<'_, Graph>) -> Result<Owned<ExecutableGraph>> {
        graph.check_closed()?;
        let recording = graph.score.copy().ok_or_else(|| {
            Error::new(
                ErrorCode::InvalidArgument,
                "the graph's capture ended with commands that nothing waits for: record it anew",
            )
        })?;
        let replay = Replay::new(graph.context.as_handle().addr(), recording, false);
        Ok(Owned::new(ExecutableGraph { replay, _context: graph.context.clone() }))
    }
    fn graph_destroy_exp(graph: Borrowed<'_, Graph>) -> Result<()> {
        graph.check_closed()?;
        withdraw(graph)
    }
    fn graph_executable_graph_destroy_exp(graph: Borrowed<'_, ExecutableGraph>) -> Result<()> {
        withdraw(graph)
    }
    fn graph_is_empty_exp(graph: Borrowed<'_, Graph>) -> Result<bool> {
        Ok(graph.score.look(|recording| recording.nodes.is_empty()))
    }
    fn graph_get_id_exp(graph: Borrowed<'_, Graph>) -> Result<u64> {
        Ok(graph.id)
    }
    fn graph_set_destruction_callback_exp(
        graph: Borrowed<'_, Graph>,
        callback: ur_exp_graph_destruction_callback_t,
        user_data: Option<UsmPtr>,
    ) -> Result<()> {
        let farewell = from_c::function(callback, user_data)?;
        graph.farewells.lock().unwrap_or_else(PoisonError::into_inner).push(farewell);
        Ok(())
    }
    fn graph_dump_contents_exp(graph: Borrowed<'_, Graph>, file_path: &CStr) -> Result<()> {
        let text = graph.score.look(|recording| dot(graph.id, recording));
        let path = OsStr::from_bytes(file_path.to_bytes());
        std::fs::write(path, text).map_err(|error| {
            Error::new(
                ErrorCode::InvalidArgument,
                format!("the graph could not be written to {}: {error}", path.display()),
            )
        })
    }
    fn graph_get_native_handle_exp(graph: Borrowed<'_, Graph>) -> Result<ur_native_handle_t> {
        own_handle::of(&graph)
    }
    fn graph_executable_graph_get_native_handle_exp(
        graph: Borrowed<'_, ExecutableGraph>,
    ) -> Result<ur_native_handle_t> {
        own_handle::of(&graph)
    }
}

impl QueueExpApi for Cpu {
    fn queue_begin_graph_capture_exp(queue: Borrowed<'_, Queue>) -> Result<()> {
        capture::begin(&queue, &Graph::new(queue.context().clone()))
    }
    fn queue_begin_capture_into_graph_exp(
        queue: Borrowed<'_, Queue>,
        graph: Borrowed<'_, Graph>,
    ) -> Result<()> {
        capture::begin(&queue, &graph.own()?)
    }
    fn queue_end_graph_capture_exp(queue: Borrowed<'_, Queue>) -> Result<Owned<Graph>> {
        capture::end(&queue)
    }
    fn queue_is_graph_capture_enabled_exp(queue: Borrowed<'_, Queue>) -> Result<bool> {
        Ok(queue.capture().is_active())
    }
    fn queue_get_graph_exp(queue: Borrowed<'_, Queue>) -> Result<Owned<Graph>> {
        queue.capture().graph().ok_or_else(|| {
            Error::new(ErrorCode::InvalidOperation, "the queue records into no graph: begin first")
        })
    }
}
