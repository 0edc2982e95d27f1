//! Handles through the entries that every kind has: counts, tags, stale handles, races.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
mod toy;
use std::{
    ptr,
    sync::{Arc, Barrier, atomic::Ordering::SeqCst},
    thread,
};
use toy::*;
use ur_adapter::{error::ErrorCode, object::*};
use ur_sys::*;

fn retain(event: ur_event_handle_t) -> ur_result_t {
    unsafe { TABLE.event.retain.unwrap()(event) }
}
fn release(event: ur_event_handle_t) -> ur_result_t {
    unsafe { TABLE.event.release.unwrap()(event) }
}
fn wait(list: &[ur_event_handle_t]) -> ur_result_t {
    unsafe { TABLE.event.wait.unwrap()(list.len() as u32, list.as_ptr()) }
}

#[test]
fn a_handle_s_first_word_is_its_adapter_s_table() {
    let event = event();
    assert!(ptr::eq(unsafe { *event.0.cast::<*const ur_dditable_t>() }, &TABLE));
    assert_eq!(release(event), ur_result_t::SUCCESS);
}
#[test]
fn c_s_references_and_the_runtime_s_are_counted_apart() {
    let drops = Arc::default();
    let owned = Owned::new(Event(Arc::clone(&drops)));
    let internal = owned.clone();
    let handle = ur_event_handle_t(owned.publish().cast());
    assert_eq!(retain(handle), ur_result_t::SUCCESS);
    assert_eq!(internal.api_refs(), 2);
    assert_eq!(release(handle), ur_result_t::SUCCESS);
    assert_eq!(release(handle), ur_result_t::SUCCESS);
    assert_eq!(drops.load(SeqCst), 0, "the runtime still owns it");
    assert_eq!(release(handle), ur_result_t::ERROR_INVALID_EVENT);
    drop(internal);
    assert_eq!(drops.load(SeqCst), 1);
}
#[test]
fn an_object_published_again_has_one_more_reference_and_the_same_handle() {
    let owned = Owned::new(Event(Arc::default()));
    let (first, second) = (owned.clone().publish(), owned.clone().publish());
    assert_eq!(first, second);
    assert_eq!(owned.api_refs(), 2);
    for _ in 0..2 {
        assert_eq!(release(ur_event_handle_t(first.cast())), ur_result_t::SUCCESS);
    }
    assert_eq!(owned.api_refs(), 0);
}
#[test]
fn null_wrong_kind_and_misaligned_handles_are_error_codes() {
    let queue = queue(Queue::Working);
    let wrong = ur_event_handle_t(queue.0);
    let crooked = ur_event_handle_t(queue.0.wrapping_byte_add(1));
    for call in [retain, release] {
        assert_eq!(call(ur_event_handle_t::NULL), ur_result_t::ERROR_INVALID_NULL_HANDLE);
        assert_eq!(call(wrong), ur_result_t::ERROR_INVALID_EVENT);
        assert_eq!(call(crooked), ur_result_t::ERROR_INVALID_EVENT);
    }
    assert_eq!(unsafe { TABLE.queue.release.unwrap()(queue) }, ur_result_t::SUCCESS);
}
#[test]
fn a_kind_the_adapter_never_makes_is_refused() {
    let event = event();
    let retain = TABLE.program.retain.unwrap();
    assert_eq!(unsafe { retain(ur_program_handle_t(event.0)) }, ur_result_t::ERROR_INVALID_PROGRAM);
    assert_eq!(release(event), ur_result_t::SUCCESS);
}
/// Each kind with an error code of its own, and all others.
#[test]
fn every_kind_that_is_never_made_has_its_own_code() {
    use ErrorCode::*;
    fn invalid<const KIND: u16>() -> ErrorCode {
        <Never<KIND> as Body>::INVALID
    }
    assert_eq!(invalid::<{ Kind::Program as u16 }>(), InvalidProgram);
    assert_eq!(invalid::<{ Kind::Kernel as u16 }>(), InvalidKernel);
    assert_eq!(invalid::<{ Kind::Sampler as u16 }>(), InvalidSampler);
    assert_eq!(invalid::<{ Kind::Mem as u16 }>(), InvalidMemObject);
    assert_eq!(invalid::<{ Kind::PhysicalMem as u16 }>(), InvalidMemObject);
    assert_eq!(invalid::<{ Kind::CommandBuffer as u16 }>(), InvalidCommandBufferExp);
    let command = invalid::<{ Kind::CommandBufferCommand as u16 }>();
    assert_eq!(command, InvalidCommandBufferCommandHandleExp);
    assert_eq!(invalid::<{ Kind::UsmPool as u16 }>(), InvalidValue);
}
#[test]
fn an_object_is_the_same_as_itself_alone() {
    let (one, other) = (Owned::new(Event(Arc::default())), Owned::new(Event(Arc::default())));
    assert!(one.same(&one.clone()) && !one.same(&other));
}
#[test]
fn tags_tell_backends_and_kinds_apart() {
    let event = Tag::new(Backend::Cpu, Kind::Event);
    assert_ne!(event, Tag::new(Backend::Cuda, Kind::Event));
    assert_ne!(event, Tag::new(Backend::Cpu, Kind::Queue));
    assert_eq!(event, Tag::new(Backend::Cpu, Kind::Event));
}
#[test]
fn a_released_handle_is_an_error_until_its_slot_is_reused() {
    let stale = event();
    assert_eq!(release(stale), ur_result_t::SUCCESS);
    // Other tests of this process create events too, hence not all of LATE.
    for _ in 0..Slab::<Event>::LATE / 4 {
        assert_eq!(retain(stale), ur_result_t::ERROR_INVALID_EVENT);
        assert_eq!(release(stale), ur_result_t::ERROR_INVALID_EVENT);
        assert_eq!(wait(&[stale]), ur_result_t::ERROR_INVALID_EVENT);
        let other = event();
        assert_ne!(other, stale);
        assert_eq!(release(other), ur_result_t::SUCCESS);
    }
}
/// Objects that no other test makes, so that slots can be compared.
struct Lone;
impl Body for Lone {
    const TAG: Tag = Tag::new(Backend::Mock, Kind::Sampler);
    const INVALID: ErrorCode = ErrorCode::InvalidSampler;
    fn slab() -> &'static Slab<Self> {
        static SLAB: Slab<Lone> = Slab::new(&TABLE);
        &SLAB
    }
}
#[test]
fn slots_are_reused_but_late_even_while_most_are_in_use() {
    const LATE: usize = Slab::<Lone>::LATE;
    let mut seen = std::collections::HashSet::new();
    for _ in 0..LATE * 4 {
        seen.insert(Owned::new(Lone).as_handle());
    }
    assert!(seen.len() <= LATE * 2, "{} slots: memory grows with every object", seen.len());
    let _in_use: Vec<_> = (0..LATE).map(|_| Owned::new(Lone)).collect();
    let released = Owned::new(Lone).as_handle();
    let later: Vec<_> = (0..LATE).map(|_| Owned::new(Lone)).collect();
    assert!(later.iter().all(|object| object.as_handle() != released), "reused too early");
}

