//! Prints values as text: the `urPrint*` functions, and the same for the tracing layer. Generated tables
//! describe the types; `printer` reads memory by them.
//!
//! The text equals that of the reference implementation byte for byte, as far as a test that calls both can
//! tell.
#![expect(unsafe_code, reason = "the C ABI of the exported functions")]
#![expect(non_snake_case, reason = "C's names of the exported functions")]

use std::{
    borrow::Cow,
    ffi::{c_char, c_void},
};
use ur_sys::*;

/// Copies `text` and a NUL to `buffer`, and their size in bytes to `out_size`.
///
/// # Safety
/// `buffer` is null or has room for `size` bytes; `out_size` is null or writable.
unsafe fn give(text: &str, buffer: *mut c_char, size: usize, out_size: *mut usize) -> ur_result_t {
    let needed = text.len() + 1;
    if !out_size.is_null() {
        // SAFETY: not null, hence writable, as the caller promises.
        unsafe { out_size.write(needed) };
    }
    if buffer.is_null() {
        return ur_result_t::SUCCESS;
    }
    if size < needed {
        return ur_result_t::ERROR_INVALID_SIZE;
    }
    // SAFETY: the caller promises `size` bytes, which are enough for the text and its NUL.
    unsafe { buffer.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len()) };
    // SAFETY: as above.
    unsafe { buffer.wrapping_add(text.len()).write(0) };
    ur_result_t::SUCCESS
}

/// Functions that print a number by its name.
macro_rules! values {
    ($($how:ident $name:ident: $ty:ident;)*) => {$(
        #[doc = concat!("Prints a `", stringify!($ty), "` into `buffer`, and its size with the NUL into `out_size`.")]
        ///
        /// # Safety
        /// `buffer` is null or has room for `size` bytes; `out_size` is null or writable.
        pub unsafe extern "C" fn $name(
            value: $ty,
            buffer: *mut std::ffi::c_char,
            size: usize,
            out_size: *mut usize,
        ) -> ur_result_t {
            let text = super::$how($ty::NAMES, value.0);
            // SAFETY: the caller's promise is passed on unchanged.
            unsafe { super::give(&text, buffer, size, out_size) }
        }
    )*};
}
/// Structs and the functions that print them: the Rust name, the C name, the `stype` of the first member if
/// any, the function, the members.
macro_rules! records {
    ($($record:ident $ty:ident $(as $stype:ident)? by $name:ident {
        $($member:ident: $kind:expr),*
    })*) => {$(
        #[doc = concat!("`", stringify!($ty), "`")]
        pub static $record: Record = Record {
            name: stringify!($ty),
            stype: records!(@stype $($stype)?),
            size: size_of::<$ty>(),
            members: &[$(Member {
                name: plain(stringify!($member)),
                at: offset_of!($ty, $member),
                kind: $kind,
            }),*],
        };

        #[doc = concat!("Prints a `", stringify!($ty), "` into `buffer`, and its size with the NUL into `out_size`.")]
        ///
        /// # Safety
        /// What the struct points at is there; `buffer` is null or has room for `size` bytes;
        /// `out_size` is null or writable.
        pub unsafe extern "C" fn $name(
            value: $ty,
            buffer: *mut std::ffi::c_char,
            size: usize,
            out_size: *mut usize,
        ) -> ur_result_t {
            let at = (&raw const value).cast();
            let text = super::print(|out| {
                // SAFETY: the table describes this struct; the caller promises that the memory it points at
                // is valid.
                unsafe { super::printer::record(out, &$record, at) }
            });
            // SAFETY: the caller's promise is passed on unchanged.
            unsafe { super::give(&text, buffer, size, out_size) }
        }
    )*
        /// All structs.
        pub static RECORDS: &[&Record] = &[$(&$record),*];
    };
    (@stype) => { None };
    (@stype $stype:ident) => { Some(ur_structure_type_t::$stype.0) };
}
/// Queries: the Rust name and the C name; each property with its number, whether it has one value or many,
/// the type of a value, and how it is printed.
macro_rules! queries {
    ($($query:ident $ty:ident {
        $($number:literal $name:ident $many:ident $value:ty = $kind:expr;)*
    })*) => {$(
        #[doc = concat!("`", stringify!($ty), "`")]
        pub static $query: Query = Query {
            answers: &[$(Answer {
                of: $number,
                name: stringify!($name),
                many: queries!(@$many),
                size: size_of::<$value>(),
                kind: $kind,
            }),*],
        };
    )*};
    (@one) => { false };
    (@many) => { true };
}
/// Calls and the functions that print their parameters: the number, the C name, the Rust name, the function,
/// the parameters.
macro_rules! calls {
    ($($number:literal $c:ident $call:ident by $name:ident ($($param:ident: $kind:expr),*);)*) => {
        $(
            #[doc = concat!("`", stringify!($c), "`")]
            pub static $call: Call = Call {
                name: stringify!($c),
                function: $number,
                params: &[$(Parameter { name: stringify!($param), kind: $kind }),*],
            };
            #[doc = concat!("Prints parameters into `buffer`, and the text's size with the NUL into `out_size`.")]
            ///
            /// # Safety
            /// `params` points to a pointer for each parameter; what they point at is there; `buffer`
            /// is null or has room for `size` bytes; `out_size` is null or writable.
            pub unsafe extern "C" fn $name(
                params: *const c_void,
                buffer: *mut c_char,
                size: usize,
                out_size: *mut usize,
            ) -> ur_result_t {
                // SAFETY: the caller's promise is passed on unchanged.
                unsafe { super::parameters(&$call, params, buffer, size, out_size) }
            }
        )*
        /// Every call, in the specification's order.
        pub static CALLS: &[&Call] = &[$(&$call),*];
    };
}
pub mod calls;
mod float;
pub mod kind;
pub mod printer;
pub mod queries;
pub mod records;
mod symbols;
pub mod values;

