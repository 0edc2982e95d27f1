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
    #[id = 297]
    fn urQueueBeginGraphCaptureExp(queue: Queue);

    #[id = 298]
    fn urQueueBeginCaptureIntoGraphExp(queue: Queue, graph: ExpGraph);

    #[id = 299]
    fn urQueueEndGraphCaptureExp(queue: Queue, #[out] graph: *mut ExpGraph);

    #[id = 304]
    fn urQueueIsGraphCaptureEnabledExp(queue: Queue, #[out] result: *mut bool);

    #[id = 314]
    #[error(InvalidOperation, "the queue is not currently recording a graph")]
    fn urQueueGetGraphExp(queue: Queue, #[out] graph: *mut ExpGraph);
}

#[table(GraphExp, "GraphExp")]
extern "C" {
    #[id = 296]
    fn urGraphCreateExp(context: Context, #[out] graph: *mut ExpGraph);

    #[id = 307]
    fn urGraphInstantiateGraphExp(graph: ExpGraph, #[out] exec_graph: *mut ExpExecutableGraph);

    #[id = 302]
    fn urGraphDestroyExp(graph: ExpGraph);

    #[id = 303]
    fn urGraphExecutableGraphDestroyExp(executable_graph: ExpExecutableGraph);

    #[id = 305]
    #[errors(InvalidGraph)]
    fn urGraphIsEmptyExp(graph: ExpGraph, #[out] result: *mut bool);

    #[id = 326]
    fn urGraphGetIdExp(graph: ExpGraph, #[out] graph_id: *mut u64);

    #[id = 315]
    fn urGraphSetDestructionCallbackExp(
        graph: ExpGraph,
        callback: ExpGraphDestructionCallback,
        #[optional] user_data: *mut c_void,
    );

    #[id = 306]
    fn urGraphDumpContentsExp(graph: ExpGraph, file_path: *const c_char);

    #[id = 320]
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urGraphGetNativeHandleExp(graph: ExpGraph, #[out] native_graph: *mut NativeHandle);

    #[id = 321]
    #[error(UnsupportedFeature, "the adapter has no native handle corresponding to this object")]
    fn urGraphExecutableGraphGetNativeHandleExp(
        executable_graph: ExpExecutableGraph,
        #[out] native_executable_graph: *mut NativeHandle,
    );
}
