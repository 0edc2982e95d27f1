//! Recorded commands as they are executed: by a graph of the driver, which changes with them, or one by one (`replay.rs`).
use super::{
    node::{Change, Node},
    replay::{Part, Replay},
    step::Step,
};
use crate::{
    command::Place,
    event::Event,
    memory::deferred_free,
    profiling::Profile,
    queue::{Context, HasStreams, Queue, noted, submit_by},
};
use std::sync::Arc;
use ur_adapter::{
    command::{CompletionRequest, Enqueued},
    error::{Error, Result},
    object::{Borrowed, Owned},
};
use ur_sys::{ur_command_t, ur_native_handle_t};

/// Recorded commands that can be executed repeatedly.
pub(crate) struct Recording<D: HasStreams> {
    is_profiled: bool,
    way: Way<D>,
}
enum Way<D: HasStreams> {
    Graph(Lasting<D>),
    Replay(Replay<D>),
}
/// A graph of the driver. It is kept until no execution of it is under way.
struct Lasting<D: HasStreams> {
    /// `None` only during drop.
    graph: Option<D::Graph>,
    context: Owned<Context<D>>,
    was_executed: bool,
}
impl<D: HasStreams> Lasting<D> {
    fn graph(&mut self) -> &mut D::Graph {
        self.graph.as_mut().expect("drop alone takes it")
    }
}
impl<D: HasStreams> Drop for Lasting<D> {
    fn drop(&mut self) {
        if let Some(graph) = self.graph.take_if(|_| self.was_executed) {
            deferred_free::leave::<D::Memory>(self.context.as_handle().addr(), graph);
        }
    }
}
impl<D: HasStreams> Recording<D> {
    /// Makes an empty recording.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` if the driver cannot execute recordings. Returns the driver's error, mapped as in
    /// `error.rs`.
    pub(crate) fn new(place: Place<'_, D>, is_profiled: bool) -> Result<Self> {
        let way = match D::HAS_GRAPHS {
            false => Way::Replay(Replay::new(place)?),
            true => Way::Graph(Lasting {
                graph: Some(D::graph(place.0.driver(), place.1.driver())?),
                context: place.0.clone(),
                was_executed: false,
            }),
        };
        Ok(Self { is_profiled, way })
    }
    /// Appends one more command while the recording is open.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(crate) fn append(&mut self, step: &Step<D>) -> Result<()> {
        match &mut self.way {
            Way::Graph(lasting) => Ok(D::append(lasting.graph(), step.what())?),
            Way::Replay(_) => Ok(()),
        }
    }
    /// Makes the recording executable: for the first time, or again after a change.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(crate) fn close(&mut self, nodes: &[Node<D>], change: Change) -> Result<()> {
        match (&mut self.way, change) {
            (Way::Replay(replay), _) => replay.close(nodes),
            (Way::Graph(_), Change::Events) => {}
            (Way::Graph(lasting), Change::All) => D::close(lasting.graph())?,
            (Way::Graph(lasting), Change::Commands) => {
                let commands: Vec<_> =
                    nodes.iter().map(|node| Arc::clone(node.step.what())).collect();
                if let Some(fresh) = D::change(lasting.graph(), &commands)? {
                    let (context, graph) = (lasting.context.clone(), Some(fresh));
                    *lasting = Lasting { graph, context, was_executed: lasting.was_executed };
                }
            }
        }
        Ok(())
    }
    /// Enqueues one execution, as a command with this name. It follows all earlier executions. What there is of a refused one is
    /// `part`, for which the caller waits when it has unlocked the recording.
    ///
    /// # Errors
    /// `IN_EVENT_LIST_EXEC_STATUS` if an event of the wait list has failed. Returns the driver's error, mapped as in
    /// `error.rs`.
    pub(crate) fn submit(
        &mut self,
        nodes: &[Node<D>],
        (queue, name): (Borrowed<'_, Queue<D>>, ur_command_t),
        events: &[Borrowed<'_, Event<D>>],
        report: CompletionRequest,
        part: &mut Part<D>,
    ) -> Enqueued<D> {
        let is_profiled = self.is_profiled;
        let lasting = match &mut self.way {
            Way::Graph(lasting) => lasting,
            Way::Replay(replay) => {
                return replay.execute((nodes, is_profiled), (queue, name), events, report, part);
            }
        };
        let waits = nodes.iter().flat_map(|node| &node.waits).map(Owned::borrow);
        let waits: Vec<_> = events.iter().copied().chain(waits).collect();
        let signals: Vec<_> = nodes.iter().filter_map(|node| node.signal.as_ref()).collect();
        let whole = if is_profiled { Profile::Phases } else { queue.profile() };
        let each = if is_profiled { Profile::Moment } else { Profile::Off };
        let mut points = vec![];
        // Also if the driver refuses it: a part of it may be under way then.
        lasting.was_executed = true;
        let made = submit_by(queue, (name, whole), &waits, report, |submission| {
            let wanted = (signals.len(), noted(each));
            let (end, ends) = D::execute(lasting.graph(), queue.stream(), submission, wanted)?;
            points = ends;
            Ok(end)
        });
        // Commands submitted from here on wait for this execution.
        signals.iter().zip(points).for_each(|(event, point)| event.signalled(point, each));
        made
    }
    /// The native handle; `None` if the driver has no native handles at all.
    ///
    /// # Errors
    /// `UNSUPPORTED_FEATURE` if it has none.
    pub(super) fn native(&self) -> Result<Option<ur_native_handle_t>> {
        match &self.way {
            Way::Graph(Lasting { graph: Some(graph), .. }) => {
                Ok(Some(D::native_graph(graph)?.0 as ur_native_handle_t))
            }
            _ if D::HAS_NATIVE_HANDLES => Error::unsupported("urCommandBufferGetNativeHandleExp"),
            _ => Ok(None),
        }
    }
}
