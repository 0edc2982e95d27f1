//! The logs of builds and links.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    handle::{self, Object, raw},
    kernel::put_text,
    raw,
};
use std::ffi::c_char;
use ze_sys::*;

/// The text of a log.
pub struct Log(String);
impl Object for Log {
    const TAG: u64 = 0x7a65_6275_696c_6c67;
}
/// Returns a log to the caller, if requested.
pub fn hand_out(to: *mut ze_module_build_log_handle_t, text: String) {
    if !to.is_null() {
        raw::put_maybe(to, handle::make(Log(text)).cast());
    }
}
entries! {
    fn zeModuleBuildLogDestroy(log: ze_module_build_log_handle_t) {
        handle::destroy::<Log>(raw!(log)).map(drop)
    }
    fn zeModuleBuildLogGetString(
        log: ze_module_build_log_handle_t,
        size: *mut usize,
        to: *mut c_char,
    ) {
        put_text(size, to, &handle::get::<Log>(raw!(log))?.0)
    }
}
