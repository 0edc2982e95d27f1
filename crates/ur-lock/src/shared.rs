//! What all have in common who name one thing.
use crate::locked;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, Weak},
};

/// A value for each key, for as long as anybody has it.
#[derive(Debug)]
pub struct Shared<K, T>(Mutex<BTreeMap<K, Weak<T>>>);
impl<K, T> Default for Shared<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}
impl<K: Ord, T: Default> Shared<K, T> {
    /// The value for `key`, which is made if nobody has one.
    pub fn of(&self, key: K) -> Arc<T> {
        let mut all = locked(&self.0);
        if let Some(there) = all.get(&key).and_then(Weak::upgrade) {
            return there;
        }
        // Now and then, so that what nobody has any more takes no more room than what somebody has.
        if all.len().is_power_of_two() {
            all.retain(|_, one| one.strong_count() > 0);
        }
        let made = Arc::default();
        all.insert(key, Arc::downgrade(&made));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_one_thing_has_one_value_and_what_nobody_has_goes() {
        let all = Shared::<u32, Mutex<u32>>::default();
        let (one, same, other) = (all.of(1), all.of(1), all.of(2));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        *locked(&one) = 7;
        drop((one, same));
        assert_eq!(*locked(&all.of(1)), 0);
        for key in 0..1000 {
            all.of(key);
        }
        assert!(locked(&all.0).len() < 10);
        assert!(Arc::ptr_eq(&other, &all.of(2)));
    }
}
