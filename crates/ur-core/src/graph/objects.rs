//! The objects of graphs and captures.
use crate::{
    command_buffer::{Command, CommandBuffer, Node, Recording, Records, Signallers},
    process_mutex::ProcessMutex,
    queue::{Context, Device, HasStreams},
};
use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};
use ur_adapter::{
    api::Objects,
    callback::HostFunction,
    error::{Error, ErrorCode, Result},
    object::Owned,
};

/// What the event of a captured command represents: the capture, and the command's index in it.
pub type Captured<D> = (Arc<Score<D>>, usize);

/// A backend whose command buffers and graphs are the core's. It has no methods to implement: [`objects`](crate::objects) are
/// the core's, and [`records_graphs`](crate::records_graphs) makes queues capture.
pub trait HasGraphs:
    HasStreams<Capture = Arc<Stand<Self>>, Captured = Captured<Self>>
    + Objects<
        ExpCommandBuffer = CommandBuffer<Self>,
        ExpCommandBufferCommand = Command<Self>,
        ExpGraph = Graph<Self>,
        ExpExecutableGraph = ExecutableGraph<Self>,
    >
{
}

/// What `ur_exp_graph_handle_t` points at.
pub struct Graph<D: Records> {
    context: Owned<Context<D>>,
    pub(super) id: u64,
    score: Arc<Score<D>>,
    pub(super) farewells: ProcessMutex<Vec<HostFunction>>,
}
impl<D: Records> Graph<D> {
    pub(super) fn new(context: Owned<Context<D>>) -> Owned<Self> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let (score, farewells) = (Arc::default(), ProcessMutex::new(vec![]));
        Owned::new(Self { context, id: IDS.fetch_add(1, Relaxed), score, farewells })
    }
    pub(super) fn context(&self) -> &Owned<Context<D>> {
        &self.context
    }
    pub(super) fn score(&self) -> &Arc<Score<D>> {
        &self.score
    }
    /// Checks that its capture has ended.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` while a queue captures into it; as for [`ProcessMutex::lock`].
    pub(super) fn check_closed(&self) -> Result<()> {
        match self.score.is_open()? {
            false => Ok(()),
            true => Error::refuse(
                ErrorCode::InvalidArgument,
                "a queue still records into the graph: end the capture first",
            ),
        }
    }
}
impl<D: Records> Drop for Graph<D> {
    fn drop(&mut self) {
        let Ok(mut farewells) = self.farewells.lock() else { return }; // the functions are the parent's
        let all = std::mem::take(&mut *farewells);
        drop(farewells);
        all.into_iter().for_each(HostFunction::call);
    }
}
/// What `ur_exp_executable_graph_handle_t` points at: a copy of a graph, made when it was instantiated.
pub struct ExecutableGraph<D: Records> {
    /// Locked while an execution is submitted, so that executions follow one another.
    pub(super) recorded: ProcessMutex<(Recording<D>, Vec<Node<D>>)>,
    pub(super) context: Owned<Context<D>>,
    pub(super) device: Option<Owned<Device<D>>>,
}
macro_rules! bodies { ($($name:ident)*) => { $(
    body!($name: Records, $name, InvalidGraph);
    impl<D: Records> fmt::Debug for $name<D> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct(stringify!($name)).field("context", &self.context).finish_non_exhaustive()
        }
    }
)* } }
bodies! { Graph ExecutableGraph }

