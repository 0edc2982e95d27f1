//! Programs and kernels of Level Zero: SPIR-V for any device, or a native binary for one. The driver compiles
//! and links in one step, so a program that is only compiled is kept as SPIR-V until it is linked.
use super::{
    DriverDevice, LevelZero,
    context::DriverContext,
    device_info,
    driver::{RawDevice, RawKernel},
    native::{
        context::NativeContext,
        kernel::NativeKernel,
        module::{Code, NativeModule, Piece},
    },
    options as env,
};
use std::{
    ffi::{CStr, CString},
    sync::Arc,
};
use ur_hal::{
    Address, CachePreference, Capabilities, Capability, CodeForm, Error, ErrorKind, FunctionFacts,
    GroupChoice, LaunchLimits, Modules, NativeHandle, Range, Result,
};
use ze_sys::*;

/// A context and a device that a module is built for.
#[derive(Debug)]
pub struct Target {
    pub(super) context: Arc<NativeContext>,
    pub(super) device: RawDevice,
    /// Whether the driver can link several pieces.
    pub(super) has_linker: bool,
}

impl Modules for LevelZero {
    type Code = Code;
    type Target = Target;
    const TARGETS: &'static [&'static CStr] = &[c"spir64_gen", c"spir64"];

    fn target(context: &DriverContext, device: &Arc<DriverDevice>) -> Result<Target> {
        Ok(Target {
            context: Arc::clone(context.native()),
            device: device.raw(),
            has_linker: context.platform().extensions().has("ZE_experimental_module_program"),
        })
    }
    fn launches(device: &Arc<DriverDevice>) -> Result<(Capabilities, LaunchLimits)> {
        use Capability::{CooperativeLaunch, LoadedLinker};
        let told = device.limits();
        let three = |x: u32, y: u32, z: u32| [x, y, z].map(|n| n as usize);
        let limits = LaunchLimits {
            items: told.maxTotalGroupSize as usize,
            group: three(told.maxGroupSizeX, told.maxGroupSizeY, told.maxGroupSizeZ),
            grid: three(told.maxGroupCountX, told.maxGroupCountY, told.maxGroupCountZ),
            sub_group: device_info::sub_groups(device).iter().max().map_or(1, |n| *n as usize),
            local_memory: told.maxSharedLocalMemory as usize,
        };
        Ok((Capabilities::of(&[CooperativeLaunch, LoadedLinker]), limits))
    }
    fn code(bytes: &[u8], form: CodeForm) -> Result<Code> {
        Ok(match form {
            CodeForm::Intermediate => Code::Il(bytes.into()),
            CodeForm::Binary => Code::Native(bytes.into()),
        })
    }
    fn bytes(code: &Code) -> &[u8] {
        match code {
            Code::Il(bytes) | Code::Native(bytes) => bytes,
        }
    }
    fn spir_v(code: &Code) -> Option<&[u8]> {
        match code {
            Code::Il(bytes) => Some(bytes),
            Code::Native(_) => None,
        }
    }
    /// The driver is not called until the program is linked.
    fn compile(_: &Target, pieces: &[ur_hal::Piece<'_, Self>]) -> (Result<()>, String) {
        let compiled = match pieces.iter().all(|piece| matches!(piece.code, Code::Il(_))) {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::InvalidOperation,
                "only SPIR-V is compiled: binaries are built",
            )),
        };
        (compiled, String::new())
    }
    fn build(
        target: &Target,
        pieces: &[ur_hal::Piece<'_, Self>],
        may_be_open: bool,
    ) -> (Result<Self::Module>, String) {
        let own = |piece: &ur_hal::Piece<'_, Self>| {
            let (code, constants) = (piece.code.clone(), piece.constants.to_vec());
            let is_large = env::options().relaxed_limits;
            Ok(Piece { code, options: options(piece.flags, is_large)?, constants })
        };
        let pieces: Vec<_> = match pieces.iter().map(own).collect::<Result<_>>() {
            Ok(pieces) => pieces,
            Err(error) => return (Err(error), String::new()),
        };
        let (made, log) = match pieces.as_slice() {
            [only] => NativeModule::create(&target.context, target.device, only),
            _ if !target.has_linker => {
                let why = "this driver does not link programs: join their SPIR-V beforehand";
                return (Err(Error::new(ErrorKind::Unsupported, why)), String::new());
            }
            _ => NativeModule::link(&target.context, target.device, &pieces),
        };
        let complete = || {
            let module = made?;
            match !may_be_open && module.has_imports()? {
                false => Ok(Arc::new(module)),
                true => Err(Error::new(
                    ErrorKind::LinkFailed,
                    "the program uses symbols that nothing in it defines: link it with what does",
                )),
            }
        };
        (complete(), log)
    }
    fn resolve(modules: &[&Self::Module]) -> (Result<()>, String) {
        let modules: Vec<_> = modules.iter().map(|module| &***module).collect();
        let (linked, log) = NativeModule::resolve(&modules);
        (linked, log)
    }
    fn binary(module: &Self::Module) -> Result<Vec<u8>> {
        module.binary()
    }
    fn functions(module: &Self::Module) -> Result<Vec<CString>> {
        module.names()
    }
    fn function(module: &Self::Module, name: &CStr) -> Result<Option<NativeKernel>> {
        NativeKernel::create(module, name)
    }
    fn adopt_function(
        module: &Self::Module,
        handle: NativeHandle,
        is_owned: bool,
    ) -> Result<(Option<NativeKernel>, CString)> {
        let raw = RawKernel::from_addr(handle.0 as usize).ok_or(ErrorKind::InvalidFunction)?;
        let kernel = NativeKernel::adopted(raw, is_owned, module)?;
        let name = kernel.name()?;
        Ok((Some(kernel), name))
    }
    fn address(module: &Self::Module, name: &CStr) -> Result<Option<Address>> {
        Ok(module.function(name)?.and_then(Address::new))
    }
    fn variable(module: &Self::Module, name: &CStr) -> Result<Option<Range>> {
        let found = module.variable(name)?;
        let found = found.and_then(|(at, bytes)| Address::new(at).zip(Some(bytes)));
        found.map(|(at, bytes)| Range::new(at, bytes)).transpose()
    }
    fn function_facts(function: &NativeKernel) -> Result<FunctionFacts> {
        Ok(function.facts().clone())
    }
    fn attributes(function: &NativeKernel) -> Result<String> {
        function.attributes()
    }
    fn resident_groups(function: &NativeKernel, group: [u32; 3], _: usize) -> Result<u32> {
        let mut turn = function.turn();
        turn.group(group)?;
        turn.most_cooperative()
    }
    fn best_group(
        function: &NativeKernel,
        global: [usize; 3],
        _: usize,
    ) -> Result<Option<GroupChoice>> {
        let [Ok(x), Ok(y), Ok(z)] = global.map(u32::try_from) else { return Ok(None) };
        let local = function.turn().suggest([x, y, z])?;
        Ok(Some(GroupChoice::Of(local.map(|n| n.max(1) as usize))))
    }
    fn reach_all(function: &NativeKernel, all: bool) -> Result<()> {
        const ALL: u32 = ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST
            | ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE
            | ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED;
        function.reach(if all { ALL } else { 0 })
    }
    fn prefer(function: &NativeKernel, what: CachePreference) -> Result<()> {
        function.prefer(match what {
            CachePreference::None => 0,
            CachePreference::LocalMemory => ZE_CACHE_CONFIG_FLAG_LARGE_SLM,
            CachePreference::Cache => ZE_CACHE_CONFIG_FLAG_LARGE_DATA,
        })
    }
}

