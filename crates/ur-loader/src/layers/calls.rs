//! The entries as they run while layers are on: checks, the call itself, and notes of its result.
#![expect(unsafe_code, reason = "passes calls on")]
use super::{
    ON, bounds, check, effect::Row, holdings, lifetime, names, operands::Operands, refused, rows,
    rules::Wrong, trace,
};
use crate::direct;
use std::{
    ffi::{c_char, c_void},
    sync::atomic::Ordering,
};
use ur_sys::*;

/// Writes a null handle for a call that is refused here, as `direct` does for one that no adapter receives.
macro_rules! null {
    (handle $of:ident nulls $to:ident) => {
        // SAFETY: the caller promises that the output pointer is null or writable.
        unsafe { direct::null($to) }
    };
    ($($other:ident)+) => {};
}
macro_rules! functions {
    ($($group:ident $getter:ident $table:ident {
        $($(#[$doc:meta])* $slot:ident $c:ident $pfn:ident $name:ident(
            $($p:ident: $t:ty),* $(,)?
        ) by $($how:ident)+;)*
    })*) => { $($(
        #[doc = concat!("`", stringify!($c), "` through the layers that are on.")]
        ///
        /// # Safety
        /// As the entry's specification says.
        #[allow(clippy::too_many_arguments, reason = "as many as C's")]
        pub unsafe fn $name($($p: $t),*) -> ur_result_t {
            let on = ON.load(Ordering::Relaxed);
            if on == names::PARAMETERS {
                // SAFETY: the caller's promise is passed on unchanged.
                return match unsafe { check::$name($($p),*) } {
                    // SAFETY: likewise.
                    Ok(()) => unsafe { direct::$name($($p),*) },
                    Err(wrong) => {
                        null!($($how)+);
                        refused(stringify!($c), wrong)
                    }
                };
            }
            let params = [$((&raw const $p).cast::<u8>()),*];
            // SAFETY: `params` are the addresses of this entry's parameters, in order.
            let operands = unsafe { Operands::new(&params) };
            around(on, &rows::$name, operands, || {
                if on & names::PARAMETERS != 0 {
                    // SAFETY: the caller's promise is passed on unchanged.
                    if let Err(wrong) = unsafe { check::$name($($p),*) } {
                        null!($($how)+);
                        return Err(refused(stringify!($c), wrong));
                    }
                }
                Ok(())
            }, || {
                // SAFETY: the caller's promise is passed on unchanged.
                unsafe { direct::$name($($p),*) }
            })
        }
    )*)* };
}
entry_points!(functions);

/// Makes the call between what the layers do before and after it.
#[inline(never)]
fn around(
    on: u32,
    row: &'static Row,
    operands: Operands<'_>,
    check: impl FnOnce() -> Result<(), ur_result_t>,
    call: impl FnOnce() -> ur_result_t,
) -> ur_result_t {
    let begun = (on & names::TRACING != 0).then(|| trace::begin(row.call));
    let result = check().err().unwrap_or_else(|| validated(on, row, operands, call));
    if let Some(begun) = begun {
        trace::end(begun, row.call, operands, result);
    }
    result
}
fn validated(
    on: u32,
    row: &'static Row,
    operands: Operands<'_>,
    call: impl FnOnce() -> ur_result_t,
) -> ur_result_t {
    if on & names::BOUNDS != 0
        && let Err(why) = bounds::check(row, operands)
    {
        let code = ur_result_t::ERROR_INVALID_SIZE;
        return refused(row.call.name, Wrong { code, what: &why, why: "" });
    }
    if on & (names::LIFETIME | names::LEAKS) == 0 {
        return call();
    }
    let noted = lifetime::before(row, operands, on & names::LIFETIME != 0);
    let taken = match on & names::LEAKS {
        0 => None,
        _ => Some(holdings::before(row, operands, noted.ended_pool())),
    };
    let result = call();
    if let Some(taken) = taken {
        holdings::after(row, operands, taken, result);
    }
    lifetime::after(row, operands, noted, result);
    result
}
