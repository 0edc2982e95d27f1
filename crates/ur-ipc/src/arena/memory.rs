//! Makes and maps the two memfds of an arena, sealed so that no peer can shrink them and only the exporter can write
//! the ledger. `layout` describes their contents.
use super::{
    layout::{BYTES, Header, LOST, Part, WATCHER_WORD, counter_word, mark_word},
    protocol,
};
use crate::{Error, Result, ledger, shared_memory};
use rustix::fs::{Mode, SealFlags, fchmod, fcntl_add_seals, ftruncate};
use std::{
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, atomic::Ordering::Release},
};
use ur_mapping::{HeldWord, SharedWords};

/// Makes sparse memory of an arena's size: pages that are never touched cost nothing.
fn memfd(name: &str) -> Result<OwnedFd> {
    crate::file_size::may_have(BYTES as u64)?;
    let fd = shared_memory::memfd(name);
    let doing = "make memory for events that other processes can open (memfd_create)";
    let fd = fd.map_err(|e| Error::system(doing, e))?;
    let sized = ftruncate(&fd, BYTES as u64).and_then(|()| fchmod(&fd, Mode::RUSR | Mode::WUSR));
    sized.map_err(|e| Error::system("give memory for events its size and mode", e))?;
    Ok(fd)
}

fn seal(fd: &OwnedFd, more: SealFlags) -> Result<()> {
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL | more;
    fcntl_add_seals(fd, seals).map_err(|e| Error::system("seal memory for events", e))
}

/// A new arena's descriptors and mappings.
pub(crate) struct Fresh {
    pub arena_fd: Arc<OwnedFd>,
    pub ledger_fd: Arc<OwnedFd>,
    pub words: SharedWords,
    pub ledger: ledger::Owner,
}

/// Makes both memfds of a new arena.
pub(crate) fn make(instance: [u8; 16], number: u32) -> Result<Fresh> {
    let map = |fd: &OwnedFd| {
        SharedWords::map(fd.as_fd(), BYTES).map_err(|e| Error::system("map memory for events", e))
    };
    let arena_fd = memfd("causeway-arena")?;
    seal(&arena_fd, SealFlags::empty())?;
    let words = map(&arena_fd)?;
    let header = Header { part: Part::Arena, instance, number };
    for (word, value) in words.words().iter().zip(header.to_words()) {
        word.store(value, Release);
    }
    words.word(mark_word(LOST)).store(protocol::DEAD, Release);
    words.word(counter_word(LOST)).store(protocol::ENDED | protocol::RELEASED, Release);
    let ledger_fd = memfd("causeway-ledger")?;
    // Mapped between the two seals: by then it cannot shrink, and no later mapping can be writable.
    let shrink = fcntl_add_seals(&ledger_fd, SealFlags::SHRINK | SealFlags::GROW);
    shrink.map_err(|e| Error::system("seal memory for events", e))?;
    let ledger = ledger::Owner::new(map(&ledger_fd)?, Header { part: Part::Ledger, ..header });
    // Without this word importers query the kernel whether this process lives.
    let watcher = HeldWord::map(ledger_fd.as_fd(), WATCHER_WORD).ok();
    let ledger = watcher.into_iter().fold(ledger, ledger::Owner::tells_of_the_watcher);
    seal(&ledger_fd, SealFlags::FUTURE_WRITE)?;
    Ok(Fresh { arena_fd: Arc::new(arena_fd), ledger_fd: Arc::new(ledger_fd), words, ledger })
}

/// Maps an arena that another process sent.
///
/// # Errors
/// If a descriptor is not sealed, not of the right size, or not that of the expected arena.
pub(crate) fn map(
    arena: &OwnedFd,
    ledger: &OwnedFd,
    instance: [u8; 16],
    number: u32,
) -> Result<(SharedWords, ledger::Reader)> {
    let header = Header { part: Part::Ledger, instance, number };
    let ledger = ledger::Reader::map(ledger.as_fd(), header)?;
    let words = SharedWords::map(arena.as_fd(), BYTES)
        .map_err(|e| Error::system("map the arena that another process shares", e))?;
    let copied = std::array::from_fn(|i| words.word(i).load(std::sync::atomic::Ordering::Acquire));
    Header { part: Part::Arena, ..header }.verify(copied)?;
    Ok((words, ledger))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{fcntl_get_seals, fstat};

    #[test]
    fn both_are_sealed_private_and_sparse() {
        let fresh = make([1; 16], 0).unwrap();
        let common = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        for (fd, seals) in
            [(&fresh.arena_fd, common), (&fresh.ledger_fd, common | SealFlags::FUTURE_WRITE)]
        {
            assert!(fcntl_get_seals(fd).unwrap().contains(seals));
            let stat = fstat(fd).unwrap();
            assert_eq!((stat.st_size, stat.st_mode & 0o7777), (BYTES as i64, 0o600));
            assert!(stat.st_blocks * 512 < 64 << 10);
        }
    }
    #[test]
    fn nobody_can_map_a_ledger_to_write_it() {
        let fresh = make([1; 16], 0).unwrap();
        assert!(SharedWords::map(fresh.ledger_fd.as_fd(), BYTES).is_err());
        assert!(ftruncate(&fresh.arena_fd, 4096).is_err());
    }
    #[test]
    fn an_arena_is_mapped_only_as_what_it_is() {
        let fresh = make([1; 16], 4).unwrap();
        map(&fresh.arena_fd, &fresh.ledger_fd, [1; 16], 4).unwrap();
        assert!(map(&fresh.arena_fd, &fresh.ledger_fd, [2; 16], 4).is_err());
        assert!(map(&fresh.arena_fd, &fresh.ledger_fd, [1; 16], 5).is_err());
        assert!(map(&fresh.ledger_fd, &fresh.arena_fd, [1; 16], 4).is_err());
        let unsealed = memfd("unsealed").unwrap();
        assert!(map(&unsealed, &fresh.ledger_fd, [1; 16], 4).is_err());
        assert!(map(&fresh.arena_fd, &unsealed, [1; 16], 4).is_err());
    }
    #[test]
    fn what_another_process_writes_is_checked_before_it_is_an_index() {
        let fresh = make([1; 16], 0).unwrap();
        let (_, reader) = map(&fresh.arena_fd, &fresh.ledger_fd, [1; 16], 0).unwrap();
        use crate::ledger::State;
        assert_eq!(reader.check(u16::MAX, 0, 0), State::Withdrawn);
        let generation = fresh.ledger.begin(5, 77, -1);
        assert_eq!(reader.check(5, 77, generation), State::Live);
        assert_eq!(reader.check(5, 78, generation), State::Withdrawn);
        assert_eq!(reader.check(5, 77, generation + 1), State::Forgotten);
        fresh.ledger.end(5, generation, State::Freed);
        assert_eq!(reader.check(5, 77, generation), State::Freed);
        fresh.ledger.end(5, generation, State::Withdrawn);
        assert_eq!(reader.check(5, 77, generation), State::Withdrawn);
    }
}
