//! Address ranges that belong to somebody.
use std::{collections::BTreeMap, sync::RwLock};
use ur_lock::{read_locked, write_locked};

/// Address ranges that a backend reserved or allocated, allocated to the application or not, and what each is: of others'
/// memory it asks the driver, and of these it need not.
#[derive(Debug)]
pub struct Claims<T>(RwLock<BTreeMap<usize, (usize, T)>>);
impl<T> Default for Claims<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}
impl<T: Clone> Claims<T> {
    /// Records that the `bytes` addresses from `at` on belong to the backend.
    pub fn claim(&self, at: usize, bytes: usize, what: T) {
        let before = write_locked(&self.0).insert(at, (bytes, what));
        drop(before); // after the lock is released
    }
    /// Removes the range that starts at `at`.
    pub fn give_up(&self, at: usize) {
        let gone = write_locked(&self.0).remove(&at);
        drop(gone); // after the lock is released
    }
    /// What is said of the range that contains the address.
    pub fn find(&self, at: usize) -> Option<T> {
        let all = read_locked(&self.0);
        let (start, (bytes, what)) = all.range(..=at).next_back()?;
        (at - start < *bytes).then(|| what.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_belong_from_the_first_byte_to_the_last_until_they_are_given_up() {
        let claims = Claims::default();
        claims.claim(0x1000, 16, 'a');
        claims.claim(0x1010, 16, 'b');
        let found = || [0xfff, 0x1000, 0x100f, 0x1010, 0x101f, 0x1020].map(|at| claims.find(at));
        assert_eq!(found(), [None, Some('a'), Some('a'), Some('b'), Some('b'), None]);
        claims.give_up(0x1000);
        assert_eq!(found(), [None, None, None, Some('b'), Some('b'), None]);
    }
}
