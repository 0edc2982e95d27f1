//! The build state of a program's code for one device, and the errors of builds.
use std::sync::Arc;
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_hal::Constant;
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
/// What a build depends on, apart from the code.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Settings {
    pub(super) options: String,
    /// Specialization constants.
    pub(super) constants: Vec<Constant>,
}
/// The build for one device, or for all devices if they share modules.
#[derive(Debug)]
pub(super) struct Build<M> {
    state: State<M>,
    /// Those of the last attempt.
    pub(super) settings: Settings,
    /// The log of the compiler and the linker.
    pub(super) log: String,
    /// Whether addresses in the module have been given out.
    pub(super) is_lent: bool,
}
impl<M> Default for Build<M> {
    fn default() -> Self {
        let (settings, log) = Default::default();
        Self { state: State::Created, settings, log, is_lent: false }
    }
}
impl<M> Build<M> {
    /// A finished build.
    pub(super) fn done(module: M, options: &str, log: String) -> Self {
        let settings = Settings { options: options.to_owned(), constants: vec![] };
        Self { state: State::Built(Arc::new(module)), settings, log, is_lent: false }
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
    /// Whether it is built with these settings.
    pub(super) fn is_built_with(&self, settings: &Settings) -> bool {
        self.module().is_some() && self.settings == *settings
    }
    /// Stores the result of an attempt, and returns the module that it replaces. If another thread has built a module with the same
    /// settings meanwhile, that one stays, because kernels may use it.
    ///
    /// # Errors
    /// The error of the attempt.
    pub(super) fn note(
        &mut self,
        settings: Settings,
        log: String,
        made: Result<State<M>>,
    ) -> (Option<Arc<M>>, Result<()>) {
        if self.is_built_with(&settings) {
            return (None, Ok(()));
        }
        let replaced = self.module().cloned();
        (self.settings, self.log) = (settings, log);
        let (state, noted) = match made {
            Ok(state) => (state, Ok(())),
            Err(error) => (State::Failed, Err(error)),
        };
        self.state = state;
        (replaced, noted)
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
        let failure = || Error::refuse(ErrorCode::ProgramBuildFailure, "no");
        build.note(with("-x"), "line 3".into(), failure()).1.unwrap_err();
        assert_eq!((build.status(), build.kind()), (Status::ERROR, ur_program_binary_type_t::NONE));
        assert_eq!((build.settings.options.as_str(), build.log.as_str()), ("-x", "line 3"));
        build.note(with(""), String::new(), Ok(State::Compiled)).1.unwrap();
        assert_eq!(build.status(), Status::SUCCESS);
        assert_eq!(build.kind(), ur_program_binary_type_t::COMPILED_OBJECT);
        build.note(with(""), String::new(), built(1)).1.unwrap();
        assert_eq!((build.module().map(|one| **one), build.log.as_str()), (Some(1), ""));
        let (replaced, noted) = build.note(with("-y"), "no".into(), failure());
        assert!(replaced == Some(Arc::new(1)) && noted.is_err() && build.module().is_none());
    }
    #[test]
    fn a_module_is_replaced_only_by_one_with_other_settings() {
        let mut build = Build::<u8>::default();
        build.note(with(""), String::new(), built(1)).1.unwrap();
        let (replaced, noted) = build.note(with(""), "late".into(), built(2));
        assert!(replaced.is_none() && noted.is_ok());
        assert_eq!((build.module().map(|one| **one), build.log.as_str()), (Some(1), ""));
        for (settings, number) in
            [(with("-y"), 3), (Settings { constants: vec![(7, [1].into())], ..with("-y") }, 4)]
        {
            assert!(!build.is_built_with(&settings));
            let (replaced, noted) = build.note(settings, String::new(), built(number));
            assert!(replaced.is_some() && noted.is_ok());
            assert_eq!(build.module().map(|one| **one), Some(number));
        }
    }
    fn with(options: &str) -> Settings {
        Settings { options: options.into(), ..Settings::default() }
    }
    fn built(module: u8) -> Result<State<u8>> {
        Ok(State::Built(Arc::new(module)))
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
