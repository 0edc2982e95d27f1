//! Recorded commands: what command buffers and graphs are made of, and how they are enqueued as a
//! whole. What may be recorded, and when, is the core's and `capture.rs`'s.
use super::{
    Event, Queue,
    engine::{self, Completion, Dependency, Failure, Plan, Run, Work},
    streams::Made,
};
use std::sync::{Arc, Mutex, PoisonError};
use ur_adapter::{
    command::Report,
    error::{Error, ErrorCode},
    object::{Borrowed, Owned},
};
use ur_core::{profiling::Profile, queue};
use ur_hal::{Completion as Wanted, Submission};
use ur_sys::ur_command_t;

/// A command that is done again and again.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) command: ur_command_t,
    /// Can be repeated.
    pub(super) work: Work,
    /// The earlier nodes that it follows, in order and none twice.
    pub(super) after: Vec<usize>,
    /// What each execution waits for: as signalled when it is enqueued.
    pub(super) waits: Vec<Owned<Event>>,
    /// What each execution signals.
    pub(super) signal: Option<Owned<Event>>,
}
impl Node {
    fn again(&self) -> Self {
        Self {
            command: self.command,
            work: self.work.again().expect("what is recorded can be repeated"),
            after: self.after.clone(),
            waits: self.waits.clone(),
            signal: self.signal.clone(),
        }
    }
}

/// Nodes, each after those that it follows.
#[derive(Debug, Default)]
pub(super) struct Recording {
    pub(super) nodes: Vec<Node>,
}
impl Recording {
    /// One more; its place.
    pub(super) fn push(&mut self, mut node: Node) -> usize {
        node.after.sort_unstable();
        node.after.dedup();
        self.nodes.push(node);
        self.nodes.len() - 1
    }
    /// A copy of all of `other`, after the nodes `after`; the place of a node that follows it.
    pub(super) fn splice(
        &mut self,
        other: &Self,
        command: ur_command_t,
        after: Vec<usize>,
        waits: Vec<Owned<Event>>,
    ) -> usize {
        let place =
            |after, waits| Node { command, work: Work::Barrier, after, waits, signal: None };
        let entry = self.push(place(after, waits));
        let first = entry + 1;
        for node in &other.nodes {
            let mut copy = node.again();
            copy.after.iter_mut().for_each(|one| *one += first);
            if copy.after.is_empty() {
                copy.after.push(entry);
            }
            self.push(copy);
        }
        let mut last = self.tails(first);
        if last.is_empty() {
            last.push(entry);
        }
        self.push(place(last, vec![]))
    }
    /// The nodes from `first` on that none follows.
    pub(super) fn tails(&self, first: usize) -> Vec<usize> {
        let mut is_tail = vec![true; self.nodes.len()];
        self.nodes.iter().flat_map(|node| &node.after).for_each(|&one| is_tail[one] = false);
        (first..self.nodes.len()).filter(|&place| is_tail[place]).collect()
    }
    /// For each node, whether it is one of `ends` or one of these follows it.
    pub(super) fn behind(&self, ends: impl Iterator<Item = usize>) -> Vec<bool> {
        let mut behind = vec![false; self.nodes.len()];
        ends.for_each(|place| behind[place] = true);
        for place in (0..self.nodes.len()).rev() {
            if behind[place] {
                self.nodes[place].after.iter().for_each(|&one| behind[one] = true);
            }
        }
        behind
    }
    /// A copy of it as it is now.
    pub(super) fn copy(&self) -> Self {
        Self { nodes: self.nodes.iter().map(Node::again).collect() }
    }
    fn plan(&self) -> Plan {
        Plan::new(self.nodes.iter().map(|node| (&node.work, &*node.after)))
    }
}

/// A recording that is enqueued as a whole. Executions follow one another in the order in which
/// they were enqueued, on whatever queues.
#[derive(Debug)]
pub struct Replay {
    state: Mutex<State>,
    hands: Arc<engine::Queue>,
    profiled: bool,
}
#[derive(Debug)]
struct State {
    recording: Recording,
    /// Of the recording as it is now; made for the first execution after a change.
    plan: Option<Arc<Plan>>,
    last: Option<Arc<Completion>>,
}
impl Replay {
    /// Of a recording that will be closed when it is first enqueued. `context`: whose memory it
    /// uses (the context object's address). `profiled`: the events of its parts note times.
    pub(super) fn new(context: usize, recording: Recording, profiled: bool) -> Self {
        let state = Mutex::new(State { recording, plan: None, last: None });
        Self { state, hands: Arc::new(engine::Queue::new(context, true)), profiled }
    }
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Records something else. Executions enqueued before take no notice.
    pub(super) fn replace(&self, recording: Recording) {
        let mut state = self.lock();
        (state.plan, state.recording) = (None, recording);
    }
    /// A copy of what is recorded.
    pub(super) fn copy(&self) -> Recording {
        self.lock().recording.copy()
    }
    /// Hands one execution to `queue`, as one command.
    ///
    /// # Errors
    /// As for every command; and `IN_EVENT_LIST_EXEC_STATUS` if an event that a part waits for
    /// has failed.
    pub(super) fn enqueue(
        &self,
        queue: Borrowed<'_, Queue>,
        command: ur_command_t,
        events: &[Borrowed<'_, Event>],
        report: Report,
    ) -> Made {
        let mut state = self.lock();
        let (told, signals) = state.signals();
        let run = Run::new(state.plan(), told, Arc::clone(&self.hands));
        let work = Work::Call(Box::new(move || run.execute().map_err(|why| failure(&why))));
        let profile = if self.profiled { Profile::Phases } else { queue.profile() };
        let waits = state.recording.nodes.iter().flat_map(|node| &node.waits);
        let all: Vec<_> = events.iter().copied().chain(waits.map(|one| one.borrow())).collect();
        // An earlier execution that failed is no reason for this one to fail.
        let earlier = state.last.as_ref().filter(|last| last.outcome().is_none());
        let earlier = earlier.map(|last| Dependency::Local(Arc::clone(last)));
        let mut last = None;
        let made = queue::submit_by(queue, (command, profile), &all, report, |what| {
            let completion = match what.completion {
                Wanted::None => Wanted::Point, // the next execution waits for this one
                wanted => wanted,
            };
            last = queue.stream().put(work, &Submission { completion, ..*what }, earlier)?;
            Ok(last.clone())
        })?;
        // Commands submitted from here on wait for this execution.
        signals.into_iter().for_each(|(event, point)| event.signalled(point, event.made_for()));
        state.last = last;
        drop(state);
        Ok(made)
    }
}
/// What a run tells how far its steps have come, and whose completions these are.
type Signals = (Vec<(usize, Arc<Completion>)>, Vec<(Owned<Event>, Arc<Completion>)>);
impl State {
    fn plan(&mut self) -> Arc<Plan> {
        let recording = &self.recording;
        Arc::clone(self.plan.get_or_insert_with(|| Arc::new(recording.plan())))
    }
    fn signals(&self) -> Signals {
        let (mut told, mut signals) = (vec![], vec![]);
        for (place, node) in self.recording.nodes.iter().enumerate() {
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
}
fn failure(why: &Failure) -> Error {
    Error::new(ErrorCode::Unknown, why.to_string())
}
