//! Words in shared memory that tell whether a thread still runs. When the thread ends, the kernel changes them, because
//! they are on its list of robust mutexes (`set_robust_list(2)`). A process that maps such a word learns with one load
//! what otherwise takes a system call.
#![expect(unsafe_code, reason = "maps memory, and tells the kernel where it is")]
use crate::words::check_memfd;
use rustix::{
    mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap},
    param::page_size,
    thread::gettid,
};
use std::{
    io,
    marker::PhantomData,
    os::fd::BorrowedFd,
    ptr::{NonNull, null_mut},
    sync::{
        Arc,
        atomic::{AtomicIsize, AtomicPtr, AtomicU64, Ordering::*},
    },
};

/// Set by the kernel when the thread has ended.
const OWNER_DIED: u32 = 0x4000_0000;
const THREAD: u32 = 0x3fff_ffff;
/// The offset of the half of a word that the kernel changes: the low half, as for futexes.
const LOW_HALF: usize = if cfg!(target_endian = "little") { 0 } else { 4 };

/// Whether the thread that holds the word runs. `false` for a word that no thread holds; the kernel has to be queried
/// then.
#[inline]
pub fn is_held(word: u64) -> bool {
    let low = word as u32;
    low & OWNER_DIED == 0 && low & THREAD != 0
}

/// A node of the kernel's list. It lies in a private page right before the shared page with the word, so no other
/// process sees its addresses, and the distance to the word is the same for all nodes.
#[repr(C)]
struct Node {
    next: AtomicPtr<Node>,
}
/// The list head that is registered with the kernel: the list, the distance from each node to its word, and a node that
/// is being inserted, which is always null here.
#[repr(C)]
struct Head {
    list: Node,
    word: AtomicIsize,
    pending: *mut Node,
}

/// A word in the first page of a memfd that other processes read; a thread of this process can hold it.
#[derive(Debug)]
pub struct HeldWord {
    node: NonNull<Node>,
    index: usize,
}
// SAFETY: a mapping is not bound to a thread.
unsafe impl Send for HeldWord {}
// SAFETY: only atomics of the mapping are accessed.
unsafe impl Sync for HeldWord {}

impl HeldWord {
    /// Maps the first page of a memfd that cannot shrink. `index` selects the word, in units of 8 bytes.
    ///
    /// # Errors
    /// `InvalidData` if the descriptor could shrink or is shorter than a page; `InvalidInput` for a word beyond the
    /// first page; else the kernel's error.
    pub fn map(fd: BorrowedFd<'_>, index: usize) -> io::Result<Self> {
        let page = page_size();
        if index >= page / 8 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no word of the first page"));
        }
        check_memfd(fd, page)?;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: creates a new mapping at an address that the kernel chooses.
        let first = unsafe { mmap_anonymous(null_mut(), 2 * page, rights, MapFlags::PRIVATE) }?;
        let node = NonNull::new(first.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        let mapped = Self { node, index }; // unmaps both pages when it is dropped
        let second = first.wrapping_byte_add(page);
        // SAFETY: replaces the second of the two pages just mapped, to which nothing refers yet.
        unsafe { mmap(second, page, rights, MapFlags::SHARED | MapFlags::FIXED, fd, 0) }?;
        Ok(mapped)
    }
    fn node(&self) -> &Node {
        // SAFETY: mapped until `drop`, aligned, and valid for any bytes.
        unsafe { self.node.as_ref() }
    }
    fn word(&self) -> &AtomicU64 {
        let at = self.node.as_ptr().wrapping_byte_add(page_size() + 8 * self.index);
        // SAFETY: within the second page, mapped until `drop`, aligned, and only accessed atomically.
        unsafe { AtomicU64::from_ptr(at.cast()) }
    }
}
impl Drop for HeldWord {
    fn drop(&mut self) {
        // SAFETY: only this value unmaps the pages; a `Holder` keeps an `Arc` of each word that it holds.
        let unmapped = unsafe { munmap(self.node.as_ptr().cast(), 2 * page_size()) };
        debug_assert!(unmapped.is_ok()); // fails only for addresses that were never mapped
    }
}

