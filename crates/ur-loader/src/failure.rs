//! Failures of the loader's own entries: a code for the caller, which may come from an adapter, and a
//! sentence for the log; and `enter`, through which every entry returns.
use crate::log;
use ur_adapter::error::ErrorCode;
use ur_sys::ur_result_t;

/// Why an entry failed.
#[derive(Debug)]
pub(crate) struct Failure {
    code: ur_result_t,
    sentence: String,
}
/// The result of an entry.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Makes a failure of a code and a sentence for the log.
    pub(crate) fn new(code: ErrorCode, sentence: impl Into<String>) -> Self {
        Self { code: code.into(), sentence: sentence.into() }
    }
    /// Turns an adapter's result code into a failure unless it is success.
    pub(crate) fn of(code: ur_result_t) -> Result<()> {
        match code {
            ur_result_t::SUCCESS => Ok(()),
            _ => Err(Self { code, sentence: "an adapter answers so".to_string() }),
        }
    }
}
impl From<ErrorCode> for Failure {
    fn from(code: ErrorCode) -> Self {
        Self { code: code.into(), sentence: String::new() }
    }
}

/// Runs the body of an entry: returns its code to the caller and logs the sentence. A panic is caught and
/// returned as an error.
pub(crate) fn enter(entry: &str, body: impl FnOnce() -> Result<()>) -> ur_result_t {
    match ur_lock::caught(body) {
        Some(Ok(())) => ur_result_t::SUCCESS,
        Some(Err(Failure { code, sentence })) => {
            log::info(format_args!("{entry} answers {code:?}. {sentence}"));
            code
        }
        None => {
            log::error(format_args!("{entry} panicked, which is a fault of the loader's"));
            ErrorCode::Unknown.into()
        }
    }
}
