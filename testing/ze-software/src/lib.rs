//! A Level Zero driver in software, for tests: what the specification says, on host memory, by
//! threads. The built library is `libze_loader.so.1` itself, or a driver behind a real loader.
//!
//! | variable | what it says |
//! |---|---|
//! | `ZE_SOFTWARE_DEVICES` | how many devices there are (1) |
//! | `ZE_SOFTWARE_SUBDEVICES` | how many sub-devices each has (0) |
//! | `ZE_SOFTWARE_HIERARCHY` | `COMPOSITE`, `FLAT`, `COMBINED`: what is a device where devices have parts, unless `ZE_FLAT_DEVICE_HIERARCHY` says so (COMPOSITE); `ZE_AFFINITY_MASK` is heeded too |
//! | `ZE_SOFTWARE_PEER` | 0: devices do not reach each other's memory, and refuse copies and fills of it |
//! | `ZE_SOFTWARE_MEMORY` | MiB of each device (4096) |
//! | `ZE_SOFTWARE_IPC` | `fd`: IPC handles open only by a descriptor of the process that opens, as older drivers' do; `opaque`: only by the process that gave them; `xe2-old`, `xe2-new`: as Intel's driver on Xe2 before and since 26.14: by a number in the process that gave them, the older one also where another number was written in; else by either |
//! | `ZE_SOFTWARE_IMPORT_FD` | `owned`: a descriptor that an import took is the driver's, which closes it with the memory, and ends a process that closes it too; else it stays the caller's |
//! | `ZE_SOFTWARE_POOL` | allocations of a device of so many MiB at most are cut from larger ones, as Intel's driver does: their handles open those (0) |
//! | `ZE_SOFTWARE_IPC_DEAD` | `abort`: a query or an append that waits for an event whose exporter has ended ends the process, as with Intel's driver |
//! | `ZE_SOFTWARE_SHARED_ENGINES` | `1`: immediate lists on one copy engine share its line, through which the copies of lists with the hint to offload them go, too, and wait there for what is before them in their lists; `all`: those on one engine for kernels, too |
//! | `ZE_SOFTWARE_ENGINES` | how many engines run kernels, are the main one for copies, are for copies between devices (`4,1,2`) |
//! | `ZE_SOFTWARE_FLUSH` | so many microseconds it takes to ask a list for the end of a command that signals no event, as where the device's caches are not the host's to see; `never`: that ends the process |
//! | `ZE_SOFTWARE_PROFILE` | `igpu`, `bmg`, `pvc`: the other variables, where they are not set, are as a family of Intel's devices with its driver is (`knob.rs`) |
//! | `ZE_SOFTWARE_VM` | `neo-old`: as Intel's driver before 26.18: a mapping begins where the physical memory does, whatever offset is asked for, and physical memory is not exported; `neo-new`: as from 26.27 on: a physical memory is mapped once at a time, and a change of access is one of the whole reservation, whose mappings begin where their physical memory does then |
//! | `ZE_SOFTWARE_WRAPS` | `1`: handles are the loader's, as where it has several drivers: an extension function that gets one, untranslated, ends the process |
//! | `ZE_SOFTWARE_HOST_FAULT` | 1: a host that touches memory of a device (allocated, opened or mapped) faults; commands and kernels reach it |
//! | `ZE_SOFTWARE_THROTTLE` | what slows the clock of a device, or of its last part, down, as `zes_freq_throttle_reason_flags_t` has it (0) |
//! | `ZE_SOFTWARE_STATEFUL_4G` | kernels reach so many MiB of a buffer unless their module is built for larger ones (all) |
//! | `ZE_SOFTWARE_CHECK_THREADS` | 1: a thread that appends to an immediate list or synchronizes it while another one does ends the process |
//! | `ZE_SOFTWARE_BROKEN_DEVICE` | the number of a device that answers `ZE_RESULT_ERROR_DEVICE_LOST` to each call |
//! | `ZE_SOFTWARE_BROKEN_DRIVER` | 1: there is another driver, listed first, that fails whatever it is asked |
//! | `ZE_SOFTWARE_LOST_AFTER` | after so many commands each append, query and wait answers `ZE_RESULT_ERROR_DEVICE_LOST` |
//! | `ZE_SOFTWARE_COUNTER_EVENTS` | `none`: no counter-based events; `zex`: only by the older names; `core`: only by the new; `snapshots`: shared one way, as by Intel's older drivers: no handle before the first signal, and who opens one has the state of that moment and cannot signal the event |
//! | `ZE_SOFTWARE_EVENT_POOL` | `strict`: an event on a list of a device that its pool, or the event itself, was not made for ends the process |
//! | `ZE_SOFTWARE_GLOBAL_BITS` | bits of the devices' counter (56); `36:100`: it comes round 100 ms after the driver starts |
//! | `ZE_SOFTWARE_KERNEL_BITS` | bits of the times that commands keep (as many) |
//! | `ZE_SOFTWARE_TIMER` | ticks of the devices' clock in a second (1000000000) |
//! | `ZE_SOFTWARE_HOST_NAMES` | 0: variables are not found by the names that `HostAccessINTEL` gives them |
//! | `ZE_SOFTWARE_INLINE` | 1: a command whose turn has come runs in the thread that appends it (for figures of adapters) |
//! | `ZE_SOFTWARE_REORDER` | 0: commands of lists without an order do not overtake each other |
//! | `ZE_SOFTWARE_HIDE` | names of functions, separated by commas, that the driver lacks (unsupported feature) |
//! | `ZE_SOFTWARE_LACKS` | what the driver lacks, separated by commas: `ipc`, `descriptors`, `imports` (memory by descriptor, though its properties say that it does; physical memory it imports), `virtual_memory` |
//! | `ZE_SOFTWARE_FAIL` | `name:nth=code`, separated by commas: that call of that function fails (nth 0: each) |
//! | `ZE_SOFTWARE_TRACE` | 1: names each call and its result; `errors`: only those that failed |

/// Functions of the driver: each is a C symbol that first asks whether it is to fail.
///
/// The body is an [`inject::Answer`]; a panic becomes `ZE_RESULT_ERROR_UNKNOWN`.
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
