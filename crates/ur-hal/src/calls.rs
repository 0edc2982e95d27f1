//! Calls into a driver: what became of them, and what they return through pointers. What the statuses of a driver mean
//! is said by its [`Statuses`].
use crate::{Error, ErrorKind, Result};
use std::{ffi::c_void, fmt, ptr::null_mut};

/// What the statuses of a driver's calls mean.
pub trait Statuses: 'static {
    /// The type of a status.
    type Status: Copy + PartialEq + fmt::Debug;
    /// The status of a call that succeeded.
    const SUCCESS: Self::Status;
    /// The status of calls after the driver has shut down, when it has released everything.
    const ENDED: Self::Status;
    /// Whether the status of a query or of a wait says that something is not complete.
    fn is_pending(status: Self::Status) -> bool;
    /// The error for any status but [`Self::SUCCESS`].
    fn failure(call: &'static str, status: Self::Status) -> Error;
    /// The error for a function that the driver does not have.
    fn missing(call: &'static str) -> Error;
    /// Reports an error that nobody can be given.
    fn report(error: &Error);
}

/// The result of a driver call.
#[must_use]
pub struct Outcome<A: Statuses> {
    call: &'static str,
    status: Option<A::Status>,
}
impl<A: Statuses> Clone for Outcome<A> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<A: Statuses> Copy for Outcome<A> {}
impl<A: Statuses> Outcome<A> {
    /// The result of the function that is called `call`: its status, or `None` if this driver does not have it.
    #[inline]
    pub fn new(call: &'static str, status: Option<A::Status>) -> Self {
        Self { call, status }
    }
    /// # Errors
    /// Returns the driver's failure, with the name of the call and a description.
    #[inline]
    pub fn ok(self) -> Result<()> {
        if self.status == Some(A::SUCCESS) { Ok(()) } else { Err(self.failure()) }
    }
    #[cold]
    fn failure(self) -> Error {
        self.status.map_or_else(|| A::missing(self.call), |status| A::failure(self.call, status))
    }
    /// The driver's status as it is; `None` if the driver does not have the function.
    pub fn status(self) -> Option<A::Status> {
        self.status
    }
    /// For queries and waits with a timeout: "not ready" is `false`, not an error.
    ///
    /// # Errors
    /// As for [`Outcome::ok`].
    #[inline]
    pub fn ready(self) -> Result<bool> {
        match self.status {
            Some(status) if A::is_pending(status) => Ok(false),
            _ => self.ok().map(|()| true),
        }
    }
    /// For releases: a driver that has already shut down has released everything, so that status is success.
    ///
    /// # Errors
    /// As for [`Outcome::ok`].
    pub fn released(self) -> Result<()> {
        if self.status == Some(A::ENDED) { Ok(()) } else { self.ok() }
    }
    /// For releases in destructors: a failure is reported, because it cannot be returned.
    pub fn let_go(self) {
        self.released().unwrap_or_else(|error| A::report(&error));
    }
}
impl<A: Statuses> fmt::Debug for Outcome<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:x?}", self.call, self.status)
    }
}

/// The value that a successful call wrote.
///
/// # Errors
/// Returns the driver's error.
#[inline]
pub fn told<A: Statuses, T: Default>(ask: impl FnOnce(*mut T) -> Outcome<A>) -> Result<T> {
    let mut told = T::default();
    ask(&raw mut told).ok().map(|()| told)
}
/// The handle that a successful call wrote.
///
/// # Errors
/// Returns the driver's error; [`ErrorKind::Unknown`] for a null handle.
#[inline]
pub fn made<A: Statuses, R>(make: impl FnOnce(*mut Option<R>) -> Outcome<A>) -> Result<R> {
    let mut made = None;
    let outcome = make(&raw mut made);
    outcome.ok()?;
    made.ok_or_else(|| {
        let why =
            format!("{} succeeded and gave a null handle: the driver is broken", outcome.call);
        Error::new(ErrorKind::Unknown, why)
    })
}
/// The address that a successful call wrote.
///
/// # Errors
/// Returns the driver's error.
#[inline]
pub fn placed<A: Statuses>(place: impl FnOnce(*mut *mut c_void) -> Outcome<A>) -> Result<u64> {
    let mut at = null_mut();
    place(&raw mut at).ok().map(|()| at.expose_provenance() as u64)
}
/// Calls a query that returns a list: first for the length, then for the entries, in a list of `empty` ones.
///
/// # Errors
/// Returns the driver's error.
pub fn listed<A: Statuses, N: TryInto<usize> + Copy + Default, T: Clone>(
    empty: T,
    ask: impl Fn(*mut N, *mut T) -> Outcome<A>,
) -> Result<Vec<T>> {
    let length = |count: N| count.try_into().unwrap_or_default();
    let mut count = N::default();
    ask(&raw mut count, null_mut()).ok()?;
    let mut found = vec![empty; length(count)];
    if !found.is_empty() {
        ask(&raw mut count, found.as_mut_ptr()).ok()?;
    }
    found.truncate(length(count));
    Ok(found)
}
/// Calls a query that returns a list of handles.
///
/// # Errors
/// Returns the driver's error.
pub fn handles<A: Statuses, R: Copy>(
    ask: impl Fn(*mut u32, *mut Option<R>) -> Outcome<A>,
) -> Result<Vec<R>> {
    Ok(listed(None, ask)?.into_iter().flatten().collect())
}
/// The text before the first NUL, or all of it.
pub fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}
