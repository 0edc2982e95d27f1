//! Programs: native code that C gives as code, under names. Building is loading; there is no
//! compiler, so that intermediate code is refused. What the code is and how it is called is
//! `native_code.rs`'s.
use super::{
    Context, Cpu, Device,
    native_code::{self, Function, Given, Module},
    native_handle,
};
use crate::kernels::{
    given,
    metadata::{Metadata, Wanted},
};
use std::{
    collections::BTreeMap,
    ffi::{CStr, CString},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
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
    sources: Vec<Source>,
    /// What C says of it beside its code.
    metadata: Metadata,
    build: Mutex<Build>,
}

/// One binary.
#[derive(Clone, Debug)]
enum Source {
    /// A shared object's bytes, loaded by building.
    Object(Arc<[u8]>),
    /// Functions that are there already.
    Table(Arc<Module>),
}

/// How far a program has come.
#[derive(Debug)]
struct Build {
    status: ur_program_build_status_t,
    kind: ur_program_binary_type_t,
    options: String,
    log: String,
    /// There once it is built.
    code: Option<Arc<Code>>,
}
impl Default for Build {
    fn default() -> Self {
        Self {
            status: ur_program_build_status_t::NONE,
            kind: ur_program_binary_type_t::NONE,
            options: String::new(),
            log: String::new(),
            code: None,
        }
    }
}

/// What a built program offers.
#[derive(Debug, Default)]
pub(super) struct Code {
    modules: Vec<Arc<Module>>,
    kernels: BTreeMap<CString, Function>,
    variables: BTreeMap<CString, (UsmPtr, usize)>,
}
impl Code {
    /// # Errors
    /// What could not be loaded, or which name is there twice.
    fn of(sources: &[Source]) -> std::result::Result<Self, String> {
        let mut code = Self::default();
        for source in sources {
            let module = match source {
                Source::Object(bytes) => Arc::new(native_code::load(bytes)?),
                Source::Table(module) => Arc::clone(module),
            };
            for (name, function) in &module.kernels {
                if code
                    .kernels
                    .insert(name.clone(), *function)
                    .is_some_and(|f| f.address() != function.address())
                {
                    return Err(format!("two programs have a function called {name:?}"));
                }
            }
            for (name, variable) in &module.variables {
                if code.variables.insert(name.clone(), *variable).is_some() {
                    return Err(format!("two programs have a variable called {name:?}"));
                }
            }
            code.modules.push(module);
        }
        Ok(code)
    }
    /// The kernel of that name.
    pub(super) fn kernel(&self, name: &CStr) -> Option<Function> {
        self.kernels.get(name).copied()
    }
}

