//! Modules: programs as the driver has them, compiled for one device or linked of several pieces.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{Outcome, RawBuildLog, RawContext, RawDevice, RawModule, driver},
    context::NativeContext,
};
use std::{
    ffi::{CStr, CString, c_void},
    ptr::{from_ref, null, null_mut},
    sync::Arc,
};
use ur_adapter::error::{Error, ErrorCode, Result};
use ur_hal::Constant;
use ze_sys::*;

/// Code as the driver takes it.
#[derive(Clone, Debug)]
pub enum Code {
    /// SPIR-V.
    Il(Arc<[u8]>),
    /// What the driver made before, or its compiler.
    Native(Arc<[u8]>),
}
/// A piece of a program.
#[derive(Clone, Debug)]
pub struct Piece {
    /// What to compile.
    pub code: Code,
    /// How.
    pub options: CString,
    /// What its specialization constants are; others keep their defaults.
    pub constants: Vec<Constant>,
}

/// A module: destroyed on drop if it is ours.
#[derive(Debug)]
pub struct NativeModule {
    raw: RawModule,
    owned: bool,
    _context: Arc<NativeContext>,
}
/// The driver's form of a piece's constants; what it points at is the piece's and its own.
struct Constants {
    numbers: Vec<u32>,
    values: Vec<*const c_void>,
}
impl Constants {
    fn of(piece: &Piece) -> Self {
        let numbers = piece.constants.iter().map(|(number, _)| *number).collect();
        let values = piece.constants.iter().map(|(_, bytes)| bytes.as_ptr().cast()).collect();
        Self { numbers, values }
    }
    fn ze(&mut self) -> ze_module_constants_t {
        ze_module_constants_t {
            numConstants: self.numbers.len() as u32,
            pConstantIds: self.numbers.as_ptr(),
            pConstantValues: self.values.as_mut_ptr(),
        }
    }
}

