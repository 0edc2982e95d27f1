//! The callback of `urAdapterSetLoggerCallback`: the one way our sentences reach SYCL's users.
#![expect(unsafe_code, reason = "calls back into C")]
use std::{
    ffi::{CString, c_char, c_void},
    fmt::Display,
    sync::{PoisonError, RwLock},
};
use ur_sys::ur_logger_level_t;

/// What C gives us to be told sentences by.
pub type Callback = unsafe extern "C" fn(ur_logger_level_t, *const c_char, *mut c_void);

#[derive(Clone, Copy)]
struct Logger {
    callback: Callback,
    user_data: *mut c_void,
    level: ur_logger_level_t,
}
// SAFETY: `set`'s caller promises that any thread may call.
unsafe impl Send for Logger {}
// SAFETY: as above.
unsafe impl Sync for Logger {}
static LOGGER: RwLock<Option<Logger>> = RwLock::new(None);

/// From now on sentences of `level` and above go to `callback`.
///
/// # Safety
/// Any thread may call `callback` with `user_data`, for good.
pub unsafe fn set(callback: Callback, user_data: *mut c_void, level: ur_logger_level_t) {
    let logger = Logger { callback, user_data, level };
    *LOGGER.write().unwrap_or_else(PoisonError::into_inner) = Some(logger);
}

/// Changes what the callback hears of, if there is one.
pub fn set_level(level: ur_logger_level_t) {
    if let Some(logger) = &mut *LOGGER.write().unwrap_or_else(PoisonError::into_inner) {
        logger.level = level;
    }
}

/// Hands `sentence` on, if somebody listens at this level.
pub fn say(level: ur_logger_level_t, sentence: &dyn Display) {
    // Copied out: no lock is held while the callback runs, which may well set another.
    let logger = *LOGGER.read().unwrap_or_else(PoisonError::into_inner);
    let Some(logger) = logger.filter(|l| l.level <= level) else {
        return;
    };
    let line = CString::new(sentence.to_string().replace('\0', " ")).unwrap_or_default();
    // SAFETY: promised to `set`; the line outlives the call.
    unsafe { (logger.callback)(level, line.as_ptr(), logger.user_data) };
}
