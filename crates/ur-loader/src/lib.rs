//! The loader: finds adapters, starts them, and sends each call to the adapter that owns the handle.
//! What adapters do is theirs; the C symbols of `libur_loader.so.0` are in the leaf crate `loader`,
//! which makes them of the functions here.
//!
//! One call: the exported function looks whether something stands between (`state`), reads the
//! adapter's table through the handle's first word and jumps (`direct`). No object of the loader's
//! wraps a handle, so a handle of an adapter opened by hand works here, and ours there.
//!
//! A start: `life` has `discover` name the adapters there could be, `adapters` opens them
//! (`library`), those that crash are found out in a child (`probe`), and layers go on (`layers`).
mod adapters;
pub mod config;
pub mod direct;
mod discover;
mod elf;
pub mod entry;
mod entry_points;
mod failure;
mod held;
pub mod layers;
mod library;
pub mod life;
pub mod log;
mod paths;
pub mod print;
mod probe;
pub mod selected;
mod selector;
pub mod state;
mod verdicts;
