//! Code that is loaded on one device, how its build went, and what a build may be told. Code is unloaded when
//! nobody has a kernel of it any more and everything is done that was submitted before.
use super::{
    Device,
    binary::{Entries, Image},
    driver::Dialect,
    linger,
    native::module::{Module, Options},
};
use std::{
    ffi::{CStr, CString},
    sync::Arc,
};
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_sys::{ur_program_binary_type_t, ur_program_build_status_t};

/// How far the code for one device has come.
#[derive(Debug)]
pub(super) struct Build<D: Dialect> {
    pub(super) status: ur_program_build_status_t,
    pub(super) kind: ur_program_binary_type_t,
    pub(super) options: String,
    pub(super) log: String,
    /// There once it is built.
    pub(super) code: Option<Arc<Code<D>>>,
}
impl<D: Dialect> Default for Build<D> {
    fn default() -> Self {
        let (options, log) = (String::new(), String::new());
        let (status, kind) = (ur_program_build_status_t::NONE, ur_program_binary_type_t::NONE);
        Self { status, kind, options, log, code: None }
    }
}
impl<D: Dialect> Build<D> {
    /// Notes what a build came to. Where another thread was faster, its code stays: kernels may be of it.
    pub(super) fn note(
        &mut self,
        kind: ur_program_binary_type_t,
        options: String,
        log: String,
        code: Option<Arc<Code<D>>>,
        has_failed: bool,
    ) {
        if self.code.is_some() {
            return;
        }
        (self.options, self.log) = (options, log);
        (self.status, self.code) = match has_failed {
            true => (ur_program_build_status_t::ERROR, None),
            false => (ur_program_build_status_t::SUCCESS, code),
        };
        if !has_failed {
            self.kind = kind;
        }
    }
    /// What linking said before.
    pub(super) fn prepend(&mut self, log: &str) {
        if !log.is_empty() {
            self.log = format!("{log}\n{}", self.log).trim_end().to_owned();
        }
    }
}

/// Loaded code.
#[derive(Debug)]
pub(super) struct Code<D: Dialect> {
    /// There until it is dropped.
    module: Option<Module<D>>,
    entries: Option<Entries>,
}
impl<D: Dialect> Code<D> {
    /// Loads an image; the driver's log too, whatever comes of it.
    ///
    /// # Errors
    /// The driver's own.
    pub(super) fn load(
        device: &Device<D>,
        image: &Image,
        options: Options,
    ) -> (Result<Self>, String) {
        let (context, on) = match device.context().and_then(|c| Ok((c, device.enter()?))) {
            Ok(entered) => entered,
            Err(error) => return (Err(error), String::new()),
        };
        let (module, log) = Module::load(&on, context, image.terminated(), options);
        let entries = image.entries().cloned();
        (module.map(|module| Self { module: Some(module), entries }), log)
    }
    /// A module of others.
    pub(super) fn of(module: Module<D>) -> Self {
        Self { module: Some(module), entries: None }
    }
    pub(super) fn module(&self) -> &Module<D> {
        self.module.as_ref().expect("it goes when this is dropped")
    }
    /// The sizes of a kernel's parameters, if its text was seen.
    pub(super) fn parameters(&self, kernel: &CStr) -> Option<Vec<u32>> {
        self.entries.as_ref()?.get(kernel).cloned().flatten()
    }
    /// What its kernels are called, less the twins of those that take no offset.
    ///
    /// # Errors
    /// `UNSUPPORTED_ENUMERATION` where neither code nor driver tells.
    pub(super) fn names(&self) -> Result<Vec<CString>> {
        let mut names = match &self.entries {
            Some(entries) => entries.keys().cloned().collect(),
            None => self.module().names().map_err(|error| match error.code() {
                ErrorCode::UnsupportedFeature => error.with_code(ErrorCode::UnsupportedEnumeration),
                _ => error,
            })?,
        };
        names.sort();
        let all = names.clone();
        names.retain(|name| {
            let twin_of = name.to_bytes().strip_suffix(TWIN);
            twin_of.is_none_or(|of| all.binary_search_by(|one| one.to_bytes().cmp(of)).is_err())
        });
        Ok(names)
    }
}
/// What a kernel's twin, which takes an offset behind its arguments, has behind its name.
pub(super) const TWIN: &[u8] = b"_with_offset";

impl<D: Dialect> Drop for Code<D> {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            linger::leave::<D>(0, module); // which contexts' kernels were launched is not kept
        }
    }
}

/// What a build may be told: `-maxrregcount=N`, `-ON`, `-g`, `-lineinfo`, each with one dash or two. What is
/// meant for other compilers is left out.
///
/// # Errors
/// What is wrong with one, for the build log.
pub(super) fn options(text: &str) -> std::result::Result<Options, String> {
    let mut all = Options::default();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
        match name.trim_start_matches('-') {
            "maxrregcount" => {
                let number = value.or_else(|| words.next()).and_then(|n| n.parse().ok());
                let number = number.filter(|&n| (1..=1024).contains(&n));
                all.registers = Some(number.ok_or_else(|| {
                    format!("{word}: registers of a thread are a number from 1 to 1024")
                })?);
            }
            "g" | "device-debug" if word.starts_with('-') => all.debug = true,
            "lineinfo" | "generate-line-info" => all.lines = true,
            other => {
                let level = other.strip_prefix('O').filter(|_| word.starts_with('-'));
                let level = level.and_then(|n| n.parse().ok()).filter(|n| *n <= 4);
                all.optimization = level.or(all.optimization);
            }
        }
    }
    Ok(all)
}
/// Whether what the driver said is about the code, not about the device or the memory there is.
pub(super) fn is_about_code(error: &Error) -> bool {
    use ErrorCode as E;
    !matches!(
        error.code(),
        E::DeviceLost
            | E::Uninitialized
            | E::OutOfHostMemory
            | E::OutOfDeviceMemory
            | E::OutOfResources
            | E::UnsupportedFeature
    )
}
/// What C is told of code that does not build.
pub(super) fn build_failure(error: Error, log: &str) -> Error {
    match is_about_code(&error) {
        true if error.code() == ErrorCode::ProgramBuildFailure => error,
        true => Error::new(ErrorCode::ProgramBuildFailure, format!("{error}\n{log}")),
        false => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_driver_are_found_among_those_of_others() {
        let none = Options::default();
        assert_eq!(options("--cuda-path=/x -cl-fast-relaxed-math -Ofast O2 g -o-g").unwrap(), none);
        let all = options("-g --maxrregcount=64 -lineinfo -O1 -O3").unwrap();
        let expected =
            Options { registers: Some(64), optimization: Some(3), debug: true, lines: true };
        assert_eq!(all, expected);
        assert_eq!(options(" -maxrregcount 32 ").unwrap().registers, Some(32));
        for wrong in ["-maxrregcount", "-maxrregcount=", "-maxrregcount=x", "-maxrregcount=0"] {
            assert!(options(wrong).unwrap_err().contains("from 1 to 1024"), "{wrong}");
        }
    }
}