fn value(names: &[(u32, &'static str)], value: u32) -> Cow<'static, str> {
    printer::name_of(names, value).into()
}
/// Prints one flag: the C signature takes a single flag, although the function is named after the set.
fn flag(names: &[(u32, &'static str)], flag: u32) -> Cow<'static, str> {
    value(names, flag)
}
/// Prints a version as two numbers, whether or not it has a name.
fn version(_: &[(u32, &'static str)], version: u32) -> Cow<'static, str> {
    printer::version(version).into()
}
/// Returns the text that `write` produces.
fn print(write: impl FnOnce(&mut String)) -> String {
    let mut text = String::new();
    write(&mut text);
    text
}

/// Prints the parameters of a call.
///
/// # Safety
/// As of the exported functions for each call.
unsafe fn parameters(
    call: &'static kind::Call,
    params: *const c_void,
    buffer: *mut c_char,
    size: usize,
    out_size: *mut usize,
) -> ur_result_t {
    let text = print(|out| {
        // SAFETY: the caller's promise is passed on unchanged.
        unsafe { printer::parameters(out, call, params.cast()) }
    });
    // SAFETY: the caller's promise is passed on unchanged.
    unsafe { give(&text, buffer, size, out_size) }
}

/// Prints the parameters of the call with this number.
///
/// # Safety
/// As of the functions for each call.
pub unsafe extern "C" fn urPrintFunctionParams(
    function: ur_function_t,
    params: *const c_void,
    buffer: *mut c_char,
    size: usize,
    out_size: *mut usize,
) -> ur_result_t {
    if params.is_null() {
        return ur_result_t::ERROR_INVALID_NULL_POINTER;
    }
    let Some(call) = calls::CALLS.iter().find(|c| c.function == function.0) else {
        return ur_result_t::ERROR_INVALID_ENUMERATION;
    };
    // SAFETY: the caller's promise is passed on unchanged.
    unsafe { parameters(call, params, buffer, size, out_size) }
}
