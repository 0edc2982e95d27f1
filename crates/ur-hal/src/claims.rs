//! Address ranges that belong to somebody.
use std::{collections::BTreeMap, sync::RwLock};
use ur_lock::{read_locked, write_locked};

/// Address ranges that a backend reserved or allocated, allocated to the application or not: of others' memory it asks
/// the driver, and of these it need not.
#[derive(Debug, Default)]
pub struct Claims(RwLock<BTreeMap<usize, usize>>);
impl Claims {
    /// Records that the `bytes` addresses from `at` on belong to the backend.
    pub fn claim(&self, at: usize, bytes: usize) {
        write_locked(&self.0).insert(at, bytes);
    }
    /// Removes the range that starts at `at`.
    pub fn give_up(&self, at: usize) {
        write_locked(&self.0).remove(&at);
    }
    /// Whether the address is in one of the ranges.
    pub fn has(&self, at: usize) -> bool {
        let all = read_locked(&self.0);
        let (start, bytes) = all.range(..=at).next_back().map_or((0, 0), |(&s, &b)| (s, b));
        at - start < bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_belong_from_the_first_byte_to_the_last_until_they_are_given_up() {
        let claims = Claims::default();
        claims.claim(0x1000, 16);
        claims.claim(0x1010, 16);
        let has = || [0xfff, 0x1000, 0x100f, 0x1010, 0x101f, 0x1020].map(|at| claims.has(at));
        assert_eq!(has(), [false, true, true, true, true, false]);
        claims.give_up(0x1000);
        assert_eq!(has(), [false, false, false, true, true, false]);
    }
}
