//! The loader: finds adapters, starts them, and sends each call to the adapter that owns the handle. The C
//! symbols of `libur_loader.so.0` are in the leaf crate `loader`, which exports the functions of this crate.
//!
//! A call: the exported function checks whether layers are on (`state`) and jumps through the table of the
//! only adapter or, if there are several, through the table that the handle's first word points at
//! (`direct`). The loader wraps no handle in an object of its own.
//!
//! A start: `life` gets the possible adapters from `discover`, `adapters` opens them (with `library`), and
//! `layers` turns the layers on. No process is started: code that an adapter runs when it is opened and
//! queried runs in the program.
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
