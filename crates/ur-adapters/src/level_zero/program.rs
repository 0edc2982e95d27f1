//! Programs: SPIR-V for any device, or a binary for each; built by the driver, one module a device.
//! The driver compiles and links in one go, so that a compiled program is one that waits with its
//! options and constants until it is linked; joining programs is `link.rs`'s.
pub(super) use super::link::select_binary;
use super::{
    Context, Device, LevelZero,
    code::{self, Build, Source},
    driver::RawModule,
    link::link,
    native::module::{Constant, NativeModule, Piece},
};
use crate::kernels::{
    given,
    metadata::{Metadata, Wanted},
    spirv::Facts,
};
use std::{
    ffi::{CStr, CString},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use ur_adapter::{
    api::{ProgramApi, ProgramExpApi},
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_sys::*;

/// What `ur_program_handle_t` points at.
#[derive(Debug)]
pub struct Program {
    context: Owned<Context>,
    devices: Vec<Owned<Device>>,
    source: Source,
    /// What C says of it beside its code.
    metadata: Metadata,
    /// What its SPIR-V says, or why it is none; nothing of a binary. Looked at when it is needed.
    facts: OnceLock<Option<Result<Facts, String>>>,
    constants: Mutex<Vec<Constant>>,
    builds: Mutex<Vec<Build>>,
}
/// A device, and a program's module on it.
type Built = (Owned<Device>, Arc<NativeModule>);

impl Program {
    pub(super) fn new(
        context: Owned<Context>,
        devices: Vec<Owned<Device>>,
        source: Source,
        metadata: Metadata,
        builds: Vec<Build>,
    ) -> Owned<Self> {
        super::linger::sweep();
        let (facts, constants, builds) = (OnceLock::new(), Mutex::default(), Mutex::new(builds));
        Owned::new(Self { context, devices, source, metadata, facts, constants, builds })
    }
    fn unbuilt(
        context: Owned<Context>,
        devices: Vec<Owned<Device>>,
        source: Source,
        properties: Option<&ur_program_properties_t>,
    ) -> Result<Owned<Self>> {
        let builds = vec![Build::default(); devices.len()];
        let metadata = Metadata::of(given::metadata(properties)?)?;
        Ok(Self::new(context, devices, source, metadata, builds))
    }
    pub(super) fn metadata(&self) -> &Metadata {
        &self.metadata
    }
    /// What its SPIR-V says, or why it is none; `None` of a binary.
    fn facts(&self) -> Option<&Result<Facts, String>> {
        self.facts.get_or_init(|| self.source.facts()).as_ref()
    }
    /// What a kernel of it wants of its groups, and whether there is SPIR-V that would say how large they
    /// may be at most.
    pub(super) fn wanted(&self, kernel: &CStr) -> (Wanted, bool) {
        let mut wanted = self.metadata.wanted(kernel.to_bytes());
        let facts = self.facts();
        if let Some(Ok(facts)) = facts {
            wanted.most = wanted.most.or_else(|| facts.largest_groups.get(kernel).copied());
        }
        (wanted, facts.is_some())
    }
    /// The context it was made in.
    pub fn context(&self) -> &Owned<Context> {
        &self.context
    }
    /// The devices it was made for.
    pub fn devices(&self) -> &[Owned<Device>] {
        &self.devices
    }
    pub(super) fn builds(&self) -> MutexGuard<'_, Vec<Build>> {
        self.builds.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn constants(&self) -> MutexGuard<'_, Vec<Constant>> {
        self.constants.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Which of its devices that is, or is a part of.
    ///
    /// # Errors
    /// `INVALID_DEVICE` for a device that it was not made for.
    pub(super) fn place(&self, device: &Device) -> Result<usize> {
        if let Some(at) = self.devices.iter().position(|one| one.is(device)) {
            return Ok(at);
        }
        match device.parent() {
            Some(parent) => self.place(parent),
            None => Err(Error::new(
                ErrorCode::InvalidDevice,
                "the program was not made for this device",
            )),
        }
    }
    /// # Errors
    /// `INVALID_CONTEXT` for a context that it was not made in.
    pub(super) fn check_context(&self, context: Borrowed<'_, Context>) -> Result<()> {
        match self.context.same(&context) {
            true => Ok(()),
            false => Err(Error::new(
                ErrorCode::InvalidContext,
                "the program was made in another context",
            )),
        }
    }
    /// Its modules, as far as it is built.
    ///
    /// # Errors
    /// `INVALID_PROGRAM_EXECUTABLE` unless it is built or linked for one of its devices.
    pub(super) fn built(&self) -> Result<Vec<Built>> {
        let builds = self.builds();
        let pairs = self.devices.iter().zip(&*builds);
        let built: Vec<_> =
            pairs.filter_map(|(device, b)| Some((device.clone(), b.module.clone()?))).collect();
        if built.is_empty() { Err(not_built()) } else { Ok(built) }
    }
    /// Its module on one device.
    ///
    /// # Errors
    /// As for `place` and `built`.
    pub(super) fn module(&self, device: &Device) -> Result<Arc<NativeModule>> {
        let at = self.place(device)?;
        self.builds()[at].module.clone().ok_or_else(not_built)
    }
    /// The same, of a program that may be compiled only: what it uses of others stays open.
    fn loaded(&self, device: &Device) -> Result<Arc<NativeModule>> {
        let at = self.place(device)?;
        let build = self.builds()[at].clone();
        if build.status == ur_program_build_status_t::SUCCESS {
            let options = CString::new(build.options).unwrap_or_default(); // it was one before
            self.build(&[at], Some(&options), true)?;
        }
        self.module(device)
    }
    /// Where a variable is on a device, and how many bytes it has. The name is that in the code, or
    /// SYCL's own for it: the metadata, the driver or the SPIR-V know what that stands for.
    ///
    /// # Errors
    /// `INVALID_VALUE` where there is none of that name; as for `module`.
    pub(super) fn variable(&self, device: &Device, name: &CStr) -> Result<(UsmPtr, usize)> {
        let module = self.module(device)?;
        let mapped = self.metadata.global(name.to_bytes()).map(CString::as_c_str);
        let mut found = module.variable(mapped.unwrap_or(name))?;
        if found.is_none()
            && let Some(Ok(facts)) = self.facts()
            && let Some(inside) = facts.globals.get(name)
        {
            found = module.variable(inside)?;
        }
        let found = found.and_then(|(at, bytes)| UsmPtr::from_addr(at).zip(Some(bytes)));
        found.ok_or_else(|| {
            Error::new(ErrorCode::InvalidValue, format!("the program has no variable {name:?}"))
        })
    }
    /// The code for the device at this place, to be compiled or linked.
    pub(super) fn piece(&self, place: usize, options: &str) -> Result<Vec<Piece>> {
        if let Source::Linked(pieces) = &self.source {
            return Ok(pieces.clone());
        }
        let (options, constants) = (code::options(options)?, self.constants().clone());
        let code = self.source.code(place);
        Ok(code.map(|code| Piece { code, options, constants }).into_iter().collect())
    }
    /// Builds for some of its devices. Twice is as good as once: kernels of it may be about.
    ///
    /// # Errors
    /// `PROGRAM_BUILD_FAILURE`; why is in the build log too.
    fn build(&self, places: &[usize], options: Option<&CStr>, unresolved: bool) -> Result<()> {
        let said = options.map_or(String::new(), |o| o.to_string_lossy().into_owned());
        for &at in places {
            let is_done = self.builds()[at].module.is_some();
            let pieces = self.piece(at, &said)?;
            if is_done || pieces.is_empty() {
                self.builds()[at].options.clone_from(&said);
                continue;
            }
            let device = &self.devices[at];
            // The driver compiles: no lock is held.
            let (made, log) = make(&self.context, device, &pieces, unresolved);
            let made = made
                .map(|module| Some(Arc::new(module)))
                .map_err(|error| code::failed(error, &log, ErrorCode::ProgramBuildFailure));
            self.builds()[at].note(&said, log, made)?;
        }
        Ok(())
    }
    /// Keeps options until it is linked; code that is not whole is found now.
    ///
    /// # Errors
    /// `INVALID_OPERATION` for a program that is a binary; `PROGRAM_BUILD_FAILURE`.
    fn compile(&self, places: &[usize], options: Option<&CStr>) -> Result<()> {
        let (Source::Il(_), Some(facts)) = (&self.source, self.facts()) else {
            let why = "only SPIR-V is compiled: binaries are built";
            return Err(Error::new(ErrorCode::InvalidOperation, why));
        };
        let said = options.map_or(String::new(), |o| o.to_string_lossy().into_owned());
        code::options(&said)?;
        let log = facts.as_ref().err().cloned().unwrap_or_default();
        let mut builds = self.builds();
        places.iter().try_for_each(|&at| {
            let made = match log.as_str() {
                "" => Ok(None),
                why => Err(Error::new(ErrorCode::ProgramBuildFailure, why.to_owned())),
            };
            builds[at].note(&said, log.clone(), made)
        })
    }
    fn all(&self) -> Vec<usize> {
        (0..self.devices.len()).collect()
    }
    fn places(&self, devices: &[Borrowed<'_, Device>]) -> Result<Vec<usize>> {
        devices.iter().map(|device| self.place(device)).collect()
    }
    /// The code that the driver made for each device, or C gave; none where there is neither.
    fn binaries(&self) -> Result<Vec<Vec<u8>>> {
        let modules: Vec<_> = self.builds().iter().map(|build| build.module.clone()).collect();
        let given = |at: usize| match &self.source {
            Source::Binaries(all) => all[at].to_vec(),
            _ => vec![],
        };
        let each = modules.into_iter().enumerate();
        each.map(|(at, module)| module.map_or_else(|| Ok(given(at)), |m| m.binary())).collect()
    }
}
impl Drop for Program {
    /// Commands that use its modules may be under way.
    fn drop(&mut self) {
        let builds = self.builds.get_mut().unwrap_or_else(PoisonError::into_inner);
        let modules: Vec<_> = builds.drain(..).filter_map(|build| build.module).collect();
        if !modules.is_empty() {
            super::linger::leave(self.context.as_handle().addr(), modules);
        }
    }
}
/// A module of pieces. With the driver's log.
pub(super) fn make(
    context: &Context,
    device: &Device,
    pieces: &[Piece],
    unresolved: bool,
) -> (Result<NativeModule>, String) {
    let (made, log) = match pieces {
        [only] => NativeModule::create(context.native(), device.raw(), only),
        _ if !context.platform().extensions().has("ZE_experimental_module_program") => {
            let why = "this driver does not link programs: join their SPIR-V beforehand";
            (Err(Error::new(ErrorCode::UnsupportedFeature, why)), String::new())
        }
        _ => {
            let pieces: Vec<_> = pieces.iter().collect();
            NativeModule::link(context.native(), device.raw(), &pieces)
        }
    };
    let complete = made.and_then(|module| match !unresolved && module.has_imports()? {
        false => Ok(module),
        true => Err(Error::new(
            ErrorCode::ProgramLinkFailure,
            "the program uses symbols that nothing in it defines: link it with what does",
        )),
    });
    (complete, log)
}
fn not_built() -> Error {
    Error::new(
        ErrorCode::InvalidProgramExecutable,
        "the program is not built: call urProgramBuild first",
    )
}

impl ProgramApi for LevelZero {
    fn program_create_with_il(
        context: Borrowed<'_, Context>,
        il: UsmPtr,
        length: usize,
        properties: Option<&ur_program_properties_t>,
    ) -> Result<Owned<Program>> {
        let bytes = given::bytes(il.as_ptr().cast_const().cast(), length)?;
        let devices = context.devices().to_vec();
        Program::unbuilt(context.own()?, devices, Source::Il(bytes.into()), properties)
    }
    fn program_create_with_binary(
        context: Borrowed<'_, Context>,
        devices: &[Borrowed<'_, Device>],
        lengths: &[usize],
        binaries: &[*const u8],
        properties: Option<&ur_program_properties_t>,
    ) -> Result<Owned<Program>> {
        devices.iter().try_for_each(|device| context.check(*device))?;
        let pairs = binaries.iter().zip(lengths);
        let all = pairs
            .map(|(binary, length)| given::bytes(*binary, *length).map(Into::into))
            .collect::<Result<_>>()?;
        let devices = devices.iter().map(|d| d.own()).collect::<Result<_>>()?;
        Program::unbuilt(context.own()?, devices, Source::Binaries(all), properties)
    }
    fn program_build(
        context: Borrowed<'_, Context>,
        program: Borrowed<'_, Program>,
        options: Option<&CStr>,
    ) -> Result<()> {
        program.check_context(context)?;
        program.build(&program.all(), options, false)
    }
    fn program_compile(
        context: Borrowed<'_, Context>,
        program: Borrowed<'_, Program>,
        options: Option<&CStr>,
    ) -> Result<()> {
        program.check_context(context)?;
        program.compile(&program.all(), options)
    }
    fn program_link(
        context: Borrowed<'_, Context>,
        programs: &[Borrowed<'_, Program>],
        options: Option<&CStr>,
    ) -> Result<Owned<Program>> {
        programs.iter().try_for_each(|program| program.check_context(context))?;
        let has_all = |device: &&Owned<Device>| programs.iter().all(|p| p.place(device).is_ok());
        let devices: Vec<_> = context.devices().iter().filter(has_all).cloned().collect();
        if devices.is_empty() {
            return Err(Error::new(
                ErrorCode::ProgramLinkFailure,
                "the programs have no device in common: give each code for the same one",
            ));
        }
        link(context, devices, programs, options, false)
    }
    fn program_get_function_pointer(
        device: Borrowed<'_, Device>,
        program: Borrowed<'_, Program>,
        name: &CStr,
    ) -> Result<UsmPtr> {
        let module = program.module(&device)?;
        if let Some(at) = module.function(name)?.and_then(UsmPtr::from_addr) {
            return Ok(at);
        }
        // A kernel that nobody may call from the device has no address.
        let names = module.names()?;
        Err(match names.iter().any(|one| one.as_c_str() == name) {
            true => Error::new(
                ErrorCode::FunctionAddressNotAvailable,
                format!("the driver tells no address of {name:?}"),
            ),
            false => no_kernel(name),
        })
    }
    fn program_get_global_variable_pointer(
        device: Borrowed<'_, Device>,
        program: Borrowed<'_, Program>,
        name: &CStr,
    ) -> Result<(usize, UsmPtr)> {
        program.variable(&device, name).map(|(at, bytes)| (bytes, at))
    }
    fn program_get_info(
        program: Borrowed<'_, Program>,
        name: ur_program_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_program_info_t as I;
        match name {
            I::REFERENCE_COUNT => answer.value(&program.api_refs()),
            I::CONTEXT => answer.handle(&program.context),
            I::NUM_DEVICES => answer.value(&(program.devices.len() as u32)),
            I::DEVICES => answer.handles(program.devices.iter().map(|d| &**d)),
            I::IL => match &program.source {
                Source::Il(code) => answer.slice(code),
                _ => answer.slice::<u8>(&[]),
            },
            I::BINARY_SIZES => {
                let all = program.binaries()?;
                answer.slice(&all.iter().map(Vec::len).collect::<Vec<_>>())
            }
            I::BINARIES => {
                let all = program.binaries()?;
                answer.copies(&all.iter().map(Vec::as_slice).collect::<Vec<_>>())
            }
            I::NUM_KERNELS => answer.value(&program.built()?[0].1.names()?.len()),
            I::KERNEL_NAMES => {
                let names = program.built()?[0].1.names()?;
                let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
                answer.str(&names.join(";"))
            }
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a program of Level Zero has no answer to {name:?}"),
            )),
        }
    }
    fn program_get_build_info(
        program: Borrowed<'_, Program>,
        device: Borrowed<'_, Device>,
        name: ur_program_build_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_program_build_info_t as I;
        let at = program.place(&device)?;
        let builds = program.builds();
        let build = &builds[at];
        match name {
            I::STATUS => answer.value(&build.status.0),
            I::OPTIONS => answer.str(&build.options),
            I::LOG => answer.str(&build.log),
            I::BINARY_TYPE => answer.value(&build.kind.0),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a build for Level Zero has no answer to {name:?}"),
            )),
        }
    }
    /// They are for builds and compilations to come; a later value of a constant stands.
    fn program_set_specialization_constants(
        program: Borrowed<'_, Program>,
        constants: &[ur_specialization_constant_info_t],
    ) -> Result<()> {
        let (Source::Il(_), Some(facts)) = (&program.source, program.facts()) else {
            let why = "only SPIR-V has specialization constants: they are fixed in a binary";
            return Err(Error::new(ErrorCode::UnsupportedFeature, why));
        };
        let known =
            facts.as_ref().map_err(|why| Error::new(ErrorCode::InvalidProgram, why.clone()))?;
        let given = |one| given::constant(one, &known.constants);
        let given = constants.iter().map(given).collect::<Result<Vec<_>>>()?;
        let mut known = program.constants();
        for (number, bytes) in given {
            known.retain(|(one, _)| *one != number);
            known.push((number, bytes));
        }
        Ok(())
    }
    /// The module on its first device that it is built for.
    fn program_get_native_handle(program: Borrowed<'_, Program>) -> Result<ur_native_handle_t> {
        Ok(program.built()?[0].1.raw().addr() as ur_native_handle_t)
    }
    /// A module of the context's devices. It is not destroyed here unless it is given to us.
    fn program_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        properties: Option<&ur_program_native_properties_t>,
    ) -> Result<Owned<Program>> {
        let Some(raw) = RawModule::from_addr(native) else {
            return Err(Error::new(ErrorCode::InvalidNullHandle, "the native program is null"));
        };
        let owned = properties.is_some_and(|one| one.isNativeHandleOwned);
        let module = Arc::new(NativeModule::adopted(raw, owned, context.native()));
        let devices = context.devices().to_vec();
        let builds = devices.iter().map(|_| Build::done(Arc::clone(&module))).collect();
        let metadata = Metadata::default();
        Ok(Program::new(context.own()?, devices, Source::Module, metadata, builds))
    }
}
/// There is no kernel of that name.
pub(super) fn no_kernel(name: &CStr) -> Error {
    Error::new(ErrorCode::InvalidKernelName, format!("the program has no kernel {name:?}"))
}

