//! A map from disjoint ranges of addresses to values, in which a range is found by any address within it. Locking and
//! caching are left to the owner of the map.
use crate::{Address, Range};
use std::collections::BTreeMap;

/// Values, each with its own range of addresses.
#[derive(Clone, Debug)]
pub struct AddressMap<T> {
    /// Keyed by first address.
    entries: BTreeMap<usize, Entry<T>>,
}
#[derive(Clone, Debug)]
struct Entry<T> {
    range: Range,
    value: T,
}
impl<T> Default for AddressMap<T> {
    fn default() -> Self {
        Self::new()
    }
}
impl<T> AddressMap<T> {
    /// A map without ranges.
    pub const fn new() -> Self {
        Self { entries: BTreeMap::new() }
    }
    /// Enters `value` with a range that shares no byte with another range, except that it may begin where another one
    /// begins: it then replaces that one, whose value is returned.
    pub fn insert(&mut self, range: Range, value: T) -> Option<T> {
        debug_assert!(
            self.entries
                .range(..range.end())
                .next_back()
                .is_none_or(|(&at, last)| at == range.start().get() || !last.range.overlaps(range)),
            "{range:?} has bytes of another range"
        );
        let replaced = self.entries.insert(range.start().get(), Entry { range, value });
        replaced.map(|entry| entry.value)
    }
    /// Removes the range that begins at `start`, and returns its value.
    pub fn remove(&mut self, start: Address) -> Option<T> {
        self.entries.remove(&start.get()).map(|entry| entry.value)
    }
    /// The value whose range begins at `start`.
    pub fn starting_at(&self, start: Address) -> Option<&T> {
        self.entries.get(&start.get()).map(|entry| &entry.value)
    }
    /// The range that contains `at`, and its value.
    pub fn find(&self, at: Address) -> Option<(Range, &T)> {
        let (_, last) = self.entries.range(..=at.get()).next_back()?;
        last.range.has(at).then_some((last.range, &last.value))
    }
    /// Whether `range` shares a byte with one of the ranges.
    pub fn touches(&self, range: Range) -> bool {
        let last = self.entries.range(..range.end()).next_back();
        last.is_some_and(|(_, entry)| entry.range.overlaps(range))
    }
    /// The range of the map that contains all of `range`; `None` if no range shares a byte with it.
    ///
    /// # Errors
    /// If only part of `range` lies in one: how many bytes there are from its start to the end of that range, or to the
    /// start of the next one.
    pub fn within(&self, range: Range) -> Result<Option<Range>, usize> {
        let Some((_, last)) = self.entries.range(..range.end()).next_back() else {
            return Ok(None);
        };
        match last.range {
            own if own.contains(range) => Ok(Some(own)),
            before if before.end() <= range.start().get() => Ok(None),
            _ => Err(self.room(range.start())),
        }
    }
    /// How many bytes there are from `at` to the end of the range that contains it, or else to the start of the next
    /// range; 0 if there is none.
    fn room(&self, at: Address) -> usize {
        let own = self.find(at).map(|(range, _)| range.end());
        let next = || self.entries.range(at.get()..).next().map(|(&start, _)| start);
        own.or_else(next).map_or(0, |boundary| boundary - at.get())
    }
    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(start: usize, bytes: usize) -> Range {
        Range::new(Address::new(start).unwrap(), bytes).unwrap()
    }
    /// The index of the range that contains `at`.
    fn owner(ranges: &[Range], at: usize) -> Option<usize> {
        ranges.iter().position(|range| range.has(Address::new(at).unwrap()))
    }

    #[test]
    fn a_range_is_in_one_in_none_or_partly_in_one() {
        let mut map = AddressMap::new();
        map.insert(range(100, 50), 'a');
        map.insert(range(200, 50), 'b');
        assert_eq!(map.within(range(110, 40)), Ok(Some(range(100, 50))));
        assert_eq!(map.within(range(150, 50)), Ok(None));
        assert_eq!(map.within(range(10, 90)), Ok(None));
        assert_eq!(map.within(range(120, 40)), Err(30), "to its end");
        assert_eq!(map.within(range(120, 400)), Err(30), "to its end, whatever comes later");
        assert_eq!(map.within(range(160, 60)), Err(40), "to where the next begins");
        assert_eq!(map.within(range(160, 400)), Err(40));
    }
    #[test]
    fn what_is_taken_out_is_found_no_more() {
        let mut map = AddressMap::new();
        assert!(map.is_empty());
        assert_eq!(map.insert(range(64, 64), 1), None);
        assert_eq!(map.insert(range(64, 32), 2), Some(1), "the same place");
        assert_eq!(map.starting_at(range(64, 1).start()), Some(&2));
        assert_eq!(map.starting_at(range(65, 1).start()), None);
        assert_eq!(map.find(range(96, 1).start()), None);
        assert_eq!((map.remove(range(64, 1).start()), map.len()), (Some(2), 0));
        assert!(!map.touches(range(1, usize::MAX - 1)));
    }
    proptest! {
        #[test]
        fn any_byte_finds_the_range_it_is_in(
            gaps in proptest::collection::vec((1..9_usize, 0..5_usize), 1..9),
            start in 1..60_usize,
            bytes in 1..60_usize,
        ) {
            let (mut map, mut ranges, mut next) = (AddressMap::new(), vec![], 5);
            for (bytes, gap) in gaps {
                map.insert(range(next, bytes), ranges.len());
                ranges.push(range(next, bytes));
                next += bytes + gap;
            }
            let asked = range(start, bytes);
            let found = map.find(asked.start()).map(|(_, &value)| value);
            prop_assert_eq!(found, owner(&ranges, start));
            let owners: Vec<_> = (start..asked.end()).map(|at| owner(&ranges, at)).collect();
            prop_assert_eq!(map.touches(asked), owners.iter().any(Option::is_some));
            let expected = match owners[0] {
                first if owners.iter().all(|owner| *owner == first) => Ok(first.map(|n| ranges[n])),
                first => Err(owners.iter().position(|owner| *owner != first).unwrap()),
            };
            prop_assert_eq!(map.within(asked), expected);
        }
    }
}
