//! The build state of a program's code for one device, and the errors of builds.
use std::sync::Arc;
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_sys::{ur_program_binary_type_t, ur_program_build_status_t};

/// The state of a build.
#[derive(Debug)]
pub(super) enum State<M> {
    /// Neither compiled nor built.
    Created,
    /// Compiled: it can be linked.
    Compiled,
    /// Built: its functions can run.
    Built(Arc<M>),
    /// The last attempt failed.
    Failed,
}
/// The build for one device, or for all devices if they share modules.
#[derive(Debug)]
pub(super) struct Build<M> {
    state: State<M>,
    /// The options of the last attempt.
    pub(super) options: String,
    /// The log of the compiler and the linker.
    pub(super) log: String,
}
impl<M> Default for Build<M> {
    fn default() -> Self {
        Self { state: State::Created, options: String::new(), log: String::new() }
    }
}
impl<M> Build<M> {
    /// A finished build.
    pub(super) fn done(module: M, options: &str, log: String) -> Self {
        Self { state: State::Built(Arc::new(module)), options: options.to_owned(), log }
    }
    /// The module, if it is built.
    pub(super) fn module(&self) -> Option<&Arc<M>> {
        match &self.state {
            State::Built(module) => Some(module),
            State::Created | State::Compiled | State::Failed => None,
        }
    }
    pub(super) fn status(&self) -> ur_program_build_status_t {
        match self.state {
            State::Created => ur_program_build_status_t::NONE,
            State::Compiled | State::Built(_) => ur_program_build_status_t::SUCCESS,
            State::Failed => ur_program_build_status_t::ERROR,
        }
    }
    pub(super) fn kind(&self) -> ur_program_binary_type_t {
        match self.state {
            State::Created | State::Failed => ur_program_binary_type_t::NONE,
            State::Compiled => ur_program_binary_type_t::COMPILED_OBJECT,
            State::Built(_) => ur_program_binary_type_t::EXECUTABLE,
        }
    }
    /// Stores the result of an attempt. If another thread has built a module meanwhile, that one stays, because kernels
    /// may use it.
    ///
    /// # Errors
    /// The error of the attempt.
    pub(super) fn note(
        &mut self,
        options: &str,
        log: String,
        made: Result<State<M>>,
    ) -> Result<()> {
        if self.module().is_some() {
            return Ok(());
        }
        (self.options, self.log) = (options.to_owned(), log);
        self.state = made.inspect_err(|_| self.state = State::Failed)?;
        Ok(())
    }
}
/// The error of a failed build: errors about the code itself get `code` and the log, other errors are unchanged.
pub(super) fn failed(error: Error, log: &str, code: ErrorCode) -> Error {
    use ErrorCode as E;
    match error.code() {
        E::ProgramBuildFailure | E::ProgramLinkFailure | E::Unknown | E::InvalidValue => {
            Error::new(code, format!("{error}\n{log}").trim_end().to_owned())
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_build_is_noted_with_its_log_and_can_be_tried_again() {
        use ur_program_build_status_t as Status;
        let mut build = Build::<u8>::default();
        assert_eq!((build.status(), build.module()), (Status::NONE, None));
        let failure = Error::refuse(ErrorCode::ProgramBuildFailure, "no");
        build.note("-x", "line 3".into(), failure).unwrap_err();
        assert_eq!((build.status(), build.kind()), (Status::ERROR, ur_program_binary_type_t::NONE));
        assert_eq!((build.options.as_str(), build.log.as_str()), ("-x", "line 3"));
        build.note("", String::new(), Ok(State::Compiled)).unwrap();
        assert_eq!(build.status(), Status::SUCCESS);
        assert_eq!(build.kind(), ur_program_binary_type_t::COMPILED_OBJECT);
        build.note("", String::new(), Ok(State::Built(Arc::new(1)))).unwrap();
        build.note("-y", "late".into(), Ok(State::Built(Arc::new(2)))).unwrap();
        assert_eq!((build.module().map(|one| **one), build.log.as_str()), (Some(1), ""));
    }
    #[test]
    fn failures_that_are_not_the_codes_keep_theirs() {
        let of = |code: ErrorCode| failed(code.into(), "log", ErrorCode::ProgramLinkFailure);
        assert_eq!(of(ErrorCode::DeviceLost).code(), ErrorCode::DeviceLost);
        let error = of(ErrorCode::ProgramBuildFailure);
        assert_eq!(error.code(), ErrorCode::ProgramLinkFailure);
        assert!(error.to_string().contains("\nlog"), "{error}");
    }
}
