//! A CUDA driver in software, for tests: implements the documented API on host memory, with threads as
//! streams. It is stricter than a GPU's driver: handles are never reused, the host cannot access device
//! memory, and every access is checked. Code that works here is therefore likely to work with a real driver.
//!
//! | variable | meaning |
//! |---|---|
//! | `SOFT_CUDA_DEVICES` | the number of devices (1) |
//! | `SOFT_CUDA_PEER` | 0: devices cannot access each other's memory; copies that name both contexts, and copies of `cuMemAlloc` memory, still work |
//! | `SOFT_CUDA_MEMORY` | the memory of each device in MiB (4096) |
//! | `SOFT_CUDA_NAP` | microseconds that a stream sleeps between two reads of a word that it waits for, if more than 50 |
//! | `SOFT_CUDA_LACKS` | missing features, separated by commas: `ipc`, `descriptors`, `virtual_memory`, `stream_words` |
//! | `CUDA_VISIBLE_DEVICES` | the visible devices, by index or by `GPU-` and UUID |

/// Functions of the driver: each is a C symbol that first checks whether the driver can be used.
macro_rules! entries {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => { $(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($arg: $ty),*) -> i32 {
            $crate::state::enter(stringify!($name), move || -> $crate::code::Answer { $body })
        }
    )* };
}

mod array;
mod attributes;
mod backing;
mod capture;
mod code;
mod context;
mod copy;
mod device;
mod event;
mod host;
mod ipc;
mod launch;
mod layout;
mod link;
mod memory;
mod module;
mod operations;
mod pointer;
mod pool;
mod ptx;
mod ranges;
mod raw;
mod set;
mod space;
mod state;
mod stream;
mod virtual_memory;
