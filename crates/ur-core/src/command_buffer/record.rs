//! Appends commands while a command buffer is open: what each follows, and its sync point.
use super::{
    Command, Launch, Node, Records, Shared, Sorted, State, Step, address, ends, step::FEW,
};
use crate::{command::Ready, over_driver::OverDriver};
use std::sync::Arc;
use ur_adapter::{
    command::{Appended, Asked},
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_hal::Order;
use ur_sys::{ur_command_t, ur_exp_command_buffer_sync_point_t};

impl<D: Records> Shared<D> {
    /// Records one command.
    ///
    /// # Errors
    /// `INVALID_OPERATION` if finalized already, or if a command handle is requested but the command buffer is not
    /// updatable; `INVALID_COMMAND_BUFFER_SYNC_POINT_EXP`; `INVALID_EVENT_WAIT_LIST`. Returns the driver's error,
    /// mapped as in `error.rs`.
    pub(super) fn append(
        self: &Arc<Self>,
        name: ur_command_t,
        step: Arc<Step<D>>,
        launch: Option<Arc<Launch<D>>>,
        asked: Asked<'_, OverDriver<D>>,
    ) -> Appended<D> {
        if asked.command && !self.is_updatable {
            return Error::refuse(
                ErrorCode::InvalidOperation,
                "only commands of a command buffer made updatable have handles",
            );
        }
        let mut state = self.lock()?;
        let fixed = state.follows(asked.points, self.is_in_order)?;
        let (place, waited) = (state.nodes.len(), asked.events.len());
        let (after, waits) = state.sort(asked.events, &fixed, place)?;
        state.recording.append(&step)?;
        let signal = asked.event.then(|| self.event(name));
        let shown = signal.clone();
        state.push(Node { name, step, after, waits, signal, launch, fixed, waited });
        let handle = asked.command.then(|| Owned::new(Command { of: Arc::downgrade(self), place }));
        state.handles.extend(handle.clone());
        Ok((state.points.add(vec![place]), shown, handle))
    }
    /// Records a copy of all commands that `other` contains now. Without `other`, notes that native commands were
    /// appended to the recording.
    pub(super) fn append_all(
        &self,
        other: Option<&Self>,
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
    ) -> Result<ur_exp_command_buffer_sync_point_t> {
        let copies = match other {
            Some(other) => other.lock()?.nodes.iter().map(Node::again).collect(),
            None => vec![],
        };
        let state = &mut *self.lock()?;
        let mut before = state.follows(points, self.is_in_order)?;
        state.has_natives |= other.is_none() && D::HAS_GRAPHS;
        if copies.len() > FEW {
            before = self.gather(state, before)?;
        }
        let first = state.nodes.len();
        for mut copy in copies {
            state.recording.append(&copy.step)?;
            copy.shift(first, &before);
            copy.follow_signals(|event| state.signallers.before(address(&event), first).to_vec());
            state.push(copy);
        }
        let ends = self.gather(state, ends(&state.nodes, first))?;
        Ok(state.points.add(if ends.is_empty() { before } else { ends }))
    }
    /// Replaces many commands by one that follows them: otherwise each of the commands after these would list all of
    /// them.
    fn gather(&self, state: &mut State<D>, places: Vec<usize>) -> Result<Vec<usize>> {
        if places.len() <= FEW {
            return Ok(places);
        }
        let barrier = Ready::barrier(ur_command_t::ENQUEUE_COMMAND_BUFFER_EXP, Order::Free);
        let step = Step::of(self.place(), &barrier)?;
        state.recording.append(&step)?;
        Ok(vec![state.push(Node::new(barrier.name, step, (places, vec![]), None))])
    }
}
impl<D: Records> State<D> {
    /// Appends a command and returns its index.
    fn push(&mut self, node: Node<D>) -> usize {
        let place = self.nodes.len();
        node.signal.iter().for_each(|event| self.signallers.add(address(event), place));
        self.nodes.push(node);
        place
    }
    /// The commands that a new command after these sync points follows.
    ///
    /// # Errors
    /// `INVALID_OPERATION` if finalized already; `INVALID_COMMAND_BUFFER_SYNC_POINT_EXP`.
    pub(super) fn follows(
        &self,
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
        is_in_order: bool,
    ) -> Result<Vec<usize>> {
        if self.is_final {
            return Error::refuse(
                ErrorCode::InvalidOperation,
                "the command buffer is finalized: it takes no more commands",
            );
        }
        if !self.points.has_room() {
            return Error::refuse(
                ErrorCode::OutOfResources,
                "the process made too many sync points since this command buffer was begun: finalize it, and record a new one",
            );
        }
        let mut after = vec![];
        for point in points.unwrap_or_default() {
            let found = self.points.of(*point).ok_or_else(|| {
                Error::new(
                    ErrorCode::InvalidCommandBufferSyncPointExp,
                    format!("{point} is no sync point of this command buffer"),
                )
            })?;
            after.extend(found);
        }
        if is_in_order {
            after.extend(self.points.latest());
        }
        Ok(after)
    }
    /// Separates `events` into those of commands before index `place`, which are added to `fixed`, and all others.
    ///
    /// # Errors
    /// `INVALID_EVENT_WAIT_LIST` for an event of the command itself or of a later one.
    pub(super) fn sort(
        &self,
        events: &[Borrowed<'_, D::Event>],
        fixed: &[usize],
        place: usize,
    ) -> Result<Sorted<D>> {
        let (mut after, mut waits) = (fixed.to_vec(), vec![]);
        for event in events {
            event.check_runs()?;
            let signallers = &self.signallers;
            match (signallers.of(address(event)), signallers.before(address(event), place)) {
                ([], _) => waits.push(event.own()?),
                (_, earlier @ [_, ..]) => after.extend(earlier),
                (_, []) => {
                    return Error::refuse(
                        ErrorCode::InvalidEventWaitList,
                        "a command cannot wait for its own event or that of one appended after it",
                    );
                }
            }
        }
        after.sort_unstable();
        after.dedup();
        Ok((after, waits))
    }
}
