//! Code: the methods of a [`Driver`](crate::Driver) for modules and functions. They are a separate trait, so that a
//! backend can implement them before its other methods exist.
use crate::{
    Address, CachePreference, Capabilities, CodeForm, Constant, Error, FunctionFacts, GroupChoice,
    LaunchLimits, NativeHandle, Object, Range, Result, Types,
};
use std::ffi::{CStr, CString};

/// One piece of code from which a module is built.
#[derive(Debug)]
pub struct Piece<'a, D: Modules> {
    /// The code.
    pub code: &'a D::Code,
    /// The user's options for the driver's compiler.
    pub flags: &'a str,
    /// The values of its specialization constants; those not listed keep their defaults.
    pub constants: &'a [Constant],
}

/// Code. The default of a method is the result for a driver that
/// does not support it or has nothing to report.
///
/// No method blocks except [`build`](Self::build), [`compile`](Self::compile) and [`resolve`](Self::resolve).
///
/// All return the driver's error, with the kind that fits best and the driver's status. A method that returns other
/// errors documents them.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait Modules: Types {
    /// Code as the application passed it, checked once; modules are built from it.
    type Code: Object;
    /// The target for which a module is built: a device in a context.
    type Target: Object;

    /// The names by which compilers refer to code that the driver accepts; preferred ones first.
    const TARGETS: &'static [&'static CStr] = &[];
    /// Whether all devices of a context share one module.
    const SHARES_MODULES: bool = false;
    /// Whether commands keep the functions and samplers that they use. Otherwise the core keeps them until the commands
    /// submitted so far are complete.
    const COMMANDS_KEEP_CODE: bool = false;
    /// Whether a launch over an empty range is refused. Otherwise it runs nothing: programs may have empty ranges.
    const REFUSES_EMPTY_RANGES: bool = false;

    /// The target for a device of a context.
    fn target(context: &Self::Context, device: &Self::Device) -> Result<Self::Target> {
        let _ = (context, device);
        Error::unsupported("programs")
    }
    /// Which kinds of launches a device supports, and their limits.
    fn launches(device: &Self::Device) -> Result<(Capabilities, LaunchLimits)> {
        let _ = device;
        let (group, grid) = ([1; 3], [1; 3]);
        let limits = LaunchLimits { items: 1, group, grid, sub_group: 1, local_memory: 0 };
        Ok((Capabilities::NONE, limits)) // a device that runs no code
    }
    /// Accepts code that the application passes. Truncated code is detected here if the driver would read past its end.
    ///
    /// Returns [`ErrorKind::InvalidBinary`](crate::ErrorKind::InvalidBinary) for code that this driver does not accept,
    /// and [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for intermediate code if there is no compiler.
    fn code(bytes: &[u8], form: CodeForm) -> Result<Self::Code> {
        let _ = (bytes, form);
        Error::unsupported("programs")
    }
    /// The bytes as they were passed; empty for code that does not consist of bytes.
    fn bytes(code: &Self::Code) -> &[u8] {
        let _ = code;
        &[]
    }
    /// The bytes if they are SPIR-V, which the core inspects.
    fn spir_v(code: &Self::Code) -> Option<&[u8]> {
        let _ = code;
        None
    }
    /// Checks whether pieces compile, as far as that can be told without the code they are linked with. The log is the
    /// compiler's output, whether or not it succeeded.
    fn compile(target: &Self::Target, pieces: &[Piece<'_, Self>]) -> (Result<()>, String) {
        let _ = (target, pieces);
        (Ok(()), String::new())
    }
    /// Builds a module from one piece, or links several, and loads it. The log is the output of compiler and linker,
    /// whether or not they succeeded. If `may_be_open`, the module may use symbols that it does not define, because it
    /// will be linked with other modules by [`resolve`](Self::resolve).
    fn build(
        target: &Self::Target,
        pieces: &[Piece<'_, Self>],
        may_be_open: bool,
    ) -> (Result<Self::Module>, String) {
        let _ = (target, pieces, may_be_open);
        (Error::unsupported("programs"), String::new())
    }
    /// [`Capability::LoadedLinker`](crate::Capability::LoadedLinker): links loaded modules of one device with each
    /// other.
    fn resolve(modules: &[&Self::Module]) -> (Result<()>, String) {
        let _ = modules;
        (Error::unsupported("a linker of loaded modules"), String::new())
    }
    /// The module as bytes, from which another process can build it again; empty if there are none.
    fn binary(module: &Self::Module) -> Result<Vec<u8>> {
        let _ = module;
        Error::unsupported("binaries of programs")
    }
    /// The names of its functions.
    fn functions(module: &Self::Module) -> Result<Vec<CString>> {
        let _ = module;
        Error::unsupported("names of functions")
    }
    /// The function with this name, if there is one.
    fn function(module: &Self::Module, name: &CStr) -> Result<Option<Self::Function>> {
        let _ = (module, name);
        Error::unsupported("functions")
    }
    /// The name of a native function that the application brings, and the function, unless that is what
    /// [`function`](Self::function) returns for the name. If it `is_owned`, the handle, which is not 0, is destroyed with
    /// the function; otherwise the application keeps it.
    ///
    /// Returns [`ErrorKind::InvalidFunction`](crate::ErrorKind::InvalidFunction) if the driver can tell that it is not a
    /// function of the module; the handle stays the application's then.
    fn adopt_function(
        module: &Self::Module,
        handle: NativeHandle,
        is_owned: bool,
    ) -> Result<(Option<Self::Function>, CString)> {
        let _ = (module, handle, is_owned);
        Error::unsupported("functions of native handles")
    }
    /// The address at which device code can call a function, if it has one.
    fn address(module: &Self::Module, name: &CStr) -> Result<Option<Address>> {
        let _ = (module, name);
        Ok(None)
    }
    /// The range of the variable with this name, if there is one.
    fn variable(module: &Self::Module, name: &CStr) -> Result<Option<Range>> {
        let _ = (module, name);
        Error::unsupported("variables of programs")
    }
    /// The facts of a function. Called once for each function.
    fn function_facts(function: &Self::Function) -> Result<FunctionFacts> {
        let _ = function;
        Error::unsupported("functions")
    }
    /// The function's attributes in its source, as text.
    fn attributes(function: &Self::Function) -> Result<String> {
        let _ = function;
        Ok(String::new())
    }
    /// Ensures that the function's groups may have this many bytes of local memory in addition to what it declares;
    /// returns [`ErrorKind::OutOfResources`](crate::ErrorKind::OutOfResources) if there are not enough.
    fn allow_local(function: &Self::Function, bytes: usize) -> Result<()> {
        let _ = (function, bytes);
        Ok(())
    }
    /// How many groups of this size, with this many bytes of local memory, the whole device can run at the same time.
    fn resident_groups(function: &Self::Function, group: [u32; 3], local: usize) -> Result<u32> {
        let _ = (function, group, local);
        Error::unsupported("groups that wait for each other")
    }
    /// The preferred group size for this many items in each dimension, where the driver tells it.
    fn best_group(
        function: &Self::Function,
        global: [usize; 3],
        local: usize,
    ) -> Result<Option<GroupChoice>> {
        let _ = (function, global, local);
        Ok(None)
    }
    /// Sets whether the function may access memory that is not among its arguments.
    fn reach_all(function: &Self::Function, all: bool) -> Result<()> {
        let _ = (function, all);
        Ok(())
    }
    /// Sets the function's cache preference; a hint.
    fn prefer(function: &Self::Function, what: CachePreference) -> Result<()> {
        let _ = (function, what);
        Ok(())
    }
}
