//! Advice on managed memory: which hints a program gives at once, and whether it takes them back.
use std::fmt;

/// How managed memory is going to be used, in one respect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hint {
    /// Mostly read, so that several may have a copy.
    ReadMostly,
    /// Best left on the device of the stream.
    PreferDevice,
    /// Best left on the host.
    PreferHost,
    /// To be kept in reach of the device of the stream.
    AccessedByDevice,
    /// To be kept in reach of the host.
    AccessedByHost,
    /// Mostly used without atomic operations.
    NonAtomicMostly,
    /// Worth a place in caches.
    Cached,
    /// Used without coherence.
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

/// Hints that are given, and hints that are taken back, together.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Advice {
    given: u8,
    taken_back: u8,
}
impl Advice {
    /// One hint more: given, or taken back where it is not `on`.
    #[must_use]
    pub const fn with(mut self, hint: Hint, on: bool) -> Self {
        match on {
            true => self.given |= 1 << hint as u8,
            false => self.taken_back |= 1 << hint as u8,
        }
        self
    }
    /// Each hint, and whether it is given; what is both given and taken back is last taken back.
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