impl Program {
    fn new(
        context: Owned<Context>,
        devices: Vec<Owned<Device>>,
        sources: Vec<Source>,
        metadata: Metadata,
    ) -> Self {
        Self { context, devices, sources, metadata, build: Mutex::default() }
    }
    /// What a kernel of it wants of its groups.
    pub(super) fn wanted(&self, kernel: &CStr) -> Wanted {
        self.metadata.wanted(kernel.to_bytes())
    }
    /// The context it was made in.
    pub fn context(&self) -> &Owned<Context> {
        &self.context
    }
    fn build(&self) -> MutexGuard<'_, Build> {
        self.build.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// What it offers.
    ///
    /// # Errors
    /// `INVALID_PROGRAM_EXECUTABLE` unless it is built or linked.
    pub(super) fn code(&self) -> Result<Arc<Code>> {
        self.build().code.clone().ok_or_else(|| {
            Error::new(
                ErrorCode::InvalidProgramExecutable,
                "the program is not built: call urProgramBuild first",
            )
        })
    }
    /// Where a variable is, and how many bytes it has. The name may be SYCL's own for it.
    ///
    /// # Errors
    /// `INVALID_VALUE` where there is none of that name; as for `code`.
    pub(super) fn variable(&self, name: &CStr) -> Result<(UsmPtr, usize)> {
        let inside = self.metadata.global(name.to_bytes()).map_or(name, CString::as_c_str);
        self.code()?.variables.get(inside).copied().ok_or_else(|| {
            Error::new(ErrorCode::InvalidValue, format!("the program has no variable {name:?}"))
        })
    }
    /// # Errors
    /// `INVALID_DEVICE` for a device that it was not made for.
    pub(super) fn check(&self, device: Borrowed<'_, Device>) -> Result<()> {
        let made_for = |one: &Owned<Device>| {
            std::iter::successors(Some(&*device), |d| d.parent().map(|p| &**p)).any(|d| one.same(d))
        };
        match self.devices.iter().any(made_for) {
            true => Ok(()),
            false => Err(Error::new(
                ErrorCode::InvalidDevice,
                "the program was not made for this device",
            )),
        }
    }
    /// # Errors
    /// `INVALID_CONTEXT` for a context that it was not made in.
    fn check_context(&self, context: Borrowed<'_, Context>) -> Result<()> {
        match self.context.same(&context) {
            true => Ok(()),
            false => Err(Error::new(
                ErrorCode::InvalidContext,
                "the program was made in another context",
            )),
        }
    }
    fn check_all(&self, devices: &[Borrowed<'_, Device>]) -> Result<()> {
        devices.iter().try_for_each(|device| self.check(*device))
    }
    /// Loads what it consists of. Twice is as good as once.
    ///
    /// # Errors
    /// `PROGRAM_BUILD_FAILURE`; why is in the build log too.
    fn make(&self, kind: ur_program_binary_type_t, options: Option<&CStr>) -> Result<()> {
        let mut build = self.build();
        build.options = options.map_or(String::new(), |o| o.to_string_lossy().into_owned());
        if build.code.is_some() {
            return Ok(()); // kernels of it are about
        }
        match Code::of(&self.sources) {
            Ok(code) => {
                let executable = kind == ur_program_binary_type_t::EXECUTABLE;
                build.code = executable.then(|| Arc::new(code));
                (build.status, build.kind) = (ur_program_build_status_t::SUCCESS, kind);
                build.log.clear();
                Ok(())
            }
            Err(why) => {
                build.status = ur_program_build_status_t::ERROR;
                build.log.clone_from(&why);
                Err(Error::new(ErrorCode::ProgramBuildFailure, why))
            }
        }
    }
    fn is_made(&self) -> bool {
        self.build().status == ur_program_build_status_t::SUCCESS
    }
    fn binary_bytes(&self) -> &[u8] {
        match self.sources.as_slice() {
            [Source::Object(bytes)] => bytes,
            _ => &[],
        }
    }
}

/// Joins programs into one.
///
/// # Errors
/// `PROGRAM_LINK_FAILURE`; `INVALID_OPERATION` for such as are not compiled; `INVALID_CONTEXT` for
/// such as are of another context; `INVALID_DEVICE` for a device that one of them is not for.
fn link(
    context: Borrowed<'_, Context>,
    devices: Vec<Owned<Device>>,
    programs: &[Borrowed<'_, Program>],
    options: Option<&CStr>,
) -> Result<Owned<Program>> {
    for program in programs {
        program.check_context(context)?;
        devices.iter().try_for_each(|device| program.check(device.borrow()))?;
        if !program.is_made() {
            let why = "a program is not compiled: call urProgramCompile first";
            return Err(Error::new(ErrorCode::InvalidOperation, why));
        }
    }
    let sources = programs.iter().flat_map(|program| program.sources.iter().cloned()).collect();
    let metadata = Metadata::join(programs.iter().map(|program| &program.metadata));
    let linked = Program::new(context.own()?, devices, sources, metadata);
    linked
        .make(ur_program_binary_type_t::EXECUTABLE, options)
        .map_err(|error| error.with_code(ErrorCode::ProgramLinkFailure))?;
    Ok(Owned::new(linked))
}

/// The first of several binaries that is code for a CPU.
///
/// # Errors
/// `INVALID_BINARY` if none is.
pub(super) fn select(binaries: &[ur_device_binary_t]) -> Result<u32> {
    let fits = |b: &ur_device_binary_t| {
        native_code::target_of(b)
            .is_some_and(|t| t.to_bytes() == UR_DEVICE_BINARY_TARGET_NATIVE_CPU)
    };
    match binaries.iter().position(fits) {
        Some(at) => Ok(at as u32),
        None => Err(Error::new(
            ErrorCode::InvalidBinary,
            "none of the binaries is code for a native CPU: it has no compiler for others",
        )),
    }
}
/// What a binary's target is called.
const UR_DEVICE_BINARY_TARGET_NATIVE_CPU: &[u8] = b"native_cpu";

impl ProgramApi for Cpu {
    fn program_create_with_il(
        _context: Borrowed<'_, Context>,
        _il: UsmPtr,
        _length: usize,
        _properties: Option<&ur_program_properties_t>,
    ) -> Result<Owned<Program>> {
        Err(Error::new(
            ErrorCode::CompilerNotAvailable,
            "a native CPU device has no compiler for intermediate code: give it native code with \
             urProgramCreateWithBinary",
        ))
    }
    fn program_create_with_binary(
        context: Borrowed<'_, Context>,
        devices: &[Borrowed<'_, Device>],
        lengths: &[usize],
        binaries: &[*const u8],
        properties: Option<&ur_program_properties_t>,
    ) -> Result<Owned<Program>> {
        devices.iter().try_for_each(|device| context.check(*device))?;
        let mut sources = Vec::new();
        for (at, (binary, length)) in binaries.iter().zip(lengths).enumerate() {
            // Devices that share an address space share their code.
            if (0..at).any(|before| (binaries[before], lengths[before]) == (*binary, *length)) {
                continue;
            }
            sources.push(match native_code::look_at(*binary, *length)? {
                Given::Object(bytes) => Source::Object(bytes),
                Given::Table(module) => Source::Table(Arc::new(module)),
            });
        }
        let metadata = Metadata::of(given::metadata(properties)?)?;
        let devices = devices.iter().map(|d| d.own()).collect::<Result<_>>()?;
        Ok(Owned::new(Program::new(context.own()?, devices, sources, metadata)))
    }
    fn program_build(
        context: Borrowed<'_, Context>,
        program: Borrowed<'_, Program>,
        options: Option<&CStr>,
    ) -> Result<()> {
        program.check_context(context)?;
        program.make(ur_program_binary_type_t::EXECUTABLE, options)
    }
    fn program_compile(
        context: Borrowed<'_, Context>,
        program: Borrowed<'_, Program>,
        options: Option<&CStr>,
    ) -> Result<()> {
        program.check_context(context)?;
        program.make(ur_program_binary_type_t::COMPILED_OBJECT, options)
    }
    fn program_link(
        context: Borrowed<'_, Context>,
        programs: &[Borrowed<'_, Program>],
        options: Option<&CStr>,
    ) -> Result<Owned<Program>> {
        programs.iter().try_for_each(|program| program.check_context(context))?;
        let has_all =
            |device: &&Owned<Device>| programs.iter().all(|p| p.check(device.borrow()).is_ok());
        let devices: Vec<_> = context.devices().iter().filter(has_all).cloned().collect();
        if devices.is_empty() {
            return Err(Error::new(
                ErrorCode::ProgramLinkFailure,
                "the programs have no device in common: give each code for the same one",
            ));
        }
        link(context, devices, programs, options)
    }
    fn program_get_function_pointer(
        device: Borrowed<'_, Device>,
        program: Borrowed<'_, Program>,
        name: &CStr,
    ) -> Result<UsmPtr> {
        program.check(device)?;
        let function = program.code()?.kernel(name).ok_or_else(|| no_kernel(name))?;
        function.address().ok_or_else(|| ErrorCode::FunctionAddressNotAvailable.into())
    }
    fn program_get_global_variable_pointer(
        device: Borrowed<'_, Device>,
        program: Borrowed<'_, Program>,
        name: &CStr,
    ) -> Result<(usize, UsmPtr)> {
        program.check(device)?;
        program.variable(name).map(|(at, size)| (size, at))
    }
    fn program_get_info(
        program: Borrowed<'_, Program>,
        name: ur_program_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_program_info_t as I;
        let count = program.devices.len();
        match name {
            I::REFERENCE_COUNT => answer.value(&program.api_refs()),
            I::CONTEXT => answer.handle(&program.context),
            I::NUM_DEVICES => answer.value(&(count as u32)),
            I::DEVICES => answer.handles(program.devices.iter().map(|d| &**d)),
            I::IL => answer.slice::<u8>(&[]), // it is never made from any
            I::BINARY_SIZES => answer.slice(&vec![program.binary_bytes().len(); count]),
            I::BINARIES => answer.copies(&vec![program.binary_bytes(); count]),
            I::NUM_KERNELS => answer.value(&program.code()?.kernels.len()),
            I::KERNEL_NAMES => {
                let code = program.code()?;
                let names: Vec<_> = code.kernels.keys().map(|k| k.to_string_lossy()).collect();
                answer.str(&names.join(";"))
            }
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a program of the CPU has no answer to {name:?}"),
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
        program.check(device)?;
        let build = program.build();
        match name {
            I::STATUS => answer.value(&build.status.0),
            I::OPTIONS => answer.str(&build.options),
            I::LOG => answer.str(&build.log),
            I::BINARY_TYPE => answer.value(&build.kind.0),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a build for the CPU has no answer to {name:?}"),
            )),
        }
    }
    fn program_set_specialization_constants(
        _program: Borrowed<'_, Program>,
        _constants: &[ur_specialization_constant_info_t],
    ) -> Result<()> {
        Err(Error::new(
            ErrorCode::UnsupportedFeature,
            "native code has no specialization constants",
        ))
    }
    fn program_get_native_handle(program: Borrowed<'_, Program>) -> Result<ur_native_handle_t> {
        native_handle::of(&program)
    }
    fn program_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        _properties: Option<&ur_program_native_properties_t>,
    ) -> Result<Owned<Program>> {
        let program = native_handle::find::<Program>(native)?;
        native_handle::check_context(&program.context, context)?;
        Ok(program)
    }
}
/// What C is told of a name that no function has.
pub(super) fn no_kernel(name: &CStr) -> Error {
    Error::new(ErrorCode::InvalidKernelName, format!("the program has no function {name:?}"))
}

impl ProgramExpApi for Cpu {
    fn program_dynamic_link_exp(
        context: Borrowed<'_, Context>,
        programs: &[Borrowed<'_, Program>],
    ) -> Result<()> {
        programs.iter().try_for_each(|program| program.check_context(context))?;
        Err(Error::new(
            ErrorCode::UnsupportedFeature,
            "loaded code is not linked once more: link with urProgramLink before it is loaded",
        ))
    }
    fn program_build_exp(
        program: Borrowed<'_, Program>,
        devices: &[Borrowed<'_, Device>],
        _flags: ur_exp_program_flags_t,
        options: Option<&CStr>,
    ) -> Result<()> {
        program.check_all(devices)?;
        program.make(ur_program_binary_type_t::EXECUTABLE, options)
    }
    fn program_compile_exp(
        program: Borrowed<'_, Program>,
        devices: &[Borrowed<'_, Device>],
        _flags: ur_exp_program_flags_t,
        options: Option<&CStr>,
    ) -> Result<()> {
        program.check_all(devices)?;
        program.make(ur_program_binary_type_t::COMPILED_OBJECT, options)
    }
    fn program_link_exp(
        context: Borrowed<'_, Context>,
        devices: &[Borrowed<'_, Device>],
        _flags: ur_exp_program_flags_t,
        programs: &[Borrowed<'_, Program>],
        options: Option<&CStr>,
    ) -> Result<Owned<Program>> {
        devices.iter().try_for_each(|device| context.check(*device))?;
        let devices = devices.iter().map(|d| d.own()).collect::<Result<_>>()?;
        link(context, devices, programs, options)
    }
}
