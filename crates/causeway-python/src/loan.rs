//! The use of a block of a channel's memory: the writer's until it has put what it laid there, and then the reader's.
#![expect(unsafe_code, reason = "a word that two processes have")]
use crate::host;
use causeway::{Buffer, fork_count};
use std::sync::atomic::{AtomicBool, Ordering};

/// The use of a block, of which the writer is told the end: it uses the block again after this.
pub struct Loan {
    word: usize,
    /// The `fork_count` of the process that uses it: a forked child does not.
    fork: u64,
    is_kept: AtomicBool,
    /// Keeps the word mapped.
    _mapped: Buffer<u8>,
}
impl Loan {
    /// `word` is set to 0 at the end.
    ///
    /// # Safety
    /// `word` is the address of a word of `mapped` that all processes use as an atomic word of 8 bytes only.
    pub unsafe fn new(word: usize, mapped: Buffer<u8>) -> Self {
        Self { word, fork: fork_count(), is_kept: AtomicBool::new(false), _mapped: mapped }
    }
    /// The writer does not get the block back from this.
    pub fn keep(&self) {
        self.is_kept.store(true, Ordering::Relaxed); // read by `drop` only, which comes after all else
    }
}
impl Drop for Loan {
    fn drop(&mut self) {
        if !*self.is_kept.get_mut() && self.fork == fork_count() {
            // SAFETY: as `new` was promised; it is mapped as long as this.
            let word = unsafe { host::word(self.word) };
            word.store(0, Ordering::Release); // pairs with `RingMemory::free_block`: nothing is read after it
        }
    }
}
