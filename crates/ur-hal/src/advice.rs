//! Advice on the use of managed memory: the hints that one call of a program gives or withdraws.
use std::fmt;

/// One aspect of how managed memory will be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hint {
    /// Mostly read, so that several devices may have a copy.
    ReadMostly,
    /// Preferably located on the device of the stream.
    PreferDevice,
    /// Preferably located on the host.
    PreferHost,
    /// Accessed by the device of the stream, for which it should stay mapped.
    AccessedByDevice,
    /// Accessed by the host, for which it should stay mapped.
    AccessedByHost,
    /// Mostly used without atomic operations.
    NonAtomicMostly,
    /// Should be cached.
    Cached,
    /// Used without coherence between devices.
    NonCoherent,
}
impl Hint {
    const ALL: [Self; 8] = [
        Self::ReadMostly,
        Self::PreferDevice,
        Self::PreferHost,
        Self::AccessedByDevice,
        Self::AccessedByHost,
        Self::NonAtomicMostly,
        Self::Cached,
        Self::NonCoherent,
    ];
}

/// A set of hints that are given and of hints that are withdrawn.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Advice {
    given: u8,
    taken_back: u8,
}
impl Advice {
    /// Adds a hint: given if `on`, and withdrawn otherwise.
    #[must_use]
    pub const fn with(mut self, hint: Hint, on: bool) -> Self {
        match on {
            true => self.given |= 1 << hint as u8,
            false => self.taken_back |= 1 << hint as u8,
        }
        self
    }
    /// Each hint, and whether it is given; a hint that is both given and withdrawn appears twice, withdrawn last.
    pub fn hints(self) -> impl Iterator<Item = (Hint, bool)> {
        let has = |bits: u8, hint: Hint| bits & (1 << hint as u8) != 0;
        Hint::ALL.into_iter().flat_map(move |hint| {
            let given = has(self.given, hint).then_some((hint, true));
            given.into_iter().chain(has(self.taken_back, hint).then_some((hint, false)))
        })
    }
}
impl fmt::Debug for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.hints()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_the_hints_that_it_was_made_with() {
        let all = Hint::ALL.into_iter().flat_map(|hint| [(hint, true), (hint, false)]);
        for (hint, on) in all.clone() {
            assert_eq!(Advice::default().with(hint, on).hints().collect::<Vec<_>>(), [(hint, on)]);
        }
        let both = all.clone().fold(Advice::default(), |advice, (hint, on)| advice.with(hint, on));
        assert!(both.hints().eq(all), "in the order of the hints, given ones first");
        assert_eq!(Advice::default().hints().count(), 0);
    }
}
