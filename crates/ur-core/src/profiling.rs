//! Profiling times of commands: which of them are reported, and when they become available. The backend measures them.
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_sys::ur_profiling_info_t;

/// Which times of a command are reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// None: profiling is not enabled.
    Off,
    /// Submission, start and end.
    Phases,
    /// Submission, and one time that is both start and end: a recorded timestamp.
    Moment,
    /// One time that is submission, start and end: a signal of a reusable event.
    Instant,
}
impl Profile {
    /// Whether any times are reported.
    pub fn is_on(self) -> bool {
        self != Self::Off
    }
    /// Checks that times are reported.
    ///
    /// # Errors
    /// `PROFILING_INFO_NOT_AVAILABLE` if not.
    pub fn check(self) -> Result<()> {
        match self {
            Self::Off => Error::refuse(
                ErrorCode::ProfilingInfoNotAvailable,
                "the event has no times: neither the queue of its command nor the event itself was \
                 made with profiling enabled",
            ),
            _ => Ok(()),
        }
    }
    /// The time called `name`, in nanoseconds. `submitted`: when the command was submitted. `span`: when it began and
    /// ended, `None` before its end.
    ///
    /// # Errors
    /// `PROFILING_INFO_NOT_AVAILABLE` for a time that is not reported, or not available yet; the errors of `span`.
    pub fn time(
        self,
        name: ur_profiling_info_t,
        submitted: u64,
        span: impl FnOnce() -> Result<Option<(u64, u64)>>,
    ) -> Result<u64> {
        use ur_profiling_info_t as Info;
        self.check()?;
        let is_early = match name {
            Info::COMMAND_QUEUED | Info::COMMAND_SUBMIT => self != Self::Instant,
            Info::COMMAND_START | Info::COMMAND_END | Info::COMMAND_COMPLETE => false,
            _ => return Err(ErrorCode::UnsupportedEnumeration.into()),
        };
        let span = span()?;
        if is_early {
            // The two may come from different clocks: never report a submission later than the start.
            return Ok(span.map_or(submitted, |(began, _)| submitted.min(began)));
        }
        let (began, ended) = span.ok_or_else(not_yet)?;
        Ok(if name == Info::COMMAND_START { began } else { ended })
    }
}
/// The error for times that are not available yet.
pub fn not_yet() -> Error {
    Error::new(
        ErrorCode::ProfilingInfoNotAvailable,
        "the command has not ended, or has failed: of a command that has not ended only the times of \
         COMMAND_QUEUED and COMMAND_SUBMIT are known, of a signal none",
    )
}

#[cfg(test)]
mod tests {
    use super::{Profile::*, *};
    use ur_profiling_info_t as Info;

    fn times(profile: Profile, span: Option<(u64, u64)>) -> [Result<u64, ErrorCode>; 4] {
        let names =
            [Info::COMMAND_QUEUED, Info::COMMAND_SUBMIT, Info::COMMAND_START, Info::COMMAND_END];
        names.map(|name| profile.time(name, 5, || Ok(span)).map_err(|error| error.code()))
    }

    #[test]
    fn submission_is_known_before_the_end_and_everything_after_it() {
        let none = Err(ErrorCode::ProfilingInfoNotAvailable);
        for profile in [Phases, Moment] {
            assert_eq!(times(profile, None), [Ok(5), Ok(5), none, none]);
            assert_eq!(times(profile, Some((7, 9))), [Ok(5), Ok(5), Ok(7), Ok(9)]);
        }
        assert_eq!(times(Instant, None), [none; 4]);
        assert_eq!(times(Instant, Some((9, 9))), [Ok(9); 4]);
        assert_eq!(times(Off, Some((7, 9))), [none; 4]);
    }
    #[test]
    fn submission_is_not_told_as_later_than_the_start() {
        assert_eq!(times(Phases, Some((3, 9))), [Ok(3), Ok(3), Ok(3), Ok(9)]);
    }
    #[test]
    fn a_name_that_there_is_not_is_no_time() {
        let code = Phases.time(ur_profiling_info_t(99), 5, || Ok(None)).map_err(|e| e.code());
        assert_eq!(code, Err(ErrorCode::UnsupportedEnumeration));
    }
}
