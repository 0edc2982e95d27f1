//! A program: its code, its metadata, and its builds, one for each device.
use super::{
    build::{Build, Settings, State, failed},
    code::{HasCode, Module, leave, sweep},
};
use crate::{
    kernels::{
        metadata::{Metadata, Wanted},
        program_inputs,
        spirv::Facts,
    },
    over_driver::{Context, Device},
    process_mutex::ProcessMutex,
};
use std::{
    ffi::{CStr, CString},
    sync::{Arc, MutexGuard, OnceLock},
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_hal::{Constant, Piece};
use ur_sys::*;

/// What `ur_program_handle_t` points at.
#[derive(Debug)]
pub struct Program<D: HasCode> {
    context: Owned<Context<D>>,
    devices: Vec<Owned<Device<D>>>,
    origin: Origin,
    /// The parts of each device's module.
    parts: Vec<Vec<Part<D>>>,
    metadata: Metadata,
    /// What its SPIR-V contains, or why it cannot be parsed; `None` for other code. Parsed when first needed.
    facts: OnceLock<Option<Result<Facts, String>>>,
    constants: ProcessMutex<Vec<Constant>>,
    builds: ProcessMutex<Vec<Build<Module<D>>>>,
    /// Modules in whose place others were built, and of which addresses were given out: commands that were enqueued or recorded may use
    /// their variables, and keep the program.
    replaced: ProcessMutex<Vec<Arc<Module<D>>>>,
}
/// The origin of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// Intermediate code, for all devices.
    Intermediate,
    /// A binary for each device.
    Binaries,
    /// Already built: linked from programs, or made from an existing module.
    Built,
}
/// One piece of code, and how to compile it.
#[derive(Debug)]
pub(super) struct Part<D: HasCode> {
    pub(super) code: Arc<D::Code>,
    pub(super) flags: String,
    pub(super) constants: Vec<Constant>,
}
impl<D: HasCode> Part<D> {
    pub(super) fn piece(&self) -> Piece<'_, D> {
        Piece { code: &self.code, flags: &self.flags, constants: &self.constants }
    }
}
impl<D: HasCode> Clone for Part<D> {
    fn clone(&self) -> Self {
        let Self { code, flags, constants } = self;
        Self { code: Arc::clone(code), flags: flags.clone(), constants: constants.clone() }
    }
}
/// A device, and the module for it.
type Built<D> = (Owned<Device<D>>, Arc<Module<D>>);

/// Options as text; invalid UTF-8 is replaced.
pub(super) fn text(options: Option<&CStr>) -> String {
    options.map_or(String::new(), |options| options.to_string_lossy().into_owned())
}
/// The number of modules for so many devices.
pub(super) fn modules<D: HasCode>(devices: usize) -> usize {
    if D::SHARES_MODULES { 1 } else { devices }
}

