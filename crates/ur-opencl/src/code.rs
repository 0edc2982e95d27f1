//! Code for OpenCL: SPIR-V or OpenCL C, which the driver compiles, and binaries that it has made.
use super::{
    DriverDevice, OpenCl,
    cl::*,
    context::DriverContext,
    driver::{Extensions, RawContext, RawDevice, RawKernel, RawProgram},
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
use ur_hal::{
    Address, Capabilities, CodeForm, Error, ErrorKind, FunctionFacts, LaunchLimits, Modules,
    NativeHandle, Piece, Range, Result,
};

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
    context: Arc<Own<RawContext>>,
    extensions: Arc<Extensions>,
    reach: Reach,
    device: RawDevice,
    /// Bytes of local memory that a group can have.
    local: usize,
}
impl Target {
    fn of(context: &DriverContext, device: &DriverDevice) -> Self {
        Self {
            context: Arc::clone(context.native()),
            extensions: Arc::clone(context.extensions()),
            reach: context.reach(),
            device: device.raw(),
            local: device.facts().local,
        }
    }
}
/// A program that is built for a device.
#[derive(Debug)]
pub struct Module {
    pub(super) program: Own<RawProgram>,
    target: Target,
}
impl Module {
    /// A program of the application's, on the devices of the context for which it is built.
    ///
    /// # Errors
    /// `InvalidContext` for one of another context; `InvalidDevice` for none of the devices; `NotBuilt`.
    pub(super) fn adopted(
        context: &DriverContext,
        devices: &[Arc<DriverDevice>],
        raw: RawProgram,
        is_owned: bool,
    ) -> Result<Vec<(Arc<DriverDevice>, Self)>> {
        raw.check_context(CL_PROGRAM_CONTEXT, context.raw(), ErrorKind::InvalidContext)?;
        let its = raw.numbers(CL_PROGRAM_DEVICES)?;
        let own = devices.iter().filter(|one| its.contains(&one.raw().addr()));
        let mut devices: Vec<_> = own.cloned().collect();
        if devices.is_empty() {
            let why = "the native program is for none of the context's devices";
            return Err(Error::new(ErrorKind::InvalidDevice, why));
        }
        devices.retain(|one| native::is_built(raw, one.raw()).unwrap_or(false));
        if devices.is_empty() {
            let why = "the native program is built for none of the context's devices: call clBuildProgram first";
            return Err(Error::new(ErrorKind::NotBuilt, why));
        }
        let module = |device: Arc<DriverDevice>| {
            let target = Target::of(context, &device);
            Ok((device, Self { program: Own::adopted(raw, false)?, target }))
        };
        let modules = devices.into_iter().map(module).collect::<Result<_>>()?;
        if is_owned {
            drop(Own::given(raw)); // not before nothing can fail: it stays the caller's then
        }
        Ok(modules)
    }
}
/// A kernel on a device.
#[derive(Debug)]
pub struct Function {
    pub(super) kernel: Kernel,
    target: Target,
}
impl Function {
    fn new(kernel: Own<RawKernel>, target: &Target) -> Self {
        let kernel = Kernel::new(kernel, &target.extensions);
        Self { kernel, target: target.clone() }
    }
}
/// The first word of SPIR-V, in either order of bytes.
const MAGIC: [[u8; 4]; 2] = [[0x03, 0x02, 0x23, 0x07], [0x07, 0x23, 0x02, 0x03]];

impl Modules for OpenCl {
    type Code = Code;
    type Target = Target;
    const TARGETS: &'static [&'static CStr] = &[c"spir64_x86_64", c"spir64"];

    fn target(context: &DriverContext, device: &Arc<DriverDevice>) -> Result<Target> {
        Ok(Target::of(context, device))
    }
    fn launches(device: &Arc<DriverDevice>) -> Result<(Capabilities, LaunchLimits)> {
        let facts = device.facts();
        let (items, group) = facts.items;
        let sub_group = facts.sub_groups.iter().max().map_or(1, |n| *n as usize);
        let grid = [u32::MAX as usize; 3];
        let limits = LaunchLimits { items, group, grid, sub_group, local_memory: facts.local };
        Ok((Capabilities::NONE, limits))
    }
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
        native::binary(&module.program, module.target.device)
    }
    fn functions(module: &Module) -> Result<Vec<CString>> {
        native::names(&module.program)
    }
    fn function(module: &Module, name: &CStr) -> Result<Option<Function>> {
        let found = native::kernel(&module.program, name)?;
        Ok(found.map(|raw| Function::new(raw, &module.target)))
    }
    fn adopt_function(
        module: &Module,
        handle: NativeHandle,
        is_owned: bool,
    ) -> Result<(Option<Function>, CString)> {
        let raw = RawKernel::from_addr(handle.0 as usize).ok_or(ErrorKind::InvalidFunction)?;
        if raw.number(CL_KERNEL_PROGRAM)? as usize != module.program.raw().addr() {
            let why = "the native kernel is of another program";
            return Err(Error::new(ErrorKind::InvalidFunction, why));
        }
        let name = raw.text(CL_KERNEL_FUNCTION_NAME)?;
        let name = CString::new(name).map_err(|_| ErrorKind::InvalidFunction)?;
        Ok((Some(Function::new(Own::adopted(raw, is_owned)?, &module.target)), name))
    }
    fn address(module: &Module, name: &CStr) -> Result<Option<Address>> {
        let Target { extensions, device, .. } = &module.target;
        let found = native::function(extensions, &module.program, *device, name)?;
        Ok(found.and_then(Address::new))
    }
    fn variable(module: &Module, name: &CStr) -> Result<Option<Range>> {
        let Target { extensions, device, .. } = &module.target;
        let found = native::variable(extensions, &module.program, *device, name)?;
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
        let extensions = &function.target.extensions;
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
        let names: &[cl_uint] = match function.target.reach {
            Reach::System => &[CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM],
            Reach::Usm => &[
                CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL,
                CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL,
                CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL,
            ],
            Reach::Svm | Reach::None => &[], // fine-grained buffers need not be named to devices with the host's memory
        };
        names.iter().try_for_each(|name| function.kernel.reach(all, *name))
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
    let place = (target.context.raw(), target.device);
    native::create(place, &target.extensions, piece.code, piece.constants)
}
/// A program of one piece, by what is done with it for a device with its options.
fn made(
    target: &Target,
    piece: &Piece<'_, OpenCl>,
    log: &mut String,
    make: fn(&Own<RawProgram>, RawDevice, &CStr) -> Result<()>,
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
    let place = (target.context.raw(), target.device);
    native::link(place, c"", &raws, |program| note(log, program, target.device))
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
