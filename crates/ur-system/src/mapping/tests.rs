//! The requests to the kernel, and its refusals.
use super::*;

fn word(at: UsmPtr) -> &'static std::sync::atomic::AtomicU64 {
    // SAFETY: tests call this only for live mappings, at multiples of eight.
    unsafe { std::sync::atomic::AtomicU64::from_ptr(at.as_ptr().cast()) }
}
fn set(at: UsmPtr, value: u64) {
    word(at).store(value, std::sync::atomic::Ordering::Relaxed);
}
fn get(at: UsmPtr) -> u64 {
    word(at).load(std::sync::atomic::Ordering::Relaxed)
}
fn sealed(bytes: usize) -> Memfd {
    let memfd = Memfd::create(bytes).unwrap();
    memfd.commit(0, bytes).unwrap();
    memfd.seal(Writers::Everyone).unwrap();
    memfd
}

extern "C" fn ignore(_: libc::c_int) {}
/// Interrupts the calling thread's system calls two thousand times a second until the thread ends.
fn interrupt_this_thread() {
    // SAFETY: zeros are a valid action: no flags, no mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = ignore as *const () as usize;
    // SAFETY: an initialised action, whose handler does nothing.
    assert_eq!(unsafe { libc::sigaction(libc::SIGPROF, &raw const action, null_mut()) }, 0);
    // SAFETY: zeros are a valid event.
    let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
    (event.sigev_notify, event.sigev_signo) = (libc::SIGEV_THREAD_ID, libc::SIGPROF);
    // SAFETY: takes no arguments.
    event.sigev_notify_thread_id = unsafe { libc::gettid() };
    let mut timer = null_mut();
    let (event, place) = (&raw mut event, &raw mut timer);
    // SAFETY: an initialised event, and a place for the timer.
    assert_eq!(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, event, place) }, 0);
    let every = libc::timespec { tv_sec: 0, tv_nsec: 500_000 };
    let times = libc::itimerspec { it_interval: every, it_value: every };
    // SAFETY: the timer made above, and initialised times.
    assert_eq!(unsafe { libc::timer_settime(timer, 0, &raw const times, null_mut()) }, 0);
}

