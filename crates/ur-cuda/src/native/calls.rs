//! Calls of host functions by the driver, which gets a number for each and no pointer: where other threads begin or end
//! captures while a command is enqueued, nobody knows whether the driver calls once or a graph calls at each launch, and
//! what it calls must not be gone then.
use std::{collections::BTreeMap, ffi::c_void, mem, ptr, sync::Mutex};
use ur_hal::HostCall;
use ur_lock::{caught, locked};

/// What is called.
enum Call {
    Once(Box<dyn FnOnce() + Send>),
    /// By a graph.
    Again(HostCall),
}
/// All that may be called, by their numbers.
struct Calls {
    /// The last number. 0 is none.
    last: usize,
    waiting: BTreeMap<usize, Call>,
}
static CALLS: Mutex<Calls> = Mutex::new(Calls { last: 0, waiting: BTreeMap::new() });

/// The number of a call, until it is dropped.
pub(super) struct Number(usize);
impl Number {
    pub(super) fn once(call: impl FnOnce() + Send + 'static) -> Self {
        Self::of(Call::Once(Box::new(call)))
    }
    pub(super) fn again(call: HostCall) -> Self {
        Self::of(Call::Again(call))
    }
    fn of(call: Call) -> Self {
        let mut calls = locked(&CALLS);
        calls.last += 1;
        let number = calls.last;
        calls.waiting.insert(number, call);
        Self(number)
    }
    /// What the driver gets and passes to [`call`].
    pub(super) fn data(&self) -> *mut c_void {
        ptr::without_provenance_mut(self.0)
    }
    /// To be called when the driver has taken it: it ends with the call.
    pub(super) fn hand_over(self) {
        mem::forget(self);
    }
}
impl Drop for Number {
    fn drop(&mut self) {
        let call = locked(&CALLS).waiting.remove(&self.0);
        drop(call); // with the calls unlocked: it may be code of the application's
    }
}

/// Calls what has the number `data`.
///
/// # Errors
/// What went wrong, as a sentence: it is gone, or it panicked.
pub(super) fn call(data: *mut c_void) -> Result<(), &'static str> {
    let number = data.addr();
    let call = {
        let mut calls = locked(&CALLS);
        match calls.waiting.get(&number) {
            Some(Call::Again(call)) => Some(Call::Again(call.clone())),
            _ => calls.waiting.remove(&number),
        }
    };
    let Some(call) = call else {
        return Err(
            "a host function is not called, because it is gone: one thread began or ended the capture of a queue's stream while another enqueued the function there",
        );
    };
    let done = caught(|| match call {
        Call::Once(call) => call(),
        Call::Again(call) => call.call(),
    });
    done.ok_or("a host function panicked; the queue or the graph goes on")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    };

    #[test]
    fn what_is_for_a_queue_is_called_once_and_what_is_for_a_graph_as_long_as_that_is_there() {
        let count = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&count);
        let once = Number::once(move || _ = counted.fetch_add(1, Relaxed));
        let data = once.data();
        once.hand_over();
        assert_eq!(call(data), Ok(()));
        assert!(call(data).unwrap_err().contains("gone"));
        assert_eq!((count.load(Relaxed), Arc::strong_count(&count)), (1, 1));

        static CALLED: AtomicU32 = AtomicU32::new(0);
        let counts = HostCall::new(|_| _ = CALLED.fetch_add(1, Relaxed), [0; 2]);
        let again = Number::again(counts);
        let data = again.data();
        assert_eq!((call(data), call(data)), (Ok(()), Ok(())));
        drop(again);
        assert!(call(data).is_err());
        assert_eq!(CALLED.load(Relaxed), 2);
    }
    #[test]
    fn what_the_driver_refuses_is_dropped() {
        let kept = Arc::new(());
        let inside = Arc::clone(&kept);
        drop(Number::once(move || drop(inside)));
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}
