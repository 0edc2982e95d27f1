//! A Level Zero driver in software, for tests: implements the specification on host memory, with threads. The
//! built library can be used as `libze_loader.so.1` itself, or as a driver behind a real loader.
//!
//! | variable | meaning (default) |
//! |---|---|
//! | `ZE_SOFTWARE_DEVICES` | the number of devices (1) |
//! | `ZE_SOFTWARE_SUBDEVICES` | the number of sub-devices of each device (0) |
//! | `ZE_SOFTWARE_HIERARCHY` | `COMPOSITE`, `FLAT`, `COMBINED`: what is listed as a device if devices have sub-devices, unless `ZE_FLAT_DEVICE_HIERARCHY` is set (COMPOSITE); `ZE_AFFINITY_MASK` is respected too |
//! | `ZE_SOFTWARE_PEER` | 0: devices cannot access each other's memory, and refuse copies and fills of it |
//! | `ZE_SOFTWARE_MEMORY` | MiB of memory of each device (4096) |
//! | `ZE_SOFTWARE_IPC` | `fd`: IPC handles can only be opened with a descriptor of the opening process, as with older drivers; `opaque`: only through the process that exported them; `xe2-old`, `xe2-new`: as with Intel's driver on Xe2 before and since 26.14: by the number of a descriptor in the exporting process, the older one even if another number was written into the handle; otherwise in either way |
//! | `ZE_SOFTWARE_IMPORT_FD` | `owned`: an import takes ownership of the descriptor: the driver closes it with the memory, and ends the process if the caller has closed it too; otherwise the caller keeps it |
//! | `ZE_SOFTWARE_POOL` | device allocations of at most so many MiB are parts of larger ones, as with Intel's driver, and their handles open those (0) |
//! | `ZE_SOFTWARE_IPC_DEAD` | `abort`: a query of an event, or an append that waits for it, ends the process if the event's exporter has ended, as with Intel's driver |
//! | `ZE_SOFTWARE_SHARED_ENGINES` | `1`: immediate lists on one copy engine share its line of commands; copies of lists with the offload hint go through it too, and wait there for what precedes them in their lists; `all`: lists on one compute engine share a line too |
//! | `ZE_SOFTWARE_ENGINES` | the numbers of compute engines, of main copy engines, and of copy engines for transfers between devices (`4,1,2`) |
//! | `ZE_SOFTWARE_FLUSH` | microseconds that it takes to query a list for the completion of a command that signals no event, as on devices whose caches are not coherent with the host; `never`: such a query ends the process |
//! | `ZE_SOFTWARE_PROFILE` | `igpu`, `bmg`, `pvc`: sets the other variables that are not set to the behaviour of a family of Intel devices (`knob.rs`) |
//! | `ZE_SOFTWARE_VM` | `neo-old`: as Intel's driver before 26.18: mappings start at the beginning of the physical memory whatever the offset, and physical memory cannot be exported; `neo-new`: as since 26.27: a physical memory can be mapped once at a time, and a change of access applies to the whole reservation, whose mappings then start at the beginning of their physical memory |
//! | `ZE_SOFTWARE_WRAPS` | `1`: handles are wrapped, as by a loader with several drivers: an extension function that gets a wrapped handle ends the process |
//! | `ZE_SOFTWARE_HOST_FAULT` | 1: host accesses to device memory (allocated, opened or mapped) fault; commands and kernels can access it |
//! | `ZE_SOFTWARE_THROTTLE` | the throttle reasons of a device, or of its last sub-device, as `zes_freq_throttle_reason_flags_t` (0) |
//! | `ZE_SOFTWARE_STATEFUL_4G` | kernels can access so many MiB of a buffer unless their module is built for larger ones (all) |
//! | `ZE_SOFTWARE_CHECK_THREADS` | 1: ends the process if two threads append to an immediate list or synchronize it at the same time |
//! | `ZE_SOFTWARE_BROKEN_DEVICE` | the number of a device for which each call returns `ZE_RESULT_ERROR_DEVICE_LOST` |
//! | `ZE_SOFTWARE_BROKEN_DRIVER` | 1: another driver, all of whose calls fail, is listed first |
//! | `ZE_SOFTWARE_LOST_AFTER` | after so many commands each append, query and wait returns `ZE_RESULT_ERROR_DEVICE_LOST` |
//! | `ZE_SOFTWARE_COUNTER_EVENTS` | `none`: no counter-based events; `zex`: only by the older function names; `core`: only by the newer ones; `snapshots`: as with Intel's older drivers, there is no IPC handle before the first signal, and an opened event has the state of the time when it was opened and cannot be signalled |
//! | `ZE_SOFTWARE_EVENT_POOL` | `strict`: ends the process if an event is used on a list of a device that its pool, or the event itself, was not created for |
//! | `ZE_SOFTWARE_GLOBAL_BITS` | bits of the devices' counter (56); `36:100`: it overflows 100 ms after the start of the driver |
//! | `ZE_SOFTWARE_KERNEL_BITS` | bits of the timestamps of commands (as the counter) |
//! | `ZE_SOFTWARE_TIMER` | ticks of the devices' clock in a second (1000000000) |
//! | `ZE_SOFTWARE_HOST_NAMES` | 0: variables are not found by the names of `HostAccessINTEL` |
//! | `ZE_SOFTWARE_INLINE` | 1: a command without pending dependencies runs on the thread that appends it (for measurements of adapters) |
//! | `ZE_SOFTWARE_REORDER` | 0: commands of out-of-order lists do not overtake each other |
//! | `ZE_SOFTWARE_HIDE` | functions that the driver does not support, by name, separated by commas |
//! | `ZE_SOFTWARE_LACKS` | features that the driver does not have, separated by commas: `ipc`, `descriptors`, `imports` (import of memory by descriptor, although its properties report it; physical memory can be imported), `virtual_memory` |
//! | `ZE_SOFTWARE_FAIL` | `name:nth=code`, separated by commas: this call of the function fails (nth 0: every call) |
//! | `ZE_SOFTWARE_TRACE` | 1: prints each call and its result; `errors`: only failed calls |

/// Functions of the driver: each is a C symbol that first checks whether the environment makes this call
/// fail.
///
/// The body returns an [`inject::Answer`]; a panic becomes `ZE_RESULT_ERROR_UNKNOWN`.
macro_rules! entries {
    ($($(#[$meta:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => { $(
        $(#[$meta])*
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($arg: $ty),*) -> ze_sys::ze_result_t {
            static SITE: $crate::inject::Site = $crate::inject::Site::new(stringify!($name));
            $crate::inject::enter(&SITE, move || -> $crate::inject::Answer { $body })
        }
    )* };
}

mod allocations;
mod alone;
mod append;
mod backing;
mod build_log;
mod cell;
mod clock;
mod code;
mod command;
mod context;
mod copy;
mod counter_event;
mod ddi;
mod device;
mod driver;
mod elf;
mod engine;
mod event;
mod event_pool;
mod external;
mod fence;
mod handle;
mod image;
mod image_copy;
mod inject;
mod ipc;
mod kernel;
mod knob;
mod launch;
mod line;
mod list;
mod loader_face;
mod memory;
mod module;
mod mutable;
mod pass;
mod physical_memory;
mod picture;
mod properties;
mod property_lists;
mod queue;
mod raw;
mod sampler;
mod spirv;
mod sysman;
mod taken_fd;
mod texel;
mod ticket;
mod timestamps;
mod virtual_memory;
