//! How what command buffers record is executed: as a recording that is replayed (`recording.rs`).
use super::{
    Cpu, Event, Queue, capture,
    engine::Work,
    graph,
    recording::{self, Recording, Replay},
    streams::{self, Made},
};
use ur_adapter::{
    command::Report,
    error::Result,
    object::{Borrowed, Owned},
};
use ur_core::over_driver::own_handle;
use ur_core::{
    command::{Place, Ready},
    command_buffer::{self, Change, Node, Records},
};
use ur_sys::{ur_command_t, ur_native_handle_t};

/// What `ur_exp_command_buffer_handle_t` points at.
pub type CommandBuffer = command_buffer::CommandBuffer<Cpu>;
/// What `ur_exp_command_buffer_command_handle_t` points at.
pub type Command = command_buffer::Command<Cpu>;

impl Records for Cpu {
    type Step = Work;
    type Recording = Replay;
    const HAS_NATIVE_RECORDINGS: bool = false;
    fn recording((context, _): Place<'_, Self>, is_profiled: bool) -> Result<Replay> {
        Ok(Replay::new(context.as_handle().addr(), Recording::default(), is_profiled))
    }
    fn step((_, device): Place<'_, Self>, ready: &Ready<'_, Self>) -> Result<Work> {
        streams::work(device, ready)
    }
    fn again(step: &Work) -> Work {
        step.again().expect("what is recorded can be repeated")
    }
    fn recorded_event(
        (context, _): Place<'_, Self>,
        name: ur_command_t,
        is_profiled: bool,
    ) -> Owned<Event> {
        Event::of_recorded(context.clone(), name, is_profiled)
    }
    fn close(
        replay: &mut Replay,
        _place: Place<'_, Self>,
        nodes: &[Node<Self>],
        _change: Change,
    ) -> Result<()> {
        let nodes = nodes.iter().map(|node| recording::Node {
            command: node.name,
            work: Self::again(&node.step),
            after: node.after.clone(),
            waits: node.waits.clone(),
            signal: node.signal.clone(),
        });
        replay.replace(Recording { nodes: nodes.collect() });
        Ok(())
    }
    fn execute(
        replay: &mut Replay,
        _nodes: &[Node<Self>],
        queue: Borrowed<'_, Queue>,
        events: &[Borrowed<'_, Event>],
        report: Report,
    ) -> Made {
        graph::replay(replay, queue, ur_command_t::ENQUEUE_COMMAND_BUFFER_EXP, events, report)
    }
    fn native_buffer(
        buffer: Borrowed<'_, CommandBuffer>,
        _: &Replay,
    ) -> Result<ur_native_handle_t> {
        own_handle::of(&buffer)
    }
    fn check_wait(event: &Event) -> Result<()> {
        event.captured().map_or(Ok(()), |_| Err(capture::internal()))
    }
}
