//! How recorded commands are executed: as a plan that all cores work on, and not one by one. What may be recorded, and when,
//! is the core's.
use super::{
    Cpu, Event, Queue,
    engine::{self, Completion, Dependency, Failure, Plan, Run, Work},
    streams::{self, EventResult},
};
use std::sync::Arc;
use ur_adapter::{
    command::CompletionRequest,
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_core::{
    command::{Place, Ready},
    command_buffer::{self, Change, Node, Records},
    graph,
    over_driver::own_handle,
    profiling::Profile,
    queue,
};
use ur_hal::{Completion as Wanted, Submission};
use ur_sys::{ur_command_t, ur_native_handle_t};

/// What `ur_exp_command_buffer_handle_t` points at.
pub type CommandBuffer = command_buffer::CommandBuffer<Cpu>;
/// What `ur_exp_command_buffer_command_handle_t` points at.
pub type Command = command_buffer::Command<Cpu>;

/// A recording that is enqueued as a whole. Executions follow one another in the order in which they were enqueued, on
/// whatever queues.
#[derive(Debug)]
pub struct Replay {
    plan: Arc<Plan>,
    last: Option<Arc<Completion>>,
    hands: Arc<engine::Queue>,
    profiled: bool,
}
/// What a run tells how far its steps have come, and whose completions these are.
type Signals = (Vec<(usize, Arc<Completion>)>, Vec<(Owned<Event>, Arc<Completion>)>);
fn signals(nodes: &[Node<Cpu>]) -> Signals {
    let (mut told, mut signals) = (vec![], vec![]);
    for (place, node) in nodes.iter().enumerate() {
        if let Some(event) = &node.signal {
            let completion = Completion::submitted(match event.made_for() {
                Profile::Off => ur_hal::Profile::Off,
                Profile::Phases => ur_hal::Profile::Phases,
                Profile::Moment | Profile::Instant => ur_hal::Profile::End,
            });
            told.push((place, Arc::clone(&completion)));
            signals.push((event.clone(), completion));
        }
    }
    (told, signals)
}
fn failure(why: &Failure) -> Error {
    Error::new(ErrorCode::Unknown, why.to_string())
}

impl Records for Cpu {
    type Step = Work;
    type Recording = Replay;
    const HAS_NATIVE_RECORDINGS: bool = false;
    fn recording((context, _): Place<'_, Self>, profiled: bool) -> Result<Replay> {
        let hands = Arc::new(engine::Queue::new(context.as_handle().addr(), true));
        Ok(Replay { plan: Arc::new(Plan::new([].into_iter())), last: None, hands, profiled })
    }
    fn step((_, device): Place<'_, Self>, ready: &Ready<'_, Self>) -> Result<Work> {
        streams::work(device, ready)
    }
    fn again(step: &Work) -> Work {
        step.again().expect("what is recorded can be repeated")
    }
    fn close(
        replay: &mut Replay,
        _place: Place<'_, Self>,
        nodes: &[Node<Self>],
        _change: Change,
    ) -> Result<()> {
        // Executions enqueued before take no notice.
        replay.plan = Arc::new(Plan::new(nodes.iter().map(|node| (&node.step, &*node.after))));
        Ok(())
    }
    fn execute(
        replay: &mut Replay,
        nodes: &[Node<Self>],
        (queue, name): (Borrowed<'_, Queue>, ur_command_t),
        events: &[Borrowed<'_, Event>],
        report: CompletionRequest,
    ) -> EventResult {
        let (told, signals) = signals(nodes);
        let run = Run::new(Arc::clone(&replay.plan), told, Arc::clone(&replay.hands));
        let work = Work::Call(Box::new(move || run.execute().map_err(|why| failure(&why))));
        let profile = if replay.profiled { Profile::Phases } else { queue.profile() };
        let waits = nodes.iter().flat_map(|node| &node.waits);
        let all: Vec<_> = events.iter().copied().chain(waits.map(|one| one.borrow())).collect();
        // An earlier execution that failed is no reason for this one to fail.
        let earlier = replay.last.as_ref().filter(|last| last.outcome().is_none());
        let earlier = earlier.map(|last| Dependency::Local(Arc::clone(last)));
        let mut last = None;
        let made = queue::submit_by(queue, (name, profile), &all, report, |what| {
            let completion = match what.completion {
                Wanted::None => Wanted::Point, // the next execution waits for this one
                wanted => wanted,
            };
            last = queue.stream().put(work, &Submission { completion, ..*what }, earlier)?;
            Ok(last.clone())
        })?;
        // Commands submitted from here on wait for this execution.
        signals.into_iter().for_each(|(event, point)| event.signalled(point, event.made_for()));
        replay.last = last;
        Ok(made)
    }
    fn record_all(
        queue: Borrowed<'_, Queue>,
        name: ur_command_t,
        nodes: &[Node<Self>],
        events: &[Borrowed<'_, Event>],
        report: CompletionRequest,
    ) -> EventResult {
        graph::splice(queue, name, nodes, events, report)
    }
    fn native_buffer(
        buffer: Borrowed<'_, CommandBuffer>,
        _: &Replay,
    ) -> Result<ur_native_handle_t> {
        own_handle::of(&buffer)
    }
}
