//! Which commands of a recording signal which events.
use std::collections::{HashMap, hash_map::Entry};
use ur_adapter::object::Object;

/// Which commands of a recording signal which events, so that appending a command takes a number of steps that does not
/// grow with the recording. An event is named by the address of its handle: the recording keeps it alive.
#[derive(Debug, Default)]
pub(crate) struct Signallers(HashMap<usize, Vec<usize>>);
impl Signallers {
    /// Notes that the command at index `place`, which is the last, signals this event. Several commands may: if a child was appended more
    /// than once, or if a graph signals a reusable event repeatedly.
    pub(crate) fn add(&mut self, event: usize, place: usize) {
        self.0.entry(event).or_default().push(place);
    }
    /// Notes that the command at index `place` no longer signals this event.
    pub(crate) fn remove(&mut self, event: usize, place: usize) {
        if let Entry::Occupied(mut known) = self.0.entry(event) {
            known.get_mut().retain(|&one| one != place);
            if known.get().is_empty() {
                known.remove();
            }
        }
    }
    /// The commands that signal this event, by index, ascending.
    pub(crate) fn of(&self, event: usize) -> &[usize] {
        self.0.get(&event).map_or(&[], Vec::as_slice)
    }
    /// Of these commands, those before index `place`.
    pub(crate) fn before(&self, event: usize, place: usize) -> &[usize] {
        let all = self.of(event);
        &all[..all.partition_point(|&one| one < place)]
    }
    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
/// What names an event in [`Signallers`].
pub(crate) fn address<T>(event: &Object<T>) -> usize {
    event.as_handle().addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_that_signals_an_event_is_found_until_it_signals_another() {
        let (mut all, none) = (Signallers::default(), &[][..]);
        for (event, place) in [(8, 0), (16, 1), (8, 2)] {
            all.add(event, place);
        }
        assert_eq!((all.of(8), all.of(16), all.of(24)), (&[0, 2][..], &[1][..], none));
        assert_eq!(
            (all.before(8, 0), all.before(8, 2), all.before(8, 3)),
            (none, &[0][..], &[0, 2][..])
        );
        all.remove(8, 0);
        all.remove(24, 0);
        assert_eq!(all.of(8), [2]);
        all.remove(8, 2);
        all.remove(16, 1);
        assert!(all.0.is_empty(), "an event that no command signals is forgotten");
    }
}
