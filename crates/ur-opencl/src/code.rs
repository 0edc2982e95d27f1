//! Code for OpenCL: SPIR-V or OpenCL C, which the driver compiles, and binaries that it has made.
use super::{
    OpenCl,
    cl::*,
    context::DriverContext,
    driver::{RawDevice, RawProgram},
    native::{
        kernel::Kernel,
        memory::Reach,
        own::{Own, Tells},
        program as native,
    },
};
use std::{
    ffi::{CStr, CString},
    sync::Arc,
};
use ur_core::kernels::spirv::Facts;
use ur_hal::{Address, CodeForm, Error, ErrorKind, FunctionFacts, Modules, Piece, Range, Result};

/// Code as the driver takes it.
#[derive(Debug)]
pub enum Code {
    /// SPIR-V.
    SpirV(Box<[u8]>),
    /// OpenCL C.
    Source(Box<[u8]>),
    /// What a driver has made.
    Binary(Box<[u8]>),
}
impl Code {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::SpirV(bytes) | Self::Source(bytes) | Self::Binary(bytes) => bytes,
        }
    }
}
/// What a module is built for.
#[derive(Clone, Debug)]
pub struct Target {
    pub(super) context: Arc<DriverContext>,
    pub(super) device: RawDevice,
    /// Bytes of local memory that a group can have.
    pub(super) local: usize,
}
/// A program that is built for a device.
#[derive(Debug)]
pub struct Module {
    pub(super) program: Own<RawProgram>,
    pub(super) target: Target,
}
/// A kernel on a device.
#[derive(Debug)]
pub struct Function {
    pub(super) kernel: Kernel,
    target: Target,
}
impl Function {
    pub(super) fn new(kernel: Kernel, target: &Target) -> Self {
        Self { kernel, target: target.clone() }
    }
}
/// The first word of SPIR-V, in either order of bytes.
const MAGIC: [[u8; 4]; 2] = [[0x03, 0x02, 0x23, 0x07], [0x07, 0x23, 0x02, 0x03]];

