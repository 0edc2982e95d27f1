//! The loader: finds adapters, starts them, and sends each call to the adapter that owns the handle.
//! What adapters do is theirs; the C symbols of `libur_loader.so.0` are in the leaf crate `loader`,
//! which makes them of the functions here.
//!
//! One call: the exported function looks whether something stands between (`state`), and jumps through
//! the table of the only adapter or, of several, through the one that the handle's first word names
//! (`direct`). No object of the loader's wraps a handle.
//!
//! A start: `life` has `discover` name the adapters there could be, `adapters` opens them
//! (`library`), and layers go on (`layers`). It makes no process: what an adapter does when it is
//! opened and asked, it does in the program.
mod adapters;
pub mod config;
pub mod direct;
mod discover;
mod elf;
pub mod entry;
pub mod examine;
mod failure;
mod held;
pub mod layers;
mod library;
pub mod life;
pub mod log;
mod paths;
pub mod print;
pub mod selected;
mod selector;
pub mod state;
