//! The entries of graphs and of graph capture.
use super::{
    capture::{self, is_of},
    objects::{ExecutableGraph, Graph, HasGraphs},
};
use crate::{
    c_arguments,
    command_buffer::{Change, Node, Part, Recording, Records},
    event::Event,
    over_driver::{OverDriver, own_handle},
    process_mutex::ProcessMutex,
    queue::{Context, Queue},
};
use std::{
    ffi::{CStr, OsStr},
    fmt::Write,
    os::unix::ffi::OsStrExt,
};
use ur_adapter::{
    api::{GraphExpApi, QueueExpApi},
    command::{CompletionRequest, Enqueued},
    default_answers::withdraw,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Body, Borrowed, Object, Owned},
};
use ur_sys::{ur_command_t, ur_exp_graph_destruction_callback_t, ur_native_handle_t};

/// `urEnqueueGraphExp`.
///
/// # Errors
/// As the entry documents them.
pub fn submit<D: HasGraphs>(
    queue: Borrowed<'_, Queue<D>>,
    graph: Borrowed<'_, ExecutableGraph<D>>,
    events: &[Borrowed<'_, Event<D>>],
    report: CompletionRequest,
) -> Enqueued<D> {
    if !is_of(&queue, graph.device.as_ref()) {
        return Error::refuse(
            ErrorCode::InvalidQueue,
            "the graph was recorded by a queue of another device: a queue of that one executes it",
        );
    }
    let name = ur_command_t::ENQUEUE_GRAPH_EXP;
    if D::is_recording(&queue, events)? {
        return D::record_all(queue, name, &graph.recorded.lock()?.1, events, report);
    }
    let mut locked = graph.recorded.lock()?;
    let ((recording, nodes), mut part) = (&mut *locked, Part::Nothing);
    let made = recording.submit(nodes, (queue, name), events, report, &mut part);
    drop(locked);
    part.wait(&queue);
    made
}

/// The graph in the DOT language, with a node for each command.
fn dot<D: Records>(id: u64, nodes: &[Node<D>]) -> String {
    let mut text = format!("digraph graph_{id} {{\n");
    for (place, node) in nodes.iter().enumerate() {
        let (name, waits) = (node.name, node.waits.len());
        let waits = if waits == 0 { String::new() } else { format!(" after {waits} events") };
        let _infallible = writeln!(text, "  n{place} [label=\"{name:?}{waits}\"];");
        for one in &node.after {
            let _infallible = writeln!(text, "  n{one} -> n{place};");
        }
    }
    text + "}\n"
}

impl<D: HasGraphs> GraphExpApi for OverDriver<D> {
    fn graph_create_exp(context: Borrowed<'_, Context<D>>) -> Result<Owned<Graph<D>>> {
        Ok(Graph::new(context.own()?))
    }
    fn graph_instantiate_graph_exp(
        graph: Borrowed<'_, Graph<D>>,
    ) -> Result<Owned<ExecutableGraph<D>>> {
        graph.check_closed()?;
        let (nodes, device) = graph.score().copy()?.ok_or_else(|| {
            Error::new(
                ErrorCode::InvalidArgument,
                "the graph's capture ended with commands that nothing waits for: record it anew",
            )
        })?;
        let context = graph.context();
        let place = (context, device.as_ref().unwrap_or(&context.devices()[0]));
        let mut recording = Recording::new(place, false)?;
        nodes.iter().try_for_each(|node| recording.append(&node.step))?;
        recording.close(&nodes, Change::All)?;
        let (recorded, context) = (ProcessMutex::new((recording, nodes)), context.clone());
        Ok(Owned::new(ExecutableGraph { recorded, context, device }))
    }
    fn graph_destroy_exp(graph: Borrowed<'_, Graph<D>>) -> Result<()> {
        match graph.check_closed() {
            // A forked child gives up its handle, as it does for other objects; the commands stay the parent's.
            Err(error) if error.code() != ErrorCode::Uninitialized => Err(error),
            _ => withdraw(graph),
        }
    }
    fn graph_executable_graph_destroy_exp(graph: Borrowed<'_, ExecutableGraph<D>>) -> Result<()> {
        withdraw(graph)
    }
    fn graph_is_empty_exp(graph: Borrowed<'_, Graph<D>>) -> Result<bool> {
        graph.score().look(<[_]>::is_empty)
    }
    fn graph_get_id_exp(graph: Borrowed<'_, Graph<D>>) -> Result<u64> {
        Ok(graph.id)
    }
    fn graph_set_destruction_callback_exp(
        graph: Borrowed<'_, Graph<D>>,
        callback: ur_exp_graph_destruction_callback_t,
        user_data: Option<UsmPtr>,
    ) -> Result<()> {
        let farewell = c_arguments::function(callback, user_data)?;
        graph.farewells.lock()?.push(farewell);
        Ok(())
    }
    fn graph_dump_contents_exp(graph: Borrowed<'_, Graph<D>>, file_path: &CStr) -> Result<()> {
        let text = graph.score().look(|nodes| dot(graph.id, nodes))?;
        let path = OsStr::from_bytes(file_path.to_bytes());
        std::fs::write(path, text).map_err(|error| {
            Error::new(
                ErrorCode::InvalidArgument,
                format!("the graph could not be written to {}: {error}", path.display()),
            )
        })
    }
    fn graph_get_native_handle_exp(graph: Borrowed<'_, Graph<D>>) -> Result<ur_native_handle_t> {
        native::<D, _>(&graph, "urGraphGetNativeHandleExp")
    }
    fn graph_executable_graph_get_native_handle_exp(
        graph: Borrowed<'_, ExecutableGraph<D>>,
    ) -> Result<ur_native_handle_t> {
        native::<D, _>(&graph, "urGraphExecutableGraphGetNativeHandleExp")
    }
}
/// The core's own objects have native handles only for drivers that have no native handles at all.
fn native<D: HasGraphs, T: Body>(
    object: &Object<T>,
    entry: &'static str,
) -> Result<ur_native_handle_t> {
    match D::HAS_NATIVE_HANDLES {
        false => own_handle::of(object),
        true => Error::unsupported(entry),
    }
}

impl<D: HasGraphs> QueueExpApi for OverDriver<D> {
    fn queue_begin_graph_capture_exp(queue: Borrowed<'_, Queue<D>>) -> Result<()> {
        capture::begin(&queue, &Graph::new(queue.context().clone()))
    }
    fn queue_begin_capture_into_graph_exp(
        queue: Borrowed<'_, Queue<D>>,
        graph: Borrowed<'_, Graph<D>>,
    ) -> Result<()> {
        capture::begin(&queue, &graph.own()?)
    }
    fn queue_end_graph_capture_exp(queue: Borrowed<'_, Queue<D>>) -> Result<Owned<Graph<D>>> {
        capture::end(&queue)
    }
    fn queue_is_graph_capture_enabled_exp(queue: Borrowed<'_, Queue<D>>) -> Result<bool> {
        Ok(queue.capture().is_active())
    }
    fn queue_get_graph_exp(queue: Borrowed<'_, Queue<D>>) -> Result<Owned<Graph<D>>> {
        queue.capture().graph()?.ok_or_else(|| {
            Error::new(ErrorCode::InvalidOperation, "the queue records into no graph: begin first")
        })
    }
}
