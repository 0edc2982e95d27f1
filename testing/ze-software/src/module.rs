//! Modules: device code from SPIR-V or from a native binary, with its build log.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    build_log,
    code::{self, Code, Source},
    context, device,
    elf::{self, Library},
    handle::{self, Object, raw},
    inject::Answer,
    knob, raw, spirv,
};
use std::{
    ffi::{CString, c_char, c_void},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};
use ze_sys::*;

/// A module.
pub struct Module {
    code: Code,
    /// The names of the kernels, as C strings. The caller may use them as long as the module exists.
    names: Vec<CString>,
    id: u64,
    /// Whether it was built with the option for buffers of more than 4 GiB.
    is_for_large: bool,
}
impl Object for Module {
    const TAG: u64 = 0x7a65_6d6f_6475_6c65;
}
/// A kernel of a module.
pub enum Found {
    /// In SPIR-V.
    Portable(Arc<spirv::Program>, Arc<spirv::Kernel>),
    /// A C function and its number of arguments.
    Native(elf::Function, u32),
}
impl Module {
    fn new(code: Code, is_for_large: bool) -> Module {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let id = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let names = code.kernels().into_iter().filter_map(|name| CString::new(name).ok()).collect();
        Module { code, names, id, is_for_large }
    }
    /// Fails for a buffer of `bytes` if the module's kernels cannot address all of it
    /// (`ZE_SOFTWARE_STATEFUL_4G`, in MiB).
    ///
    /// # Errors
    /// A sentence with the reason.
    pub fn reaches(&self, bytes: usize) -> Result<(), String> {
        static MOST: LazyLock<usize> =
            LazyLock::new(|| knob::mebibytes("STATEFUL_4G").unwrap_or(usize::MAX));
        if self.is_for_large || bytes <= *MOST {
            return Ok(());
        }
        Err(format!("it was not built for buffers of {bytes} bytes"))
    }
    /// The module's name in messages.
    pub fn label(&self) -> String {
        format!("module {}", self.id)
    }
    /// An identifier that no other module of the process has.
    pub fn uuid(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.id.to_le_bytes());
        bytes
    }
    /// The kernel with this name.
    ///
    /// # Errors
    /// `INVALID_MODULE_UNLINKED` if functions are missing, `INVALID_KERNEL_NAME` if there is no such kernel.
    pub fn entry(&self, name: &str) -> Answer<Found> {
        if !self.code.missing().is_empty() {
            return Err(ZE_RESULT_ERROR_INVALID_MODULE_UNLINKED);
        }
        let found = match &self.code {
            Code::Native(library) => library.kernel(name).map(|(f, n)| Found::Native(f, n)),
            Code::Portable(parts) => parts.iter().find_map(|part| {
                let kernel = part.program.kernels().iter().find(|k| k.name == name)?;
                Some(Found::Portable(Arc::clone(&part.program), Arc::clone(kernel)))
            }),
        };
        found.ok_or(ZE_RESULT_ERROR_INVALID_KERNEL_NAME)
    }
    /// Returns the native binary and its size.
    ///
    /// # Errors
    /// `INVALID_NULL_POINTER` if `size` is null.
    pub fn put_binary(&self, size: *mut usize, to: *mut u8) -> Answer {
        let bytes = match &self.code {
            Code::Portable(parts) => code::write(parts),
            Code::Native(library) => library.bytes().to_vec(),
        };
        let room = raw::get(size)?;
        raw::put_bytes(to, room, &bytes);
        raw::put(size, bytes.len())
    }
}
/// The module behind `raw`.
pub fn get(raw: ze_module_handle_t) -> Answer<Arc<Module>> {
    handle::get(raw!(raw))
}
/// Why a module could not be built: the error code, and the sentence for the build log.
type Refused = (ze_result_t, String);
fn failed(why: String) -> Refused {
    (ZE_RESULT_ERROR_MODULE_BUILD_FAILURE, why)
}
/// The values of specialization constants. Their sizes are only known from the module, so eight bytes are
/// read if that many are certain to be readable, else as many as the module's constant has.
fn constants(
    from: *const ze_module_constants_t,
    specials: &[spirv::Special],
) -> Answer<Vec<(u32, Vec<u8>)>> {
    if from.is_null() {
        return Ok(Vec::new());
    }
    let c = raw::get(from)?;
    let ids = raw::list(c.pConstantIds, c.numConstants as usize)?;
    let values = raw::list(c.pConstantValues.cast_const(), c.numConstants as usize)?;
    let pairs = ids.into_iter().zip(values);
    let value = |(id, at): (u32, *const c_void)| {
        let size = specials.iter().find(|(n, _)| *n == id).map_or(1, |(_, size)| *size);
        Ok((id, raw::bytes(at.cast(), size)?))
    };
    pairs.map(value).collect()
}
fn portable(bytes: Vec<u8>, given: *const ze_module_constants_t) -> Result<Source, Refused> {
    let plain =
        |code: ze_result_t| (code, "the specialization constants cannot be read".to_owned());
    if given.is_null() {
        return Source::build(bytes, Vec::new()).map_err(failed);
    }
    let specials = spirv::Program::build(&bytes, &[]).map_err(failed)?;
    let given = constants(given, specials.specials()).map_err(plain)?;
    Source::build(bytes, given).map_err(failed)
}
/// Builds a module.
fn build(d: &ze_module_desc_t) -> Result<Code, Refused> {
    let null = |code: ze_result_t| (code, "the module's bytes cannot be read".to_owned());
    let stype = ZE_STRUCTURE_TYPE_MODULE_PROGRAM_EXP_DESC;
    if let Some(several) = raw::find::<ze_module_program_exp_desc_t>(d.pNext, stype) {
        return many(&raw::get(several.cast_const()).map_err(null)?);
    }
    if d.pInputModule.is_null() {
        return Err(null(ZE_RESULT_ERROR_INVALID_NULL_POINTER));
    }
    if d.inputSize == 0 {
        return Err((ZE_RESULT_ERROR_INVALID_SIZE, "the module has no bytes".to_owned()));
    }
    let bytes = raw::bytes(d.pInputModule, d.inputSize).map_err(null)?;
    match d.format {
        ZE_MODULE_FORMAT_IL_SPIRV => Ok(Code::Portable(vec![portable(bytes, d.pConstants)?])),
        ZE_MODULE_FORMAT_NATIVE => native(bytes),
        format => {
            Err((ZE_RESULT_ERROR_INVALID_ENUMERATION, format!("{format} is no format of modules")))
        }
    }
}
/// Builds several SPIR-V modules into one.
fn many(d: &ze_module_program_exp_desc_t) -> Result<Code, Refused> {
    let null = |code: ze_result_t| (code, "the modules cannot be read".to_owned());
    let count = d.count as usize;
    let inputs = raw::list(d.pInputModules.cast_const(), count).map_err(null)?;
    let sizes = raw::list(d.inputSizes, count).map_err(null)?;
    let given = match d.pConstants.is_null() {
        true => vec![std::ptr::null(); count],
        false => raw::list(d.pConstants.cast_const(), count).map_err(null)?,
    };
    let mut parts = Vec::new();
    for ((input, size), given) in inputs.into_iter().zip(sizes).zip(given) {
        let bytes = raw::bytes(input, size).map_err(null)?;
        parts.push(portable(bytes, given)?);
    }
    code::join(&parts).map_err(|why| (ZE_RESULT_ERROR_MODULE_LINK_FAILURE, why))?;
    Ok(Code::Portable(parts))
}
fn native(bytes: Vec<u8>) -> Result<Code, Refused> {
    let refused = |why: String| (ZE_RESULT_ERROR_INVALID_NATIVE_BINARY, why);
    if bytes.starts_with(b"\x7fELF") {
        return Library::load(bytes).map(Code::Native).map_err(refused);
    }
    if !code::is_ours(&bytes) {
        return Err(refused("the binary is none that this driver has written".to_owned()));
    }
    let parts = code::read(&bytes).map_err(refused)?;
    code::join(&parts).map_err(refused)?;
    Ok(Code::Portable(parts))
}
/// A line for the build log with the options that were ignored; empty if there are none.
fn remark(options: *const c_char) -> String {
    let known = |word: &&str| !word.starts_with('-');
    let options =
        if options.is_null() { String::new() } else { raw::text(options).unwrap_or_default() };
    let strange: Vec<&str> = options.split_whitespace().filter(known).collect();
    if strange.is_empty() { String::new() } else { format!("ignored: {}", strange.join(" ")) }
}
/// Whether all inputs have the option for buffers of more than 4 GiB.
fn is_for_large(d: &ze_module_desc_t) -> bool {
    let says = |options: *const c_char| {
        !options.is_null()
            && raw::text(options)
                .is_ok_and(|text| text.contains("greater-than-4GB-buffer-required"))
    };
    let stype = ZE_STRUCTURE_TYPE_MODULE_PROGRAM_EXP_DESC;
    let Some(several) = raw::find::<ze_module_program_exp_desc_t>(d.pNext, stype) else {
        return says(d.pBuildFlags);
    };
    let all = raw::get(several.cast_const())
        .and_then(|d| raw::list(d.pBuildFlags.cast_const(), d.count as usize));
    all.is_ok_and(|all| all.into_iter().all(says))
}
fn create(
    desc: *const ze_module_desc_t,
    to: *mut ze_module_handle_t,
    log: *mut ze_module_build_log_handle_t,
) -> Answer {
    let d = raw::get(desc)?;
    if to.is_null() {
        return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    }
    let built = build(&d);
    let text = match &built {
        Ok(_) => remark(d.pBuildFlags),
        Err((_, why)) => why.clone(),
    };
    build_log::hand_out(log, text);
    let code = built.map_err(|(code, _)| code)?;
    raw::put(to, handle::make(Module::new(code, is_for_large(&d))).cast())
}
/// Links modules with each other; the error is a sentence with the reason.
fn link(modules: &[Arc<Module>]) -> Result<(), String> {
    let parts = modules.iter().flat_map(|m| match &m.code {
        Code::Portable(parts) => parts.as_slice(),
        Code::Native(_) => &[],
    });
    let parts: Vec<&Source> = parts.collect();
    code::join_all(&parts)?;
    let missing: Vec<String> = modules.iter().flat_map(|m| m.code.missing()).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("not found: {}", missing.join(", "))) }
}
fn all(count: u32, modules: *mut ze_module_handle_t) -> Answer<Vec<Arc<Module>>> {
    raw::list(modules.cast_const(), count as usize)?.into_iter().map(get).collect()
}
/// The imports and exports of modules, one line for each.
fn inspected(flags: ze_linkage_inspection_ext_flags_t, modules: &[Arc<Module>]) -> String {
    let wants = |flag| flags & flag != 0;
    let mut lines = Vec::new();
    for module in modules {
        let missing = module.code.missing();
        if wants(ZE_LINKAGE_INSPECTION_EXT_FLAG_IMPORTS)
            || wants(ZE_LINKAGE_INSPECTION_EXT_FLAG_UNRESOLVABLE_IMPORTS)
        {
            lines.extend(missing.iter().map(|name| format!("import {name}")));
        }
        if wants(ZE_LINKAGE_INSPECTION_EXT_FLAG_EXPORTS) {
            lines.extend(module.code.exports().into_iter().map(|name| format!("export {name}")));
        }
    }
    lines.join("\n")
}
entries! {
    fn zeModuleCreate(
        context: ze_context_handle_t,
        device: ze_device_handle_t,
        desc: *const ze_module_desc_t,
        to: *mut ze_module_handle_t,
        log: *mut ze_module_build_log_handle_t,
    ) {
        let (context, device) = (context::get(context)?, device::get(device)?);
        if !context.has(&device) {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        create(desc, to, log)
    }
    fn zeModuleDestroy(module: ze_module_handle_t) {
        handle::destroy::<Module>(raw!(module)).map(drop)
    }
    fn zeModuleDynamicLink(
        count: u32,
        modules: *mut ze_module_handle_t,
        log: *mut ze_module_build_log_handle_t,
    ) {
        let done = link(&all(count, modules)?);
        build_log::hand_out(log, done.clone().err().unwrap_or_default());
        done.map_err(|_| ZE_RESULT_ERROR_MODULE_LINK_FAILURE)
    }
    fn zeModuleInspectLinkageExt(
        desc: *mut ze_linkage_inspection_ext_desc_t,
        count: u32,
        modules: *mut ze_module_handle_t,
        log: *mut ze_module_build_log_handle_t,
    ) {
        let flags = raw::get(desc.cast_const())?.flags;
        build_log::hand_out(log, inspected(flags, &all(count, modules)?));
        Ok(())
    }
    fn zeModuleGetNativeBinary(module: ze_module_handle_t, size: *mut usize, to: *mut u8) {
        get(module)?.put_binary(size, to)
    }
    fn zeModuleGetGlobalPointer(
        module: ze_module_handle_t,
        name: *const c_char,
        size: *mut usize,
        to: *mut *mut c_void,
    ) {
        let (module, name) = (get(module)?, raw::text(name)?);
        let found = module.code.global(&name);
        let (address, bytes) = found.ok_or(ZE_RESULT_ERROR_INVALID_GLOBAL_NAME)?;
        raw::put_maybe(size, bytes as usize);
        raw::put_maybe(to, std::ptr::with_exposed_provenance_mut(address as usize));
        Ok(())
    }
    fn zeModuleGetKernelNames(
        module: ze_module_handle_t,
        count: *mut u32,
        to: *mut *const c_char,
    ) {
        let module = get(module)?;
        let names: Vec<*const c_char> = module.names.iter().map(|n| n.as_ptr()).collect();
        raw::put_list(count, to, &names)
    }
    fn zeModuleGetProperties(module: ze_module_handle_t, to: *mut ze_module_properties_t) {
        let module = get(module)?;
        raw::amend(to, |p| {
            let open = !module.code.missing().is_empty();
            p.flags = if open { ZE_MODULE_PROPERTY_FLAG_IMPORTS } else { 0 };
            Ok(())
        })
    }
    fn zeModuleGetFunctionPointer(
        module: ze_module_handle_t,
        name: *const c_char,
        to: *mut *mut c_void,
    ) {
        let (module, name) = (get(module)?, raw::text(name)?);
        let found = module.code.function(&name);
        let address = found.ok_or(ZE_RESULT_ERROR_INVALID_FUNCTION_NAME)?;
        raw::put(to, std::ptr::with_exposed_provenance_mut(address as usize))
    }
}
