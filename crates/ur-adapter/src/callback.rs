//! Callbacks that the application registered, each with its user data.
#![expect(unsafe_code, reason = "calls back into C")]
use crate::{
    memory::UserData,
    object::{Body, Object},
};
use std::ffi::c_void;
use ur_hal::HostCall;
use ur_sys::{ur_event_handle_t, ur_execution_info_t};

/// The callback that `urContextSetExtendedDeleter` registers.
#[derive(Clone, Copy, Debug)]
pub struct ContextDeleter {
    function: unsafe extern "C" fn(*mut c_void),
    user_data: UserData,
}
impl ContextDeleter {
    /// # Safety
    /// `function` may be called with `user_data` from any thread, once.
    pub unsafe fn new(function: unsafe extern "C" fn(*mut c_void), user_data: *mut c_void) -> Self {
        Self { function, user_data: UserData::new(user_data) }
    }
    /// Calls the application because the context was destroyed.
    pub fn call(self) {
        // SAFETY: the caller of `new` promised this.
        unsafe { (self.function)(self.user_data.as_ptr()) };
    }
}

/// The callback that `urEventSetCallback` registers.
#[derive(Clone, Copy, Debug)]
pub struct EventCallback {
    function: unsafe extern "C" fn(ur_event_handle_t, ur_execution_info_t, *mut c_void),
    user_data: UserData,
}
impl EventCallback {
    /// # Safety
    /// `function` may be called with `user_data` from any thread, once.
    pub unsafe fn new(
        function: unsafe extern "C" fn(ur_event_handle_t, ur_execution_info_t, *mut c_void),
        user_data: *mut c_void,
    ) -> Self {
        Self { function, user_data: UserData::new(user_data) }
    }
    /// Reports the status of `event` to the application.
    pub fn call<T: Body>(self, event: &Object<T>, status: ur_execution_info_t) {
        let handle = ur_event_handle_t(event.as_handle().cast());
        // SAFETY: the caller of `new` promised this.
        unsafe { (self.function)(handle, status, self.user_data.as_ptr()) };
    }
}

/// A host function with one argument of the application.
#[derive(Clone, Copy, Debug)]
pub struct HostFunction {
    function: unsafe extern "C" fn(*mut c_void),
    user_data: UserData,
}
impl HostFunction {
    /// # Safety
    /// `function` may be called with `user_data` from any thread, as often as its command runs.
    pub unsafe fn new(function: unsafe extern "C" fn(*mut c_void), user_data: *mut c_void) -> Self {
        Self { function, user_data: UserData::new(user_data) }
    }
    /// Calls it on this thread.
    pub fn call(self) {
        // SAFETY: the caller of `new` promised this.
        unsafe { (self.function)(self.user_data.as_ptr()) };
    }
}
impl From<HostFunction> for HostCall {
    fn from(host: HostFunction) -> Self {
        fn call([function, user_data]: [usize; 2]) {
            let function = std::ptr::with_exposed_provenance::<()>(function);
            // SAFETY: the word is the address of such a function, taken below; only this `HostCall` passes it here.
            let function = unsafe {
                std::mem::transmute::<*const (), unsafe extern "C" fn(*mut c_void)>(function)
            };
            // SAFETY: the caller of `HostFunction::new` promised this.
            unsafe { function(std::ptr::with_exposed_provenance_mut(user_data)) };
        }
        let function = (host.function as *const ()).expose_provenance();
        Self::new(call, [function, host.user_data.as_ptr().expose_provenance()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[test]
    fn a_host_function_is_called_with_its_data_each_time() {
        unsafe extern "C" fn count(data: *mut c_void) {
            // SAFETY: `data` is the address of the counter below.
            unsafe { &*data.cast::<AtomicU32>() }.fetch_add(1, Relaxed);
        }
        let counter = AtomicU32::new(0);
        // SAFETY: the function and the counter outlive the calls.
        let function = unsafe { HostFunction::new(count, (&raw const counter).cast_mut().cast()) };
        let call = HostCall::from(function);
        call.call();
        call.call();
        assert_eq!(counter.load(Relaxed), 2);
    }
}
