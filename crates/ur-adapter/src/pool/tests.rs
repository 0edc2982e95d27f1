//! Pools over a source that allocates addresses without memory.
use super::*;
use std::sync::atomic::{AtomicUsize, Ordering::*};

const MIB: usize = 1 << 20;

#[derive(Debug)]
struct Range {
    base: UsmPtr,
    bytes: usize,
}
impl Chunk for Range {
    fn base(&self) -> UsmPtr {
        self.base
    }
    fn bytes(&self) -> usize {
        self.bytes
    }
}
/// The chunks that were returned.
type Returned = Arc<Mutex<Vec<UsmPtr>>>;
struct Addresses {
    next: AtomicUsize,
    left: AtomicUsize,
    returned: Returned,
}
impl Source for Addresses {
    type Chunk = Range;
    fn chunk(&self, bytes: usize, align: usize) -> Result<Range> {
        let enough = |left: usize| left.checked_sub(bytes);
        if self.left.fetch_update(AcqRel, Acquire, enough).is_err() {
            return Err(ErrorCode::OutOfDeviceMemory.into());
        }
        let span = bytes + align + 4096;
        let start = (self.next.fetch_add(span, AcqRel) + 4096).next_multiple_of(align);
        Ok(Range { base: UsmPtr::from_addr(start).unwrap(), bytes })
    }
    fn give_back(&self, chunk: Arc<Range>) {
        let chunk = Arc::into_inner(chunk).expect("nobody else has it");
        self.left.fetch_add(chunk.bytes, AcqRel);
        self.returned.lock().unwrap().push(chunk.base);
    }
}
fn pool_of(left: usize, limits: Limits) -> (Arc<Pool<Addresses>>, Returned) {
    let returned = Returned::default();
    let (next, left) = (AtomicUsize::new(1 << 30), AtomicUsize::new(left));
    let source = Addresses { next, left, returned: Arc::clone(&returned) };
    (Pool::new(source, limits).unwrap(), returned)
}
fn pool() -> (Arc<Pool<Addresses>>, Returned) {
    pool_of(1 << 30, Limits::default())
}

