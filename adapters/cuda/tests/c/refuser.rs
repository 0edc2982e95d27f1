//! Has the software driver refuse calls of a thread. Tests that need it say so and are skipped on any other driver.
#![allow(dead_code, reason = "each test binary uses its own part")]
use crate::c::REFUSER;
use std::{ffi::c_char, ptr::null};

/// As many calls of a command are refused at most: it may ask the driver again and again.
const MOST: u64 = 40;

/// The functions that only the software driver has.
pub struct Refuser {
    calls: unsafe extern "C" fn() -> u64,
    fail: unsafe extern "C" fn(*const c_char, u64),
    fail_with: unsafe extern "C" fn(i32),
    fail_times: unsafe extern "C" fn(u64),
}
impl Refuser {
    pub fn new() -> Option<Self> {
        let (library, prefix, _) = REFUSER;
        let driver = unsafe { libloading::Library::new(library) }.ok()?;
        macro_rules! own {
            ($name:literal) => {
                unsafe { driver.get(format!("{prefix}{}", $name).as_bytes()) }.map(|symbol| *symbol)
            };
        }
        let (Ok(calls), Ok(fail)) = (own!("Calls"), own!("Fail")) else {
            println!("skipped: the software driver alone refuses what it is told to");
            return None;
        };
        let (fail_with, fail_times) = (own!("FailWith").unwrap(), own!("FailTimes").unwrap());
        std::mem::forget(driver);
        Some(Self { calls, fail, fail_with, fail_times })
    }
    /// So many calls in a row are refused from now on.
    pub fn times(&self, times: u64) {
        unsafe { (self.fail_times)(times) };
    }
    /// Does something in which the driver refuses the call with this number; what it returns, and how many calls it made.
    pub fn during<T>(&self, nth: Option<u64>, what: impl FnOnce() -> T) -> (T, u64) {
        let before = unsafe { (self.calls)() };
        unsafe { (self.fail)(null(), nth.unwrap_or(u64::MAX)) };
        let done = what();
        unsafe { (self.fail)(null(), u64::MAX) };
        (done, unsafe { (self.calls)() } - before)
    }
    /// The test, which returns how many calls its command makes (an order within a queue may take none): with none refused,
    /// and with each of them, once because memory has run out and once for an unknown reason.
    pub fn each(&self, mut test: impl FnMut(Option<u64>) -> u64) {
        let (_, _, codes) = REFUSER;
        test(None); // what is made once is there from now on
        let calls = test(None);
        for code in codes {
            unsafe { (self.fail_with)(code) };
            (0..calls.min(MOST)).for_each(|nth| _ = test(Some(nth)));
        }
    }
}
