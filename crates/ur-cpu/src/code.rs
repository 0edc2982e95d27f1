//! Programs and kernels of the CPU: shared objects and tables of functions, with functions and variables by
//! name. Building means loading; there is no compiler, so intermediate code is refused. Loading and calling
//! are in `native_code.rs`.
use super::{
    Cpu,
    device::{DriverContext, DriverDevice},
    host::host,
    native_code::{self, ARGUMENT_BYTES, Binary, Function, LOCAL_MEMORY, Loaded},
};
use std::{
    collections::BTreeMap,
    ffi::{CStr, CString},
    sync::Arc,
};
use ur_hal::{
    Address, Capabilities, CodeForm, Error, ErrorKind, FunctionFacts, GroupChoice, LaunchLimits,
    Modules, Piece, Range, Result,
};

/// The largest number of work-items in a group: a limit of this adapter, not of the processor.
pub(super) const MAX_WORK_GROUP: usize = 8192;
/// The number of pieces of a launch for each core. Several, so that a core that is busy otherwise takes
/// fewer.
pub(super) const PIECES_A_CORE: usize = 16;
/// The largest size of groups that the adapter chooses.
const GROUP: usize = 1024;

/// A built program.
#[derive(Debug, Default)]
pub struct Code {
    loaded: Vec<Arc<Loaded>>,
    kernels: BTreeMap<CString, Function>,
    variables: BTreeMap<CString, Range>,
    /// The bytes, if it was built from one shared object.
    bytes: Option<Arc<[u8]>>,
}
impl Code {
    /// Loads and merges the pieces.
    ///
    /// # Errors
    /// Returns what could not be loaded, or which name is defined twice.
    fn of(pieces: &[Piece<'_, Cpu>]) -> std::result::Result<Self, String> {
        let mut code = Self::default();
        for piece in pieces {
            let loaded = match piece.code {
                Binary::Object(bytes) => Arc::new(native_code::load(bytes)?),
                Binary::Table(loaded) => Arc::clone(loaded),
            };
            for (name, function) in &loaded.kernels {
                let function = Function::of(&loaded, *function);
                let earlier = code.kernels.insert(name.clone(), function.clone());
                if earlier.is_some_and(|one| one.address() != function.address()) {
                    return Err(format!("two programs have a function called {name:?}"));
                }
            }
            for (name, variable) in &loaded.variables {
                if code.variables.insert(name.clone(), *variable).is_some() {
                    return Err(format!("two programs have a variable called {name:?}"));
                }
            }
            code.loaded.push(loaded);
        }
        if let [Piece { code: Binary::Object(bytes), .. }] = pieces {
            code.bytes = Some(Arc::clone(bytes));
        }
        Ok(code)
    }
    fn build(pieces: &[Piece<'_, Cpu>]) -> (Result<Self>, String) {
        match Self::of(pieces) {
            Ok(code) => (Ok(code), String::new()),
            Err(why) => (Err(Error::new(ErrorKind::BuildFailed, why.clone())), why),
        }
    }
}

impl Modules for Cpu {
    type Code = Binary;
    type Target = ();
    const TARGETS: &'static [&'static CStr] = &[c"native_cpu"];
    /// All devices share the address space, and so the code.
    const SHARES_MODULES: bool = true;
    const COMMANDS_KEEP_CODE: bool = true;
    const REFUSES_EMPTY_RANGES: bool = true;

    fn target(_: &DriverContext, _: &Arc<DriverDevice>) -> Result<()> {
        Ok(())
    }
    /// Work-items are called one after the other, so there are no cooperative launches.
    fn launches(_: &Arc<DriverDevice>) -> Result<(Capabilities, LaunchLimits)> {
        let limits = LaunchLimits {
            items: MAX_WORK_GROUP,
            group: [MAX_WORK_GROUP; 3],
            grid: [usize::MAX; 3],
            sub_group: 1,
            local_memory: LOCAL_MEMORY,
        };
        Ok((Capabilities::NONE, limits))
    }
    fn code(bytes: &[u8], form: CodeForm) -> Result<Binary> {
        match form {
            CodeForm::Binary => Ok(native_code::look_at(bytes)?),
            CodeForm::Intermediate => Err(Error::new(
                ErrorKind::Unsupported,
                "a native CPU device has no compiler for intermediate code: give it native code with \
                 urProgramCreateWithBinary",
            )),
        }
    }
    fn bytes(code: &Binary) -> &[u8] {
        match code {
            Binary::Object(bytes) => bytes,
            Binary::Table(_) => &[],
        }
    }
    fn compile((): &(), pieces: &[Piece<'_, Self>]) -> (Result<()>, String) {
        let (loaded, log) = Code::build(pieces);
        (loaded.map(drop), log)
    }
    fn build((): &(), pieces: &[Piece<'_, Self>], _may_be_open: bool) -> (Result<Code>, String) {
        Code::build(pieces)
    }
    fn binary(code: &Code) -> Result<Vec<u8>> {
        Ok(code.bytes.as_deref().unwrap_or_default().to_vec())
    }
    fn functions(code: &Code) -> Result<Vec<CString>> {
        Ok(code.kernels.keys().cloned().collect())
    }
    fn function(code: &Code, name: &CStr) -> Result<Option<Function>> {
        Ok(code.kernels.get(name).cloned())
    }
    fn address(code: &Code, name: &CStr) -> Result<Option<Address>> {
        Ok(code.kernels.get(name).and_then(|function| function.address()))
    }
    fn variable(code: &Code, name: &CStr) -> Result<Option<Range>> {
        Ok(code.variables.get(name).copied())
    }
    /// Static variables of a kernel are on the stack, and there are no sub-groups. The number of arguments is
    /// not known from native code.
    fn function_facts(_: &Function) -> Result<FunctionFacts> {
        Ok(FunctionFacts {
            is_all_told: true,
            most_sub_group: 1,
            most_sub_groups: MAX_WORK_GROUP as u32,
            longest_argument: Some(ARGUMENT_BYTES),
            ..FunctionFacts::default()
        })
    }
    fn allow_local(_: &Function, bytes: usize) -> Result<()> {
        match bytes <= LOCAL_MEMORY {
            true => Ok(()),
            false => {
                let why =
                    format!("a work-group has {LOCAL_MEMORY} bytes of local memory, not {bytes}");
                Err(Error::new(ErrorKind::OutOfResources, why))
            }
        }
    }
    /// Small enough that every core gets several groups.
    fn best_group(_: &Function, global: [usize; 3], _: usize) -> Result<Option<GroupChoice>> {
        let items: usize = global.iter().product();
        let each = items / (host().cores as usize * PIECES_A_CORE);
        Ok(Some(GroupChoice::About(each.clamp(1, GROUP))))
    }
}