/// Makes the kernel record the end of the calling thread in the words that it holds. While this exists, robust mutexes
/// of the C library do not detect the death of this thread.
#[derive(Debug)]
pub struct Holder {
    head: NonNull<Head>,
    /// The C library's list head and its length, restored on drop.
    before: (*mut libc::c_void, usize),
    words: Vec<Arc<HeldWord>>,
    /// Keeps the value on its thread.
    _bound: PhantomData<*mut ()>,
}
impl Holder {
    /// Registers an empty list for the calling thread.
    ///
    /// # Errors
    /// The kernel's error; a filter may forbid the call.
    pub fn here() -> io::Result<Self> {
        let (mut before, mut length) = (null_mut::<libc::c_void>(), 0_usize);
        // SAFETY: reads the calling thread's list into a place for an address and one for a length.
        told(unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &mut before, &mut length) })?;
        let next = AtomicPtr::new(null_mut());
        let head =
            Box::new(Head { list: Node { next }, word: AtomicIsize::new(0), pending: null_mut() });
        let head = NonNull::from(Box::leak(head));
        let new = Self { head, before: (before, length), words: vec![], _bound: PhantomData };
        new.link(&[]);
        // SAFETY: the list is empty and valid, and is not freed before `drop` has registered another one.
        let set =
            unsafe { libc::syscall(libc::SYS_set_robust_list, head.as_ptr(), size_of::<Head>()) };
        told(set).map(|()| new)
    }
    /// Holds exactly these words from now on, which must all have the same index.
    ///
    /// # Panics
    /// If their indexes differ.
    pub fn renew(&mut self, words: Vec<Arc<HeldWord>>) {
        let index = words.first().map_or(0, |word| word.index);
        assert!(words.iter().all(|word| word.index == index), "the kernel knows one distance");
        self.link(&[]);
        let distance = page_size() + 8 * index + LOW_HALF;
        self.head().word.store(distance.cast_signed(), SeqCst);
        let is_kept = |before: &Arc<HeldWord>| words.iter().any(|word| Arc::ptr_eq(word, before));
        let gone = self.words.iter().filter(|before| !is_kept(before));
        gone.for_each(|before| before.word().store(0, Release));
        self.words = words;
        let thread = gettid().as_raw_nonzero().get().cast_unsigned();
        self.words.iter().for_each(|held| held.word().store(thread.into(), Release));
        self.link(&self.words);
    }
    fn head(&self) -> &Head {
        // SAFETY: allocated in `here` and kept until `drop`; all that changes in it is atomic.
        unsafe { self.head.as_ref() }
    }
    /// Links these words into the list. Whenever the thread is killed, the kernel finds a complete or an empty list.
    fn link(&self, words: &[Arc<HeldWord>]) {
        let (end, list) = (self.head.as_ptr().cast::<Node>(), &self.head().list); // the list is its first field
        list.next.store(end, SeqCst);
        let first = words.iter().fold(end, |next, held| {
            held.node().next.store(next, SeqCst);
            held.node.as_ptr()
        });
        list.next.store(first, SeqCst);
    }
}
impl Drop for Holder {
    fn drop(&mut self) {
        self.words.iter().for_each(|held| held.word().store(0, Release)); // no thread holds them any more
        self.link(&[]);
        let (before, length) = self.before;
        // SAFETY: registers what the C library had registered for this thread.
        let set = unsafe { libc::syscall(libc::SYS_set_robust_list, before, length) };
        if set == 0 {
            // SAFETY: allocated by `Box::leak`, and the kernel no longer reads it.
            drop(unsafe { Box::from_raw(self.head.as_ptr()) });
        }
    }
}
fn told(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ReadOnlyWords;
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
    use std::os::fd::AsFd;

    const INDEX: usize = 8;
    fn shared() -> (Arc<HeldWord>, ReadOnlyWords) {
        let fd = memfd_create("held", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&fd, 8192).unwrap();
        fcntl_add_seals(&fd, SealFlags::SHRINK).unwrap();
        let held = Arc::new(HeldWord::map(fd.as_fd(), INDEX).unwrap());
        fcntl_add_seals(&fd, SealFlags::FUTURE_WRITE).unwrap();
        (held, ReadOnlyWords::map(fd.as_fd(), 8192).unwrap())
    }
    fn is(seen: &[(Arc<HeldWord>, ReadOnlyWords)]) -> Vec<bool> {
        seen.iter().map(|(_, words)| is_held(words.load_acquire(INDEX))).collect()
    }
    #[test]
    fn the_kernel_says_in_each_word_that_the_thread_which_held_it_has_ended() {
        let all: Vec<_> = (0..3).map(|_| shared()).collect();
        let words: Vec<_> = all.iter().map(|(held, _)| held.clone()).collect();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let mut holder = Holder::here().unwrap();
                holder.renew(words[..1].to_vec());
                assert_eq!(is(&all), [true, false, false]);
                holder.renew(words[1..].to_vec());
                assert_eq!(is(&all), [false, true, true]);
                holder.renew(words.clone());
                assert_eq!(is(&all), [true; 3]);
                std::mem::forget(holder); // as if the thread were killed
            });
            thread.join().unwrap();
        });
        // `join` returns before the kernel has finished ending the thread.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while is(&all) != [false; 3] {
            assert!(std::time::Instant::now() < deadline, "{:?}", is(&all));
            std::thread::yield_now();
        }
        let word = all[0].1.load_acquire(INDEX) as u32;
        assert_eq!(word & OWNER_DIED, OWNER_DIED, "{word:#x}");
        assert_eq!(all[0].1.load_acquire(0), 0, "no address of this process is seen there");
    }
    #[test]
    fn what_is_let_go_is_held_by_nobody_and_a_thread_can_begin_again() {
        let all = [shared(), shared()];
        for _ in 0..3 {
            let mut holder = Holder::here().unwrap();
            holder.renew(all.iter().map(|(held, _)| held.clone()).collect());
            assert_eq!(is(&all), [true; 2]);
            drop(holder);
            assert_eq!(is(&all), [false; 2]);
        }
    }
    #[test]
    fn a_word_that_no_thread_holds_is_not_held() {
        assert!(!is_held(0) && is_held(77) && !is_held(77 | u64::from(OWNER_DIED)));
        assert!(!is_held(0x8000_0000), "only waited for");
        let pipe = rustix::pipe::pipe().unwrap().0;
        assert!(HeldWord::map(pipe.as_fd(), INDEX).is_err());
    }
}