impl<D: HasCode> Program<D> {
    /// A program that is not built yet.
    ///
    /// # Errors
    /// `INVALID_VALUE` for malformed metadata.
    pub(super) fn new(
        context: Borrowed<'_, Context<D>>,
        devices: Vec<Owned<Device<D>>>,
        origin: Origin,
        codes: Vec<Vec<Arc<D::Code>>>,
        properties: Option<&ur_program_properties_t>,
    ) -> Result<Owned<Self>> {
        let metadata = Metadata::of(program_inputs::metadata(properties)?)?;
        let part = |code| Part { code, flags: String::new(), constants: vec![] };
        let parts: Vec<Vec<_>> =
            codes.into_iter().map(|codes| codes.into_iter().map(part).collect()).collect();
        let builds = parts.iter().map(|_| Build::default()).collect();
        Ok(Self::of(context.own()?, devices, origin, parts, metadata, builds))
    }
    /// A program that is built already.
    pub(super) fn linked(
        context: Owned<Context<D>>,
        devices: Vec<Owned<Device<D>>>,
        parts: Vec<Vec<Part<D>>>,
        metadata: Metadata,
        builds: Vec<Build<Module<D>>>,
    ) -> Owned<Self> {
        Self::of(context, devices, Origin::Built, parts, metadata, builds)
    }
    /// A program over existing modules of some of the context's devices.
    pub(super) fn adopted(
        context: Owned<Context<D>>,
        modules: Vec<(Owned<Device<D>>, Module<D>)>,
    ) -> Owned<Self> {
        let (devices, builds) = modules
            .into_iter()
            .map(|(device, module)| (device, Build::done(module, "", String::new())))
            .collect::<(Vec<_>, Vec<_>)>();
        let parts = builds.iter().map(|_| vec![]).collect();
        Self::of(context, devices, Origin::Built, parts, Metadata::default(), builds)
    }
    fn of(
        context: Owned<Context<D>>,
        devices: Vec<Owned<Device<D>>>,
        origin: Origin,
        parts: Vec<Vec<Part<D>>>,
        metadata: Metadata,
        builds: Vec<Build<Module<D>>>,
    ) -> Owned<Self> {
        sweep::<D>();
        let (facts, constants, replaced) = Default::default();
        let builds = ProcessMutex::new(builds);
        let new =
            Self { context, devices, origin, parts, metadata, facts, constants, builds, replaced };
        Owned::new(new)
    }
    /// The context in which it was made.
    pub fn context(&self) -> &Owned<Context<D>> {
        &self.context
    }
    /// The devices for which it was made.
    pub fn devices(&self) -> &[Owned<Device<D>>] {
        &self.devices
    }
    pub(super) fn origin(&self) -> Origin {
        self.origin
    }
    pub(super) fn metadata(&self) -> &Metadata {
        &self.metadata
    }
    /// Its builds.
    ///
    /// # Errors
    /// `UNINITIALIZED` in a forked child that inherited the program.
    pub(super) fn builds(&self) -> Result<MutexGuard<'_, Vec<Build<Module<D>>>>> {
        self.builds.lock()
    }
    /// What its SPIR-V contains, or why it cannot be parsed; `None` for other code.
    pub(super) fn facts(&self) -> Option<&Result<Facts, String>> {
        let look = || {
            let parts = self.parts.first().filter(|parts| !parts.is_empty())?;
            let each = parts.iter().map(|part| D::spir_v(&part.code).map(Facts::of));
            let all: Option<Result<Vec<_>, _>> = each.collect();
            let join = |mut joined: Facts, one| {
                joined.join(one);
                joined
            };
            Some(all?.map(|all| all.into_iter().fold(Facts::default(), join)))
        };
        // A child forked while another thread looks would wait for ever: nothing is looked up in there.
        let facts = self.facts.get().unwrap_or_else(|| {
            let fresh = look();
            self.facts.get_or_init(|| fresh)
        });
        facts.as_ref()
    }
    /// The group sizes that a kernel requires, and whether the program has SPIR-V, which specifies the largest group
    /// size of each kernel that has one.
    pub(super) fn wanted(&self, kernel: &CStr) -> (Wanted, bool) {
        let mut wanted = self.metadata.wanted(kernel.to_bytes());
        let facts = self.facts();
        if let Some(Ok(facts)) = facts {
            wanted.most = wanted.most.or_else(|| facts.largest_groups.get(kernel).copied());
        }
        (wanted, facts.is_some())
    }
    /// The index of the build for a device, or for the device of which that is a part.
    ///
    /// # Errors
    /// `INVALID_DEVICE` for a device that it was not made for.
    pub(super) fn place(&self, device: &Device<D>) -> Result<usize> {
        if let Some(at) = self.devices.iter().position(|one| std::ptr::eq(&***one, device)) {
            return Ok(if D::SHARES_MODULES { 0 } else { at });
        }
        match device.parent() {
            Some(parent) => self.place(parent),
            None => {
                Error::refuse(ErrorCode::InvalidDevice, "the program was not made for this device")
            }
        }
    }
    /// Checks that it was made for a device or for the device of which that is a part.
    ///
    /// # Errors
    /// `INVALID_DEVICE` if it was not.
    pub fn check(&self, device: &Device<D>) -> Result<()> {
        self.place(device).map(drop)
    }
    /// Checks that it was made in a context.
    ///
    /// # Errors
    /// `INVALID_CONTEXT` if it was made in another one.
    pub(super) fn check_context(&self, context: Borrowed<'_, Context<D>>) -> Result<()> {
        Error::unless(
            self.context.same(&context),
            ErrorCode::InvalidContext,
            || "the program was made in another context",
        )
    }
    /// The modules of the devices for which it is built.
    ///
    /// # Errors
    /// `INVALID_PROGRAM_EXECUTABLE` unless it is built or linked for one of its devices.
    pub fn built(&self) -> Result<Vec<Built<D>>> {
        let builds = self.builds()?;
        let pairs = self.devices.iter().zip(&*builds);
        let built: Vec<_> = pairs
            .filter_map(|(device, build)| Some((device.clone(), Arc::clone(build.module()?))))
            .collect();
        if built.is_empty() { Err(not_built()) } else { Ok(built) }
    }
    /// Its module for a device, to give out addresses in it, or its native handle: it stays as long as the program.
    ///
    /// # Errors
    /// As for `check` and `built`.
    pub(super) fn lend(&self, device: &Device<D>) -> Result<Arc<Module<D>>> {
        let at = self.place(device)?;
        let mut builds = self.builds()?;
        builds[at].is_lent = true;
        builds[at].module().cloned().ok_or_else(not_built)
    }
    /// The same for all its devices, as far as it is built for them.
    ///
    /// # Errors
    /// As for [`builds`](Self::builds).
    pub(super) fn lend_all(&self) -> Result<()> {
        self.builds()?.iter_mut().for_each(|build| build.is_lent = true);
        Ok(())
    }
    /// Like [`lend`](Self::lend), but first builds a program that is only compiled. References to other programs
    /// may stay unresolved.
    pub(super) fn loaded(&self, device: &Device<D>) -> Result<Arc<Module<D>>> {
        let at = self.place(device)?;
        let settings = {
            let builds = self.builds()?;
            let is_compiled = builds[at].status() == ur_program_build_status_t::SUCCESS;
            is_compiled.then(|| builds[at].settings.clone())
        };
        settings.map_or(Ok(()), |settings| self.build_with(at, settings, true))?;
        self.lend(device) // whoever is linked to it keeps addresses in it
    }
    /// The names of its functions.
    ///
    /// # Errors
    /// `INVALID_PROGRAM_EXECUTABLE` unless it is built; `UNSUPPORTED_ENUMERATION` if neither the code nor the driver
    /// lists them.
    pub fn names(&self) -> Result<Vec<CString>> {
        let names = D::functions(&self.built()?[0].1).map_err(Error::from);
        names.map_err(|error| match error.code() {
            ErrorCode::UnsupportedFeature => error.with_code(ErrorCode::UnsupportedEnumeration),
            _ => error,
        })
    }
    /// The address and the size in bytes of a variable on a device. `name` is the name in the code, or SYCL's name for
    /// the variable, which the metadata, the driver or the SPIR-V map to it.
    ///
    /// # Errors
    /// `INVALID_VALUE` if there is no such variable; as for `built`.
    pub(super) fn variable(&self, device: &Device<D>, name: &CStr) -> Result<(UsmPtr, usize)> {
        let module = self.lend(device)?;
        let mapped = self.metadata.global(name.to_bytes()).map(CString::as_c_str);
        let mut found = D::variable(&module, mapped.unwrap_or(name))?;
        if found.is_none()
            && let Some(Ok(facts)) = self.facts()
            && let Some(inside) = facts.globals.get(name)
        {
            found = D::variable(&module, inside)?;
        }
        let found = found.and_then(|at| Some((UsmPtr::from_addr(at.start().get())?, at.bytes())));
        found.ok_or_else(|| {
            Error::new(ErrorCode::InvalidValue, format!("the program has no variable {name:?}"))
        })
    }
    /// The parts of the module with the index `place`, with these settings.
    pub(super) fn parts(&self, place: usize, settings: &Settings) -> Vec<Part<D>> {
        let mut parts = self.parts[place].clone();
        if self.origin == Origin::Built {
            return parts; // with the settings of the programs from which it was linked
        }
        for part in &mut parts {
            let Settings { options, constants } = settings.clone();
            (part.flags, part.constants) = (options, constants);
        }
        parts
    }
    /// These compiler flags, and the specialization constants that are set now.
    fn settings(&self, flags: &str) -> Result<Settings> {
        let constants = self.constants.lock()?.clone();
        Ok(Settings { options: flags.to_owned(), constants })
    }
    /// Sets specialization constants for later builds and compilations. A later value replaces an earlier one.
    ///
    /// # Errors
    /// As for [`builds`](Self::builds).
    pub(super) fn set_constants(&self, given: Vec<Constant>) -> Result<()> {
        let mut known = self.constants.lock()?;
        for (number, bytes) in given {
            known.retain(|(one, _)| *one != number);
            known.push((number, bytes));
        }
        Ok(())
    }
    /// Builds for some of its devices. What is built with the same flags and constants already stays. With others it is built anew:
    /// kernels keep the code that they were made of.
    ///
    /// # Errors
    /// `PROGRAM_BUILD_FAILURE`, with the reason in the build log too. Returns the driver's error, mapped as in
    /// `error.rs`.
    pub(super) fn build_for(&self, places: &[usize], flags: &str, may_be_open: bool) -> Result<()> {
        let settings = self.settings(flags)?;
        places.iter().try_for_each(|&at| self.build_with(at, settings.clone(), may_be_open))
    }
    fn build_with(&self, at: usize, settings: Settings, may_be_open: bool) -> Result<()> {
        self.make(at, settings, |target, pieces| {
            let (made, log) = D::build(target, pieces, may_be_open);
            (made.map(|module| State::Built(Arc::new(module))), log)
        })
    }
    /// Compiles for some of its devices: keeps the flags until the program is linked, and checks the code now as far as
    /// the driver can.
    ///
    /// # Errors
    /// As for `build_for`; `INVALID_OPERATION` if the driver does not compile binaries.
    pub(super) fn compile_for(&self, places: &[usize], flags: &str) -> Result<()> {
        let check = |target: &D::Target, pieces: &[Piece<'_, D>]| match self.facts() {
            Some(Err(why)) => {
                (Err(ur_hal::Error::new(ur_hal::ErrorKind::BuildFailed, why.clone())), why.clone())
            }
            _ => {
                let (checked, log) = D::compile(target, pieces);
                (checked.map(|()| State::Compiled), log)
            }
        };
        let settings = self.settings(flags)?;
        places.iter().try_for_each(|&at| self.make(at, settings.clone(), check))
    }
    fn make(
        &self,
        at: usize,
        settings: Settings,
        make: impl FnOnce(&D::Target, &[Piece<'_, D>]) -> (ur_hal::Result<State<Module<D>>>, String),
    ) -> Result<()> {
        if self.origin == Origin::Built || self.builds()?[at].is_built_with(&settings) {
            return Ok(());
        }
        let parts = self.parts(at, &settings);
        let target = D::target(self.context.driver(), self.devices[at].driver())?;
        let pieces: Vec<_> = parts.iter().map(Part::piece).collect();
        let (made, log) = make(&target, &pieces); // no lock is held while the driver compiles
        let made = made.map_err(|error| failed(error.into(), &log, ErrorCode::ProgramBuildFailure));
        let mut builds = self.builds()?;
        let (replaced, noted) = builds[at].note(settings, log, made);
        let Some(replaced) = replaced else { return noted };
        let is_lent = std::mem::take(&mut builds[at].is_lent);
        drop(builds);
        match is_lent {
            true => self.replaced.lock()?.push(replaced),
            false => leave::<D>(self.context.as_handle().addr(), vec![replaced]),
        }
        noted
    }
    /// The indices of all its builds.
    pub(super) fn all(&self) -> Vec<usize> {
        (0..self.parts.len()).collect()
    }
    /// The indices of the builds for these devices.
    pub(super) fn places(&self, devices: &[Borrowed<'_, Device<D>>]) -> Result<Vec<usize>> {
        devices.iter().map(|device| self.place(device)).collect()
    }
    /// For each device the code that the driver made, else the code that the caller passed, else nothing.
    pub(super) fn binaries(&self) -> Result<Vec<Vec<u8>>> {
        let modules: Vec<_> = self.builds()?.iter().map(|build| build.module().cloned()).collect();
        let at = |device: usize| if D::SHARES_MODULES { 0 } else { device };
        let passed = |at: usize| match self.parts[at].as_slice() {
            [only] if self.origin == Origin::Binaries => D::bytes(&only.code).to_vec(),
            _ => vec![],
        };
        let of = |at: usize| match &modules[at] {
            Some(module) => Ok(D::binary(module)?),
            None => Ok(passed(at)),
        };
        (0..self.devices.len()).map(|device| of(at(device))).collect()
    }
    /// Its intermediate code; empty for a program that was made from something else.
    pub(super) fn intermediate(&self) -> &[u8] {
        match (self.origin, self.parts.first().and_then(|parts| parts.first())) {
            (Origin::Intermediate, Some(part)) => D::bytes(&part.code),
            _ => &[],
        }
    }
}
body!(Program: HasCode, Program, InvalidProgram);
impl<D: HasCode> Drop for Program<D> {
    /// Deferred, because commands that use its modules may be running. In a forked child the modules stay the parent's.
    fn drop(&mut self) {
        let builds = self.builds.get_mut().map(std::mem::take).into_iter().flatten();
        let mut modules: Vec<_> = builds.filter_map(|build| build.module().cloned()).collect();
        modules.extend(self.replaced.get_mut().map(std::mem::take).into_iter().flatten());
        if !modules.is_empty() {
            leave::<D>(self.context.as_handle().addr(), modules);
        }
    }
}
fn not_built() -> Error {
    Error::new(
        ErrorCode::InvalidProgramExecutable,
        "the program is not built: call urProgramBuild first",
    )
}