#[derive(Clone, Copy)]
struct Shared(ur_event_handle_t);
// A C program may use a handle on any thread.
unsafe impl Send for Shared {}
impl Shared {
    fn release(self) -> ur_result_t {
        release(self.0)
    }
    fn retain(self) -> ur_result_t {
        retain(self.0)
    }
}
/// The results of `each` on four threads that start at the same time.
fn race(each: impl Fn(usize) -> ur_result_t + Send + Clone + 'static) -> Vec<ur_result_t> {
    let start = Arc::new(Barrier::new(4));
    let racer = |i| {
        let (start, each) = (Arc::clone(&start), each.clone());
        thread::spawn(move || {
            start.wait();
            each(i)
        })
    };
    let racers: Vec<_> = (0..4).map(racer).collect();
    racers.into_iter().map(|racer| racer.join().unwrap()).collect()
}
const ROUNDS: usize = if cfg!(miri) { 5 } else { 2_000 };

#[test]
fn of_racing_releases_as_many_succeed_as_there_are_references() {
    for _ in 0..ROUNDS {
        let (handle, drops) = counted_event();
        assert_eq!(retain(handle), ur_result_t::SUCCESS);
        let shared = Shared(handle);
        let results = race(move |_| shared.release());
        let succeeded = results.iter().filter(|r| **r == ur_result_t::SUCCESS).count();
        assert_eq!(succeeded, 2, "{results:?}");
        assert_eq!(drops.load(SeqCst), 1);
    }
}
#[test]
fn a_retain_that_races_the_last_release_never_revives_the_object() {
    for _ in 0..ROUNDS {
        let (handle, drops) = counted_event();
        let shared = Shared(handle);
        let results = race(move |i| if i == 0 { shared.release() } else { shared.retain() });
        assert_eq!(results[0], ur_result_t::SUCCESS);
        let revived = results[1..].iter().filter(|r| **r == ur_result_t::SUCCESS).count();
        // Each retain that came in time added a reference; without any, the body is dropped.
        assert_eq!(drops.load(SeqCst), u32::from(revived == 0));
        for _ in 0..revived {
            assert_eq!(release(handle), ur_result_t::SUCCESS);
        }
        assert_eq!(drops.load(SeqCst), 1);
    }
}
#[test]
fn held_objects_outlive_c_s_last_release() {
    let drops = Arc::default();
    let handle = Owned::new(Event(Arc::clone(&drops))).publish();
    let list = [unsafe { Borrowed::new(handle) }.unwrap()];
    let held = Held::new(&list).unwrap();
    unsafe { Borrowed::new(handle).unwrap().release() }.unwrap();
    assert!(unsafe { Borrowed::new(handle) }.is_err(), "C has no reference any more");
    assert_eq!(held[0].0.load(SeqCst), 0);
    drop(held);
    assert_eq!(drops.load(SeqCst), 1);
    assert!(list[0].own().is_err(), "too late");
}
#[test]
fn a_list_with_one_dead_object_holds_none() {
    let (alive, drops) = counted_event();
    let dead = Owned::new(Event(Arc::default())).publish();
    let dead_again = unsafe { Borrowed::new(dead) }.unwrap();
    let list = [unsafe { Borrowed::<Event>::new(alive.0.cast()) }.unwrap(), dead_again];
    unsafe { list[1].release() }.unwrap();
    assert!(Held::new(&list).is_err());
    assert_eq!(release(alive), ur_result_t::SUCCESS);
    assert_eq!(drops.load(SeqCst), 1, "nothing else still owns the first");
}
/// Objects whose references may or may not be counted.
struct Lasting(bool);
impl Body for Lasting {
    const TAG: Tag = Tag::new(Backend::Mock, Kind::Device);
    const INVALID: ErrorCode = ErrorCode::InvalidDevice;
    fn slab() -> &'static Slab<Self> {
        static SLAB: Slab<Lasting> = Slab::new(&TABLE);
        &SLAB
    }
    fn is_counted(&self) -> bool {
        self.0
    }
}
#[test]
fn objects_that_are_not_counted_stay_whatever_c_does() {
    let handle = Owned::new(Lasting(false)).publish();
    for _ in 0..3 {
        let lent = unsafe { Borrowed::new(handle) }.unwrap();
        assert_eq!(lent.api_refs(), 1);
        lent.retain().unwrap();
        unsafe { lent.release() }.unwrap();
        unsafe { lent.release() }.unwrap();
        assert_eq!(lent.own().unwrap().publish(), handle, "published again");
    }
    let counted = Owned::new(Lasting(true)).publish();
    unsafe { Borrowed::new(counted).unwrap().release() }.unwrap();
    assert!(unsafe { Borrowed::new(counted) }.is_err());
}
#[test]
fn numbers_find_live_objects_and_nothing_else() {
    let handle = Owned::new(Event(Arc::default())).publish();
    let number = handle.expose_provenance();
    let found = Owned::<Event>::find(number).unwrap();
    assert_eq!(found.as_handle(), handle);
    let local = 7_u64;
    for wrong in [0, 1, number + 8, number.wrapping_neg(), (&raw const local).addr(), usize::MAX] {
        assert!(Owned::<Event>::find(wrong).is_err(), "{wrong:#x}");
    }
    unsafe { Borrowed::new(handle).unwrap().release() }.unwrap();
    assert!(Owned::<Event>::find(number).is_err(), "the runtime alone has it");
    drop(found);
    assert!(Owned::<Event>::find(number).is_err(), "nobody has it");
}