/// Recent kernels (6.18 is one) do not end the call for a signal that ends no process; this tests the older behaviour.
#[test]
fn memory_is_committed_although_signals_come_faster_than_the_kernel_gives_it() {
    let bytes = 64 << 20;
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        interrupt_this_thread();
        let memfd = Memfd::create(bytes).unwrap();
        done.send(memfd.commit(0, bytes).map(|()| fstat(&**memfd.fd()).unwrap().st_blocks))
    });
    let blocks = is_done.recv_timeout(std::time::Duration::from_secs(20)).expect("it ends");
    assert_eq!(blocks.unwrap() * 512, bytes as i64);
}
#[test]
fn two_mappings_of_one_memfd_show_the_same_bytes() {
    let memfd = sealed(4 * page());
    let one = Mapping::shared(&memfd, 0, 4 * page(), page()).unwrap();
    let other = Mapping::opened(&memfd, (page(), page()), Access::ReadWrite, true).unwrap();
    set(one.base().offset(page()).unwrap(), 7);
    assert_eq!(get(other.base()), 7);
    set(other.base(), 8);
    assert_eq!(get(one.base().offset(page()).unwrap()), 8);
}
/// What a malicious exporter offers: a size with no memory or too little.
#[test]
fn an_opened_mapping_makes_no_memory_that_its_exporter_has_not_made() {
    let bytes = 64 * POPULATE_CHUNK;
    for committed in [0, page(), bytes / 2] {
        let memfd = Memfd::create(bytes).unwrap();
        memfd.commit(0, committed).unwrap();
        memfd.seal(Writers::Everyone).unwrap();
        let theirs = Mapping::opened(&memfd, (0, bytes), Access::ReadWrite, true).unwrap();
        assert_eq!(memfd.pages(), committed as u64, "nothing was made by mapping it");
        set(theirs.base().offset(bytes - page()).unwrap(), 5); // only what is touched gets memory
    }
}
#[test]
fn an_exporter_whose_memory_is_elsewhere_costs_one_chunk() {
    let (bytes, object) = (8 * POPULATE_CHUNK, 4 * POPULATE_CHUNK);
    let memfd = Memfd::create(bytes).unwrap();
    memfd.commit(object, object).unwrap(); // as much as is claimed, but none for the object 
    memfd.seal(Writers::Everyone).unwrap();
    let before = memfd.pages();
    let _theirs = Mapping::opened(&memfd, (0, object), Access::ReadWrite, true).unwrap();
    let made = memfd.pages() - before;
    assert!(made <= POPULATE_CHUNK as u64, "{made} bytes");
}
#[test]
fn a_large_opened_mapping_arrives_whole() {
    let bytes = POPULATE_CHUNK + 3 * page();
    let memfd = sealed(bytes);
    let ours = Mapping::shared(&memfd, 0, bytes, page()).unwrap();
    for at in (0..bytes).step_by(page()) {
        set(ours.base().offset(at).unwrap(), at as u64);
    }
    let theirs = Mapping::opened(&memfd, (0, bytes), Access::ReadWrite, true).unwrap();
    for at in (0..bytes).step_by(page()) {
        assert_eq!(get(theirs.base().offset(at).unwrap()), at as u64);
    }
}
#[test]
fn alignment_beyond_a_page_is_honoured() {
    for align in [page(), 1 << 16, 2 << 20, 64 << 20] {
        let mapping = Mapping::anonymous(page(), align).unwrap();
        assert_eq!(mapping.base().addr() % align, 0);
        assert_eq!(mapping.bytes(), page());
        set(mapping.base(), 1);
    }
}
#[test]
fn a_sealed_memfd_keeps_its_size() {
    let memfd = sealed(2 * page());
    assert!(ftruncate(&**memfd.fd(), page() as u64).is_err());
    assert!(ftruncate(&**memfd.fd(), 4 * page() as u64).is_err());
    assert!(fcntl_add_seals(&**memfd.fd(), SealFlags::FUTURE_WRITE).is_err());
}
#[test]
fn a_read_only_export_stays_writable_for_its_maker_alone() {
    let memfd = Memfd::create(page()).unwrap();
    let ours = Mapping::shared(&memfd, 0, page(), page()).unwrap();
    memfd.seal(Writers::MappedAlready).unwrap();
    set(ours.base(), 9);
    assert_eq!(get(ours.base()), 9);
    let refused = Mapping::shared(&memfd, 0, page(), page()).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidValue);
    assert!(fcntl_add_seals(&**memfd.fd(), SealFlags::WRITE).is_err(), "SEAL came last");
}
#[test]
fn more_memory_than_there_is_fails_at_the_commit() {
    let memfd = Memfd::create(1 << 50).unwrap();
    memfd.seal(Writers::Everyone).unwrap();
    let error = memfd.commit(0, 1 << 50).unwrap_err();
    assert_eq!(error.code(), ErrorCode::OutOfDeviceMemory, "{error}");
    assert_eq!(fstat(&**memfd.fd()).unwrap().st_blocks, 0, "nothing stays behind");
    let error = Mapping::anonymous(1 << 50, page()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::OutOfHostMemory, "{error}");
}
#[test]
fn errors_tell_limits_from_memory() {
    let code = |errno, side| refused("try", errno, side).code();
    assert_eq!(code(Errno::MFILE, Side::Device), ErrorCode::OutOfResources);
    assert_eq!(code(Errno::NFILE, Side::Host), ErrorCode::OutOfResources);
    assert_eq!(code(Errno::NOMEM, Side::Device), ErrorCode::OutOfDeviceMemory);
    assert_eq!(code(Errno::NOMEM, Side::Host), ErrorCode::OutOfHostMemory);
    assert_eq!(code(Errno::NOSPC, Side::Device), ErrorCode::OutOfDeviceMemory);
    assert_eq!(code(Errno::NOSYS, Side::Device), ErrorCode::UnsupportedFeature);
    assert_eq!(code(Errno::PERM, Side::Device), ErrorCode::InvalidValue);
    assert_eq!(code(Errno::INVAL, Side::Device), ErrorCode::InvalidValue);
}
#[test]
fn discarded_memory_reads_as_zeros() {
    let memfd = sealed(2 * page());
    let mapping = Mapping::shared(&memfd, 0, 2 * page(), page()).unwrap();
    let second = mapping.base().offset(page()).unwrap();
    set(mapping.base(), 1);
    set(second, 2);
    memfd.discard(page(), page()).unwrap();
    assert_eq!((get(mapping.base()), get(second)), (1, 0));
}
#[test]
fn a_reservation_takes_and_gives_up_memory_in_parts() {
    let memfd = sealed(2 * page());
    let reservation = Reservation::new(None, 8 * page()).unwrap();
    let at = |pages: usize| reservation.base().offset(pages * page()).unwrap();
    reservation.map(2 * page(), &memfd, 0, 2 * page(), Access::ReadWrite).unwrap();
    reservation.map(5 * page(), &memfd, page(), page(), Access::Read).unwrap();
    set(at(3), 5);
    assert_eq!(get(at(5)), 5);
    reservation.protect(5 * page(), page(), Access::ReadWrite).unwrap();
    set(at(5), 6);
    assert_eq!(get(at(3)), 6);
    reservation.unmap(2 * page(), 2 * page()).unwrap();
    reservation.map(2 * page(), &memfd, page(), page(), Access::Read).unwrap();
    assert_eq!(get(at(2)), 6);
}
#[test]
fn nothing_is_mapped_outside_a_reservation() {
    let memfd = sealed(page());
    let reservation = Reservation::new(None, 2 * page()).unwrap();
    for (at, bytes) in [(2 * page(), page()), (0, 3 * page()), (usize::MAX, 2), (0, 0)] {
        let error = reservation.map(at, &memfd, 0, bytes, Access::Read).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidValue);
        assert_eq!(reservation.unmap(at, bytes).unwrap_err().code(), ErrorCode::InvalidValue);
        let error = reservation.protect(at, bytes, Access::None).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidValue);
    }
}
