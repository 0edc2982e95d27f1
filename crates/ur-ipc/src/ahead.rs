//! Tickets that are about to be opened together. The first of them that needs a request brings those behind it with it, for
//! the opens that follow; or a thread beside the opens asks for all. So a request does not cost each of them a round trip, in which both
//! processes are woken. This works for tickets whose answers bring no descriptors; others are fetched one by one.
use crate::{
    ENVELOPE_LEN, Error, ErrorKind, Result,
    deadline::Deadline,
    envelope::{Envelope, Transport},
    fetch::{Host, many::Wanted},
    fork::PerFork,
    hosts, locked,
    request_lock::RequestLock,
    standing::Fetched,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
    time::Instant,
};

/// How many tickets are asked for at once.
const AT_ONCE: usize = 64;

/// Tickets that are about to be opened together, in this order. What arrived for one that was not opened is given back when this is
/// dropped.
///
/// It only saves time: each open succeeds or fails as without it.
pub struct Ahead(Option<Arc<Set>>);

struct Set {
    tickets: Vec<[u8; ENVELOPE_LEN]>,
    places: HashMap<[u8; ENVELOPE_LEN], usize>,
    /// Held while some are asked for: the opens that need them wait for it.
    asking: RequestLock,
    state: Mutex<State>,
}
#[derive(Default)]
struct State {
    /// Tickets before this place have been asked for, or were opened without.
    asked: usize,
    arrived: HashMap<usize, Fetched>,
    /// When the exporter last did not answer in time, and that error.
    late: Option<(Instant, Error)>,
}
static SETS: PerFork<Mutex<Vec<Weak<Set>>>> = PerFork::new();

impl Ahead {
    /// Announces tickets. What is no ticket is left out: its open says so.
    pub fn of<'a>(tickets: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let of_bytes = |bytes: &&'a [u8]| {
            Envelope::parse(bytes).is_ok_and(|envelope| envelope.transport == Transport::Bytes)
        };
        let tickets: Vec<[u8; ENVELOPE_LEN]> = tickets
            .into_iter()
            .filter(of_bytes)
            .filter_map(|bytes| bytes.try_into().ok())
            .collect();
        if tickets.len() < 2 {
            return Self(None);
        }
        let places = tickets.iter().copied().zip(0..).collect();
        let (asking, state) = (RequestLock::default(), Mutex::default());
        let set = Arc::new(Set { tickets, places, asking, state });
        if let Ok(sets) = SETS.get() {
            let mut sets = locked(sets);
            sets.retain(|set| set.strong_count() > 0);
            sets.push(Arc::downgrade(&set));
        }
        Self(Some(set))
    }
    /// Asks for all that the first open, which has been by now, has left, while other threads open what has arrived, until `is_over`.
    /// That is worth a thread for more tickets than one request brings.
    pub fn fetch(&self, is_over: impl Fn() -> bool) {
        if let Some(set) = &self.0 {
            while !is_over() && set.fetch_next().is_some() {}
        }
    }
    /// Whether more than one request is needed.
    pub fn is_long(&self) -> bool {
        self.together() > AT_ONCE
    }
    /// How many of the tickets may come together.
    pub fn together(&self) -> usize {
        self.0.as_ref().map_or(0, |set| set.tickets.len())
    }
}

/// What has been fetched for this ticket, if it was announced and may be fetched with others. An open then has no request to make.
/// The error is that the exporter did not answer: the open has waited for that.
pub(crate) fn take(envelope: &Envelope, ticket: &[u8; ENVELOPE_LEN]) -> Option<Result<Fetched>> {
    if envelope.transport != Transport::Bytes {
        return None;
    }
    let sets: Vec<_> = locked(SETS.peek()?).iter().filter_map(Weak::upgrade).collect();
    let taken = sets.iter().find_map(|set| set.take(envelope, ticket))?;
    let (line, tag, generation) = (envelope.index, envelope.tag(), envelope.generation);
    // It may have been withdrawn since: then the exporter says so when it is asked again.
    let stands = |fetched: &Fetched| fetched.standing.check(line, tag, generation).is_ok();
    taken.map(|fetched| Some(fetched).filter(stands)).transpose()
}
impl Set {
    fn take(&self, envelope: &Envelope, ticket: &[u8; ENVELOPE_LEN]) -> Option<Result<Fetched>> {
        let place = *self.places.get(ticket)?;
        if let Some(known) = self.known(place) {
            return known.map(Ok);
        }
        let (begun, deadline) = (Instant::now(), Deadline::new());
        let _asking = self.asking.take(deadline.at())?;
        if let Some(known) = self.known(place) {
            // It came while this thread waited, or did not come in time.
            return known.map(Ok).or_else(|| self.late_since(begun).map(Err));
        }
        let host = hosts::to(envelope, deadline.at()).ok()?;
        if !host.needs_no_descriptor(envelope) {
            return None; // the next one does not, after the request for this one
        }
        self.ask(&host, envelope, place, &deadline);
        let taken = locked(&self.state).arrived.remove(&place);
        taken.map(Ok).or_else(|| self.late_since(begun).map(Err))
    }
    /// Asks for the first tickets that nobody has asked for. `None` if there are none, or if the opens of them have to ask.
    fn fetch_next(&self) -> Option<()> {
        let deadline = Deadline::new();
        let _asking = self.asking.take(deadline.at())?;
        let place = locked(&self.state).asked.max(1); // the first is opened before any can be asked for
        let envelope = Envelope::parse(self.tickets.get(place)?).ok()?;
        let host = hosts::to(&envelope, deadline.at()).ok()?;
        host.needs_no_descriptor(&envelope).then(|| self.ask(&host, &envelope, place, &deadline))?
    }
    /// Asks the host for the tickets of its that are at this place and behind it. `None` if that has failed.
    fn ask(
        &self,
        host: &Arc<Host>,
        envelope: &Envelope,
        place: usize,
        deadline: &Deadline,
    ) -> Option<()> {
        let (mut places, mut wanted) = (Vec::new(), Vec::<Wanted>::new());
        for (ticket, place) in self.tickets.iter().zip(0..).skip(place).take(AT_ONCE) {
            if let Ok(next) = Envelope::parse(ticket)
                && next.instance == envelope.instance
                && host.needs_no_descriptor(&next)
            {
                places.push(place);
                wanted.push((next, *ticket));
            }
        }
        let (arrived, asked) = host.fetch_many(&wanted, deadline);
        let arrived = places.into_iter().zip(arrived);
        let mut state = locked(&self.state);
        state.asked = place + AT_ONCE;
        state.arrived.extend(arrived.filter_map(|(place, one)| Some((place, one?))));
        let is_good = asked.is_ok();
        let late = asked.err().filter(|e| e.kind() == ErrorKind::TimedOut);
        state.late = late.map(|e| (Instant::now(), e));
        is_good.then_some(())
    }
    /// What is known of the ticket at this place: `None` if it has not been asked for.
    fn known(&self, place: usize) -> Option<Option<Fetched>> {
        let mut state = locked(&self.state);
        let arrived = state.arrived.remove(&place);
        (arrived.is_some() || place < state.asked).then_some(arrived)
    }
    /// The error for a thread that has waited since then for an exporter that did not answer.
    fn late_since(&self, begun: Instant) -> Option<Error> {
        let state = locked(&self.state);
        state.late.as_ref().filter(|(at, _)| *at >= begun).map(|(_, error)| error.clone())
    }
}
