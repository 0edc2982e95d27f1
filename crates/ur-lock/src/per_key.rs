//! What is made or asked for once for each of a few keys.
use crate::locked;
use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Mutex, OnceLock},
};

/// A value for each key, made at first use and kept. That of the first key is read without a lock: often there is only
/// one.
#[derive(Debug)]
pub struct PerKey<K, T> {
    first: OnceLock<(K, T)>,
    others: Mutex<BTreeMap<K, T>>,
}
impl<K, T> PerKey<K, T> {
    /// Without values.
    pub const fn new() -> Self {
        Self { first: OnceLock::new(), others: Mutex::new(BTreeMap::new()) }
    }
}
impl<K, T> Default for PerKey<K, T> {
    fn default() -> Self {
        Self::new()
    }
}
impl<K: Ord + Copy, T: Clone> PerKey<K, T> {
    fn known(&self, key: K) -> Option<T> {
        let first = self.first.get().filter(|first| first.0 == key).map(|first| first.1.clone());
        first.or_else(|| locked(&self.others).get(&key).cloned())
    }
    /// As [`Self::get`], of what can always be made.
    pub fn of(&self, key: K, make: impl FnOnce() -> T) -> T {
        let Ok(value) = self.get(key, || Ok::<_, Infallible>(make()));
        value
    }
    /// The value for `key`, which `make` makes if there is none. No lock is held meanwhile: if another thread was faster,
    /// its value is returned, and the new one is dropped.
    ///
    /// # Errors
    /// Those of `make`, which are not kept.
    pub fn get<E>(&self, key: K, make: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        if let Some(known) = self.known(key) {
            return Ok(known);
        }
        let made = make()?;
        let first = self.first.get_or_init(|| (key, made.clone()));
        if first.0 == key {
            return Ok(first.1.clone());
        }
        let mut others = locked(&self.others);
        let faster = others.get(&key).cloned();
        if faster.is_none() {
            others.insert(key, made.clone());
        }
        drop(others);
        Ok(faster.unwrap_or(made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_value_is_made_once_for_each_key_and_a_failure_is_not_kept() {
        let all = PerKey::new();
        assert_eq!(all.get(1, || Err("no")), Err("no"));
        for key in [1, 2, 3, 2, 1, 3] {
            assert_eq!(all.get(key, || Ok::<_, ()>(key * 10)), Ok(key * 10));
            assert_eq!(all.get(key, || Err("it is there")), Ok(key * 10));
        }
    }
    #[test]
    fn the_value_of_the_faster_thread_is_that_of_both() {
        let all = PerKey::new();
        for key in [1, 2] {
            let slower = || {
                let faster = all.get(key, || Ok::<_, ()>(Arc::new("faster")))?;
                assert_eq!(*faster, "faster");
                Ok::<_, ()>(Arc::new("slower"))
            };
            assert_eq!(*all.get(key, slower).unwrap(), "faster");
        }
    }
}
