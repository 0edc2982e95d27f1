//! Graph (experimental). Read by `cargo xtask generate`; never compiled.

/// Refers to a graph of recorded work.
#[handle]
struct ExpGraph;

/// Refers to a recorded graph made ready to run.
#[handle]
struct ExpExecutableGraph;

#[callback]
type ExpGraphDestructionCallback = fn(user_data: *mut c_void);

#[table(QueueExp, "QueueExp")]
extern "C" {
    /// Starts recording the queue's commands into a new graph.
    fn urQueueBeginGraphCaptureExp(queue: Queue);

    /// Starts recording the queue's commands into a graph that already exists.
    #[error(InvalidArgument, "the graph holds commands already, or its last capture failed")]
    fn urQueueBeginCaptureIntoGraphExp(queue: Queue, graph: ExpGraph);

    /// Stops recording on the queue and gives the captured graph.
    fn urQueueEndGraphCaptureExp(queue: Queue, #[out] graph: *mut ExpGraph);

    /// Tells whether the queue is recording into a graph.
    fn urQueueIsGraphCaptureEnabledExp(queue: Queue, #[out] result: *mut bool);

    /// Gives the graph that the queue is now recording into.
    #[error(InvalidOperation, "the queue is not currently recording a graph")]
    fn urQueueGetGraphExp(queue: Queue, #[out] graph: *mut ExpGraph);
}

#[table(GraphExp, "GraphExp")]
extern "C" {
    /// Makes an empty graph that can capture queue commands.
    fn urGraphCreateExp(context: Context, #[out] graph: *mut ExpGraph);

    /// Turns a captured graph into one that can be executed.
    #[error(InvalidArgument, "a queue still records into the graph, or its last capture failed")]
    fn urGraphInstantiateGraphExp(graph: ExpGraph, #[out] exec_graph: *mut ExpExecutableGraph);

    /// Destroys a graph and frees what it holds.
    #[error(InvalidArgument, "a queue still records into the graph")]
    fn urGraphDestroyExp(graph: ExpGraph);

    /// Destroys a graph that was instantiated for execution.
    fn urGraphExecutableGraphDestroyExp(executable_graph: ExpExecutableGraph);

    /// Tells whether a graph holds no commands.
    #[errors(InvalidGraph)]
    fn urGraphIsEmptyExp(graph: ExpGraph, #[out] result: *mut bool);

    /// Gives the number that identifies a graph within the process.
    fn urGraphGetIdExp(graph: ExpGraph, #[out] graph_id: *mut u64);

    /// Registers a function to call when a graph is destroyed.
    fn urGraphSetDestructionCallbackExp(
        graph: ExpGraph,
        callback: ExpGraphDestructionCallback,
        #[optional] user_data: *mut c_void,
    );

    /// Writes a graph's contents to a file for inspection.
    #[error(InvalidArgument, "the file cannot be written")]
    fn urGraphDumpContentsExp(graph: ExpGraph, file_path: *const c_char);

    /// Gives the backend's own handle for a graph.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urGraphGetNativeHandleExp(graph: ExpGraph, #[out] native_graph: *mut NativeHandle);

    /// Gives the backend's own handle for an executable graph.
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urGraphExecutableGraphGetNativeHandleExp(
        executable_graph: ExpExecutableGraph,
        #[out] native_executable_graph: *mut NativeHandle,
    );
}
