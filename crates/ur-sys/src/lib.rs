//! The C ABI of Unified Runtime 0.12: types, constants, tables, under the names that C has for
//! them. Layout only: what the entries do is `ur-adapter`'s and the adapters' business.
//!
//! Enumerations and flag sets are newtypes over their C integer, because a value from C may be
//! any number; `Debug` prints C's name of it.
#![allow(non_camel_case_types, non_snake_case, reason = "C's names")]

#[macro_use]
mod macros;
#[macro_use]
mod entry_points;
mod functions;
mod policy;
mod records;
mod tables;
mod values;

pub use functions::*;
pub use policy::*;
pub use records::*;
pub use tables::*;
pub use values::*;

/// The version of the API that these types are of.
pub const VERSION: ur_api_version_t = ur_api_version_t::CURRENT;
