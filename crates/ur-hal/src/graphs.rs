//! Graphs: recorded commands that a driver executes as one, any number of times.
use crate::{Command, Error, NativeHandle, Profile, Recorded, Result, Streams, Submission, Types};
use std::sync::Arc;

/// An execution of a graph: its point if one was requested, and the points of those of its commands that signal events.
pub type Execution<D> = (Option<<D as Types>::Point>, Vec<<D as Types>::Point>);

/// A driver's graphs. A driver without graphs implements nothing of this trait: the core then submits the recorded commands
/// one by one for each execution.
///
/// All return the driver's error, with the kind that fits best and the driver's status. A method that returns other
/// errors documents them.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait Graphs: Streams {
    /// Whether the driver has graphs. Otherwise the core calls no method of this trait.
    const HAS_GRAPHS: bool = false;

    /// Whether the installed driver can execute them: older ones may lack it. Asked only with `HAS_GRAPHS`.
    fn executes_graphs() -> bool {
        Self::HAS_GRAPHS
    }
    /// Checks that graphs can contain a command, which is about to be recorded.
    fn check_recordable(
        context: &Self::Context,
        device: &Self::Device,
        command: &Command<'_, Self>,
    ) -> Result<()> {
        let _ = (context, device, command);
        Error::unsupported("graphs")
    }
    /// Makes an empty graph.
    fn graph(context: &Self::Context, device: &Self::Device) -> Result<Self::Graph> {
        let _ = (context, device);
        Error::unsupported("graphs")
    }
    /// Adds a command, which runs after all that the graph contains.
    fn append(graph: &mut Self::Graph, command: &Arc<Recorded<Self>>) -> Result<()> {
        let _ = (graph, command);
        Error::unsupported("graphs")
    }
    /// Prepares the graph for execution; it takes no more commands.
    fn close(graph: &mut Self::Graph) -> Result<()> {
        let _ = graph;
        Error::unsupported("graphs")
    }
    /// Replaces the commands of a closed graph by these: as many, of which some are others than before. Returns a graph
    /// that takes its place, or `None` if the graph itself has changed. Executions that were submitted before are not
    /// affected; later ones follow them also if they execute another graph.
    fn change(
        graph: &mut Self::Graph,
        commands: &[Arc<Recorded<Self>>],
    ) -> Result<Option<Self::Graph>> {
        let _ = (graph, commands);
        Error::unsupported("graphs")
    }
    /// Submits an execution of a closed graph, as `submission` describes it for a barrier. It follows all earlier
    /// executions of the graph, whether they succeeded or failed.
    ///
    /// `signals` says how many of its commands signal events, and which times these report: each gets a point. Errors are
    /// those of [`Streams::submit`].
    fn execute(
        graph: &mut Self::Graph,
        stream: &Self::Stream,
        submission: &Submission<'_, Self>,
        signals: (usize, Profile),
    ) -> Result<Execution<Self>> {
        let _ = (graph, stream, submission, signals);
        Error::unsupported("graphs")
    }
    /// The native handle of a graph.
    fn native_graph(graph: &Self::Graph) -> Result<NativeHandle> {
        let _ = graph;
        Error::unsupported("native handles of graphs")
    }
}
