//! The mock adapter, whose entries tests can replace. Without hooks every entry succeeds: objects can be
//! created, retained, released and queried, memory is host memory, and commands complete at once without
//! doing anything. A test installs a function before, after or instead of any entry, from Rust with
//! [`before`], [`after`] and [`replace`], from C with `causeway/mock.h`. Arguments are checked as in every
//! adapter of this project, by the entries of `ur-adapter`; hooks run before these checks.
mod answers;
mod hooks;
mod memory;
mod objects;
mod overrides;
mod said;
mod table;

pub use hooks::{Call, Hooked, Place, after, before, clear, put, replace, reset};
pub use table::MOCK_TABLE;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The mock adapter.
#[derive(Debug)]
pub struct Mock;

/// A source of unique numbers, for native handles, graphs and timestamps.
struct Counter;
impl Counter {
    fn next<T: From<u32>>() -> T {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        NEXT.fetch_add(1, Relaxed).into()
    }
    /// Returns a number as a native handle.
    fn handle() -> usize {
        Self::next::<u32>() as usize
    }
}
