//! The registry: lookups, and the effects of a free. `usm.rs`: the entries.
mod usm;

use super::*;
use crate::{
    backing::Behind,
    bytes,
    mapping::{Mapping, page},
    the_device,
};
use std::sync::atomic::Ordering::Relaxed;
use ur_adapter::{
    api::ContextApi,
    error::{ErrorCode, Result},
    memory::UsmPtr,
};
use ur_core::{
    memory::{
        allocation::{self, Home, Memory as _, Registered, Usm},
        deferred_free,
    },
    over_driver::{
        offer::export,
        usm_pool::{self, enter},
    },
};
use ur_hal::{Access, MemoryKind, Range};
use ur_ipc::Kind;
use ur_system::{mapping::Side, opened::Opened};

type Memory = ur_core::over_driver::memory::Memory<Cpu>;
type Allocation = allocation::Allocation<Memory>;
type Hold = allocation::Hold<Memory>;
type UsmPool = usm_pool::UsmPool<Cpu>;

/// No other test has queues in this context, so a deferred free waits only for commands of this test.
const CONTEXT: usize = 0x6000;
fn home() -> Home {
    Home { context: CONTEXT, device: 0x2000, ..Home::default() }
}
fn of_kind(usm: Usm, bytes: usize, align: usize) -> UsmPtr {
    deferred_free::sweep::<Memory>();
    let block = Block::take(Side::from(MemoryKind::from(usm)), bytes, align).unwrap();
    enter::<Cpu>(block, usm, (home(), bytes), false)
}
fn device(bytes: usize) -> UsmPtr {
    of_kind(Usm::Device, bytes, 64)
}
/// The descriptor of an allocation, which is marked as exported.
fn exposed(found: &Allocation) -> Option<Behind> {
    export::<Cpu>(found).ok()?;
    let (block, offset) = found.memory().and_then(Memory::within)?;
    Some(block.behind()?.offset(offset))
}
fn free(context: usize, at: UsmPtr) -> Result<()> {
    allocation::free::<Memory>(context, at)
}
fn refused(at: UsmPtr, context: usize, why: &str) {
    let error = free(context, at).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidMemObject);
    assert!(error.to_string().contains(why), "{error}");
}

