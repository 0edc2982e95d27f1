//! Failures of the loader's own entries: a code for C, which may be an adapter's, a sentence for the
//! log; and `enter`, the one way out.
use crate::log;
use ur_adapter::error::ErrorCode;
use ur_sys::ur_result_t;

/// Why an entry failed.
#[derive(Debug)]
pub(crate) struct Failure {
    code: ur_result_t,
    sentence: String,
}
/// What an entry comes to.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A code and what there is to say.
    pub(crate) fn new(code: ErrorCode, sentence: impl Into<String>) -> Self {
        Self { code: code.into(), sentence: sentence.into() }
    }
    /// What an adapter answered, if it is a failure.
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

/// The way out: a code for the caller, the rest for the log. Nothing unwinds past it.
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
