//! Two mappings of the same memfds stand for two processes here; `tests/arena_processes.rs` uses real processes.
mod deaths;
mod places;
mod waits;

use super::{layout::slot_word, shared::IDLE, *};
use crate::{Access, Error, ErrorKind, Result, ledger::State};
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::*},
    },
    thread,
    time::{Duration, Instant},
};

/// Calls the exporter's arena directly, without a broker in between.
pub(super) struct Direct {
    exporter: Arena,
    pub participant: u32,
    watched: Mutex<Vec<u32>>,
    lives: AtomicBool,
}
impl Link for Direct {
    fn take_counter(&self) -> Result<(u16, u32)> {
        self.exporter.grant_counter(self.participant)
    }
    fn release_counter(&self, counter: u16) {
        // Fails if a death has taken the counter already.
        let _ = self.exporter.release_counter(self.participant, counter);
    }
    fn slot_closed(&self, slot: u16, generation: u32) {
        // Fails if a death has closed the slot already.
        let _ = self.exporter.slot_closed(self.participant, slot, generation);
    }
    fn watch(&self, counter: u16, participant: u32) -> Result<bool> {
        self.watched.lock().unwrap().push(participant);
        let debtor = self.exporter.debtor(counter)?;
        assert!(matches!(debtor, Debtor::Participant(number, _) if number == participant));
        Ok(self.lives.load(Relaxed))
    }
}

/// An arena outside the pool, so that tests do not share it.
pub(super) fn exporter() -> Arena {
    Arena::make(Access::SameUser, 0).unwrap()
}
pub(super) fn slot_of(arena: &Arena) -> Slot {
    let (index, generation) = arena.own().unwrap().new_slot(&arena.0.words).unwrap();
    Slot::new(arena.clone(), index, generation)
}
pub(super) fn importer(exporter: &Arena) -> (Arena, Arc<Direct>) {
    let participant = exporter.join(pidfd_open(getpid(), PidfdFlags::empty()).unwrap()).unwrap();
    let (arena, ledger) = exporter.descriptors().unwrap();
    let link = Arc::new(Direct {
        exporter: exporter.clone(),
        participant,
        watched: Mutex::default(),
        lives: AtomicBool::new(true),
    });
    let (instance, number) = (exporter.instance(), exporter.number());
    let joined =
        Arena::joined(&arena, &ledger, instance, number, participant, link.clone()).unwrap();
    (joined, link)
}
pub(super) fn open(importer: &Arena, link: &Direct, slot: &Slot) -> Slot {
    link.exporter.slot_opened(link.participant, slot.index(), slot.generation()).unwrap();
    importer.open_slot(slot.index(), slot.generation()).unwrap()
}
pub(super) fn debt(slot: &Slot) -> PendingSignal {
    match slot.capture().unwrap() {
        Captured::PendingSignal(debt) => debt,
        Captured::Complete => panic!("something was submitted and not done"),
    }
}
pub(super) fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(10))
}

#[test]
fn a_fresh_event_is_complete_on_both_sides() {
    let exporter = exporter();
    let (importer, link) = importer(&exporter);
    let slot = slot_of(&exporter);
    let opened = open(&importer, &link, &slot);
    assert!(matches!(slot.capture().unwrap(), Captured::Complete));
    assert!(matches!(opened.capture().unwrap(), Captured::Complete));
}
#[test]
fn a_signal_from_either_side_is_seen_from_the_other() {
    let exporter = exporter();
    let (importer, link) = importer(&exporter);
    let slot = slot_of(&exporter);
    let opened = open(&importer, &link, &slot);
    for (from, to) in [(&slot, &opened), (&opened, &slot)] {
        let counter = from.arena().take_counter().unwrap();
        let value = counter.reserve();
        from.publish(&counter, value);
        let debt = debt(to);
        assert_eq!(debt.progress(), Progress::Pending);
        assert_eq!(debt.wait(Some(Instant::now())), Progress::Pending);
        counter.complete(value);
        assert_eq!(debt.progress(), Progress::Complete);
        assert!(matches!(to.capture().unwrap(), Captured::Complete));
    }
}
#[test]
fn a_later_signal_neither_delays_nor_releases_an_earlier_wait() {
    let exporter = exporter();
    let slot = slot_of(&exporter);
    let first = exporter.take_counter().unwrap();
    let second = exporter.take_counter().unwrap();
    let (v1, v2) = (first.reserve(), second.reserve());
    slot.publish(&first, v1);
    let earlier = debt(&slot);
    slot.publish(&second, v2);
    let later = debt(&slot);
    second.complete(v2);
    assert_eq!((earlier.progress(), later.progress()), (Progress::Pending, Progress::Complete));
    first.complete(v1);
    assert_eq!(earlier.progress(), Progress::Complete);
}
#[test]
fn a_counter_that_owes_nothing_is_used_again_and_goes_on() {
    let exporter = exporter();
    let counter = exporter.take_counter().unwrap();
    let (index, value) = (counter.index(), counter.reserve());
    counter.complete(value);
    drop(counter);
    let again = exporter.take_counter().unwrap();
    assert_eq!((again.index(), again.reserve()), (index, value + 1));
}
#[test]
fn an_importers_counters_go_back_when_it_has_many() {
    let exporter = exporter();
    let (importer, _link) = importer(&exporter);
    let many: Vec<_> = (0..IDLE + 3).map(|_| importer.take_counter().unwrap()).collect();
    let indexes: Vec<_> = many.iter().map(Counter::index).collect();
    drop(many);
    let free = |index: &&u16| exporter.0.holder(**index).participant.is_none();
    assert_eq!(indexes.iter().filter(free).count(), 3);
}
