//! Programs: PTX text, machine code or bundles of both, one for each device; built by the driver, which
//! compiles text for the device that it runs on. What the bytes are is `binary.rs`'s, what SYCL says beside
//! them `metadata.rs`'s, loading is `code.rs`'s and linking `link.rs`'s.
//!
//! CUDA has no compiler for SPIR-V: of intermediate code only PTX text is taken, which is then the program of
//! all devices of its context. There are no specialization constants.
pub(super) use super::link::select_binary;
use super::{
    Context, Device, Family,
    binary::Image,
    code::{self, Build, Code},
    driver::{Dialect, RawModule},
    given, linger,
    link::{join, link},
    metadata::Metadata,
    native::module::{Module, Options},
};
use std::{
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
pub struct Program<D: Dialect> {
    context: Owned<Context<D>>,
    devices: Vec<Owned<Device<D>>>,
    /// The code for each device; none where a module of somebody else's is the program.
    pub(super) images: Vec<Option<Arc<Image>>>,
    metadata: Metadata,
    is_il: bool,
    builds: Mutex<Vec<Build<D>>>,
}

/// A device, and what a program offers on it.
type Built<D> = (Owned<Device<D>>, Arc<Code<D>>);

impl<D: Dialect> Program<D> {
    pub(super) fn new(
        context: Owned<Context<D>>,
        devices: Vec<Owned<Device<D>>>,
        images: Vec<Option<Arc<Image>>>,
        metadata: Metadata,
    ) -> Self {
        linger::sweep::<D>();
        let builds = devices.iter().map(|_| Build::default()).collect();
        Self { context, devices, images, metadata, is_il: false, builds: Mutex::new(builds) }
    }
    /// The context it was made in.
    pub fn context(&self) -> &Owned<Context<D>> {
        &self.context
    }
    pub(super) fn metadata(&self) -> &Metadata {
        &self.metadata
    }
    pub(super) fn builds(&self) -> MutexGuard<'_, Vec<Build<D>>> {
        self.builds.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Which of its devices that is.
    ///
    /// # Errors
    /// `INVALID_DEVICE` for a device that it was not made for.
    pub(super) fn place(&self, device: &Device<D>) -> Result<usize> {
        self.devices.iter().position(|one| one.uuid() == device.uuid()).ok_or_else(|| {
            Error::new(ErrorCode::InvalidDevice, "the program was not made for this device")
        })
    }
    /// # Errors
    /// `INVALID_DEVICE` for a device that it was not made for.
    pub(super) fn check(&self, device: &Device<D>) -> Result<()> {
        self.place(device).map(drop)
    }
    /// # Errors
    /// `INVALID_CONTEXT` for a context that it was not made in.
    pub(super) fn check_context(&self, context: Borrowed<'_, Context<D>>) -> Result<()> {
        match self.context.same(&context) {
            true => Ok(()),
            false => Err(Error::new(
                ErrorCode::InvalidContext,
                "the program was made in another context",
            )),
        }
    }
    /// What it offers on its devices, as far as it is built.
    ///
    /// # Errors
    /// `INVALID_PROGRAM_EXECUTABLE` unless it is built or linked for one of them.
    pub(super) fn built(&self) -> Result<Vec<Built<D>>> {
        let builds = self.builds();
        let pairs = self.devices.iter().zip(&*builds);
        let built: Vec<_> =
            pairs.filter_map(|(device, b)| Some((device.clone(), b.code.clone()?))).collect();
        if built.is_empty() { Err(not_built()) } else { Ok(built) }
    }
    /// What it offers on one device.
    ///
    /// # Errors
    /// As for `check` and `built`.
    fn code(&self, device: &Device<D>) -> Result<Arc<Code<D>>> {
        let at = self.place(device)?;
        self.builds()[at].code.clone().ok_or_else(not_built)
    }
    /// Where a variable is on a device, and how many bytes it has. The name may be SYCL's own for it.
    ///
    /// # Errors
    /// `INVALID_VALUE` where there is none of that name; as for `code`.
    pub(super) fn variable(&self, device: &Device<D>, name: &CStr) -> Result<(UsmPtr, usize)> {
        let code = self.code(device)?;
        let inside = self.metadata.global(name.to_bytes()).map_or(name, CString::as_c_str);
        let found = code.module().variable(inside)?;
        let (at, bytes) = found.filter(|&(at, _)| at != 0).ok_or_else(|| {
            Error::new(ErrorCode::InvalidValue, format!("the program has no variable {name:?}"))
        })?;
        UsmPtr::from_addr(at as usize).zip(Some(bytes)).ok_or(ErrorCode::InvalidValue.into())
    }
    /// Compiles or builds for some of its devices. Twice is as good as once: kernels of it may be about.
    ///
    /// # Errors
    /// `PROGRAM_BUILD_FAILURE`; why is in the build log too.
    pub(super) fn make(
        &self,
        places: &[usize],
        kind: ur_program_binary_type_t,
        options: Option<&CStr>,
    ) -> Result<()> {
        let options = options.map_or(String::new(), |o| o.to_string_lossy().into_owned());
        let parsed = code::options(&options);
        for &at in places {
            let Some(image) = &self.images[at] else { continue };
            if self.builds()[at].code.is_some() {
                self.builds()[at].options.clone_from(&options);
                continue;
            }
            let (made, log) = match &parsed {
                Ok(parsed) => self.make_one(at, image, kind, *parsed),
                Err(why) => {
                    (Err(Error::new(ErrorCode::ProgramBuildFailure, why.clone())), why.clone())
                }
            };
            let (code, failure) = match made {
                Ok(code) => (code, None),
                Err(error) => (None, Some(error)),
            };
            self.builds()[at].note(kind, options.clone(), log, code, failure.is_some());
            failure
                .map_or(Ok(()), |error| Err(code::build_failure(error, &self.builds()[at].log)))?;
        }
        Ok(())
    }
    /// With no lock held: the driver compiles.
    fn make_one(
        &self,
        at: usize,
        image: &Arc<Image>,
        kind: ur_program_binary_type_t,
        options: Options,
    ) -> (Result<Option<Arc<Code<D>>>>, String) {
        let device = &self.devices[at];
        match kind {
            ur_program_binary_type_t::EXECUTABLE => {
                let (code, log) = Code::load(device, image, options);
                (code.map(|code| Some(Arc::new(code))), log)
            }
            _ => {
                let (looked_at, log) = join(device, &[image], false, options);
                (looked_at.map(|_| None), log)
            }
        }
    }
    pub(super) fn all(&self) -> Vec<usize> {
        (0..self.devices.len()).collect()
    }
    fn places(&self, devices: &[Borrowed<'_, Device<D>>]) -> Result<Vec<usize>> {
        devices.iter().map(|device| self.place(device)).collect()
    }
    pub(super) fn is_made(&self) -> bool {
        self.builds().iter().any(|build| build.status == ur_program_build_status_t::SUCCESS)
    }
}
fn not_built() -> Error {
    Error::new(
        ErrorCode::InvalidProgramExecutable,
        "the program is not built: call urProgramBuild first",
    )
}

impl<D: Dialect> ProgramApi for Family<D> {
    fn program_create_with_il(
        context: Borrowed<'_, Context<D>>,
        il: UsmPtr,
        length: usize,
        properties: Option<&ur_program_properties_t>,
    ) -> Result<Owned<Program<D>>> {
        let bytes = given::bytes(il.as_ptr().cast_const().cast(), length)?;
        let image = Image::of::<D>(bytes).map_err(|_| {
            Error::new(
                ErrorCode::CompilerNotAvailable,
                format!(
                    "{} compiles no such intermediate code: give it what its own compiler takes or \
                     made, or compile the program for it beforehand",
                    D::NAME
                ),
            )
        })?;
        let metadata = Metadata::of(given::metadata(properties)?)?;
        let (devices, image) = (context.devices().to_vec(), Arc::new(image));
        let images = devices.iter().map(|_| Some(Arc::clone(&image))).collect();
        let program = Program::new(context.own()?, devices, images, metadata);
        Ok(Owned::new(Program { is_il: true, ..program }))
    }
    fn program_create_with_binary(
        context: Borrowed<'_, Context<D>>,
        devices: &[Borrowed<'_, Device<D>>],
        lengths: &[usize],
        binaries: &[*const u8],
        properties: Option<&ur_program_properties_t>,
    ) -> Result<Owned<Program<D>>> {
        devices.iter().try_for_each(|device| context.check(*device))?;
        let mut images: Vec<Option<Arc<Image>>> = vec![];
        for (at, (binary, length)) in binaries.iter().zip(lengths).enumerate() {
            let same = (0..at).find(|&one| (binaries[one], lengths[one]) == (*binary, *length));
            let image = match same {
                Some(one) => images[one].clone(),
                None => Some(Arc::new(Image::of::<D>(given::bytes(*binary, *length)?)?)),
            };
            images.push(image);
        }
        let metadata = Metadata::of(given::metadata(properties)?)?;
        let devices = devices.iter().map(|d| d.own()).collect::<Result<_>>()?;
        Ok(Owned::new(Program::new(context.own()?, devices, images, metadata)))
    }
    fn program_build(
        context: Borrowed<'_, Context<D>>,
        program: Borrowed<'_, Program<D>>,
        options: Option<&CStr>,
    ) -> Result<()> {
        program.check_context(context)?;
        program.make(&program.all(), ur_program_binary_type_t::EXECUTABLE, options)
    }
    fn program_compile(
        context: Borrowed<'_, Context<D>>,
        program: Borrowed<'_, Program<D>>,
        options: Option<&CStr>,
    ) -> Result<()> {
        program.check_context(context)?;
        program.make(&program.all(), ur_program_binary_type_t::COMPILED_OBJECT, options)
    }
    fn program_link(
        context: Borrowed<'_, Context<D>>,
        programs: &[Borrowed<'_, Program<D>>],
        options: Option<&CStr>,
    ) -> Result<Owned<Program<D>>> {
        let has_all = |device: &&Owned<Device<D>>| programs.iter().all(|p| p.check(device).is_ok());
        let devices: Vec<_> = context.devices().iter().filter(has_all).cloned().collect();
        if devices.is_empty() {
            programs.iter().try_for_each(|program| program.check_context(context))?;
            return Err(Error::new(
                ErrorCode::ProgramLinkFailure,
                "the programs have no device in common: give each a binary for the same one",
            ));
        }
        link(context, devices, programs, options)
    }
    /// Never more than that there is such a kernel: the driver gives no address that device code could call.
    fn program_get_function_pointer(
        device: Borrowed<'_, Device<D>>,
        program: Borrowed<'_, Program<D>>,
        name: &CStr,
    ) -> Result<UsmPtr> {
        match program.code(&device)?.module().function(name)? {
            None => Err(no_kernel(name)),
            Some(_) => Err(Error::new(
                ErrorCode::FunctionAddressNotAvailable,
                "the driver tells no addresses of functions on the device: have the program put them into \
                 a variable, and read that",
            )),
        }
    }
    fn program_get_global_variable_pointer(
        device: Borrowed<'_, Device<D>>,
        program: Borrowed<'_, Program<D>>,
        name: &CStr,
    ) -> Result<(usize, UsmPtr)> {
        program.variable(&device, name).map(|(at, bytes)| (bytes, at))
    }
    fn program_get_info(
        program: Borrowed<'_, Program<D>>,
        name: ur_program_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_program_info_t as I;
        let binaries = || -> Vec<&[u8]> {
            program.images.iter().map(|i| i.as_ref().map_or(&[][..], |i| i.given())).collect()
        };
        match name {
            I::REFERENCE_COUNT => answer.value(&program.api_refs()),
            I::CONTEXT => answer.handle(&program.context),
            I::NUM_DEVICES => answer.value(&(program.devices.len() as u32)),
            I::DEVICES => answer.handles(program.devices.iter().map(|d| &**d)),
            I::IL if program.is_il => answer.slice(binaries()[0]),
            I::IL => answer.slice::<u8>(&[]),
            I::BINARY_SIZES => {
                answer.slice(&binaries().iter().map(|b| b.len()).collect::<Vec<_>>())
            }
            I::BINARIES => answer.copies(&binaries()),
            I::NUM_KERNELS => answer.value(&program.names()?.len()),
            I::KERNEL_NAMES => {
                let names = program.names()?;
                let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
                answer.str(&names.join(";"))
            }
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a program of {} has no answer to {name:?}", D::NAME),
            )),
        }
    }
    fn program_get_build_info(
        program: Borrowed<'_, Program<D>>,
        device: Borrowed<'_, Device<D>>,
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
                format!("a build for {} has no answer to {name:?}", D::NAME),
            )),
        }
    }
    fn program_set_specialization_constants(
        _program: Borrowed<'_, Program<D>>,
        _constants: &[ur_specialization_constant_info_t],
    ) -> Result<()> {
        Err(Error::new(
            ErrorCode::UnsupportedFeature,
            format!("code for {} has no specialization constants", D::NAME),
        ))
    }
    /// The module on its first device that it is built for.
    fn program_get_native_handle(program: Borrowed<'_, Program<D>>) -> Result<ur_native_handle_t> {
        Ok(program.built()?[0].1.module().raw().addr() as ur_native_handle_t)
    }
    /// A module of the context's first device. It is not unloaded here unless it is given to us.
    fn program_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        properties: Option<&ur_program_native_properties_t>,
    ) -> Result<Owned<Program<D>>> {
        let raw = RawModule::from_addr(native).ok_or_else(|| {
            Error::new(ErrorCode::InvalidValue, "a null module is no program: load one first")
        })?;
        let device = context.devices()[0].clone();
        let is_ours = properties.is_some_and(|p| p.isNativeHandleOwned);
        let module = Module::of(raw, device.context()?, is_ours);
        let program = Program::new(context.own()?, vec![device], vec![None], Metadata::default());
        let (kind, code) = (ur_program_binary_type_t::EXECUTABLE, Arc::new(Code::of(module)));
        program.builds()[0].note(kind, String::new(), String::new(), Some(code), false);
        Ok(Owned::new(program))
    }
}
/// What C is told of a name that no kernel has.
pub(super) fn no_kernel(name: &CStr) -> Error {
    Error::new(ErrorCode::InvalidKernelName, format!("the program has no kernel {name:?}"))
}
impl<D: Dialect> Program<D> {
    /// What its kernels are called, in the order of the alphabet.
    ///
    /// # Errors
    /// `INVALID_PROGRAM_EXECUTABLE` unless it is built; `UNSUPPORTED_ENUMERATION` where nobody can tell.
    pub(super) fn names(&self) -> Result<Vec<CString>> {
        self.built()?[0].1.names()
    }
}

