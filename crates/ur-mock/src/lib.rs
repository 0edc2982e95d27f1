//! The adapter whose entries tests replace. Left alone, every entry succeeds: objects can be made,
//! kept, released and asked, memory is the host's, commands are complete at once and do nothing.
//! A test puts a function before, after or in the place of any entry, from Rust with [`before`],
//! [`after`] and [`replace`], from C with `causeway/mock.h`. Arguments are checked as every adapter
//! of this project checks them: by the entries of `ur-adapter`, which a hook comes before.
mod answers;
mod by_hand;
mod hooks;
mod memory;
mod objects;
mod said;
mod table;

pub use hooks::{Call, Hooked, Place, after, before, clear, put, replace, reset};
pub use table::MOCK_TABLE;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The adapter whose entries tests replace.
#[derive(Debug)]
pub struct Mock;

/// Numbers that are not given twice: of native things, graphs and moments.
struct Counter;
impl Counter {
    fn next<T: From<u32>>() -> T {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        NEXT.fetch_add(1, Relaxed).into()
    }
    /// As a native handle, which is a word.
    fn handle() -> usize {
        Self::next::<u32>() as usize
    }
}
