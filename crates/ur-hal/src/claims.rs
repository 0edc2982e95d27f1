//! Address ranges that belong to somebody.
use std::{collections::BTreeMap, sync::RwLock};
use ur_lock::{read_locked, write_locked};

/// Address ranges that a backend reserved or allocated, allocated to the application or not, and what each is: of others'
/// memory it asks the driver, and of these it need not.
#[derive(Debug)]
pub struct Claims<T>(RwLock<BTreeMap<usize, Claimed<T>>>);
#[derive(Debug)]
struct Claimed<T> {
    bytes: usize,
    what: T,
    /// How often it is claimed: a driver may open the same memory at the same address again before it was closed.
    times: usize,
}
impl<T> Default for Claims<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}
impl<T: Clone> Claims<T> {
    /// Records that the `bytes` addresses from `at` on belong to the backend, until they are given up as often as claimed.
    pub fn claim(&self, at: usize, bytes: usize, what: T) {
        let mut all = write_locked(&self.0);
        let times = all.get(&at).map_or(1, |before| before.times + 1);
        let before = all.insert(at, Claimed { bytes, what, times });
        drop(all);
        drop(before); // after the lock is released
    }
    /// Takes back a claim of the range that starts at `at`.
    pub fn give_up(&self, at: usize) {
        let mut all = write_locked(&self.0);
        let gone = match all.get_mut(&at) {
            Some(claimed) if claimed.times > 1 => {
                claimed.times -= 1;
                None
            }
            _ => all.remove(&at),
        };
        drop(all);
        drop(gone); // after the lock is released
    }
    /// What is said of the range that contains the address.
    pub fn find(&self, at: usize) -> Option<T> {
        let all = read_locked(&self.0);
        let (start, Claimed { bytes, what, .. }) = all.range(..=at).next_back()?;
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
    #[test]
    fn what_is_claimed_twice_is_given_up_twice() {
        let claims = Claims::default();
        claims.claim(0x1000, 16, 'a');
        claims.claim(0x1000, 32, 'b');
        claims.give_up(0x1000);
        assert_eq!(claims.find(0x101f), Some('b'));
        claims.give_up(0x1000);
        assert_eq!(claims.find(0x1000), None);
    }
}
