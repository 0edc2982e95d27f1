//! Contexts of devices cost time and memory: each is started when something is done on its device, and not before. On
//! whatever driver of CUDA there is; without a device the test says so and is skipped. Alone in its program, which
//! starts itself again with more devices where the driver is the software one.
#![expect(unsafe_code, reason = "plays the C caller, and asks the driver")]
mod c;
#[path = "c/usm.rs"]
mod usm;

use c::*;
use std::{
    ffi::c_void,
    process::Command,
    ptr::{null, null_mut},
};
use ur_sys::{ur_result_t as R, *};
use usm::*;

/// Which of the devices are started, as the driver says.
fn started(count: usize) -> Vec<usize> {
    type State = unsafe extern "C" fn(i32, *mut u32, *mut i32) -> i32;
    // SAFETY: a driver does nothing when it is opened once more.
    let driver = unsafe { libloading::Library::new("libcuda.so.1") }.unwrap();
    // SAFETY: the driver's, and of this type.
    let state = unsafe { driver.get::<State>(b"cuDevicePrimaryCtxGetState") }.unwrap();
    let is_active = |device: &usize| {
        let (mut flags, mut active) = (0, 0);
        // SAFETY: both are writable.
        assert_eq!(unsafe { state(*device as i32, &mut flags, &mut active) }, 0);
        active != 0
    };
    (0..count).filter(is_active).collect()
}
fn devices() -> Vec<ur_device_handle_t> {
    let (mut adapter, mut platform, mut n) =
        (ur_adapter_handle_t::NULL, ur_platform_handle_t::NULL, 0);
    assert_eq!(call!(adapter.get(1, &mut adapter, null_mut())), R::SUCCESS);
    assert_eq!(call!(platform.get(adapter, 1, &mut platform, &mut n)), R::SUCCESS);
    if n == 0 {
        return vec![];
    }
    let (mut all, mut count) = (vec![ur_device_handle_t::NULL; 8], 0);
    let kind = ur_device_type_t::ALL;
    let code = call!(device.get(platform, kind, 8, all.as_mut_ptr(), &mut count));
    assert_eq!(code, R::SUCCESS);
    all.truncate(count as usize);
    all
}
/// Everything that a device says of itself, but for what its driver must be started for.
fn ask_everything(device: ur_device_handle_t) {
    let mut said = [0_u64; 256];
    for name in (0..0x200).chain(0x2000..0x2100).map(ur_device_info_t) {
        if name != ur_device_info_t::GLOBAL_MEM_FREE {
            let to = said.as_mut_ptr().cast();
            let _code = call!(device.get_info(device, name, size_of_val(&said), to, null_mut()));
        }
    }
}
fn queue(context: ur_context_handle_t, device: ur_device_handle_t) -> ur_queue_handle_t {
    let mut queue = ur_queue_handle_t::NULL;
    assert_eq!(call!(queue.create(context, device, null(), &mut queue)), R::SUCCESS);
    queue
}
fn memory(context: ur_context_handle_t, device: ur_device_handle_t) -> *mut c_void {
    let mut at = null_mut();
    let code = call!(usm.device_alloc(context, device, null(), NONE, 4096, &mut at));
    assert_eq!(code, R::SUCCESS);
    at
}
fn can_reach(device: ur_device_handle_t, peer: ur_device_handle_t) -> bool {
    let (name, mut reaches) = (ur_exp_peer_info_t::UR_PEER_ACCESS_SUPPORT, 0_i32);
    let to = (&raw mut reaches).cast();
    let code = call!(usm_p2p_exp.peer_access_get_info_exp(device, peer, name, 4, to, null_mut()));
    assert_eq!(code, R::SUCCESS);
    reaches != 0
}

fn judge() {
    let all = devices();
    let n = all.len();
    all.iter().for_each(|device| ask_everything(*device));
    let mut context = ur_context_handle_t::NULL;
    assert_eq!(call!(context.create(n as u32, all.as_ptr(), null(), &mut context)), R::SUCCESS);
    assert_eq!(started(n), [0; 0], "nothing was done yet");
    let (at, first) = (memory(context, all[0]), queue(context, all[0]));
    assert_eq!(started(n), [0]);
    let mut native = 0;
    assert_eq!(call!(context.get_native_handle(context, &mut native)), R::SUCCESS);
    let (mut adopted, mut adapter) = (ur_context_handle_t::NULL, ur_adapter_handle_t::NULL);
    assert_eq!(call!(adapter.get(1, &mut adapter, null_mut())), R::SUCCESS);
    let code =
        call!(context.create_with_native_handle(native, adapter, 0, null(), null(), &mut adopted));
    assert_eq!((code, call!(context.release(adopted))), (R::SUCCESS, R::SUCCESS));
    assert_eq!(started(n), [0], "whose context it is can be told without");
    if n > 1 {
        let other = queue(context, all[1]);
        assert_eq!(started(n), [0, 1]);
        if can_reach(all[1], all[0]) {
            // What was there before the device was started is in its reach as anything else.
            let pattern = 7_u8;
            let (from, none) = ((&raw const pattern).cast(), null_mut());
            let filled = call!(enqueue.usm_fill(other, at, 1, from, 4096, 0, null(), none));
            assert_eq!((filled, call!(queue.finish(other))), (R::SUCCESS, R::SUCCESS));
            let (mut bytes, copied) = ([0_u8; 4096], null_mut());
            let to = bytes.as_mut_ptr().cast();
            let code = call!(enqueue.usm_memcpy(first, true, to, at, 4096, 0, null(), copied));
            assert_eq!((code, bytes), (R::SUCCESS, [7; 4096]));
        }
        let there = memory(context, all[1]);
        assert_eq!(call!(usm.free(context, there)), R::SUCCESS);
        assert_eq!(started(n), [0, 1]);
        assert_eq!(call!(queue.release(other)), R::SUCCESS);
    }
    assert_eq!(call!(usm.free(context, at)), R::SUCCESS);
    assert_eq!(call!(queue.release(first)), R::SUCCESS);
    assert_eq!(call!(context.release(context)), R::SUCCESS);
    println!("judged with {n} devices");
}

#[test]
fn a_device_is_started_when_something_is_done_on_it() {
    const AGAIN: &str = "CAUSEWAY_TEST_STARTED_AGAIN";
    if std::env::var_os(AGAIN).is_some() {
        return judge();
    }
    if devices().is_empty() {
        assert!(std::env::var_os(VARIABLE).is_none(), "there is no device of {NAME}");
        return println!("skipped: there is no device of {NAME}");
    }
    for count in ["1", "3"] {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--nocapture", "--test-threads", "1"]).env(AGAIN, "1");
        let out = again.env("SOFT_CUDA_DEVICES", count).output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{said}\n{}", String::from_utf8_lossy(&out.stderr));
        println!("{said}");
    }
}
