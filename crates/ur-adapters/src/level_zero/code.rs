//! What a program is made of, and what became of it on each device. Modules are unloaded when nobody
//! has a kernel of them any more.
use super::native::module::{Code, NativeModule, Piece};
use crate::kernels::spirv::Facts;
use std::{ffi::CString, sync::Arc};
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_sys::{ur_program_binary_type_t, ur_program_build_status_t};

/// What C gave.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// SPIR-V for all devices.
    Il(Arc<[u8]>),
    /// A binary for each device, in their order.
    Binaries(Vec<Arc<[u8]>>),
    /// Pieces of compiled programs, joined.
    Linked(Vec<Piece>),
    /// A module of the driver's.
    Module,
}
impl Source {
    /// What the SPIR-V says, or why it is none; `None` of code that is none to begin with.
    pub(super) fn facts(&self) -> Option<Result<Facts, String>> {
        match self {
            Self::Il(code) => Some(Facts::of(code)),
            Self::Linked(pieces) => {
                let each = pieces.iter().map(|piece| match &piece.code {
                    Code::Il(code) => Some(Facts::of(code)),
                    Code::Native(_) => None,
                });
                let all: Option<Result<Vec<_>, _>> = each.collect();
                Some(all?.map(|all| {
                    all.into_iter().fold(Facts::default(), |mut joined, one| {
                        joined.join(one);
                        joined
                    })
                }))
            }
            Self::Binaries(_) | Self::Module => None,
        }
    }
    /// The code for the device at this place.
    pub(super) fn code(&self, place: usize) -> Option<Code> {
        match self {
            Self::Il(code) => Some(Code::Il(Arc::clone(code))),
            Self::Binaries(all) => all.get(place).map(|code| Code::Native(Arc::clone(code))),
            Self::Linked(_) | Self::Module => None,
        }
    }
}

/// How far the code for one device has come.
#[derive(Clone, Debug)]
pub(super) struct Build {
    pub(super) status: ur_program_build_status_t,
    pub(super) kind: ur_program_binary_type_t,
    pub(super) options: String,
    pub(super) log: String,
    /// There once it is built.
    pub(super) module: Option<Arc<NativeModule>>,
}
impl Default for Build {
    fn default() -> Self {
        let (options, log) = (String::new(), String::new());
        let (status, kind) = (ur_program_build_status_t::NONE, ur_program_binary_type_t::NONE);
        Self { status, kind, options, log, module: None }
    }
}
impl Build {
    /// One that there is already.
    pub(super) fn done(module: Arc<NativeModule>) -> Self {
        let (status, kind) =
            (ur_program_build_status_t::SUCCESS, ur_program_binary_type_t::EXECUTABLE);
        Self { status, kind, module: Some(module), ..Self::default() }
    }
    /// Notes what a build came to. Where another thread was faster, its module stays: kernels may be
    /// of it.
    pub(super) fn note(
        &mut self,
        options: &str,
        log: String,
        made: Result<Option<Arc<NativeModule>>>,
    ) -> Result<()> {
        if self.module.is_some() {
            return Ok(());
        }
        (self.options, self.log) = (options.to_owned(), log);
        let made = made.inspect_err(|_| self.status = ur_program_build_status_t::ERROR)?;
        self.status = ur_program_build_status_t::SUCCESS;
        self.kind = match made {
            Some(_) => ur_program_binary_type_t::EXECUTABLE,
            None => ur_program_binary_type_t::COMPILED_OBJECT,
        };
        self.module = made;
        Ok(())
    }
}

/// What the compiler of the driver is told for what C says.
///
/// # Errors
/// `INVALID_VALUE` for options with a NUL inside.
pub(super) fn options(said: &str) -> Result<CString> {
    let mut words: Vec<&str> = vec![];
    for word in said.split_ascii_whitespace() {
        match word {
            // What front ends say, where the driver's compiler has other words for it.
            "-ftarget-compile-fast" => {
                words.extend(["-igc_opts", "'PartitionUnit=1,SubroutineThreshold=50000'"]);
            }
            "-foffload-fp32-prec-div" | "-foffload-fp32-prec-sqrt" => {
                words.push("-ze-fp32-correctly-rounded-divide-sqrt");
            }
            "-O0" => words.push("-ze-opt-disable"),
            other => words.push(other),
        }
    }
    CString::new(words.join(" ")).map_err(|_| {
        Error::new(ErrorCode::InvalidValue, "the options of a build have a NUL inside")
    })
}
/// A failure as C expects it of a build: the driver's words on the code become `code`, all else stays.
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
    fn options_of_front_ends_become_those_of_the_driver() {
        let told = |said| options(said).unwrap().into_string().unwrap();
        assert_eq!(told(" -g  -ze-opt-level=2 "), "-g -ze-opt-level=2");
        assert_eq!(told("-O0"), "-ze-opt-disable");
        assert!(told("-ftarget-compile-fast").contains("PartitionUnit=1"));
        assert_eq!(options("a\0b").unwrap_err().code(), ErrorCode::InvalidValue);
    }
    #[test]
    fn a_failed_build_is_noted_with_its_log_and_can_be_tried_again() {
        let mut build = Build::default();
        let failure = || Err(Error::new(ErrorCode::ProgramBuildFailure, "no"));
        build.note("-x", "line 3".into(), failure()).unwrap_err();
        assert_eq!(build.status, ur_program_build_status_t::ERROR);
        assert_eq!((build.options.as_str(), build.log.as_str()), ("-x", "line 3"));
        assert_eq!(build.kind, ur_program_binary_type_t::NONE);
        build.note("", String::new(), Ok(None)).unwrap();
        assert_eq!(build.status, ur_program_build_status_t::SUCCESS);
        assert_eq!(build.kind, ur_program_binary_type_t::COMPILED_OBJECT);
    }
}