#[test]
fn any_address_inside_finds_the_allocation() {
    for bytes in [1, 100, 5000, 3 << 20] {
        let at = device(bytes);
        for offset in [0, bytes / 2, bytes - 1] {
            let found = Allocation::find(at.offset(offset).unwrap()).unwrap();
            assert_eq!((found.base(), found.bytes()), (at, bytes));
            assert_eq!(found.bytes_from(at.offset(offset).unwrap()), bytes - offset);
            assert_eq!((found.usm(), found.home()), (Usm::Device, home()));
        }
        let beyond = Allocation::find(at.offset(bytes).unwrap());
        assert!(beyond.is_none_or(|other| other.base() != at), "one past the end is another's");
        free(CONTEXT, at).unwrap();
        assert!(Allocation::find(at).is_none_or(|other| other.base() != at));
    }
}
#[test]
fn foreign_addresses_find_nothing() {
    let local = 0_u64;
    assert!(Allocation::find(UsmPtr::new((&raw const local).cast()).unwrap()).is_none());
    assert!(Allocation::find(UsmPtr::from_addr(1).unwrap()).is_none());
    assert!(Allocation::find(UsmPtr::from_addr(usize::MAX).unwrap()).is_none());
}
#[test]
fn only_the_start_of_an_allocation_is_freed_and_only_once() {
    let at = device(5000);
    refused(at.offset(8).unwrap(), CONTEXT, "not the start");
    refused(at, CONTEXT + 8, "another context");
    free(CONTEXT, at).unwrap();
    refused(at, CONTEXT, "free already");
}
#[test]
fn objects_have_names_of_their_own() {
    let all: Vec<_> = (0..100).map(|_| device(10)).collect();
    let mut names: Vec<_> = all.iter().map(|&at| Allocation::find(at).unwrap().object()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 100);
    all.into_iter().for_each(|at| free(CONTEXT, at).unwrap());
}
#[test]
fn a_free_while_it_is_held_keeps_the_pages() {
    let at = device(3 << 20);
    let object = Allocation::find(at).unwrap().object();
    let (one, two) = (Hold::of(object).unwrap(), Hold::of(object).unwrap());
    bytes::fill(at, &[7], 3 << 20);
    free(CONTEXT, at).unwrap();
    assert!(Allocation::find(at).unwrap().is_freed());
    assert!(Hold::of(object).is_none(), "what is free is not opened again");
    refused(at, CONTEXT, "free already");
    drop(one);
    let mut last = [0_u8];
    let to = UsmPtr::new(last.as_mut_ptr().cast()).unwrap();
    bytes::copy(to, at.offset((3 << 20) - 1).unwrap(), 1);
    assert_eq!(last, [7]);
    assert_eq!(two.allocation().base(), at);
    drop(two);
    assert!(Allocation::find(at).is_none_or(|other| other.object() != object));
}
#[test]
fn an_opened_object_is_known_and_not_freed() {
    let at = device(10_000);
    let behind = exposed(&Allocation::find(at).unwrap()).unwrap();
    let (start, within) = (behind.base / page() * page(), behind.base % page());
    let mapping =
        Mapping::opened(&behind.memfd, (start, 5 * page()), Access::ReadWrite, true).unwrap();
    let start = mapping.base().offset(within).unwrap();
    let object = Opened::in_mapping(mapping, Range::new(start.into(), 10_000).unwrap());
    let opened = Registered::new(start, 10_000, 0x2000, Memory::Opened(object));
    let theirs = opened.allocation().base();
    assert_ne!(theirs, at);
    let found = Allocation::find(theirs.offset(9_999).unwrap()).unwrap();
    assert!(found.is_opened() && found.is_of(CONTEXT) && found.is_of(CONTEXT + 8));
    assert_eq!((found.base(), found.bytes()), (theirs, 10_000));
    assert!(export::<Cpu>(&found).is_err(), "what was opened is not exported");
    drop(found);
    refused(theirs, CONTEXT, "close it");
    bytes::fill(theirs, &[3], 10_000);
    let mut read = [0_u8];
    bytes::copy(UsmPtr::new(read.as_mut_ptr().cast()).unwrap(), at.offset(9_999).unwrap(), 1);
    assert_eq!(read, [3]);
    drop(opened);
    assert!(Allocation::find(theirs).is_none());
    free(CONTEXT, at).unwrap();
}
#[test]
fn exported_memory_nobody_has_open_goes_back_at_once() {
    let at = device(100);
    let found = Allocation::find(at).unwrap();
    let object = found.object();
    assert!(exposed(&found).is_some());
    drop(found);
    free(CONTEXT, at).unwrap();
    assert!(!deferred_free::is_leased_out::<Memory>(object, Kind::Memory));
}
#[test]
fn host_and_shared_memory_has_no_descriptor() {
    for usm in [Usm::Host, Usm::Shared] {
        for bytes in [10, 2 << 20] {
            let at = of_kind(usm, bytes, 1);
            assert!(exposed(&Allocation::find(at).unwrap()).is_none());
            bytes::fill(at, &[1], bytes);
            free(CONTEXT, at).unwrap();
        }
    }
}
#[test]
fn pools_serve_allocations_on_pages_of_their_own() {
    let context =
        ur_core::over_driver::OverDriver::<Cpu>::context_create(&[the_device().borrow()], None)
            .unwrap();
    let [pool, other] = [(); 2].map(|()| UsmPool::initial(context.borrow()));
    let take = |pool: &UsmPool| {
        pool.allocate(Usm::Device, the_device().borrow(), (home(), 1000, 256)).unwrap()
    };
    let used = |pool: &UsmPool| pool.totals().used.current.load(Relaxed);
    let ours: Vec<_> = (0..20).map(|_| take(&pool)).collect();
    let theirs = take(&other);
    let page_of = |at: UsmPtr| at.addr() / page();
    assert!(ours.iter().all(|&at| page_of(at) != page_of(theirs) && at.addr() % 256 == 0));
    assert_eq!(used(&pool), 20 * 1024);
    let second = Allocation::find(ours[1]).unwrap();
    let (first, behind) =
        (exposed(&Allocation::find(ours[0]).unwrap()).unwrap(), exposed(&second).unwrap());
    assert_eq!(behind.base - first.base, ours[1].addr() - ours[0].addr());
    drop(second);
    ours.into_iter().for_each(|at| free(CONTEXT, at).unwrap());
    free(CONTEXT, theirs).unwrap();
    assert_eq!((used(&pool), used(&other)), (0, 0));
    pool.trim_to(0).unwrap();
    assert_eq!(pool.totals().reserved.current.load(Relaxed), 0);
}