impl NativeModule {
    /// Compiles a piece for a device. With the driver's log, whatever comes of it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn create(
        context: &Arc<NativeContext>,
        device: RawDevice,
        piece: &Piece,
    ) -> (Result<Self>, String) {
        let (format, code) = match &piece.code {
            Code::Il(code) => (ZE_MODULE_FORMAT_IL_SPIRV, code),
            Code::Native(code) => (ZE_MODULE_FORMAT_NATIVE, code),
        };
        let mut held = Constants::of(piece);
        let constants = held.ze();
        let desc = ze_module_desc_t {
            stype: ZE_STRUCTURE_TYPE_MODULE_DESC,
            pNext: null(),
            format,
            inputSize: code.len(),
            pInputModule: code.as_ptr(),
            pBuildFlags: piece.options.as_ptr(),
            pConstants: if constants.numConstants == 0 { null() } else { from_ref(&constants) },
        };
        Self::make(context, device, &desc)
    }
    /// Compiles pieces of SPIR-V for a device and links them to one. With the driver's log.
    ///
    /// # Errors
    /// The driver's own; `INVALID_OPERATION` for pieces that are no SPIR-V.
    pub fn link(
        context: &Arc<NativeContext>,
        device: RawDevice,
        pieces: &[Piece],
    ) -> (Result<Self>, String) {
        let mut codes = vec![];
        for piece in pieces {
            let Code::Il(code) = &piece.code else {
                let why = "native binaries are whole programs: only SPIR-V is linked";
                return (Err(Error::new(ErrorCode::InvalidOperation, why)), String::new());
            };
            codes.push(code);
        }
        let mut held: Vec<_> = pieces.iter().map(Constants::of).collect();
        let constants: Vec<_> = held.iter_mut().map(Constants::ze).collect();
        let mut constants: Vec<*const ze_module_constants_t> =
            constants.iter().map(from_ref).collect();
        let sizes: Vec<_> = codes.iter().map(|code| code.len()).collect();
        let mut inputs: Vec<_> = codes.iter().map(|code| code.as_ptr()).collect();
        let mut options: Vec<_> = pieces.iter().map(|piece| piece.options.as_ptr()).collect();
        let program = ze_module_program_exp_desc_t {
            stype: ZE_STRUCTURE_TYPE_MODULE_PROGRAM_EXP_DESC,
            pNext: null(),
            count: pieces.len() as u32,
            inputSizes: sizes.as_ptr(),
            pInputModules: inputs.as_mut_ptr(),
            pBuildFlags: options.as_mut_ptr(),
            pConstants: constants.as_mut_ptr(),
        };
        let desc = ze_module_desc_t {
            stype: ZE_STRUCTURE_TYPE_MODULE_DESC,
            pNext: from_ref(&program).cast(),
            format: ZE_MODULE_FORMAT_IL_SPIRV,
            inputSize: 0,
            pInputModule: null(),
            pBuildFlags: null(),
            pConstants: null(),
        };
        Self::make(context, device, &desc)
    }
    fn make(
        context: &Arc<NativeContext>,
        device: RawDevice,
        desc: &ze_module_desc_t,
    ) -> (Result<Self>, String) {
        let (mut raw, mut log) = (None, None);
        let (in_context, to, told): (RawContext, _, _) =
            (context.raw(), &raw mut raw, &raw mut log);
        // SAFETY: live handles; `desc` and all it points at live during the call; both are writable.
        let made = unsafe { driver().module_create(in_context, device, desc, to, told) };
        let log = read(log);
        let module = made.ok().and_then(|()| RawModule::given(raw, "zeModuleCreate"));
        (module.map(|raw| Self { raw, owned: true, _context: Arc::clone(context) }), log)
    }
    /// One that C brought; `owned`: it is destroyed here.
    pub fn adopted(raw: RawModule, owned: bool, context: &Arc<NativeContext>) -> Self {
        Self { raw, owned, _context: Arc::clone(context) }
    }
    /// The driver's handle.
    pub fn raw(&self) -> RawModule {
        self.raw
    }
    /// Whether it uses symbols that nothing in it defines.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn has_imports(&self) -> Result<bool> {
        let mut told = ze_module_properties_t {
            stype: ZE_STRUCTURE_TYPE_MODULE_PROPERTIES,
            ..Default::default()
        };
        // SAFETY: live; `told` is writable and says what it is.
        unsafe { driver().module_get_properties(self.raw, &raw mut told) }.ok()?;
        Ok(told.flags & ZE_MODULE_PROPERTY_FLAG_IMPORTS != 0)
    }
    /// Resolves what these modules use of each other. With the driver's log.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn resolve(all: &[&Self]) -> (Result<()>, String) {
        let raws: Vec<_> = all.iter().map(|one| one.raw).collect();
        let (count, mut log) = (raws.len() as u32, None);
        // SAFETY: live modules, as many as are told; `log` is writable.
        let made = unsafe { driver().module_dynamic_link(count, raws.as_ptr(), &raw mut log) };
        (made.ok(), read(log))
    }
    /// The code that the driver made of it.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn binary(&self) -> Result<Vec<u8>> {
        // SAFETY: live; `filled` passes room for as much as it says.
        filled(|size, to| unsafe { driver().module_get_native_binary(self.raw, size, to) })
    }
    /// What its kernels are called.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn names(&self) -> Result<Vec<CString>> {
        let mut count = 0;
        // SAFETY: live; `count` is writable, and no room is promised.
        unsafe { driver().module_get_kernel_names(self.raw, &raw mut count, null_mut()) }.ok()?;
        let mut names = vec![null(); count as usize];
        let to = names.as_mut_ptr();
        // SAFETY: live; there is room for as many as are promised.
        unsafe { driver().module_get_kernel_names(self.raw, &raw mut count, to) }.ok()?;
        let given = names.into_iter().take(count as usize).filter(|name| !name.is_null());
        // SAFETY: the driver's strings live as long as the module, which is longer than this call.
        Ok(given.map(|name| unsafe { CStr::from_ptr(name) }.to_owned()).collect())
    }
    /// The address of a function on the device; `None` where there is none of that name.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn function(&self, name: &CStr) -> Result<Option<usize>> {
        let mut at = null_mut();
        // SAFETY: live; the name ends with a NUL and `at` is writable.
        let told =
            unsafe { driver().module_get_function_pointer(self.raw, name.as_ptr(), &raw mut at) };
        match told.status() {
            Some(ZE_RESULT_ERROR_INVALID_FUNCTION_NAME) => Ok(None),
            _ => told.ok().map(|()| Some(at.expose_provenance())),
        }
    }
    /// Where a variable is on the device, and its bytes; `None` where there is none of that name.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn variable(&self, name: &CStr) -> Result<Option<(usize, usize)>> {
        let (mut at, mut bytes) = (null_mut(), 0);
        let name = name.as_ptr();
        // SAFETY: live; the name ends with a NUL and both are writable.
        let told = unsafe {
            driver().module_get_global_pointer(self.raw, name, &raw mut bytes, &raw mut at)
        };
        match told.status() {
            Some(ZE_RESULT_ERROR_INVALID_GLOBAL_NAME) => Ok(None),
            _ => told.ok().map(|()| Some((at.expose_provenance(), bytes))),
        }
    }
}
impl Drop for NativeModule {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: ours, destroyed once; its kernels keep it.
            unsafe { driver().module_destroy(self.raw) }.let_go();
        }
    }
}

/// Bytes of which the driver tells first how many there are.
pub(super) fn filled(ask: impl Fn(*mut usize, *mut u8) -> Outcome) -> Result<Vec<u8>> {
    let mut size = 0;
    ask(&raw mut size, null_mut()).ok()?;
    let mut bytes = vec![0; size];
    if size != 0 {
        ask(&raw mut size, bytes.as_mut_ptr()).ok()?;
    }
    bytes.truncate(size);
    Ok(bytes)
}
/// What a build log says; the log is destroyed. One that cannot be read says so: the build is not the
/// worse for it.
fn read(log: Option<RawBuildLog>) -> String {
    let Some(log) = log else { return String::new() };
    let text = filled(|size, to| {
        // SAFETY: live until it is destroyed below; `filled` passes room for as much as it says.
        unsafe { driver().module_build_log_get_string(log, size, to.cast()) }
    });
    // SAFETY: given to us with the module, destroyed once.
    unsafe { driver().module_build_log_destroy(log) }.let_go();
    match text {
        Ok(bytes) => {
            let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).trim_end().to_owned()
        }
        Err(error) => format!("(the driver's log cannot be read: {error})"),
    }
}
