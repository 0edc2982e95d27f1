//! Graphs: commands that queues captured, and that can be executed repeatedly in the captured order. `capture.rs`
//! captures, and `objects.rs` defines the objects. Executions work like those of command buffers
//! (`command_buffer/recording.rs`).
mod capture;
mod entries;
mod objects;

pub use capture::{is_recording, record};
pub use entries::submit;
pub use objects::{Captured, ExecutableGraph, Graph, HasGraphs, Score, Stand};

/// The part of an `impl HasStreams` that makes queues capture.
#[macro_export]
macro_rules! records_graphs {
    () => {
        type Capture = std::sync::Arc<$crate::graph::Stand<Self>>;
        type Captured = $crate::graph::Captured<Self>;
        #[inline(always)] // if the kind of a command is known, the code for others is eliminated
        fn is_recording(
            queue: &$crate::queue::Queue<Self>,
            events: &[$crate::ur_adapter::object::Borrowed<'_, $crate::queue::Event<Self>>],
        ) -> $crate::ur_adapter::error::Result<bool> {
            $crate::graph::is_recording(queue, events)
        }
        fn record(
            queue: $crate::ur_adapter::object::Borrowed<'_, $crate::queue::Queue<Self>>,
            ready: &$crate::command::Ready<'_, Self>,
            events: &[$crate::ur_adapter::object::Borrowed<'_, $crate::queue::Event<Self>>],
            signalled: Option<$crate::ur_adapter::object::Borrowed<'_, $crate::queue::Event<Self>>>,
            report: $crate::ur_adapter::command::CompletionRequest,
        ) -> $crate::ur_adapter::command::Enqueued<Self> {
            $crate::graph::record(queue, ready, events, signalled, report)
        }
        fn abandon_capture(capture: &Self::Capture) {
            capture.abandon();
        }
        fn submit_graph(
            queue: $crate::ur_adapter::object::Borrowed<'_, $crate::queue::Queue<Self>>,
            graph: $crate::ur_adapter::object::Borrowed<'_, $crate::graph::ExecutableGraph<Self>>,
            events: &[$crate::ur_adapter::object::Borrowed<'_, $crate::queue::Event<Self>>],
            report: $crate::ur_adapter::command::CompletionRequest,
        ) -> $crate::ur_adapter::command::Enqueued<Self> {
            $crate::graph::submit(queue, graph, events, report)
        }
    };
}
