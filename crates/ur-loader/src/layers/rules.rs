//! What the rows of `check` are made of: what an argument must be by its type alone, the words that
//! rows are written in, and the functions that they become: one for each row, not a table that is
//! walked, since they stand before every call.
#![expect(unsafe_code, reason = "rows read what C hands in")]
use ur_sys::*;

/// Why a call is refused: the code for the caller, which argument, and what is wrong with it.
#[derive(Clone, Copy, Debug)]
pub struct Wrong<'w> {
    pub code: ur_result_t,
    pub what: &'w str,
    pub why: &'w str,
}
/// What the checks say of a call.
pub type Verdict = Result<(), Wrong<'static>>;

/// An argument that must be something.
pub trait Argument: Copy {
    /// What is answered otherwise,
    const CODE: ur_result_t = ur_result_t::ERROR_INVALID_NULL_POINTER;
    /// and said.
    const WHY: &'static str = " is null";
    /// Whether it is otherwise.
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
/// Functions of the program's.
impl<F: Copy> Argument for Option<F> {
    #[inline(always)]
    fn is_wrong(self) -> bool {
        self.is_none()
    }
}
/// Handles: those named must not be null.
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
/// Enumerations, each with its values.
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
/// Sets of flags.
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

/// What `given` and `member` ask of an argument.
#[inline(always)]
pub fn given<A: Argument>(argument: A, what: &'static str) -> Verdict {
    if argument.is_wrong() { Err(Wrong { code: A::CODE, what, why: A::WHY }) } else { Ok(()) }
}
/// Whether a list of events holds a null.
///
/// # Safety
/// There are as many events as said, or the list is null.
#[inline]
pub unsafe fn has_null(events: *const ur_event_handle_t, count: u32) -> bool {
    let null = |i| {
        // SAFETY: the caller's promise.
        unsafe { events.wrapping_add(i).read() }.is_null()
    };
    !events.is_null() && (0..count as usize).any(null)
}

/// Refuses a call on a condition, which is told by the words.
macro_rules! never {
    ($code:ident, $condition:expr, $($what:expr),*) => {
        if $condition {
            return Err(Wrong { code: ur_result_t::$code, what: concat!($($what),*), why: "" });
        }
    };
}
/// One word of a row, as statements of a function that gives a `Verdict`.
macro_rules! rule {
    // These arguments must be there, or values of their types.
    (given($($p:ident $c:literal),*)) => { $(given($p, $c)?;)* };
    // So must this member of a struct, where there is one.
    (member($p:ident.$m:ident $c:literal)) => {
        if !$p.is_null() {
            // SAFETY: pointers that are not null are to be read, says the caller.
            given(unsafe { (*$p).$m }, $c)?;
        }
    };
    // This must not be.
    (never($code:ident $condition:expr, $what:literal)) => {
        // SAFETY: as above; each condition asks first whether there is something to be read.
        never!($code, unsafe { $condition }, $what);
    };
    // A list, and how long it is, of which either is missing.
    (paired($code:ident $list:ident $count:ident $l:literal $c:literal)) => {
        never!($code, $list.is_null() && $count > 0, $l, " == NULL && ", $c, " > 0");
        never!($code, !$list.is_null() && $count == 0, $l, " != NULL && ", $c, " == 0");
    };
    // The room for an answer, where the answer goes, where its size goes: one of both is asked for.
    (answer($size:ident $value:ident $written:ident $s:literal $v:literal $w:literal)) => {
        never!(ERROR_INVALID_NULL_POINTER, $size != 0 && $value.is_null(), $s, " != 0 && ", $v, " == NULL");
        never!(ERROR_INVALID_NULL_POINTER, $value.is_null() && $written.is_null(),
            $v, " == NULL && ", $w, " == NULL");
    };
    // A list of events, none of which is null.
    (events($list:ident $count:ident $c:literal)) => {
        // SAFETY: as many as said, says the caller.
        if unsafe { has_null($list, $count) } {
            let code = ur_result_t::ERROR_INVALID_EVENT_WAIT_LIST;
            return Err(Wrong { code, what: $c, why: " holds a null event" });
        }
    };
}
/// The rows: each entry with its parameters, and what must be, in the order in which it is asked.
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
