//! Blocks, and the slabs, segments and mappings behind them.
#![expect(unsafe_code, reason = "looks at memory by its address")]
use super::*;
use rustix::fs::fstat;
use ur_hal::Access;

fn write(at: UsmPtr, bytes: usize, value: u8) {
    // SAFETY: tests pass memory of blocks that they hold.
    unsafe { at.as_ptr().cast::<u8>().write_bytes(value, bytes) };
}
fn first_byte(at: UsmPtr) -> u8 {
    // SAFETY: as above.
    unsafe { at.as_ptr().cast::<u8>().read() }
}
/// Segments belong to the whole process: tests that examine how they fill run one at a time.
static TURN: Mutex<()> = Mutex::new(());
fn packed(bytes: usize, align: usize) -> Block {
    large(Side::Device, bytes, align, |_| true).unwrap()
}

#[test]
fn classes_grow_by_halves_and_end_at_a_large_block() {
    let sizes: Vec<_> = (0..CLASSES).map(class_bytes).collect();
    assert_eq!(sizes[..6], [64, 96, 128, 192, 256, 384]);
    assert_eq!(*sizes.last().unwrap(), LARGE);
    assert_eq!(class_of(1, 1), Some(0));
    assert_eq!(class_of(65, 1), Some(1));
    assert_eq!(class_of(65, 64), Some(2));
    assert_eq!(class_of(1, 4096).map(class_bytes), Some(4096));
    assert_eq!(class_of(LARGE, 1), None);
    assert_eq!(class_of(1, SLAB), None);
}
#[test]
fn blocks_of_every_size_are_aligned_and_apart() {
    for side in [Side::Device, Side::Host] {
        let mut blocks = Vec::new();
        for bytes in [0, 1, 64, 65, 1000, 4096, 100_000, LARGE - 1, LARGE, 3 * LARGE + 5] {
            for align in [1, 64, 256, 4096, 65536, ALIGNMENT] {
                let block = Block::take(side, bytes, align).unwrap();
                assert_eq!(block.base().addr() % align, 0, "{bytes} {align}");
                assert!(block.bytes() >= bytes);
                assert_eq!(block.behind().is_some(), side == Side::Device);
                blocks.push(block);
            }
        }
        for (value, block) in (1..).zip(&blocks) {
            write(block.base(), block.bytes(), value);
        }
        for (value, block) in (1..).zip(&blocks) {
            assert_eq!(first_byte(block.base()), value);
            assert_eq!(first_byte(block.base().offset(block.bytes() - 1).unwrap()), value);
        }
    }
}
#[test]
fn what_the_descriptor_shows_is_the_block() {
    let _turn = locked(&TURN);
    for block in [
        Block::take(Side::Device, 100, 64).unwrap(),
        Block::take(Side::Device, LARGE, 1).unwrap(),
        packed(LARGE, 1),
    ] {
        write(block.base(), block.bytes(), 0x5a);
        let behind = block.behind().unwrap();
        let (start, within) = (behind.base / page() * page(), behind.base % page());
        let mapping =
            Mapping::opened(&behind.memfd, (start, page()), Access::ReadWrite, true).unwrap();
        assert_eq!(first_byte(mapping.base().offset(within).unwrap()), 0x5a);
        write(mapping.base().offset(within).unwrap(), 1, 0xa5);
        assert_eq!(first_byte(block.base()), 0xa5);
    }
}
#[test]
fn small_blocks_share_a_descriptor_and_large_ones_do_not() {
    let [one, two] = [(); 2].map(|()| Block::take(Side::Device, 100, 1).unwrap());
    let inode = |block: &Block| fstat(&**block.behind().unwrap().memfd.fd()).unwrap().st_ino;
    assert_eq!(inode(&one), inode(&two));
    assert!(one.is_recycled());
    let [one, two] = [(); 2].map(|()| Block::take(Side::Device, LARGE, 1).unwrap());
    assert_ne!(inode(&one), inode(&two));
    assert!(!one.is_recycled());
}
#[test]
fn scarce_descriptors_are_shared_by_large_blocks() {
    let _turn = locked(&TURN);
    let [one, two] = [(); 2].map(|()| packed(SEGMENT / 4, 1));
    let inode = |block: &Block| fstat(&**block.behind().unwrap().memfd.fd()).unwrap().st_ino;
    assert_eq!(inode(&one), inode(&two));
    assert!(one.is_recycled());
    let beyond = packed(SEGMENT + 1, 1);
    assert!(!beyond.is_recycled(), "a segment would be too small");
}
#[test]
fn a_part_of_a_segment_loses_its_memory_and_joins_its_neighbours() {
    let _turn = locked(&TURN);
    let blocks: Vec<_> = (0..8).map(|_| packed(SEGMENT / 8, ALIGNMENT)).collect();
    let Place::Segment { segment, .. } = &blocks[7].place else { panic!("packed") };
    let segment = Arc::clone(segment);
    for block in &blocks {
        write(block.base(), block.bytes(), 1);
    }
    drop(blocks);
    let whole = packed(SEGMENT, 1);
    assert_eq!(first_byte(whole.base()), 0);
    assert_eq!(first_byte(whole.base().offset(SEGMENT - 1).unwrap()), 0);
    drop(whole);
    assert_eq!(fstat(&**segment.memfd.fd()).unwrap().st_blocks, 0);
}
#[test]
fn a_slab_goes_when_its_last_block_comes_back() {
    // A class that no other test uses.
    let (bytes, class) = (class_bytes(20) - 1, 20);
    let count = SLAB / class_bytes(class);
    let blocks: Vec<_> =
        (0..3 * count).map(|_| Block::take(Side::Host, bytes, 1).unwrap()).collect();
    assert_eq!(locked(shelf(Side::Host, class)).len(), 0, "slabs without room are off the shelf");
    drop(blocks);
    assert_eq!(locked(shelf(Side::Host, class)).len(), 1, "one stays for the next block");
}
#[test]
fn a_freed_small_block_is_lent_again() {
    let block = Block::take(Side::Host, class_bytes(22), 1).unwrap();
    let base = block.base();
    drop(block);
    assert_eq!(Block::take(Side::Host, class_bytes(22), 1).unwrap().base(), base);
}
#[test]
fn impossible_requests_are_errors() {
    let code = |bytes, align| Block::take(Side::Device, bytes, align).unwrap_err().code();
    assert_eq!(code(1, 2 * ALIGNMENT), ErrorCode::InvalidValue);
    assert_eq!(code(1, 3), ErrorCode::InvalidValue);
    assert_eq!(code(usize::MAX, 1), ErrorCode::InvalidUsmSize);
    assert_eq!(code(1 << 50, 1), ErrorCode::OutOfDeviceMemory);
}
#[test]
fn threads_take_and_give_blocks_back() {
    std::thread::scope(|scope| {
        for thread in 1..5_usize {
            scope.spawn(move || {
                let mut live = Vec::new();
                for round in 1..2000_usize {
                    let bytes = 1 + (round * thread * 131) % 9000;
                    let block = Block::take(Side::Device, bytes, 1).unwrap();
                    write(block.base(), block.bytes(), thread as u8);
                    live.push(block);
                    if live.len() > 50 {
                        let block = live.swap_remove(round % 50);
                        assert_eq!(first_byte(block.base()), thread as u8);
                    }
                }
            });
        }
    });
}
