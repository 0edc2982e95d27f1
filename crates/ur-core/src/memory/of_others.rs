//! Shared memory that other code in this process allocated, found by object number and by address. The backend decides
//! whether it still exists, because other code does not announce its frees.
use std::collections::{BTreeMap, HashMap};

/// Such memory, by object number. Memory that was freed and allocated again stays until it is removed, so ranges may
/// overlap.
#[derive(Debug)]
pub struct OfOthers<T> {
    by_object: HashMap<u64, (u64, T)>,
    /// The length in bytes, by first address and object number.
    by_address: BTreeMap<(u64, u64), usize>,
    /// The length of the longest range that was ever inserted.
    longest: usize,
}
impl<T> Default for OfOthers<T> {
    fn default() -> Self {
        Self { by_object: HashMap::new(), by_address: BTreeMap::new(), longest: 0 }
    }
}
impl<T> OfOthers<T> {
    /// Inserts memory of `bytes` from `base` on; returns what the object was before.
    pub fn insert(&mut self, object: u64, base: u64, bytes: usize, shared: T) -> Option<T> {
        let before = self.remove(object);
        self.by_object.insert(object, (base, shared));
        self.by_address.insert((base, object), bytes);
        self.longest = self.longest.max(bytes);
        before
    }
    /// Removes it.
    pub fn remove(&mut self, object: u64) -> Option<T> {
        let (base, shared) = self.by_object.remove(&object)?;
        self.by_address.remove(&(base, object));
        Some(shared)
    }
    /// The memory of an object.
    pub fn get(&self, object: u64) -> Option<&T> {
        self.by_object.get(&object).map(|(_, shared)| shared)
    }
    /// All memory that overlaps `[base, base + bytes)`, with its object numbers.
    pub fn touching(&self, base: u64, bytes: usize) -> impl Iterator<Item = (u64, &T)> {
        let end = base.saturating_add(bytes as u64);
        let first = base.saturating_sub(self.longest as u64);
        let may_touch = self.by_address.range((first, 0)..(end, 0));
        let touching = may_touch
            .filter(move |((from, _), length)| base < from.saturating_add(**length as u64));
        touching.filter_map(|((_, object), _)| Some((*object, self.get(*object)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touching(all: &OfOthers<&'static str>, base: u64, bytes: usize) -> Vec<(u64, &'static str)> {
        all.touching(base, bytes).map(|(object, shared)| (object, *shared)).collect()
    }
    #[test]
    fn memory_is_found_by_each_of_its_bytes_and_by_no_other() {
        let mut all = OfOthers::default();
        all.insert(7, 1000, 100, "short");
        all.insert(8, 500, 2000, "long");
        all.insert(9, 3000, 10, "far");
        assert_eq!(touching(&all, 1000, 1), [(8, "long"), (7, "short")]);
        assert_eq!(touching(&all, 1099, 1), [(8, "long"), (7, "short")]);
        for elsewhere in [999, 1100] {
            assert_eq!(touching(&all, elsewhere, 1), [(8, "long")]);
        }
        assert_eq!(touching(&all, 2499, 501), [(8, "long")]);
        assert_eq!(touching(&all, 2499, 502), [(8, "long"), (9, "far")]);
        assert_eq!(touching(&all, 2500, 500), []);
        assert_eq!(touching(&all, 0, 500), []);
    }
    #[test]
    fn an_object_is_in_one_place_and_gone_when_it_was_taken_out() {
        let mut all = OfOthers::default();
        all.insert(7, 1000, 100, "before");
        all.insert(7, 5000, 100, "after");
        assert_eq!((touching(&all, 1000, 100), all.get(7)), (vec![], Some(&"after")));
        assert_eq!((all.remove(7), all.remove(7), all.get(7)), (Some("after"), None, None));
        assert_eq!(touching(&all, 0, usize::MAX), []);
    }
    #[test]
    fn the_last_addresses_are_addresses_too() {
        let mut all = OfOthers::default();
        all.insert(1, u64::MAX - 10, 10, "end");
        assert_eq!(touching(&all, u64::MAX - 1, 1), [(1, "end")]);
    }
}
