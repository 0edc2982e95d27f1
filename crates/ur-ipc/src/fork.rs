//! What a forked child must not share with its parent: statics that are fresh in the child, and descriptors that the
//! child closes right after the fork. Using the parent's objects in the child is an error, which the modules that use
//! them report.
use crate::{Error, ErrorKind, Result};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::{
    Once, OnceLock,
    atomic::{AtomicI32, AtomicU64, Ordering::*},
};

/// How many generations of forked processes may each use this crate: child, grandchild, and so on.
const DEPTH: usize = 16;

/// The fork counts of this process and its ancestors, oldest first; 0 marks a free place.
static LINEAGE: [AtomicU64; DEPTH] = [const { AtomicU64::new(0) }; DEPTH];

/// This process's place in every [`PerFork`]. It takes no lock: a lock that a thread of the parent held at the fork
/// would stay locked in the child for ever.
fn place() -> Result<usize> {
    let mine = ur_mapping::fork_count().wrapping_add(1).max(1);
    for (place, count) in LINEAGE.iter().enumerate() {
        // Relaxed: nothing but the number itself is read; each place's value is guarded by its own cell.
        let seen = match count.load(Relaxed) {
            0 => count.compare_exchange(0, mine, Relaxed, Relaxed).unwrap_or_else(|won| won),
            seen => seen,
        };
        if seen == mine || seen == 0 {
            return Ok(place);
        }
    }
    let why = format!(
        "{DEPTH} processes in a row forked without exec, each sharing objects: start this one with exec"
    );
    Err(Error::new(ErrorKind::Forked, why))
}

/// The error of every operation on an object that this process inherited from its parent by fork.
pub(crate) fn inherited(what: &str) -> Error {
    let why = format!(
        "{what} belongs to the process that this one was forked from: open the ticket again in this process"
    );
    Error::new(ErrorKind::Forked, why)
}

/// A value per process: fresh in a forked child, whatever its parent's value is.
pub(crate) struct PerFork<T> {
    cells: [OnceLock<T>; DEPTH],
}
impl<T> PerFork<T> {
    pub const fn new() -> Self {
        Self { cells: [const { OnceLock::new() }; DEPTH] }
    }
    /// This process's value, made by `make` at its first use. If two threads make one at once, one of the two is
    /// dropped.
    pub fn get_or_try(&self, make: impl FnOnce() -> Result<T>) -> Result<&T> {
        let cell = &self.cells[place()?];
        if let Some(value) = cell.get() {
            return Ok(value);
        }
        let made = make()?;
        Ok(cell.get_or_init(|| made))
    }
    /// This process's value, or `None` if it was never used.
    pub fn peek(&self) -> Option<&T> {
        self.cells[place().ok()?].get()
    }
}
impl<T: Default> PerFork<T> {
    /// This process's value.
    ///
    /// # Errors
    /// [`ErrorKind::Forked`] if this process is more than sixteen forks deep.
    pub fn get(&self) -> Result<&T> {
        Ok(self.cells[place()?].get_or_init(T::default))
    }
}

/// The descriptors that a forked child closes, each stored plus one; 0 marks a free place.
static SHED: [AtomicI32; 1024] = [const { AtomicI32::new(0) }; 1024];

/// Runs in the child before any other code of it: only atomics and `close`, which are async-signal-safe.
fn shed() {
    for place in &SHED {
        let fd = place.swap(0, AcqRel) - 1;
        if fd >= 0 {
            // An error can neither be reported nor handled here.
            ur_mapping::close_in_child(fd);
        }
    }
}

/// A descriptor that a forked child must not keep: while the child held it, peers would not see this process hang up.
/// If more than 1,024 of them exist, or the child comes from a bare `clone`, children do keep them; then only this
/// process's pidfd tells peers of its death.
pub(crate) struct Guarded {
    fd: Option<OwnedFd>,
    fork: u64,
    place: Option<usize>,
}
impl Guarded {
    pub fn new(fd: OwnedFd) -> Self {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(|| ur_mapping::on_fork_in_child(shed));
        let number = fd.as_raw_fd() + 1;
        let free = |place: &AtomicI32| place.compare_exchange(0, number, AcqRel, Relaxed).is_ok();
        let place = SHED.iter().position(free);
        Self { fd: Some(fd), fork: ur_mapping::fork_count(), place }
    }
    /// Whether this process, and not its parent, made the descriptor and may use it.
    pub fn is_ours(&self) -> bool {
        self.fork == ur_mapping::fork_count()
    }
}
impl AsFd for Guarded {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("taken by drop only").as_fd()
    }
}
impl Drop for Guarded {
    fn drop(&mut self) {
        let fd = self.fd.take();
        if !self.is_ours() {
            // The child closed it at the fork, and the number may now name another descriptor.
            let _ = fd.map(IntoRawFd::into_raw_fd);
        } else if let Some(place) = self.place {
            // First: a child forked in between keeps one descriptor too many but never closes an unrelated one.
            SHED[place].store(0, Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_this_process_is_made_once() {
        static VALUE: PerFork<std::sync::Mutex<u32>> = PerFork::new();
        assert!(VALUE.peek().is_none());
        *VALUE.get().unwrap().lock().unwrap() = 7;
        assert_eq!(*VALUE.get().unwrap().lock().unwrap(), 7);
        assert_eq!(*VALUE.get_or_try(|| panic!("made twice")).unwrap().lock().unwrap(), 7);
    }
    #[test]
    fn a_dropped_descriptor_is_no_longer_shed() {
        let fd = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        let number = fd.as_raw_fd() + 1;
        let guarded = Guarded::new(fd);
        let place = guarded.place.unwrap();
        assert_eq!(SHED[place].load(Acquire), number);
        drop(guarded);
        assert_ne!(SHED[place].load(Acquire), number);
    }
}
