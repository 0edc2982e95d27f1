//! Each `urIPCOpen*` entry of the CPU adapter, on tickets that were good once: nothing but a good one opens, and what
//! opens can be closed.
#![no_main]
mod common;
use std::ptr::null_mut;
use ur_cpu::TABLE;
use ur_sys::*;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let &[what, how, ref changes @ ..] = input else { return };
    let stage = common::stage();
    let mut ticket = match what & 3 {
        0 => stage.memory.clone(),
        1 => stage.physical.clone(),
        2 => stage.event.clone(),
        _ => changes.to_vec(),
    };
    if what & 3 != 3 {
        for change in changes.chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % ticket.len();
            ticket[at] ^= change[2];
        }
        match how & 3 {
            1 => ticket = ur_ipc::fuzzing::with_checksum(&ticket),
            2 => ticket.truncate(usize::from(how) % (ticket.len() + 1)),
            3 => ticket.push(how),
            _ => {}
        }
    }
    let (data, size) = (ticket.as_ptr().cast_mut().cast(), ticket.len());
    let ipc = &TABLE.ipc_exp;
    // SAFETY: every pointer is to memory of the size given, every handle is one.
    unsafe {
        match (what >> 2) % 3 {
            0 => {
                let mut at = null_mut();
                let open = ipc.open_mem_handle_exp.unwrap();
                let code = open(stage.context, stage.device, data, size, &mut at);
                assert_eq!(code == ur_result_t::SUCCESS, !at.is_null(), "{code:?}");
                if !at.is_null() {
                    let close = ipc.close_mem_handle_exp.unwrap();
                    assert_eq!(close(stage.context, at), ur_result_t::SUCCESS);
                }
            }
            1 => {
                let mut mem = ur_physical_mem_handle_t::NULL;
                let open = ipc.open_phys_mem_handle_exp.unwrap();
                let code = open(stage.context, stage.device, data, size, &mut mem);
                assert_eq!(code == ur_result_t::SUCCESS, !mem.is_null(), "{code:?}");
                if !mem.is_null() {
                    let close = ipc.close_phys_mem_handle_exp.unwrap();
                    assert_eq!(close(stage.context, mem), ur_result_t::SUCCESS);
                }
            }
            _ => {
                let mut event = ur_event_handle_t::NULL;
                let open = ipc.open_event_handle_exp.unwrap();
                let code = open(stage.context, data, size, &mut event);
                assert_eq!(code == ur_result_t::SUCCESS, !event.is_null(), "{code:?}");
                if !event.is_null() {
                    let release = TABLE.event.release.unwrap();
                    assert_eq!(release(event), ur_result_t::SUCCESS);
                }
            }
        }
    }
});