/// The options for the driver's compiler. `is_large` allows buffers of more than 4 GiB, which kernels can
/// address only if compiled for it.
///
/// # Errors
/// [`ErrorKind::InvalidValue`] for flags that contain a NUL.
fn options(flags: &str, is_large: bool) -> Result<CString> {
    let mut words: Vec<&str> = vec![];
    if is_large {
        words.push("-ze-opt-greater-than-4GB-buffer-required");
    }
    for word in flags.split_ascii_whitespace() {
        match word {
            // Options of front ends that the driver's compiler has under other names.
            "-ftarget-compile-fast" => {
                words.extend(["-igc_opts", "'PartitionUnit=1,SubroutineThreshold=50000'"]);
            }
            "-foffload-fp32-prec-div" | "-foffload-fp32-prec-sqrt" => {
                words.push("-ze-fp32-correctly-rounded-divide-sqrt");
            }
            "-O0" => words.push("-ze-opt-disable"),
            other => words.push(other),
        }
    }
    CString::new(words.join(" ")).map_err(|_| {
        Error::new(ErrorKind::InvalidValue, "the options of a build have a NUL inside")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_front_ends_become_those_of_the_driver() {
        let told = |said| options(said, false).unwrap().into_string().unwrap();
        assert_eq!(told(" -g  -ze-opt-level=2 "), "-g -ze-opt-level=2");
        assert_eq!(told("-O0"), "-ze-opt-disable");
        assert!(told("-ftarget-compile-fast").contains("PartitionUnit=1"));
        let large = options("-g", true).unwrap().into_string().unwrap();
        assert_eq!(large, "-ze-opt-greater-than-4GB-buffer-required -g");
        assert_eq!(options("a\0b", false).unwrap_err().kind(), ErrorKind::InvalidValue);
    }
}