impl<D: Dialect> ProgramExpApi for Family<D> {
    fn program_dynamic_link_exp(
        context: Borrowed<'_, Context<D>>,
        programs: &[Borrowed<'_, Program<D>>],
    ) -> Result<()> {
        programs.iter().try_for_each(|program| program.check_context(context))?;
        Err(Error::new(
            ErrorCode::UnsupportedFeature,
            "loaded code is not linked once more: link with urProgramLink before it is loaded",
        ))
    }
    fn program_build_exp(
        program: Borrowed<'_, Program<D>>,
        devices: &[Borrowed<'_, Device<D>>],
        _flags: ur_exp_program_flags_t,
        options: Option<&CStr>,
    ) -> Result<()> {
        program.make(&program.places(devices)?, ur_program_binary_type_t::EXECUTABLE, options)
    }
    fn program_compile_exp(
        program: Borrowed<'_, Program<D>>,
        devices: &[Borrowed<'_, Device<D>>],
        _flags: ur_exp_program_flags_t,
        options: Option<&CStr>,
    ) -> Result<()> {
        program.make(&program.places(devices)?, ur_program_binary_type_t::COMPILED_OBJECT, options)
    }
    fn program_link_exp(
        context: Borrowed<'_, Context<D>>,
        devices: &[Borrowed<'_, Device<D>>],
        _flags: ur_exp_program_flags_t,
        programs: &[Borrowed<'_, Program<D>>],
        options: Option<&CStr>,
    ) -> Result<Owned<Program<D>>> {
        devices.iter().try_for_each(|device| context.check(*device))?;
        let devices = devices.iter().map(|d| d.own()).collect::<Result<_>>()?;
        link(context, devices, programs, options)
    }
}