impl Modules for OpenCl {
    type Code = Code;
    type Target = Target;
    type Module = Module;
    type Function = Function;
    const TARGETS: &'static [&'static CStr] = &[c"spir64_x86_64", c"spir64"];

    /// What begins as SPIR-V does is that; text is OpenCL C, which drivers without SPIR-V take.
    fn code(bytes: &[u8], form: CodeForm) -> Result<Code> {
        let is_text = || !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok();
        match form {
            CodeForm::Binary => Ok(Code::Binary(bytes.into())),
            CodeForm::Intermediate if MAGIC.iter().any(|magic| bytes.starts_with(magic)) => {
                Ok(Code::SpirV(bytes.into()))
            }
            CodeForm::Intermediate if !bytes.is_empty() && is_text() => {
                Ok(Code::Source(bytes.into()))
            }
            CodeForm::Intermediate => {
                let why = "this is neither SPIR-V nor the text of a program in OpenCL C";
                Err(Error::new(ErrorKind::InvalidBinary, why))
            }
        }
    }
    fn bytes(code: &Code) -> &[u8] {
        code.bytes()
    }
    fn spir_v(code: &Code) -> Option<&[u8]> {
        match code {
            Code::SpirV(bytes) => Some(bytes),
            Code::Source(_) | Code::Binary(_) => None,
        }
    }
    fn compile(target: &Target, pieces: &[Piece<'_, Self>]) -> (Result<()>, String) {
        let mut log = String::new();
        let done = pieces.iter().try_for_each(|piece| compiled(target, piece, &mut log).map(drop));
        (done, log)
    }
    fn build(target: &Target, pieces: &[Piece<'_, Self>], _: bool) -> (Result<Module>, String) {
        let mut log = String::new();
        let program = match pieces {
            [one] => made(target, one, &mut log, native::build),
            all => linked(target, all, &mut log),
        };
        (program.map(|program| Module { program, target: target.clone() }), log)
    }
    fn binary(module: &Module) -> Result<Vec<u8>> {
        Ok(native::binary(&module.program, module.target.device)?)
    }
    fn functions(module: &Module) -> Result<Vec<CString>> {
        Ok(native::names(&module.program)?)
    }
    fn function(module: &Module, name: &CStr) -> Result<Option<Function>> {
        let extensions = module.target.context.extensions();
        let Some(raw) = native::kernel(&module.program, name)? else { return Ok(None) };
        Ok(Some(Function::new(Kernel::new(raw, extensions), &module.target)))
    }
    fn address(module: &Module, name: &CStr) -> Result<Option<Address>> {
        let Target { context, device, .. } = &module.target;
        let found = native::function(context.extensions(), &module.program, *device, name)?;
        Ok(found.and_then(Address::new))
    }
    fn variable(module: &Module, name: &CStr) -> Result<Option<Range>> {
        let Target { context, device, .. } = &module.target;
        let found = native::variable(context.extensions(), &module.program, *device, name)?;
        let found = found.and_then(|(at, bytes)| Address::new(at).zip(Some(bytes)));
        found.map(|(at, bytes)| Range::new(at, bytes)).transpose()
    }
    fn function_facts(function: &Function) -> Result<FunctionFacts> {
        let (raw, device) = (function.kernel.raw(), function.target.device);
        let told = |name| native::of_group(raw, device, name).filter(|all| !all.is_empty());
        let one = |name| told(name).map(|all| all[0]);
        let some = |name| one(name).filter(|&n| n != 0).and_then(|n| u32::try_from(n).ok());
        let group = told(CL_KERNEL_COMPILE_WORK_GROUP_SIZE);
        let group = group.and_then(|all| <[usize; 3]>::try_from(all).ok()).filter(|g| *g != [0; 3]);
        let items = one(CL_KERNEL_WORK_GROUP_SIZE);
        let of_items = [items.unwrap_or(1), 1, 1];
        let extensions = function.target.context.extensions();
        let sub = |name| native::of_sub_group(extensions, (raw, device), name, of_items);
        let sub_groups = sub(CL_KERNEL_COMPILE_NUM_SUB_GROUPS).filter(|&n| n != 0);
        Ok(FunctionFacts {
            items,
            required_group: group,
            sub_group: some(CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL),
            local_memory: one(CL_KERNEL_LOCAL_MEM_SIZE).unwrap_or(0),
            private_memory: one(CL_KERNEL_PRIVATE_MEM_SIZE).unwrap_or(0),
            arguments: Some(raw.number(CL_KERNEL_NUM_ARGS)? as u32),
            argument_sizes: None,
            longest_argument: None,
            is_all_told: false,
            multiple: one(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE),
            sub_groups,
            most_sub_group: sub(CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE).unwrap_or(1).max(1),
            most_sub_groups: sub(CL_KERNEL_MAX_NUM_SUB_GROUPS).unwrap_or(1).max(1),
            spilled: one(CL_KERNEL_SPILL_MEM_SIZE_INTEL).map(|n| n as u32),
            registers: None,
        })
    }
    fn attributes(function: &Function) -> Result<String> {
        Ok(function.kernel.raw().text(CL_KERNEL_ATTRIBUTES).unwrap_or_default())
    }
    fn allow_local(function: &Function, bytes: usize) -> Result<()> {
        match bytes <= function.target.local {
            true => Ok(()),
            false => {
                let why = format!("{bytes} bytes of local memory are more than a group can have");
                Err(Error::new(ErrorKind::OutOfResources, why))
            }
        }
    }
    fn reach_all(function: &Function, all: bool) -> Result<()> {
        let names: &[cl_uint] = match function.target.context.reach() {
            Reach::System => &[CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM],
            Reach::Usm => &[
                CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL,
                CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL,
                CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL,
            ],
            Reach::Svm | Reach::None => &[], // fine-grained buffers need not be named to devices with the host's memory
        };
        Ok(names.iter().try_for_each(|name| function.kernel.reach(all, *name))?)
    }
}
/// The options of a build. Of what a kernel of OpenCL C takes, some drivers tell only where they were asked to keep it.
fn options(code: &Code, flags: &str) -> Result<CString> {
    let keeps = if matches!(code, Code::Source(_)) { " -cl-kernel-arg-info" } else { "" };
    CString::new([flags, keeps].concat()).map_err(|_| {
        Error::new(ErrorKind::InvalidValue, "the options of a build have a NUL inside")
    })
}
fn note(log: &mut String, program: &Own<RawProgram>, device: RawDevice) {
    let said = native::log(program, device);
    if !said.is_empty() {
        *log += if log.is_empty() { "" } else { "\n" };
        *log += &said;
    }
}
fn created(target: &Target, piece: &Piece<'_, OpenCl>) -> Result<Own<RawProgram>> {
    // A driver's compiler may end the process over code that is not whole.
    if let Code::SpirV(bytes) = piece.code {
        Facts::of(bytes).map_err(|why| Error::new(ErrorKind::BuildFailed, why))?;
    }
    let place = (target.context.native().raw(), target.device);
    Ok(native::create(place, target.context.extensions(), piece.code, piece.constants)?)
}
/// A program of one piece, by what is done with it for a device with its options.
fn made(
    target: &Target,
    piece: &Piece<'_, OpenCl>,
    log: &mut String,
    make: fn(&Own<RawProgram>, RawDevice, &CStr) -> ur_adapter::error::Result<()>,
) -> Result<Own<RawProgram>> {
    let options = options(piece.code, piece.flags)?;
    let program = created(target, piece)?;
    let done = make(&program, target.device, &options);
    note(log, &program, target.device);
    done?;
    Ok(program)
}
fn compiled(
    target: &Target,
    piece: &Piece<'_, OpenCl>,
    log: &mut String,
) -> Result<Own<RawProgram>> {
    if matches!(piece.code, Code::Binary(_)) {
        let why = "only SPIR-V and OpenCL C are compiled: binaries are built";
        return Err(Error::new(ErrorKind::InvalidOperation, why));
    }
    made(target, piece, log, native::compile)
}
fn linked(
    target: &Target,
    pieces: &[Piece<'_, OpenCl>],
    log: &mut String,
) -> Result<Own<RawProgram>> {
    let all: Vec<_> =
        pieces.iter().map(|piece| compiled(target, piece, log)).collect::<Result<_>>()?;
    let raws: Vec<_> = all.iter().map(Own::raw).collect();
    let place = (target.context.native().raw(), target.device);
    Ok(native::link(place, c"", &raws, |program| note(log, program, target.device))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_known_by_how_it_begins() {
        let kind = |bytes: &[u8]| OpenCl::code(bytes, CodeForm::Intermediate);
        assert!(matches!(kind(b"\x03\x02\x23\x07rest\0"), Ok(Code::SpirV(_))));
        assert!(matches!(kind(b"kernel void f() {}"), Ok(Code::Source(_))));
        assert_eq!(kind(b"\xff\xfe\x00").unwrap_err().kind(), ErrorKind::InvalidBinary);
        assert_eq!(kind(b"").unwrap_err().kind(), ErrorKind::InvalidBinary);
        assert!(matches!(OpenCl::code(b"x", CodeForm::Binary), Ok(Code::Binary(_))));
    }
}
