//! How long buffers last and in which order commands see them: mappings, releases while commands are
//! under way, events, wait lists, and several threads at once.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod common;
use common::{mems::*, ur::*};
use std::{
    ptr::{null, null_mut},
    slice, thread,
};
use ur_map_flags_t as M;
use ur_mem_flags_t as F;
use ur_result_t as R;

const NO_EVENT: *mut ur_event_handle_t = null_mut();

fn command_of(ur: &Ur, event: ur_event_handle_t) -> u32 {
    let name = ur_event_info_t::COMMAND_TYPE;
    ur.value(|size, to, ret| call!(event.get_info(event, name, size, to, ret))).unwrap()
}
fn is_complete(ur: &Ur, event: ur_event_handle_t) -> bool {
    let name = ur_event_info_t::COMMAND_EXECUTION_STATUS;
    let status: u32 =
        ur.value(|size, to, ret| call!(event.get_info(event, name, size, to, ret))).unwrap();
    status == ur_event_status_t::COMPLETE.0
}
fn wait(event: ur_event_handle_t) {
    assert_eq!(call!(event.wait(1, &event)), R::SUCCESS);
    assert_eq!(call!(event.release(event)), R::SUCCESS);
}

#[test]
fn a_mapping_is_the_buffer_itself_and_stays_where_it_is() {
    let mems = Mems::new();
    let mem = mems.holding(&counting(100));
    let all = mems.map(mem, M::READ, 0, 100).unwrap();
    let some = mems.map(mem, M::READ | M::WRITE, 40, 20).unwrap();
    let again = mems.map(mem, M::WRITE_INVALIDATE_REGION, 40, 20).unwrap();
    assert_eq!((some, again), (all.wrapping_byte_add(40), some));
    assert_eq!(unsafe { slice::from_raw_parts(all.cast::<u8>(), 100) }, counting(100));
    unsafe { slice::from_raw_parts_mut(some.cast::<u8>(), 20) }.fill(9);
    for at in [some, all, again] {
        mems.unmap(mem, at).unwrap();
    }
    mems.finish();
    let mut read = [0; 20];
    mems.read(mem, 40, &mut read).unwrap();
    assert_eq!(read, [9; 20]);
    for at in [some, all, all.wrapping_byte_add(1)] {
        let refused = mems.unmap(mem, at).unwrap_err();
        assert_eq!(refused.code, R::ERROR_INVALID_VALUE, "{}", refused.sentence);
    }
    mems.release(mem);
}
#[test]
fn the_programs_own_memory_is_mapped_where_it_lies() {
    let mems = Mems::new();
    let mut bytes = counting(64);
    let mem = mems.buffer(F::USE_HOST_POINTER, 64, bytes.as_mut_ptr().cast()).unwrap();
    let at = mems.map(mem, M::READ, 8, 8).unwrap();
    assert_eq!(at.addr(), bytes.as_ptr().addr() + 8);
    mems.unmap(mem, at).unwrap();
    mems.finish();
    mems.release(mem);
}
#[test]
fn what_makes_no_mapping_is_refused() {
    let mems = Mems::new();
    let mem = mems.holding(&[0; 10]);
    let bad = [M::WRITE_INVALIDATE_REGION | M::READ, M::WRITE_INVALIDATE_REGION | M::WRITE];
    for flags in bad {
        let refused = mems.map(mem, flags, 0, 10).unwrap_err();
        assert_eq!(refused.code, R::ERROR_INVALID_VALUE);
    }
    assert_eq!(mems.map(mem, M(1 << 7), 0, 10).unwrap_err().code, R::ERROR_INVALID_ENUMERATION);
    assert_eq!(mems.unmap(mem, null_mut()).unwrap_err().code, R::ERROR_INVALID_NULL_POINTER);
    mems.release(mem);
}
#[test]
fn a_released_buffer_lasts_until_its_commands_have_ended() {
    let mems = Mems::new();
    for _ in 0..20 {
        let gate = Gate::lasting();
        let first = gate.close(mems.queue);
        let (mem, other) =
            (mems.holding(&[1; 70_000]), mems.buffer(ANY, 70_000, null_mut()).unwrap());
        let (queue, mut to) = (mems.queue, vec![0_u8; 70_000]);
        mems.fill(mem, &[4, 5], 0, 70_000).unwrap();
        let part = mems.part(mem, F::default(), 0, 70_000).unwrap();
        mems.copy([part, other], [0, 0], 70_000).unwrap();
        let (at, mut event) = (to.as_mut_ptr().cast(), ur_event_handle_t::NULL);
        let read = call!(enqueue.mem_buffer_read(
            queue,
            other,
            false,
            0,
            70_000,
            at,
            0,
            null(),
            &mut event
        ));
        assert_eq!(read, R::SUCCESS);
        mems.release_all([mem, part, other]);
        assert!(!is_complete(&mems.ur, event));
        // What is freed too early is likely to be given out again, and then written.
        let others = [(); 3].map(|()| mems.holding(&[0xee; 70_000]));
        gate.open();
        wait(event);
        wait(first);
        assert!(to.chunks(2).all(|pair| pair == [4, 5]));
        for other in others {
            mems.read(other, 0, &mut to).unwrap();
            assert!(to.iter().all(|&byte| byte == 0xee), "the commands wrote into freed memory");
        }
        mems.release_all(others);
    }
}
#[test]
fn each_command_says_what_it_is_and_waits_for_what_it_is_told_to() {
    use ur_command_t as C;
    let mems = Mems::new();
    let out_of_order = mems.ur.new_queue(ur_queue_flags_t::OUT_OF_ORDER_EXEC_MODE_ENABLE);
    let (gate, elsewhere) = (Gate::lasting(), mems.ur.new_queue(ur_queue_flags_t::default()));
    let first = [gate.close(elsewhere)];
    let list = first.as_ptr();
    let (one, other) = (mems.holding(&[1; 64]), mems.holding(&[2; 64]));
    let mut host = [3_u8; 64];
    let (to, from) = (host.as_mut_ptr().cast(), host.as_ptr().cast());
    let (queue, zero, region) = (out_of_order, at([0; 3]), of([4, 4, 4]));
    let mut events = [ur_event_handle_t::NULL; 9];
    let e = events.each_mut();
    let [read, write, copy, fill, map, unmap, read_rect, write_rect, copy_rect] = e;
    let mut mapped = null_mut();
    let codes = [
        call!(enqueue.mem_buffer_read(queue, one, false, 0, 64, to, 1, list, read)),
        call!(enqueue.mem_buffer_write(queue, one, false, 0, 64, from, 1, list, write)),
        call!(enqueue.mem_buffer_copy(queue, one, other, 0, 0, 64, 1, list, copy)),
        call!(enqueue.mem_buffer_fill(queue, one, from, 4, 0, 64, 1, list, fill)),
        call!(enqueue.mem_buffer_map(queue, one, false, M::READ, 0, 64, 1, list, map, &mut mapped)),
        call!(enqueue.mem_unmap(queue, one, mapped, 1, list, unmap)),
        call!(enqueue.mem_buffer_read_rect(
            queue, one, false, zero, zero, region, 0, 0, 0, 0, to, 1, list, read_rect
        )),
        call!(enqueue.mem_buffer_write_rect(
            queue, one, false, zero, zero, region, 0, 0, 0, 0, to, 1, list, write_rect
        )),
        call!(enqueue.mem_buffer_copy_rect(
            queue, one, other, zero, zero, region, 0, 0, 0, 0, 1, list, copy_rect
        )),
    ];
    assert_eq!(codes, [R::SUCCESS; 9]);
    let kinds = [
        C::MEM_BUFFER_READ,
        C::MEM_BUFFER_WRITE,
        C::MEM_BUFFER_COPY,
        C::MEM_BUFFER_FILL,
        C::MEM_BUFFER_MAP,
        C::MEM_UNMAP,
        C::MEM_BUFFER_READ_RECT,
        C::MEM_BUFFER_WRITE_RECT,
        C::MEM_BUFFER_COPY_RECT,
    ];
    assert_eq!(events.map(|event| command_of(&mems.ur, event)), kinds.map(|kind| kind.0));
    assert_eq!(events.map(|event| is_complete(&mems.ur, event)), [false; 9]);
    gate.open();
    events.into_iter().for_each(wait);
    wait(first[0]);
    let codes = [
        call!(enqueue.mem_buffer_read(queue, one, false, 0, 64, to, 1, null(), NO_EVENT)),
        call!(enqueue.mem_buffer_copy(queue, one, other, 0, 0, 64, 0, list, NO_EVENT)),
        call!(enqueue.mem_unmap(queue, one, to, 1, null(), NO_EVENT)),
    ];
    assert_eq!(codes, [R::ERROR_INVALID_EVENT_WAIT_LIST; 3]);
    mems.release_all([one, other]);
}
#[test]
fn threads_share_buffers_and_a_queue() {
    let mems = Mems::new();
    let shared = Anywhere::new(mems.buffer(ANY, 16 * 4096, null_mut()).unwrap());
    thread::scope(|scope| {
        for n in 0..16 {
            scope.spawn(move || {
                let (mine, shared) = (n * 4096, shared.mem());
                for round in 0..50_u8 {
                    let own = mems.holding(&[round; 4096]);
                    let part = mems.part(shared, F::default(), mine, 4096).unwrap();
                    mems.copy([own, part], [0, 0], 4096).unwrap();
                    let at = mems.map(shared, M::READ, mine, 4096).unwrap();
                    mems.unmap(shared, at).unwrap();
                    mems.fill(part, &[n as u8; 4], 4, 8).unwrap();
                    mems.release_all([own, part]);
                    let mut read = [0xee; 4096];
                    mems.read(shared, mine, &mut read).unwrap();
                    assert_eq!(
                        (read[..4].to_vec(), read[4..12].to_vec()),
                        (vec![round; 4], vec![n as u8; 8])
                    );
                    assert!(read[12..].iter().all(|&byte| byte == round));
                }
            });
        }
    });
    let shared = shared.mem();
    assert_eq!(mems.info(shared, ur_mem_info_t::REFERENCE_COUNT), Ok(1_u32));
    mems.release(shared);
}
