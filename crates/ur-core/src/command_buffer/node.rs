//! One command of a recording: what it does, what it follows, and its events.
use super::step::Step;
use crate::{
    command::{Place, launch},
    kernels::arguments::RecordedArguments,
    program::Kernel,
    queue::HasStreams,
};
use std::sync::Arc;
use ur_adapter::{
    api::Objects,
    error::Result,
    object::{Borrowed, Owned},
};
use ur_sys::ur_command_t;

/// What has changed in a command buffer since its recording was made executable. Ordered: each includes those before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Change {
    /// Which events commands wait for and signal.
    Events,
    /// The commands themselves.
    Commands,
    /// Everything: the recording has never been made executable.
    All,
}
/// One recorded command.
pub struct Node<D: HasStreams> {
    /// The command type that its event reports.
    pub name: ur_command_t,
    /// The operation.
    pub step: Arc<Step<D>>,
    /// The earlier commands that it follows, by index.
    pub after: Vec<usize>,
    /// The events that each execution waits for: their latest signals when the execution is enqueued.
    pub waits: Vec<Owned<D::Event>>,
    /// The event that each execution signals.
    pub signal: Option<Owned<D::Event>>,
    /// For a launch, the description that updates change.
    pub(super) launch: Option<Arc<Launch<D>>>,
    /// The commands that it follows independently of its wait list.
    pub(super) fixed: Vec<usize>,
    /// The length of its wait list when it was appended, including events of the same command buffer.
    pub(super) waited: usize,
}
/// The arguments of a recorded launch.
type Arguments<D> = RecordedArguments<<D as Objects>::Mem, <D as Objects>::Sampler>;
/// A recorded launch, as the caller described it.
pub(super) struct Launch<D: HasStreams> {
    /// The kernel to run.
    pub(super) kernel: Owned<Kernel<D>>,
    /// Its arguments.
    pub(super) arguments: Arguments<D>,
    /// The alternative kernels, each with the arguments that it had when it was last in use; none at first.
    pub(super) choices: Vec<(Owned<Kernel<D>>, Arguments<D>)>,
    /// The global offset.
    pub(super) offset: Option<Vec<usize>>,
    /// The global size, in items, for each dimension.
    pub(super) global: Vec<usize>,
    /// The group size, in items.
    pub(super) local: Option<Vec<usize>>,
}
impl<D: HasStreams> Launch<D> {
    /// Resolves the launch to a repeatable command.
    ///
    /// # Errors
    /// As for every launch.
    pub(super) fn step(&self, place: Place<'_, D>) -> Result<Arc<Step<D>>> {
        let asked = launch::Asked {
            kernel: self.kernel.borrow(),
            offset: self.offset.as_deref(),
            global: &self.global,
            local: self.local.as_deref(),
            arguments: &self.arguments,
            properties: None,
        };
        launch::resolve(place, &asked, |ready| {
            ready.check_context(place.0)?;
            Step::of(place, ready)
        })
    }
}

/// The commands that a command follows, and the events that each execution of it waits for.
pub(super) type Sorted<D> = (Vec<usize>, Vec<Owned<<D as Objects>::Event>>);
impl<D: HasStreams> Node<D> {
    /// A command that cannot be updated.
    pub(crate) fn new(
        name: ur_command_t,
        step: Arc<Step<D>>,
        (after, waits): Sorted<D>,
        signal: Option<Owned<D::Event>>,
    ) -> Self {
        let (launch, fixed, waited) = (None, vec![], 0);
        Self { name, step, after, waits, signal, launch, fixed, waited }
    }
    /// A copy of the command.
    pub(crate) fn again(&self) -> Self {
        Self {
            name: self.name,
            step: Arc::clone(&self.step),
            after: self.after.clone(),
            waits: self.waits.clone(),
            signal: self.signal.clone(),
            launch: self.launch.clone(),
            fixed: self.fixed.clone(),
            waited: self.waited,
        }
    }
    /// Adjusts the indices of a copy: `first` is added to all that it refers to, and it follows `before` if it followed
    /// nothing.
    pub(crate) fn shift(&mut self, first: usize, before: &[usize]) {
        for list in [&mut self.after, &mut self.fixed] {
            list.iter_mut().for_each(|one| *one += first);
            if list.is_empty() {
                list.extend(before);
            }
        }
    }
    /// Resolves the events for which a copied command waits: where commands of this recording signal such an event, the
    /// copy follows these commands. `find` returns their indices. In the original recording, the event was one from
    /// outside.
    pub(crate) fn follow_signals(&mut self, find: impl Fn(Borrowed<'_, D::Event>) -> Vec<usize>) {
        self.waits.retain(|event| {
            let places = find(event.borrow());
            self.after.extend(&places);
            places.is_empty()
        });
        self.after.sort_unstable();
        self.after.dedup();
    }
}
/// The commands from index `first` on that no other command follows.
pub(crate) fn ends<D: HasStreams>(nodes: &[Node<D>], first: usize) -> Vec<usize> {
    let mut is_end = vec![true; nodes.len() - first];
    let followed = nodes[first..].iter().flat_map(|node| &node.after);
    followed.filter(|&&one| one >= first).for_each(|&one| is_end[one - first] = false);
    (first..nodes.len()).filter(|&place| is_end[place - first]).collect()
}
