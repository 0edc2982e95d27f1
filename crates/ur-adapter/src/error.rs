//! Errors: a code for C, a sentence for people; and `enter`, through which every entry returns.
pub use crate::error_code::ErrorCode;
use crate::{
    log,
    object::{Backend, Body},
};
use std::{
    any::Any,
    borrow::Cow,
    cell::RefCell,
    ffi::CString,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
};
use ur_sys::{ur_logger_level_t, ur_result_t};

/// Why sharing between processes failed, in more detail than the ABI's codes.
pub use ur_ipc::ErrorKind as Reason;

/// An error: the code that callers get, and further details.
#[derive(Debug)]
pub struct Error {
    code: ErrorCode,
    detail: Option<Box<Detail>>,
}

#[derive(Debug)]
struct Detail {
    message: Cow<'static, str>,
    reason: Option<Reason>,
    native: Option<i32>,
}
impl Detail {
    fn new(message: Cow<'static, str>) -> Box<Self> {
        Box::new(Self { message, reason: None, native: None })
    }
}

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<ErrorCode> for Error {
    fn from(code: ErrorCode) -> Self {
        Self { code, detail: None }
    }
}

impl Error {
    /// An error with a sentence that says what happened and what to do.
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, detail: Some(Detail::new(message.into())) }
    }
    fn detail(&mut self) -> &mut Detail {
        let code = self.code;
        self.detail.get_or_insert_with(|| Detail::new(code.to_string().into()))
    }
    /// Adds the reason why sharing failed, for programs: its word is appended to the sentence.
    #[must_use]
    pub fn because(mut self, reason: Reason) -> Self {
        self.detail().reason = Some(reason);
        self
    }
    /// Adds the driver's own status, or the errno where the kernel is the driver.
    #[must_use]
    pub fn native(mut self, status: i32) -> Self {
        self.detail().native = Some(status);
        self
    }
    /// The level at which it is logged: see `log`.
    fn level(&self) -> ur_logger_level_t {
        use ErrorCode as E;
        match self.code {
            E::UnsupportedEnumeration | E::UnsupportedFeature => ur_logger_level_t::INFO,
            E::InvalidBinary => ur_logger_level_t::INFO,
            E::Unknown => ur_logger_level_t::ERROR,
            _ => ur_logger_level_t::WARN,
        }
    }
    /// The code that callers get.
    pub const fn code(&self) -> ErrorCode {
        self.code
    }
    /// Changes the code, for entries that document their own.
    #[must_use]
    pub fn with_code(mut self, code: ErrorCode) -> Self {
        self.code = code;
        self
    }
    /// The driver's own status, if it was recorded; the errno where the kernel is the driver.
    pub fn native_status(&self) -> Option<i32> {
        self.detail.as_ref()?.native
    }
    /// Returns the error's sentence, if it has one.
    pub(crate) fn into_message(self) -> Option<Cow<'static, str>> {
        self.detail.map(|detail| detail.message)
    }
    /// The reason why sharing failed, if that is what failed.
    pub(crate) fn reason(&self) -> Option<Reason> {
        self.detail.as_ref()?.reason
    }
    /// The error of an entry that could not start the thread `name`.
    pub fn no_thread(name: &str, why: &dyn fmt::Display) -> Self {
        ur_hal::Error::no_thread(name, why).into()
    }
    /// The result of an entry that refuses what the caller passed.
    ///
    /// # Errors
    /// Always this code, with a sentence that says what happened and what to do.
    pub fn refuse<T>(code: ErrorCode, why: impl Into<Cow<'static, str>>) -> Result<T> {
        Err(Self::new(code, why))
    }
    /// Checks a condition.
    ///
    /// # Errors
    /// This code with the sentence `why`, unless the condition is met.
    pub fn unless<W: Into<Cow<'static, str>>>(
        is_met: bool,
        code: ErrorCode,
        why: impl FnOnce() -> W,
    ) -> Result<()> {
        if is_met { Ok(()) } else { Self::refuse(code, why()) }
    }
    /// The result of a query for a property that such an object does not have.
    ///
    /// # Errors
    /// Always `UNSUPPORTED_ENUMERATION`.
    pub fn no_answer<T>(object: &str, name: impl fmt::Debug) -> Result<T> {
        let why = format!("{object} has no answer to {name:?}");
        Self::refuse(ErrorCode::UnsupportedEnumeration, why)
    }
    /// The result of an entry that the adapter does not implement.
    ///
    /// # Errors
    /// Always `UNSUPPORTED_FEATURE`, naming `what`.
    pub fn unsupported<T>(what: &'static str) -> Result<T> {
        let why = format!("{what} is not supported by this adapter");
        Self::refuse(ErrorCode::UnsupportedFeature, why)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.detail {
            Some(detail) => {
                write!(f, "{} ({}", detail.message, self.code)?;
                if let Some(reason) = detail.reason {
                    write!(f, ", reason {}", reason.word())?;
                }
                if let Some(status) = detail.native {
                    write!(f, ", driver status {status}")?;
                }
                f.write_str(")")
            }
            None => write!(f, "{}", self.code),
        }
    }
}
impl std::error::Error for Error {}

