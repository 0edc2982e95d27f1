//! The parts of the rows of `check`: what an argument must be by its type alone, the macros that rows are
//! written with, and the functions that they generate. Each row becomes a function of its own instead of an
//! entry in a table that is interpreted, because it runs before every call.
#![expect(unsafe_code, reason = "rows read what C hands in")]
use ur_sys::*;

/// Why a call is refused: the code for the caller, which argument, and what is wrong with it.
#[derive(Clone, Copy, Debug)]
pub struct Wrong<'w> {
    pub code: ur_result_t,
    pub what: &'w str,
    pub why: &'w str,
}
/// The result of checking a call.
pub type Verdict = Result<(), Wrong<'static>>;

/// An argument whose validity follows from its type.
pub trait Argument: Copy {
    /// The code that is returned if it is invalid.
    const CODE: ur_result_t = ur_result_t::ERROR_INVALID_NULL_POINTER;
    /// The end of the sentence that is reported then.
    const WHY: &'static str = " is null";
    /// Whether it is invalid.
    fn is_wrong(self) -> bool;
}
impl<T> Argument for *const T {
    #[inline(always)]
    fn is_wrong(self) -> bool {
        self.is_null()
    }
}
impl<T> Argument for *mut T {
    #[inline(always)]
    fn is_wrong(self) -> bool {
        self.is_null()
    }
}
/// Callback functions of the program.
impl<F: Copy> Argument for Option<F> {
    #[inline(always)]
    fn is_wrong(self) -> bool {
        self.is_none()
    }
}
/// Handles of these types must not be null.
macro_rules! handles {
    ($($t:ty)*) => { $(
        impl Argument for $t {
            const CODE: ur_result_t = ur_result_t::ERROR_INVALID_NULL_HANDLE;
            #[inline(always)]
            fn is_wrong(self) -> bool {
                self.is_null()
            }
        }
    )* };
}
/// Enumerations, each with its valid values.
macro_rules! values {
    ($($t:ty: $values:pat,)*) => { $(
        impl Argument for $t {
            const CODE: ur_result_t = ur_result_t::ERROR_INVALID_ENUMERATION;
            const WHY: &'static str = " is no value of its type";
            #[inline(always)]
            fn is_wrong(self) -> bool {
                !matches!(self.0, $values)
            }
        }
    )* };
}
/// Types of flags.
macro_rules! flags {
    ($($t:ty)*) => { $(
        impl Argument for $t {
            const CODE: ur_result_t = ur_result_t::ERROR_INVALID_ENUMERATION;
            const WHY: &'static str = " has bits that are no flags";
            #[inline(always)]
            fn is_wrong(self) -> bool {
                self.unknown_bits() != 0
            }
        }
    )* };
}

/// Checks that an argument is valid by its type.
#[inline(always)]
pub fn given<A: Argument>(argument: A, what: &'static str) -> Verdict {
    if argument.is_wrong() { Err(Wrong { code: A::CODE, what, why: A::WHY }) } else { Ok(()) }
}
/// Whether a list of events contains a null handle.
///
/// # Safety
/// `events` is null or points at `count` handles.
#[inline]
pub unsafe fn has_null(events: *const ur_event_handle_t, count: u32) -> bool {
    let null = |i| {
        // SAFETY: the caller promises `count` handles, and `i` is less.
        unsafe { events.wrapping_add(i).read() }.is_null()
    };
    !events.is_null() && (0..count as usize).any(null)
}

/// Refuses a call if the condition holds; the arguments after it form the reported sentence.
macro_rules! never {
    ($code:ident, $condition:expr, $($what:expr),*) => {
        if $condition {
            return Err(Wrong { code: ur_result_t::$code, what: concat!($($what),*), why: "" });
        }
    };
}
/// One rule of a row, as statements of a function that returns a `Verdict`.
macro_rules! rule {
    // These arguments must be valid by their types.
    (given($($p:ident $c:literal),*)) => { $(given($p, $c)?;)* };
    // This member of a struct must be valid by its type, if the pointer to the struct is not null.
    (member($p:ident.$m:ident $c:literal)) => {
        if !$p.is_null() {
            // SAFETY: the caller of the entry promises that pointers that are not null are readable.
            given(unsafe { (*$p).$m }, $c)?;
        }
    };
    // This condition must not hold.
    (never($code:ident $condition:expr, $what:literal)) => {
        // SAFETY: as above; each condition tests for null before it reads.
        never!($code, unsafe { $condition }, $what);
    };
    // A list and its length: either both are given or neither is.
    (paired($code:ident $list:ident $count:ident $l:literal $c:literal)) => {
        never!($code, $list.is_null() && $count > 0, $l, " == NULL && ", $c, " > 0");
        never!($code, !$list.is_null() && $count == 0, $l, " != NULL && ", $c, " == 0");
    };
    // The size of the answer's buffer, the buffer, and where the answer's size is written: a size needs a
    // buffer, and at least one of the two pointers must be given.
    (answer($size:ident $value:ident $written:ident $s:literal $v:literal $w:literal)) => {
        never!(ERROR_INVALID_NULL_POINTER, $size != 0 && $value.is_null(), $s, " != 0 && ", $v, " == NULL");
        never!(ERROR_INVALID_NULL_POINTER, $value.is_null() && $written.is_null(),
            $v, " == NULL && ", $w, " == NULL");
    };
    // A list of events must not contain null.
    (events($list:ident $count:ident $c:literal)) => {
        // SAFETY: the caller of the entry promises as many events as the count says.
        if unsafe { has_null($list, $count) } {
            let code = ur_result_t::ERROR_INVALID_EVENT_WAIT_LIST;
            return Err(Wrong { code, what: $c, why: " holds a null event" });
        }
    };
}
/// The rows: each entry with its parameters, and its rules in the order in which they are checked.
macro_rules! checks {
    ($($name:ident($($p:ident: $t:ty),* $(,)?) { $($word:ident $of:tt)* })*) => { $(
        #[doc = concat!("Of `", stringify!($name), "`.")]
        #[inline]
        pub unsafe fn $name($($p: $t),*) -> Verdict {
            $(rule!($word $of);)*
            Ok(())
        }
    )* };
}
pub(super) use {checks, flags, handles, never, rule, values};
