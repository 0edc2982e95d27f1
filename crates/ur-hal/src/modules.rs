//! What a driver does with code: the verbs of a [`Driver`](crate::Driver) that are about modules and functions. They are
//! a trait of their own, so that a backend has them whose other verbs are not written yet.
use crate::{
    Address, CachePreference, CodeForm, Constant, Error, FunctionFacts, GroupChoice, Object, Range,
    Result,
};
use std::ffi::{CStr, CString};

/// One piece of what a module is built of.
#[derive(Debug)]
pub struct Piece<'a, D: Modules> {
    /// The code.
    pub code: &'a D::Code,
    /// What the user passes to the driver's compiler.
    pub flags: &'a str,
    /// What its specialization constants are; others keep their defaults.
    pub constants: &'a [Constant],
}

/// Code: [`Capability::Modules`](crate::Capability::Modules). Each verb with a default answers what a driver does that has
/// nothing to say there.
///
/// No verb blocks but [`build`](Self::build), [`compile`](Self::compile) and [`resolve`](Self::resolve).
///
/// All return the driver's own failures, with the kind that fits best and the driver's status. A verb that returns other
/// failures documents them.
#[expect(clippy::missing_errors_doc, reason = "said above for all of them")]
pub trait Modules: Sized + Object {
    /// Code as the application passed it, looked at once: what modules are built of.
    type Code: Object;
    /// What a module is built for: a device in a context.
    type Target: Object;
    /// Code that is loaded on a device.
    type Module: Object;
    /// A function of a module, which keeps that loaded.
    type Function: Object;

    /// What compilers call code that the driver takes; better ones first.
    const TARGETS: &'static [&'static CStr] = &[];
    /// Whether all devices of a context run the same module, of which there is one then.
    const SHARES_MODULES: bool = false;

    /// Takes code. What is not whole is found here if the driver would read past its end.
    ///
    /// [`ErrorKind::InvalidBinary`](crate::ErrorKind::InvalidBinary) for what is none of this driver's, and
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for intermediate code without a compiler.
    fn code(bytes: &[u8], form: CodeForm) -> Result<Self::Code> {
        let _ = (bytes, form);
        Error::unsupported("programs")
    }
    /// The bytes as they were passed; none of code that is not bytes.
    fn bytes(code: &Self::Code) -> &[u8] {
        let _ = code;
        &[]
    }
    /// The same if it is SPIR-V, which the core looks into.
    fn spir_v(code: &Self::Code) -> Option<&[u8]> {
        let _ = code;
        None
    }
    /// Looks whether pieces compile, as far as can be told without what they are linked with. The log is what the
    /// compiler said, whatever came of it.
    fn compile(target: &Self::Target, pieces: &[Piece<'_, Self>]) -> (Result<()>, String) {
        let _ = (target, pieces);
        (Ok(()), String::new())
    }
    /// Builds a module of one piece, or links several, and loads it. The log is what the compiler and the linker said,
    /// whatever came of it. `may_be_open`: the module may use symbols that nothing in it defines, since modules are
    /// going to be linked with it by [`resolve`](Self::resolve).
    fn build(
        target: &Self::Target,
        pieces: &[Piece<'_, Self>],
        may_be_open: bool,
    ) -> (Result<Self::Module>, String) {
        let _ = (target, pieces, may_be_open);
        (Error::unsupported("programs"), String::new())
    }
    /// [`Capability::LoadedLinker`](crate::Capability::LoadedLinker): links loaded modules of one device with each other.
    fn resolve(modules: &[&Self::Module]) -> (Result<()>, String) {
        let _ = modules;
        (Error::unsupported("a linker of loaded modules"), String::new())
    }
    /// The module as bytes, to be built again in another process; none where there are none.
    fn binary(module: &Self::Module) -> Result<Vec<u8>> {
        let _ = module;
        Error::unsupported("binaries of programs")
    }
    /// What its functions are called.
    fn functions(module: &Self::Module) -> Result<Vec<CString>> {
        let _ = module;
        Error::unsupported("names of functions")
    }
    /// The function of that name, if there is one.
    fn function(module: &Self::Module, name: &CStr) -> Result<Option<Self::Function>> {
        let _ = (module, name);
        Error::unsupported("functions")
    }
    /// The address of a function, for device code to call, if it has one.
    fn address(module: &Self::Module, name: &CStr) -> Result<Option<Address>> {
        let _ = (module, name);
        Ok(None)
    }
    /// Where the variable of that name is, if there is one.
    fn variable(module: &Self::Module, name: &CStr) -> Result<Option<Range>> {
        let _ = (module, name);
        Error::unsupported("variables of programs")
    }
    /// What is known of a function. Asked once for each.
    fn function_facts(function: &Self::Function) -> Result<FunctionFacts> {
        let _ = function;
        Error::unsupported("functions")
    }
    /// What its source says of it, as text.
    fn attributes(function: &Self::Function) -> Result<String> {
        let _ = function;
        Ok(String::new())
    }
    /// Makes sure that its groups may have so many bytes of local memory beside those that it declares;
    /// [`ErrorKind::OutOfResources`](crate::ErrorKind::OutOfResources) for more than there are.
    fn allow_local(function: &Self::Function, bytes: usize) -> Result<()> {
        let _ = (function, bytes);
        Ok(())
    }
    /// How many groups of that size, with so many bytes of local memory, run at once on the whole device.
    fn resident_groups(function: &Self::Function, group: [u32; 3], local: usize) -> Result<u32> {
        let _ = (function, group, local);
        Error::unsupported("groups that wait for each other")
    }
    /// What size of groups goes best for so many items in each dimension, where the driver tells.
    fn best_group(
        function: &Self::Function,
        global: [usize; 3],
        local: usize,
    ) -> Result<Option<GroupChoice>> {
        let _ = (function, global, local);
        Ok(None)
    }
    /// Whether it reaches memory that no argument names.
    fn reach_all(function: &Self::Function, all: bool) -> Result<()> {
        let _ = (function, all);
        Ok(())
    }
    /// What it wants more of; a hint.
    fn prefer(function: &Self::Function, what: CachePreference) -> Result<()> {
        let _ = (function, what);
        Ok(())
    }
}