#[test]
fn blocks_of_one_chunk_do_not_overlap() {
    let (pool, _) = pool();
    let blocks: Vec<_> = (1..200).map(|n| pool.take(n * 37, 64).unwrap()).collect();
    let mut ranges: Vec<_> =
        blocks.iter().map(|block| (block.base().unwrap().addr(), block.bytes())).collect();
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{ranges:?}");
    assert!(blocks.iter().zip(1..).all(|(block, n)| block.bytes() >= n * 37));
}
#[test]
fn a_freed_block_is_used_again() {
    let (pool, _) = pool();
    let first = pool.take(1000, 1).unwrap();
    let at = first.base().unwrap();
    let _other = pool.take(1000, 1).unwrap();
    drop(first);
    assert_eq!(pool.take(1000, 1).unwrap().base().unwrap(), at);
}
#[test]
fn neighbours_join_when_they_are_free() {
    let (pool, _) = pool_of(2 * MIB, Limits::default());
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
        let mut blocks: Vec<_> = (0..4).map(|_| Some(pool.take(MIB / 2, 1).unwrap())).collect();
        for which in order {
            blocks[which] = None;
        }
        let whole = [pool.take(MIB, 1).unwrap(), pool.take(MIB, 1).unwrap()];
        assert_eq!(
            pool.statistics(),
            Statistics {
                reserved: 2 * MIB,
                reserved_high: 2 * MIB,
                used: 2 * MIB,
                used_high: 2 * MIB
            }
        );
        drop(whole);
    }
}
#[test]
fn alignment_is_honoured() {
    let (pool, _) = pool();
    let _odd = pool.take(64, 1).unwrap();
    for align in [1, 64, 4096, 65536, MIB, 4 * MIB] {
        let block = pool.take(100, align).unwrap();
        assert_eq!(block.base().unwrap().addr() % align, 0, "{align}");
    }
}
#[test]
fn the_shortest_part_that_fits_is_taken() {
    let (pool, _) = pool();
    let sizes = [4096, 64, 1024, 64, 2048, 64];
    let mut blocks: Vec<_> = sizes.iter().map(|&n| Some(pool.take(n, 1).unwrap())).collect();
    let at = blocks[2].as_ref().unwrap().base().unwrap();
    for which in [0, 2, 4] {
        blocks[which] = None;
    }
    assert_eq!(pool.take(1000, 1).unwrap().base().unwrap(), at);
}
#[test]
fn a_large_block_has_a_chunk_that_goes_with_it() {
    let (pool, returned) = pool();
    let large = pool.take(10 * MIB, 4096).unwrap();
    assert_eq!(large.offset(), 0);
    assert_eq!(large.chunk().bytes(), 10 * MIB);
    let at = large.base().unwrap();
    drop(large);
    assert_eq!(*returned.lock().unwrap(), [at]);
    let Statistics { reserved, used_high, .. } = pool.statistics();
    assert_eq!((reserved, used_high), (0, 10 * MIB));
}
#[test]
fn unused_chunks_stay_up_to_what_is_kept() {
    let limits = Limits { keep: 4 * MIB, ..Limits::default() };
    let (pool, returned) = pool_of(1 << 30, limits);
    let blocks: Vec<_> = (0..8).map(|_| pool.take(MIB, 1).unwrap()).collect();
    assert_eq!(pool.statistics().reserved, 8 * MIB);
    drop(blocks);
    assert_eq!(pool.statistics().reserved, 4 * MIB);
    pool.trim_to(3 * MIB);
    assert_eq!(pool.statistics().reserved, 4 * MIB, "one chunk more would be too many");
    pool.set_keep(2 * MIB);
    assert_eq!(pool.statistics().reserved, 2 * MIB);
    pool.trim_to(0);
    assert_eq!(pool.statistics().reserved, 0);
    assert_eq!(returned.lock().unwrap().len(), 4);
}
#[test]
fn a_pool_at_its_maximum_says_so() {
    let limits = Limits { maximum: 3 * MIB, ..Limits::default() };
    let (pool, _) = pool_of(1 << 30, limits);
    let _first = pool.take(2 * MIB, 1).unwrap();
    let error = pool.take(2 * MIB, 1).unwrap_err();
    assert_eq!(error.code(), ErrorCode::OutOfResources);
    assert!(error.to_string().contains("maximum"), "{error}");
    let _rest = pool.take(MIB, 1).unwrap();
    pool.set_maximum(8 * MIB);
    let _second = pool.take(2 * MIB, 1).unwrap();
}
#[test]
fn at_the_end_of_memory_unused_chunks_go_back_first() {
    let (pool, _) = pool_of(5 * MIB, Limits::default());
    let small = pool.take(100, 1).unwrap();
    drop(small);
    assert_eq!(pool.statistics().reserved, 2 * MIB);
    let large = pool.take(4 * MIB, 1).unwrap();
    let small = pool.take(MIB, 1).unwrap();
    assert_eq!(pool.take(64, 1).unwrap_err().code(), ErrorCode::OutOfDeviceMemory);
    drop((large, small));
    assert_eq!(pool.statistics().used, 0);
}
#[test]
fn a_dropped_pool_gives_back_what_it_kept() {
    let (pool, returned) = pool();
    let block = pool.take(1000, 1).unwrap();
    let chunk = block.chunk().base();
    drop(block);
    assert!(returned.lock().unwrap().is_empty());
    drop(pool);
    assert_eq!(*returned.lock().unwrap(), [chunk]);
}
#[test]
fn a_block_keeps_its_pool() {
    let (pool, returned) = pool();
    let block = pool.take(1, 1).unwrap();
    drop(pool);
    assert!(returned.lock().unwrap().is_empty());
    drop(block);
    assert_eq!(returned.lock().unwrap().len(), 1);
}
#[test]
fn impossible_requests_are_errors() {
    let (pool, _) = pool();
    assert_eq!(pool.take(usize::MAX, 1).unwrap_err().code(), ErrorCode::InvalidUsmSize);
    assert_eq!(pool.take(1 << 40, 1).unwrap_err().code(), ErrorCode::OutOfDeviceMemory);
    let (_, returned) = pool_of(0, Limits::default());
    let source = Addresses { next: 1.into(), left: 0.into(), returned };
    assert!(Pool::new(source, Limits { grain: 48, ..Limits::default() }).is_err());
}
#[test]
fn threads_share_a_pool() {
    let (pool, _) = pool();
    let rounds = if cfg!(miri) { 20 } else { 2000 };
    std::thread::scope(|scope| {
        for thread in 1..4_usize {
            let pool = &pool;
            scope.spawn(move || {
                let mut live = Vec::new();
                for round in 0..rounds {
                    live.push(pool.take((round * thread * 97) % 5000, 64).unwrap());
                    if round % 3 != 0 {
                        drop(live.swap_remove(round % live.len()));
                    }
                }
            });
        }
    });
    assert_eq!(pool.statistics().used, 0);
    pool.trim_to(0);
    assert_eq!(pool.statistics().reserved, 0);
}
