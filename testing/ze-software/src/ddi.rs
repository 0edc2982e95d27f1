//! The tables of functions that a loader requests, one getter each. The rows name the exported functions, so
//! the compiler checks their types against the tables'.

/// Defines the getter of a table; fields without a row keep the loader's value.
macro_rules! table {
    ($getter:ident, $table:ty, { $($field:ident: $entry:path),* $(,)? }) => {
        entries! {
            fn $getter(version: ze_sys::ze_api_version_t, to: *mut $table) {
                $crate::ddi::version(version)?;
                $crate::raw::amend(to, |table| {
                    $(if !$crate::inject::hidden($crate::ddi::base(stringify!($entry))) {
                        table.$field = Some($entry);
                    })*
                    Ok(())
                })
            }
        }
    };
}

mod code;
mod core;
mod exec;

use crate::inject::Answer;
use ze_sys::*;

/// Fails for loaders whose tables are shorter than ours.
pub fn version(asked: ze_api_version_t) -> Answer {
    let (major, minor) = (asked >> 16, asked & 0xffff);
    if major == 1 && minor >= 17 { Ok(()) } else { Err(ZE_RESULT_ERROR_UNSUPPORTED_VERSION) }
}
/// The last segment of a path in `stringify!`'s format.
pub fn base(path: &str) -> &str {
    path.rsplit(':').next().unwrap_or(path).trim()
}
