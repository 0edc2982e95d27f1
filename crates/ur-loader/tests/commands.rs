//! Commands of command buffers, which do not begin with their adapter's table in every adapter.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
use ur_adapters::mock;
use ur_loader::{config::*, entry::*, life::*};
use ur_sys::*;

const OK: ur_result_t = ur_result_t::SUCCESS;

#[test]
fn a_command_that_says_of_no_adapter_goes_to_the_only_one() {
    let _hook = mock::replace("urCommandBufferUpdateWaitEventsExp", |call| {
        assert_eq!(call.argument::<u32>(1), 7);
        ur_result_t::ERROR_DEVICE_LOST
    })
    .unwrap();
    // What is no table's address: a call through it would not come back.
    let mut words = [1_usize; 4];
    let command = ur_exp_command_buffer_command_handle_t(words.as_mut_ptr().cast());
    let update =
        |command| unsafe { command_buffer_update_wait_events_exp(command, 7, std::ptr::null()) };
    assert_eq!(update(command), ur_result_t::ERROR_UNINITIALIZED);
    unsafe {
        let mut config = ur_loader_config_handle_t::NULL;
        assert_eq!(loader_config_create(&mut config), OK);
        assert_eq!(loader_config_set_mocking_enabled(config, 1), OK);
        assert_eq!(loader_init(ur_device_init_flags_t(0), config), OK);
        assert_eq!(loader_config_release(config), OK);
    }
    assert_eq!(update(command), ur_result_t::ERROR_DEVICE_LOST);
    let none = ur_exp_command_buffer_command_handle_t::NULL;
    assert_eq!(update(none), ur_result_t::ERROR_INVALID_NULL_HANDLE);
    assert_eq!(loader_tear_down(), OK);
    assert_eq!(update(command), ur_result_t::ERROR_UNINITIALIZED);
}
