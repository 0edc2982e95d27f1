//! A CUDA driver in software, for tests: what the driver's API documents, on host memory, by threads.
//! It is stricter than a GPU's driver (handles are never reused, memory of a device is out of the
//! host's reach, every access is checked), so that what passes here has few excuses there.
//!
//! | variable | what it says |
//! |---|---|
//! | `SOFT_CUDA_DEVICES` | how many devices there are (1) |
//! | `SOFT_CUDA_PEER` | 0: no link leads from one to another, so that none reaches another's memory; copies that name both contexts, and those of `cuMemAlloc`'s memory, work all the same |
//! | `SOFT_CUDA_MEMORY` | MiB of each device (4096) |
//! | `SOFT_CUDA_NAP` | microseconds that streams nap between two looks at a word, if more than 50 |
//! | `SOFT_CUDA_LACKS` | what it lacks, separated by commas: `ipc`, `descriptors`, `virtual_memory`, `stream_words` |
//! | `CUDA_VISIBLE_DEVICES` | which are seen, by index or by `GPU-` and UUID |

/// Functions of the driver: each is a C symbol that first asks whether the driver is usable at all.
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
