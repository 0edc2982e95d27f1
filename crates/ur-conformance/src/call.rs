//! How cases call the adapter: `ask!` accepts any code, `must!` requires success, `refused!` requires a
//! failure.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
use ur_sys::ur_result_t;

/// An entry that takes its arguments as a tuple. The macros call it, so that their users need no unsafe code.
pub trait Call<Arguments> {
    fn call(self, arguments: Arguments) -> ur_result_t;
}
macro_rules! entries { ($($($type:ident)*;)*) => { $(
    impl<$($type),*> Call<($($type,)*)> for unsafe extern "C" fn($($type),*) -> ur_result_t {
        #[expect(non_snake_case, reason = "each is called like its type")]
        fn call(self, ($($type,)*): ($($type,)*)) -> ur_result_t {
            unsafe { self($($type),*) }
        }
    }
)* } }
entries! {
    A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H;
    A B C D E F G H I; A B C D E F G H I J; A B C D E F G H I J K; A B C D E F G H I J K L;
}

/// The two entries that have too many arguments for `Call`.
pub mod rect {
    use ur_sys::*;

    /// The layout of a rectangle in memory: origin, row pitch, slice pitch.
    #[derive(Clone, Copy)]
    pub struct Side(pub ur_rect_offset_t, pub usize, pub usize);

    /// `urEnqueueMemBuffer{Read,Write}Rect`, blocking.
    pub fn host(
        entry: ur_pfnEnqueueMemBufferReadRect_t,
        (queue, buffer): (ur_queue_handle_t, ur_mem_handle_t),
        (device, host): (Side, Side),
        region: ur_rect_region_t,
        data: *mut std::ffi::c_void,
    ) -> ur_result_t {
        let (none, event) = (std::ptr::null(), std::ptr::null_mut());
        unsafe {
            entry(
                queue, buffer, true, device.0, host.0, region, device.1, device.2, host.1, host.2,
                data, 0, none, event,
            )
        }
    }
    /// `urEnqueueMemBufferCopyRect`.
    pub fn copy(
        entry: ur_pfnEnqueueMemBufferCopyRect_t,
        (queue, from, to): (ur_queue_handle_t, ur_mem_handle_t, ur_mem_handle_t),
        (source, target): (Side, Side),
        region: ur_rect_region_t,
    ) -> ur_result_t {
        let (none, event) = (std::ptr::null(), std::ptr::null_mut());
        unsafe {
            entry(
                queue, from, to, source.0, target.0, region, source.1, source.2, target.1,
                target.2, 0, none, event,
            )
        }
    }
}

/// Calls an entry of the bench's adapter and returns its code: `ask!(bench, usm.free(context, at))`. A null
/// slot skips the case.
#[macro_export]
macro_rules! ask {
    ($bench:expr, $table:ident . $slot:ident ( $($argument:expr),* $(,)? )) => {{
        let entry = $bench.adapter.tables.$table.$slot;
        let name = concat!(stringify!($table), ".", stringify!($slot));
        let entry = entry.ok_or_else(|| $crate::case::Stop::skipped(format!("{name} is null")))?;
        $crate::call::Call::call(entry, ($($argument,)*))
    }};
}
/// Calls an entry that must succeed. UNSUPPORTED_FEATURE skips the case unless the device reported the
/// feature.
#[macro_export]
macro_rules! must {
    ($bench:expr, $table:ident . $slot:ident ( $($argument:expr),* $(,)? )) => {{
        let code = $crate::ask!($bench, $table.$slot($($argument),*));
        $bench.succeeded(concat!(stringify!($table), ".", stringify!($slot)), code)?
    }};
}
/// Calls an entry that must fail with the given code.
#[macro_export]
macro_rules! refused {
    ($bench:expr, $code:ident, $table:ident . $slot:ident ( $($argument:expr),* $(,)? )) => {{
        let code = $crate::ask!($bench, $table.$slot($($argument),*));
        let name = concat!(stringify!($table), ".", stringify!($slot));
        $bench.was_refused(name, code, ur_sys::ur_result_t::$code)?
    }};
}
/// Fails the case unless a condition holds.
#[macro_export]
macro_rules! ensure {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            Err::<(), _>($crate::case::Stop::Failed(format!($($why)+)))?;
        }
    };
}
/// Fails the case unless two values are equal.
#[macro_export]
macro_rules! same {
    ($found:expr, $expected:expr, $($what:tt)+) => {{
        let (found, expected) = (&$found, &$expected);
        if found != expected {
            let what = format!($($what)+);
            let why = format!("{what}: {found:?} where {expected:?} was expected");
            Err::<(), _>($crate::case::Stop::Failed(why))?;
        }
    }};
}