/// Captured commands, and the device of the queue that captured them.
pub(super) type Copied<D> = (Vec<Node<D>>, Option<Owned<Device<D>>>);
/// The captured commands of a graph. Events of these commands keep it alive.
pub struct Score<D: Records>(pub(super) ProcessMutex<Inside<D>>);
/// The locked contents of a [`Score`].
pub(super) struct Inside<D: Records> {
    pub(super) nodes: Vec<Node<D>>,
    /// The device of the queue that began the capture.
    pub(super) device: Option<Owned<Device<D>>>,
    /// The queue that began the current capture, if there is one.
    pub(super) leader: Option<Weak<Stand<D>>>,
    /// The parts of the queues that joined the capture by waiting for an event of a captured command. They outlast
    /// their queues: commands of a released queue must be waited for, too.
    pub(super) drawn_in: Vec<Arc<Stand<D>>>,
    /// Which commands signal which reusable events.
    pub(super) signallers: Signallers,
    /// The last capture cannot be executed: another queue's commands were never waited for, or its queue was released
    /// before the capture ended.
    pub(super) is_broken: bool,
}
impl<D: Records> Default for Score<D> {
    fn default() -> Self {
        Self(ProcessMutex::new(Inside {
            nodes: vec![],
            device: None,
            leader: None,
            drawn_in: vec![],
            signallers: Signallers::default(),
            is_broken: false,
        }))
    }
}
impl<D: Records> fmt::Debug for Score<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Score").finish_non_exhaustive()
    }
}
impl<D: Records> Score<D> {
    /// A copy of the captured commands, and the device of the queue that captured them; `None` if the graph cannot be
    /// executed.
    ///
    /// # Errors
    /// As for [`ProcessMutex::lock`], as of all that follow.
    pub(super) fn copy(&self) -> Result<Option<Copied<D>>> {
        let inside = self.0.lock()?;
        let copy = || (inside.nodes.iter().map(Node::again).collect(), inside.device.clone());
        Ok((!inside.is_broken).then(copy))
    }
    /// Calls `look` with the captured commands.
    pub(super) fn look<R>(&self, look: impl FnOnce(&[Node<D>]) -> R) -> Result<R> {
        Ok(look(&self.0.lock()?.nodes))
    }
    /// Ends the capture for all queues; returns the parts of those that had joined it.
    pub(super) fn disband(&self) -> Result<Vec<Part<D>>> {
        let drawn_in = {
            let mut inside = self.0.lock()?;
            inside.leader = None;
            inside.signallers.clear();
            std::mem::take(&mut inside.drawn_in)
        };
        drawn_in.iter().filter_map(|stand| stand.take().transpose()).collect()
    }
    /// Whether a queue captures into it.
    pub(super) fn is_open(&self) -> Result<bool> {
        Ok(self.0.lock()?.leader.is_some())
    }
}

/// The error of a queue that captures already.
pub(super) fn recording_already() -> Error {
    Error::new(ErrorCode::InvalidOperation, "the queue records already: end that capture first")
}

/// A queue's part in a capture.
pub(super) struct Part<D: Records> {
    pub(super) graph: Owned<Graph<D>>,
    pub(super) leads: bool,
    /// The commands that all later commands of the queue follow.
    pub(super) barrier: Vec<usize>,
    /// The commands captured since then.
    pub(super) since: Vec<usize>,
}
/// A queue's part in a capture, if it captures.
pub struct Stand<D: Records> {
    /// Whether there is a part. An atomic beside the lock, because every command of every queue reads it.
    active: AtomicBool,
    pub(super) part: ProcessMutex<Option<Part<D>>>,
}
impl<D: Records> Default for Stand<D> {
    fn default() -> Self {
        Self { active: AtomicBool::new(false), part: ProcessMutex::new(None) }
    }
}
impl<D: Records> fmt::Debug for Stand<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stand").field("active", &self.active).finish_non_exhaustive()
    }
}
impl<D: Records> Drop for Stand<D> {
    fn drop(&mut self) {
        self.abandon();
    }
}
impl<D: Records> Stand<D> {
    /// Ends the capture that the queue began, if any, for all queues: it can no longer be ended by its queue. The graph
    /// cannot be executed. Does nothing in a forked child: the capture is the parent's.
    pub fn abandon(&self) {
        if !self.is_active() {
            return;
        }
        let Ok(mut part) = self.part.lock() else { return };
        let Some(Part { graph, .. }) = part.take_if(|part| part.leads) else { return };
        self.active.store(false, Release);
        drop(part); // no two queues' parts are locked at the same time
        if let Ok(mut inside) = graph.score().0.lock() {
            inside.is_broken = true;
        }
        drop(graph.score().disband());
    }
    /// Removes and returns its part.
    ///
    /// # Errors
    /// As for [`ProcessMutex::lock`], as of all that follow.
    pub(super) fn take(&self) -> Result<Option<Part<D>>> {
        let mut part = self.part.lock()?;
        self.active.store(false, Release);
        Ok(part.take())
    }
    /// Whether the queue captures.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active.load(Acquire)
    }
    /// The graph into which the queue captures.
    pub(super) fn graph(&self) -> Result<Option<Owned<Graph<D>>>> {
        Ok(self.part.lock()?.as_ref().map(|part| part.graph.clone()))
    }
    pub(super) fn put(&self, graph: Owned<Graph<D>>, leads: bool) -> Result<()> {
        let mut part = self.part.lock()?;
        if part.is_some() {
            return Err(recording_already());
        }
        *part = Some(Part { graph, leads, barrier: vec![], since: vec![] });
        self.active.store(true, Release);
        Ok(())
    }
}
