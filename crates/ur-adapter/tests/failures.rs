//! How entries fail: codes, sentences, panics, and where they are reported.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "plays the C caller"
)]
mod toy;
use std::{
    ffi::{CStr, CString, c_char, c_void},
    ptr,
    sync::Mutex,
    thread,
};
use toy::*;
use ur_adapter::{
    error::{Error, ErrorCode, enter, last_error},
    object::Backend,
};
use ur_sys::*;

fn enqueue(kind: Queue) -> ur_result_t {
    let wait = TABLE.enqueue.events_wait.unwrap();
    unsafe { wait(queue(kind), 0, ptr::null(), ptr::null_mut()) }
}
/// The last error's sentence as C reads it, and the driver's status.
fn ask(adapter: ur_adapter_handle_t) -> (String, i32) {
    let (mut message, mut status) = (ptr::null(), -1);
    unsafe {
        let get = TABLE.adapter.get_last_error.unwrap();
        assert_eq!(get(adapter, &mut message, &mut status), ur_result_t::SUCCESS);
        (CStr::from_ptr(message).to_str().unwrap().to_owned(), status)
    }
}

#[test]
fn panics_become_a_code_and_a_sentence() {
    assert_eq!(enqueue(Queue::Panicking), ur_result_t::ERROR_UNKNOWN);
    let sentence = last_error().unwrap();
    assert!(sentence.starts_with("panicked: a bug in an adapter"), "{sentence}");
}
#[test]
#[cfg_attr(miri, ignore = "leaks the second panic, as it should")]
fn panics_whose_payload_panics_go_no_further() {
    struct Spiteful;
    impl Drop for Spiteful {
        fn drop(&mut self) {
            panic!("in drop");
        }
    }
    assert_eq!(
        enter(Backend::Mock, "", || std::panic::panic_any(Spiteful)),
        ur_result_t::ERROR_UNKNOWN
    );
    assert!(last_error().unwrap().starts_with("panicked: (no message)"));
}
#[test]
fn errors_are_codes_even_while_a_thread_ends() {
    struct Late;
    impl Drop for Late {
        fn drop(&mut self) {
            let result = enter(Backend::Mock, "", || Err(ErrorCode::InvalidValue.into()));
            assert_eq!(result, ur_result_t::ERROR_INVALID_VALUE);
        }
    }
    thread_local! { static LATE: Late = const { Late }; }
    let thread = thread::spawn(|| {
        LATE.with(|_| {});
        enter(Backend::Mock, "", || Err(ErrorCode::InvalidValue.into())) // initialised after LATE, so destroyed before it
    });
    assert_eq!(thread.join().unwrap(), ur_result_t::ERROR_INVALID_VALUE);
}
#[test]
fn c_reads_the_sentence_and_the_driver_s_status_of_its_own_thread() {
    let adapter = adapter();
    assert_eq!(ask(adapter), (String::new(), 0), "nothing has failed on this thread");
    assert_eq!(enqueue(Queue::Failing), ur_result_t::ERROR_OUT_OF_RESOURCES);
    let (sentence, status) = ask(adapter);
    assert!(sentence.starts_with("the toy is full; empty it"), "{sentence}");
    assert_eq!(status, 0);
    enter(Backend::Mock, "", || {
        Err(Error::new(ErrorCode::AdapterSpecific, "the driver is unwell").native(719))
    });
    let (sentence, status) = ask(adapter);
    assert!(sentence.starts_with("the driver is unwell"), "{sentence}");
    assert_eq!(status, 719);
    thread::spawn(|| assert_eq!(last_error(), None)).join().unwrap();
}
#[test]
fn asking_for_the_last_error_wrongly_does_not_replace_it() {
    let adapter = adapter();
    enter(Backend::Mock, "", || Err(Error::new(ErrorCode::InvalidValue, "keep me")));
    let get = TABLE.adapter.get_last_error.unwrap();
    let (mut message, mut status) = (ptr::null(), 0);
    unsafe {
        let nobody = get(ur_adapter_handle_t::NULL, &mut message, &mut status);
        assert_eq!(nobody, ur_result_t::ERROR_INVALID_NULL_HANDLE);
        let nowhere = get(adapter, ptr::null_mut(), &mut status);
        assert_eq!(nowhere, ur_result_t::ERROR_INVALID_NULL_POINTER);
    }
    assert!(ask(adapter).0.starts_with("keep me"));
}
#[test]
fn errors_are_logged_for_users_who_asked_for_their_level() {
    unsafe extern "C" fn note(_: ur_logger_level_t, line: *const c_char, to: *mut c_void) {
        let to = unsafe { &*to.cast::<Mutex<Vec<CString>>>() };
        to.lock().unwrap().push(unsafe { CStr::from_ptr(line) }.into());
    }
    static NOTES: Mutex<Vec<CString>> = Mutex::new(Vec::new());
    let heard = |what: &str| {
        let notes = NOTES.lock().unwrap();
        notes.iter().any(|n| n.to_str().unwrap().starts_with(what))
    };
    let fail = |what: &'static str| {
        enter(Backend::Mock, "", || Err(Error::new(ErrorCode::InvalidValue, what)))
    };
    let set = TABLE.adapter.set_logger_callback.unwrap();
    let set_level = TABLE.adapter.set_logger_callback_level.unwrap();
    let to = ptr::from_ref(&NOTES).cast_mut().cast::<c_void>();
    let (adapter, level) = (adapter(), ur_logger_level_t::WARN);
    unsafe {
        assert_eq!(set(adapter, None, to, level), ur_result_t::ERROR_INVALID_NULL_POINTER);
        let unknown = set(adapter, Some(note), to, ur_logger_level_t(5));
        assert_eq!(unknown, ur_result_t::ERROR_INVALID_ENUMERATION);
        assert_eq!(set(adapter, Some(note), to, level), ur_result_t::SUCCESS);
        fail("first");
        assert!(heard("first"));
        assert_eq!(set_level(adapter, ur_logger_level_t::QUIET), ur_result_t::SUCCESS);
        fail("second");
        assert!(!heard("second"), "QUIET hears nothing");
    }
}
