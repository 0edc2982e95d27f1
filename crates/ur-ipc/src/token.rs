//! The secret of a ticket, and the tag by which the ledger publicly refers to it.
use crate::{Result, identity};
use std::{fmt, hint::black_box};

/// A secret that identifies one export. It is only compared as a whole, after the export was found by its index.
#[derive(Clone, Copy)]
pub(crate) struct Secret(pub [u8; 16]);

impl Secret {
    pub fn fresh() -> Result<Self> {
        identity::random().map(Self)
    }
    /// The tag that the ledger shows of an export: a hash of the ticket's claims under the secret. A process that has
    /// the ticket can verify its claims against the ledger; a process that has only the ledger learns nothing of the
    /// secret.
    pub fn tag(&self, claims: &[u8]) -> u64 {
        identity::hash(&self.0, claims).max(1)
    }
}
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)") // keeps the secret out of logs
    }
}

/// Compares in constant time, so that timing reveals nothing of what is compared.
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    let ((ones, rest), (others, other_rest)) = (one.as_chunks::<8>(), other.as_chunks::<8>());
    let word = |bytes: &[u8; 8]| u64::from_ne_bytes(*bytes);
    let words = ones.iter().zip(others);
    let words = words.fold(0, |all, (a, b)| black_box(all | (word(a) ^ word(b))));
    let bytes = rest.iter().zip(other_rest).fold(0, |all, (a, b)| black_box(all | (a ^ b)));
    one.len() == other.len() && black_box(words | u64::from(bytes)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_only_whole() {
        assert!(same(b"abcd", b"abcd"));
        for other in [&b"abcx"[..], b"xbcd", b"abc", b"abcde", b""] {
            assert!(!same(b"abcd", other), "{other:?}");
        }
    }
    #[test]
    fn secrets_differ_and_so_do_their_tags() {
        let (one, other) = (Secret::fresh().unwrap(), Secret::fresh().unwrap());
        assert_ne!(one.0, other.0);
        assert_ne!(one.tag(b"claims"), other.tag(b"claims"));
        assert_ne!(one.tag(b"claims"), one.tag(b"claimz"));
        assert!(!format!("{one:?}").contains(char::is_numeric));
    }
}