impl ProgramExpApi for LevelZero {
    fn program_dynamic_link_exp(
        context: Borrowed<'_, Context>,
        programs: &[Borrowed<'_, Program>],
    ) -> Result<()> {
        programs.iter().try_for_each(|program| program.check_context(context))?;
        for device in context.devices() {
            let has = |program: &&Borrowed<'_, Program>| program.place(device).is_ok();
            let on = programs.iter().filter(has).map(|program| program.loaded(device));
            let modules: Vec<_> = on.collect::<Result<_>>()?;
            if modules.is_empty() {
                continue;
            }
            let modules: Vec<_> = modules.iter().map(|module| &**module).collect();
            let (linked, log) = NativeModule::resolve(&modules);
            linked.map_err(|error| code::failed(error, &log, ErrorCode::ProgramLinkFailure))?;
        }
        Ok(())
    }
    fn program_build_exp(
        program: Borrowed<'_, Program>,
        devices: &[Borrowed<'_, Device>],
        flags: ur_exp_program_flags_t,
        options: Option<&CStr>,
    ) -> Result<()> {
        program.build(&program.places(devices)?, options, unresolved(flags))
    }
    fn program_compile_exp(
        program: Borrowed<'_, Program>,
        devices: &[Borrowed<'_, Device>],
        _flags: ur_exp_program_flags_t,
        options: Option<&CStr>,
    ) -> Result<()> {
        program.compile(&program.places(devices)?, options)
    }
    fn program_link_exp(
        context: Borrowed<'_, Context>,
        devices: &[Borrowed<'_, Device>],
        flags: ur_exp_program_flags_t,
        programs: &[Borrowed<'_, Program>],
        options: Option<&CStr>,
    ) -> Result<Owned<Program>> {
        devices.iter().try_for_each(|device| context.check(*device))?;
        let devices = devices.iter().map(|d| d.own()).collect::<Result<_>>()?;
        link(context, devices, programs, options, unresolved(flags))
    }
}
fn unresolved(flags: ur_exp_program_flags_t) -> bool {
    flags.contains(ur_exp_program_flags_t::ALLOW_UNRESOLVED_SYMBOLS)
}
