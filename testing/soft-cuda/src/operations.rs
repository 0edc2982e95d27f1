//! What streams do besides copies and kernels: words that they write and wait for, functions that they call.
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

/// Uses the word at `at` while it is certain to stay.
fn word<T>(at: u64, device: i32, writes: bool, body: impl FnOnce(&AtomicU64) -> T) -> Answer<T> {
    let table = ranges::table();
    let here = table.reach(at, 8, device, Who::Kernel, writes)?;
    // SAFETY: in the table as eight bytes at least, aligned; the table cannot change meanwhile.
    Ok(body(unsafe { AtomicU64::from_ptr(here.cast()) }))
}
fn check(at: u64, device: i32, writes: bool) -> Answer {
    if at == 0 || !at.is_multiple_of(8) {
        return Err(INVALID_VALUE);
    }
    ranges::table().check(at, 8, device, Who::Kernel, writes, false)
}
/// How long streams nap between two looks at a word.
const MOSTLY: Duration = Duration::from_micros(50);
/// More than that on request: to be late where the host is not.
fn longest_nap() -> Duration {
    static LONGEST: OnceLock<Duration> = OnceLock::new();
    let asked = || Duration::from_micros(number("SOFT_CUDA_NAP", MOSTLY.as_micros() as u64));
    *LONGEST.get_or_init(asked)
}
struct Call(extern "C" fn(*mut c_void), *mut c_void);
// SAFETY: the driver's contract: streams call it on a thread of theirs.
unsafe impl Send for Call {}

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
            let Call(call, data) = { call };
            state::calling_back(|| call(data));
            Ok(())
        })?;
        Ok(())
    }
}
