//! Stream operations besides copies and kernels: writes of values, waits for values, and host functions.
#![expect(
    unsafe_code,
    reason = "exports symbols of the driver; words of memory; the caller's functions"
)]
use crate::{
    code::{Answer, INVALID_VALUE},
    device::number,
    ranges::{self, Who},
    state, stream,
};
use std::{
    ffi::c_void,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// Accesses the word at `at` while the table is locked, so that the memory remains.
fn word<T>(at: u64, device: i32, writes: bool, body: impl FnOnce(&AtomicU64) -> T) -> Answer<T> {
    let table = ranges::table();
    let here = table.reach(at, 8, device, Who::Kernel, writes)?;
    // SAFETY: `reach` found at least eight bytes of memory there, callers check the alignment, and the locked
    // table cannot change.
    Ok(body(unsafe { AtomicU64::from_ptr(here.cast()) }))
}
fn check(at: u64, device: i32, writes: bool) -> Answer {
    if at == 0 || !at.is_multiple_of(8) {
        return Err(INVALID_VALUE);
    }
    ranges::table().check(at, 8, device, Who::Kernel, writes, false)
}
/// How long streams sleep between two reads of a word that they wait for.
const MOSTLY: Duration = Duration::from_micros(50);
/// A longer sleep on request, so that tests can make the device slower than the host.
fn longest_nap() -> Duration {
    static LONGEST: OnceLock<Duration> = OnceLock::new();
    let asked = || Duration::from_micros(number("SOFT_CUDA_NAP", MOSTLY.as_micros() as u64));
    *LONGEST.get_or_init(asked)
}
struct Call(extern "C" fn(*mut c_void), *mut c_void);
// SAFETY: by the driver's contract a stream may call the function on any thread.
unsafe impl Send for Call {}
// SAFETY: as above.
unsafe impl Sync for Call {}

entries! {
    fn cuStreamWriteValue64_v2(stream: u64, at: u64, value: u64, flags: u32) {
        let stream = stream::of(stream)?;
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        let device = stream.device;
        check(at, device, true)?;
        stream.submit(move || word(at, device, true, |w| w.store(value, Ordering::Release)))?;
        Ok(())
    }
    fn cuStreamWaitValue64_v2(stream: u64, at: u64, value: u64, flags: u32) {
        let stream = stream::of(stream)?;
        if flags > 3 {
            return Err(INVALID_VALUE);
        }
        let device = stream.device;
        check(at, device, false)?;
        let enough = move |word: u64| match flags {
            0 => word.wrapping_sub(value) as i64 >= 0,
            1 => word == value,
            2 => word & value != 0,
            _ => !(word | value) != 0,
        };
        stream.submit(move || {
            let longest = longest_nap();
            let mut nap = Duration::from_micros(1);
            while !enough(word(at, device, false, |w| w.load(Ordering::Acquire))?) {
                thread::sleep(nap);
                nap = if longest > MOSTLY { longest } else { (nap * 2).min(longest) };
            }
            Ok(())
        })?;
        Ok(())
    }
    fn cuLaunchHostFunc(stream: u64, call: Option<extern "C" fn(*mut c_void)>, data: *mut c_void) {
        let stream = stream::of(stream)?;
        let call = Call(call.ok_or(INVALID_VALUE)?, data);
        stream.submit(move || {
            let Call(call, data) = &call;
            state::calling_back(|| call(*data));
            Ok(())
        })?;
        Ok(())
    }
}
