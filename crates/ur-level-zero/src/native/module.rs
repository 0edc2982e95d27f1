//! Modules: programs compiled for one device, or linked from several pieces.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::{
    super::driver::{RawBuildLog, RawDevice, RawModule, driver},
    context::{InContext, NativeContext},
    owned::Owned,
};
use std::{
    ffi::{CStr, CString, c_void},
    ptr::{from_ref, null, null_mut},
    sync::Arc,
};
use ur_hal::{Constant, Error, ErrorKind, Result, listed, made, text, told};
use ze_sys::*;

/// The forms of code that the driver accepts.
#[derive(Clone, Debug)]
pub enum Code {
    /// SPIR-V.
    Il(Arc<[u8]>),
    /// A native binary, made by the driver or by its offline compiler.
    Native(Arc<[u8]>),
}
/// A piece of a program.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The code.
    pub code: Code,
    /// The options for the driver's compiler.
    pub options: CString,
    /// The values of specialization constants; others keep their defaults.
    pub constants: Vec<Constant>,
}

/// A module.
pub type NativeModule = InContext<RawModule>;
/// The specialization constants of a piece in the driver's form; it points at the piece's values.
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
    /// Compiles a piece for a device. Always returns the driver's log too.
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
            format,
            inputSize: code.len(),
            pInputModule: code.as_ptr(),
            pBuildFlags: piece.options.as_ptr(),
            pConstants: if constants.numConstants == 0 { null() } else { from_ref(&constants) },
            ..Default::default()
        };
        Self::make(context, device, &desc)
    }
    /// Compiles pieces of SPIR-V for a device and links them. Always returns the driver's log too.
    ///
    /// # Errors
    /// `INVALID_OPERATION` for pieces that are not SPIR-V; else the driver's error.
    pub fn link(
        context: &Arc<NativeContext>,
        device: RawDevice,
        pieces: &[Piece],
    ) -> (Result<Self>, String) {
        let mut codes = vec![];
        for piece in pieces {
            let Code::Il(code) = &piece.code else {
                let why = "native binaries are whole programs: only SPIR-V is linked";
                return (Err(Error::new(ErrorKind::InvalidOperation, why)), String::new());
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
            count: pieces.len() as u32,
            inputSizes: sizes.as_ptr(),
            pInputModules: inputs.as_mut_ptr(),
            pBuildFlags: options.as_mut_ptr(),
            pConstants: constants.as_mut_ptr(),
            ..Default::default()
        };
        let desc = ze_module_desc_t {
            pNext: from_ref(&program).cast(),
            format: ZE_MODULE_FORMAT_IL_SPIRV,
            ..Default::default()
        };
        Self::make(context, device, &desc)
    }
    fn make(
        context: &Arc<NativeContext>,
        device: RawDevice,
        desc: &ze_module_desc_t,
    ) -> (Result<Self>, String) {
        let mut log = None;
        let told = &raw mut log;
        // SAFETY: the handles are live; `desc` and all it points at live during the call; both are writable.
        let made =
            made(|to| unsafe { driver().module_create(context.raw(), device, desc, to, told) });
        (made.map(|raw| Self::new(raw, Arc::clone(context))), read(log))
    }
    /// Whether it uses symbols that it does not define.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn has_imports(&self) -> Result<bool> {
        // SAFETY: the module is live; `to` is writable and has its type.
        let told: ze_module_properties_t =
            told(|to| unsafe { driver().module_get_properties(self.raw(), to) })?;
        Ok(told.flags & ZE_MODULE_PROPERTY_FLAG_IMPORTS != 0)
    }
    /// Links these modules, so that each can use symbols of the others. Always returns the driver's log too.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn resolve(all: &[&Self]) -> (Result<()>, String) {
        let raws: Vec<_> = all.iter().map(|one| one.raw()).collect();
        let (count, mut log) = (raws.len() as u32, None);
        // SAFETY: the modules are live; the list has `count` entries; `log` is writable.
        let made = unsafe { driver().module_dynamic_link(count, raws.as_ptr(), &raw mut log) };
        (made.ok(), read(log))
    }
    /// The native binary that the driver made.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn binary(&self) -> Result<Vec<u8>> {
        // SAFETY: the module is live; `listed` passes a buffer with the size that it states.
        listed(0, |size, to| unsafe { driver().module_get_native_binary(self.raw(), size, to) })
    }
    /// The names of its kernels.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn names(&self) -> Result<Vec<CString>> {
        let names = listed(null(), |count, to| {
            // SAFETY: the module is live; `listed` passes a list with the length that it states.
            unsafe { driver().module_get_kernel_names(self.raw(), count, to) }
        })?;
        let given = names.into_iter().filter(|name| !name.is_null());
        // SAFETY: the driver's strings live as long as the module.
        Ok(given.map(|name| unsafe { CStr::from_ptr(name) }.to_owned()).collect())
    }
    /// The address of a function on the device; `None` if there is none with that name.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn function(&self, name: &CStr) -> Result<Option<usize>> {
        let mut at = null_mut();
        // SAFETY: the module is live; the name ends with a NUL and `at` is writable.
        let told =
            unsafe { driver().module_get_function_pointer(self.raw(), name.as_ptr(), &raw mut at) };
        match told.status() {
            Some(ZE_RESULT_ERROR_INVALID_FUNCTION_NAME) => Ok(None),
            _ => told.ok().map(|()| Some(at.expose_provenance())),
        }
    }
    /// The address of a variable on the device and its size in bytes; `None` if there is none with that name.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub fn variable(&self, name: &CStr) -> Result<Option<(usize, usize)>> {
        let (mut at, mut bytes) = (null_mut(), 0);
        let name = name.as_ptr();
        // SAFETY: the module is live; the name ends with a NUL and both are writable.
        let told = unsafe {
            driver().module_get_global_pointer(self.raw(), name, &raw mut bytes, &raw mut at)
        };
        match told.status() {
            Some(ZE_RESULT_ERROR_INVALID_GLOBAL_NAME) => Ok(None),
            _ => told.ok().map(|()| Some((at.expose_provenance(), bytes))),
        }
    }
}
/// The text of a build log, which is destroyed. A log that cannot be read is no error of the build; the text
/// says so.
fn read(log: Option<RawBuildLog>) -> String {
    let Some(log) = log else { return String::new() };
    let log: Owned<RawBuildLog, ()> = Owned::new(log, ());
    let read = listed(0_u8, |size, to| {
        // SAFETY: live; `listed` passes a buffer with the size that it states.
        unsafe { driver().module_build_log_get_string(log.raw(), size, to.cast()) }
    });
    match read {
        Ok(bytes) => String::from_utf8_lossy(text(&bytes)).trim_end().to_owned(),
        Err(error) => format!("(the driver's log cannot be read: {error})"),
    }
}