/// What `urAdapterGetLastError` returns until the adapter's next failure on the thread.
struct Last {
    error: Error,
    sentence: CString,
}
/// The last failure of each adapter on one thread, because a program may use several adapters.
struct Failures {
    /// Indexed by `Backend::index`.
    of: [Option<Last>; Backend::ALL.len()],
    /// The adapter whose failure was the most recent.
    latest: Option<Backend>,
}
thread_local! {
    static FAILURES: RefCell<Failures> = const {
        RefCell::new(Failures { of: [const { None }; Backend::ALL.len()], latest: None })
    };
}

/// The return path of every entry: returns a code, and passes the details to the log and to `urAdapterGetLastError`. No
/// panic unwinds past it, not even while a thread ends.
///
/// The log is that of `backend`'s adapter, and names the entry with each failure.
pub fn enter(
    backend: Backend,
    entry: &'static str,
    body: impl FnOnce() -> Result<()>,
) -> ur_result_t {
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return ur_result_t::SUCCESS,
        Ok(Err(error)) => error,
        Err(panic) => Error::new(ErrorCode::Unknown, format!("panicked: {}", discard(panic))),
    };
    let code = ur_result_t::from(error.code);
    let _ = ur_lock::caught(|| keep(backend, entry, error));
    code
}
/// Like [`enter`], for an entry of the adapter to which objects `T` belong.
pub fn enter_as<T: Body>(entry: &'static str, body: impl FnOnce() -> Result<()>) -> ur_result_t {
    enter(backend::<T>(), entry, body)
}
/// The backend to which objects `T` belong.
pub(crate) const fn backend<T: Body>() -> Backend {
    const { T::TAG.backend().expect("only objects that can be made have an adapter") }
}
/// Logs `error` and keeps it, unless this thread's storage is gone or borrowed further up the stack.
fn keep(backend: Backend, entry: &str, error: Error) {
    let between = if entry.is_empty() { "" } else { ": " };
    log::say(backend, error.level(), &format_args!("{entry}{between}{error}"));
    let sentence = CString::new(error.to_string().replace('\0', " ")).unwrap_or_default();
    let _ = FAILURES.try_with(|failures| {
        failures.try_borrow_mut().map(|mut failures| {
            failures.of[backend.index()] = Some(Last { error, sentence });
            failures.latest = Some(backend);
        })
    });
}
/// The message of a panic.
fn discard(panic: Box<dyn Any + Send>) -> String {
    let said = panic.downcast_ref::<&str>().map(|s| (*s).to_string());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
    ur_lock::discard(panic);
    said.unwrap_or_else(|| "(no message)".into())
}
/// The sentence of this thread's last failure in any adapter.
pub fn last_error() -> Option<String> {
    let last = |failures: &Failures| {
        let last = failures.of[failures.latest?.index()].as_ref()?;
        Some(last.error.to_string())
    };
    FAILURES.try_with(|failures| last(&*failures.try_borrow().ok()?)).ok()?
}
/// What `urAdapterGetLastError` of `backend`'s adapter returns: a C string that is valid until that adapter's next
/// failure on this thread, and the driver's status (0 if the failure had none).
pub(crate) fn last_error_for_c(backend: Backend) -> Option<(*const std::ffi::c_char, i32)> {
    let lent = |failures: &Failures| {
        let last = failures.of[backend.index()].as_ref()?;
        Some((last.sentence.as_ptr(), last.error.native_status().unwrap_or(0)))
    };
    FAILURES.try_with(|failures| lent(&*failures.try_borrow().ok()?)).ok()?
}

impl From<ur_ipc::Error> for Error {
    /// Maps kinds to codes as the sharing entries document them; kinds that they do not mention become `INVALID_VALUE`.
    fn from(error: ur_ipc::Error) -> Self {
        ur_hal::Error::from(error).into()
    }
}

const _: () = assert!(size_of::<Result<()>>() == 16);
