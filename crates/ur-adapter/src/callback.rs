//! Functions that C gave us to call later, each with what it wants back.
#![expect(unsafe_code, reason = "calls back into C")]
use crate::{
    memory::UserData,
    object::{Body, Object},
};
use std::ffi::c_void;
use ur_sys::{ur_event_handle_t, ur_execution_info_t};

/// What `urContextSetExtendedDeleter` leaves with us.
#[derive(Clone, Copy, Debug)]
pub struct ContextDeleter {
    function: unsafe extern "C" fn(*mut c_void),
    user_data: UserData,
}
impl ContextDeleter {
    /// # Safety
    /// Any thread may call `function` with `user_data`, once.
    pub unsafe fn new(function: unsafe extern "C" fn(*mut c_void), user_data: *mut c_void) -> Self {
        Self { function, user_data: UserData::new(user_data) }
    }
    /// Tells C that the context is gone.
    pub fn call(self) {
        // SAFETY: promised to `new`.
        unsafe { (self.function)(self.user_data.as_ptr()) };
    }
}

/// What `urEventSetCallback` leaves with us.
#[derive(Clone, Copy, Debug)]
pub struct EventCallback {
    function: unsafe extern "C" fn(ur_event_handle_t, ur_execution_info_t, *mut c_void),
    user_data: UserData,
}
impl EventCallback {
    /// # Safety
    /// Any thread may call `function` with `user_data`, once.
    pub unsafe fn new(
        function: unsafe extern "C" fn(ur_event_handle_t, ur_execution_info_t, *mut c_void),
        user_data: *mut c_void,
    ) -> Self {
        Self { function, user_data: UserData::new(user_data) }
    }
    /// Tells C how far `event` has come.
    pub fn call<T: Body>(self, event: &Object<T>, status: ur_execution_info_t) {
        let handle = ur_event_handle_t(event.as_handle().cast());
        // SAFETY: promised to `new`.
        unsafe { (self.function)(handle, status, self.user_data.as_ptr()) };
    }
}

/// A host function with one argument of C's own.
#[derive(Clone, Copy, Debug)]
pub struct HostFunction {
    function: unsafe extern "C" fn(*mut c_void),
    user_data: UserData,
}
impl HostFunction {
    /// # Safety
    /// Any thread may call `function` with `user_data`, as often as the command runs.
    pub unsafe fn new(function: unsafe extern "C" fn(*mut c_void), user_data: *mut c_void) -> Self {
        Self { function, user_data: UserData::new(user_data) }
    }
    /// Runs it on this thread.
    pub fn call(self) {
        // SAFETY: promised to `new`.
        unsafe { (self.function)(self.user_data.as_ptr()) };
    }
}
