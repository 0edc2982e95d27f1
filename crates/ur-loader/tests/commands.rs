//! Handles that do not begin with the address of their adapter's table: with a single adapter they may have
//! any form, with and without layers.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
use ur_loader::{config::*, entry::*, life::*};
use ur_mock as mock;
use ur_sys::*;

const OK: ur_result_t = ur_result_t::SUCCESS;

/// A handle that is no address: reading through it would crash.
fn odd(number: usize) -> *mut std::ffi::c_void {
    std::ptr::without_provenance_mut(0xc0_ffee + number)
}
fn start() {
    unsafe {
        let mut config = ur_loader_config_handle_t::NULL;
        assert_eq!(loader_config_create(&mut config), OK);
        assert_eq!(loader_config_set_mocking_enabled(config, 1), OK);
        assert_eq!(loader_init(ur_device_init_flags_t(0), config), OK);
        assert_eq!(loader_config_release(config), OK);
    }
}

/// Not a test: a program that gets handles which are no addresses and uses each of them.
#[test]
#[ignore = "is started by the other test"]
fn program() {
    macro_rules! gives {
        ($entry:literal $place:literal $handle:ident $number:literal) => {
            mock::replace($entry, |call| {
                let to = call.argument::<*mut $handle>($place);
                if !to.is_null() {
                    unsafe { to.write($handle(odd($number))) };
                }
                OK
            })
            .unwrap()
        };
    }
    let _given = [
        gives!("urAdapterGet" 1 ur_adapter_handle_t 0),
        gives!("urPlatformGet" 2 ur_platform_handle_t 1),
        gives!("urDeviceGet" 3 ur_device_handle_t 2),
        gives!("urContextCreate" 3 ur_context_handle_t 3),
        gives!("urQueueCreate" 3 ur_queue_handle_t 4),
    ];
    let used = [
        "urAdapterRelease",
        "urContextRetain",
        "urContextRelease",
        "urQueueFinish",
        "urQueueRelease",
    ];
    let _used = used.map(|entry| mock::replace(entry, |_| OK).unwrap());
    start();
    unsafe {
        let mut adapter = ur_adapter_handle_t::NULL;
        assert_eq!(adapter_get(1, &mut adapter, std::ptr::null_mut()), OK);
        assert_eq!(adapter.0, odd(0));
        let mut platform = ur_platform_handle_t::NULL;
        assert_eq!(platform_get(adapter, 1, &mut platform, std::ptr::null_mut()), OK);
        let mut device = ur_device_handle_t::NULL;
        let all = ur_device_type_t::ALL;
        assert_eq!(device_get(platform, all, 1, &mut device, std::ptr::null_mut()), OK);
        let mut context = ur_context_handle_t::NULL;
        assert_eq!(context_create(1, &device, std::ptr::null(), &mut context), OK);
        assert_eq!(context_retain(context), OK);
        let mut queue = ur_queue_handle_t::NULL;
        assert_eq!(queue_create(context, device, std::ptr::null(), &mut queue), OK);
        assert_eq!(queue.0, odd(4));
        assert_eq!(queue_finish(queue), OK);
        assert_eq!(queue_release(queue), OK);
        assert_eq!(context_release(context), OK);
        assert_eq!(context_release(context), OK);
        assert_eq!(adapter_release(adapter), OK);
    }
    assert_eq!(loader_tear_down(), OK);
}
#[test]
fn handles_of_the_only_adapter_may_be_anything_with_layers_and_without() {
    let trace = "level:info;output:stderr";
    for layers in ["", "UR_LAYER_FULL_VALIDATION", "UR_LAYER_FULL_VALIDATION,UR_LAYER_TRACING"] {
        let mut program = std::process::Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", "program", "--ignored", "--nocapture"]);
        program.env("UR_ENABLE_LAYERS", layers).env("UR_LOG_TRACING", trace);
        let ran = program.output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success() && !said.contains("<VALIDATION>"), "{layers}: {said}");
        assert_eq!(said.contains("---> urQueueFinish"), layers.contains("TRACING"), "{said}");
    }
}

#[test]
fn a_command_that_says_of_no_adapter_goes_to_the_only_one() {
    let _hook = mock::replace("urCommandBufferUpdateWaitEventsExp", |call| {
        assert_eq!(call.argument::<u32>(1), 7);
        ur_result_t::ERROR_DEVICE_LOST
    })
    .unwrap();
    // Not the address of a table: a call through it would crash.
    let mut words = [1_usize; 4];
    let command = ur_exp_command_buffer_command_handle_t(words.as_mut_ptr().cast());
    let update =
        |command| unsafe { command_buffer_update_wait_events_exp(command, 7, std::ptr::null()) };
    assert_eq!(update(command), ur_result_t::ERROR_UNINITIALIZED);
    start();
    assert_eq!(update(command), ur_result_t::ERROR_DEVICE_LOST);
    let none = ur_exp_command_buffer_command_handle_t::NULL;
    assert_eq!(update(none), ur_result_t::ERROR_INVALID_NULL_HANDLE);
    assert_eq!(loader_tear_down(), OK);
    assert_eq!(update(command), ur_result_t::ERROR_UNINITIALIZED);
}
