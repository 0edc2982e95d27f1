//! Programs and kernels of CUDA and HIP: the driver loads or links PTX text, machine code or bundles. The
//! formats are recognised in `binary.rs`.
use super::{
    DriverDevice, Family,
    attribute::Attribute as A,
    binary::{Form, Image},
    context::DriverContext,
    device,
    driver::{Api, Dialect, RawContext, RawModule},
    native::{
        context::Entered,
        module::{self, Fact, Function, Input, Module, Options},
    },
};
use std::{
    ffi::{CStr, CString},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};
use ur_hal::{
    CachePreference, Capabilities, Capability, CodeForm, Error, ErrorKind, FunctionFacts,
    GroupChoice, LaunchLimits, Modules, NativeHandle, Piece, Range, Result,
};

/// A device that code is loaded for.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub(super) context: RawContext,
    /// Bytes of local memory that a work-group may use.
    pub(super) local_memory: usize,
    /// Number of multiprocessors.
    pub(super) units: i32,
    /// Work-items of a warp.
    pub(super) warp: i32,
}
impl Target {
    fn of<D: Dialect>(device: &DriverDevice<D>) -> Result<Self> {
        Ok(Self {
            context: device.context()?,
            local_memory: device.local_memory()? as usize,
            units: device.get(A::Units)?,
            warp: device.get(A::SubGroup)?,
        })
    }
}
/// A module loaded by the driver.
#[derive(Debug)]
pub struct Code<D: Dialect> {
    module: Module<D>,
    target: Target,
    /// What it was loaded from; `None` for a module that was created outside this adapter.
    image: Option<Arc<Image>>,
}
impl<D: Dialect> Code<D> {
    fn load(target: &Target, image: Arc<Image>, options: Options) -> (Result<Arc<Self>>, String) {
        let on = match Entered::enter(target.context) {
            Ok(on) => on,
            Err(error) => return (Err(error), String::new()),
        };
        let (module, log) = Module::load(&on, target.context, image.terminated(), options);
        let of = |module| Arc::new(Self { module, target: *target, image: Some(image) });
        (module.map(of).map_err(about_code), log)
    }
    /// Wraps a module of the device that was created outside this adapter.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn adopted(
        raw: RawModule,
        is_owned: bool,
        device: &DriverDevice<D>,
    ) -> Result<Arc<Self>> {
        let target = Target::of(device)?;
        let module = Module::of(raw, is_owned, target.context);
        Ok(Arc::new(Self { module, target, image: None }))
    }
    pub(super) fn module(&self) -> &Module<D> {
        &self.module
    }
}
/// The suffix of the name of a kernel's variant that takes the global offset as a last parameter. The SYCL
/// compiler emits both.
const TWIN: &[u8] = b"_with_offset";

/// A kernel of a loaded module.
#[derive(Debug)]
pub struct Kernel<D: Dialect> {
    function: Function<D>,
    /// The variant that takes the global offset as a last parameter.
    twin: Option<Function<D>>,
    /// The size in bytes of each parameter, if known.
    parameters: Option<Vec<u32>>,
    /// Bytes of local memory that the kernel declares statically.
    own_local: usize,
    /// Bytes of dynamic local memory that the driver was told to allow.
    allowed: AtomicU32,
    code: Arc<Code<D>>,
}
/// Bytes of local memory that a kernel may use without opting in.
const ALWAYS_ALLOWED: usize = 48 << 10;

impl<D: Dialect> Kernel<D> {
    fn enter(&self) -> Result<Entered<D>> {
        device::check_fork::<D>()?;
        Entered::enter(self.code.target.context)
    }
    /// Whether the number of its parameters is known. If so, the core refuses launches with another number of arguments.
    pub fn knows_parameters(&self) -> bool {
        self.parameters.is_some()
    }
    /// The function to launch without a global offset.
    pub(super) fn function(&self) -> Function<D> {
        self.function
    }
    /// The function to launch with a global offset. A kernel without this variant does not use ids that an
    /// offset would change.
    pub(super) fn twin(&self) -> Option<Function<D>> {
        self.twin
    }
}

impl<D: Dialect> Modules for Family<D> {
    type Code = Arc<Image>;
    type Target = Target;
    const TARGETS: &'static [&'static CStr] = match D::API {
        Api::Hip => &[c"amdgcn"],
        _ => &[c"nvptx64"],
    };

    fn target(_: &DriverContext<D>, device: &Arc<DriverDevice<D>>) -> Result<Target> {
        Target::of(device)
    }
    fn launches(device: &Arc<DriverDevice<D>>) -> Result<(Capabilities, LaunchLimits)> {
        let get = |attribute| device.get(attribute).map(|n| n as usize);
        let limits = LaunchLimits {
            items: get(A::GroupItems)?,
            group: [get(A::GroupX)?, get(A::GroupY)?, get(A::GroupZ)?],
            grid: [get(A::GridX)?, get(A::GridY)?, get(A::GridZ)?],
            sub_group: get(A::SubGroup)?.max(1),
            local_memory: device.local_memory()? as usize,
        };
        let capabilities = Capabilities::of(&[Capability::ScratchMemory])
            .with_if(Capability::CooperativeLaunch, device.has(A::Cooperative)?)
            .with_if(Capability::Clusters, device.has(A::Clusters)?);
        Ok((capabilities, limits))
    }
    fn code(bytes: &[u8], form: CodeForm) -> Result<Arc<Image>> {
        let image = Image::of::<D>(bytes).map(Arc::new);
        Ok(match form {
            CodeForm::Binary => image?,
            CodeForm::Intermediate => image.map_err(|_| {
                let why = format!(
                    "{} compiles no such intermediate code: give it what its own compiler takes or made, or \
                     compile the program for it beforehand",
                    D::NAME
                );
                Error::new(ErrorKind::Unsupported, why)
            })?,
        })
    }
    fn bytes(image: &Arc<Image>) -> &[u8] {
        image.given()
    }
    fn compile(target: &Target, pieces: &[Piece<'_, Self>]) -> (Result<()>, String) {
        match options_of(pieces) {
            Ok(options) => {
                let (joined, log) = join(target, pieces, false, options);
                (joined.map(drop), log)
            }
            Err((error, log)) => (Err(error), log),
        }
    }
    fn build(
        target: &Target,
        pieces: &[Piece<'_, Self>],
        _may_be_open: bool,
    ) -> (Result<Arc<Code<D>>>, String) {
        let options = match options_of(pieces) {
            Ok(options) => options,
            Err((error, log)) => return (Err(error), log),
        };
        if let [only] = pieces {
            return Code::load(target, Arc::clone(only.code), options);
        }
        let (joined, log) = join(target, pieces, true, options);
        match joined {
            Ok(image) => {
                let (loaded, more) = Code::load(target, image, options);
                (loaded, format!("{log}\n{more}").trim().to_owned())
            }
            Err(error) => (Err(error), log),
        }
    }
    fn binary(code: &Arc<Code<D>>) -> Result<Vec<u8>> {
        Ok(code.image.as_ref().map_or(vec![], |image| image.given().to_vec()))
    }
    /// In alphabetical order, without the variants that take a global offset.
    fn functions(code: &Arc<Code<D>>) -> Result<Vec<CString>> {
        let mut names = match code.image.as_ref().and_then(|image| image.entries()) {
            Some(entries) => entries.keys().cloned().collect(),
            None => code.module.names()?,
        };
        names.sort();
        let all = names.clone();
        names.retain(|name| {
            let twin_of = name.to_bytes().strip_suffix(TWIN);
            twin_of.is_none_or(|of| all.binary_search_by(|one| one.to_bytes().cmp(of)).is_err())
        });
        Ok(names)
    }
    fn function(code: &Arc<Code<D>>, name: &CStr) -> Result<Option<Kernel<D>>> {
        let _on = Entered::<D>::enter(code.target.context)?;
        let Some(function) = code.module.function(name)? else { return Ok(None) };
        let twin = CString::new([name.to_bytes(), TWIN].concat()).unwrap_or_default();
        let twin = code.module.function(&twin)?;
        let entries = || code.image.as_ref()?.entries()?.get(name).cloned().flatten();
        let parameters = function.parameters()?.or_else(entries);
        let own_local = function.fact(Fact::Shared)? as usize;
        let (allowed, code) = (AtomicU32::new(0), Arc::clone(code));
        Ok(Some(Kernel { function, twin, parameters, own_local, allowed, code }))
    }
    /// The handle is only compared with the functions of the module, never passed to the driver, so an invalid one is
    /// refused.
    fn adopt_function(
        code: &Arc<Code<D>>,
        handle: NativeHandle,
        _: bool,
    ) -> Result<(Option<Kernel<D>>, CString)> {
        for name in Self::functions(code)? {
            let found = code.module.function(&name)?;
            if found.is_some_and(|one| one.raw().addr() as u64 == handle.0) {
                return Ok((None, name));
            }
        }
        let why = format!("{:#x} is none of the functions of the program", handle.0);
        Err(Error::new(ErrorKind::InvalidFunction, why))
    }
    fn variable(code: &Arc<Code<D>>, name: &CStr) -> Result<Option<Range>> {
        let found = code.module.variable(name)?;
        let found = found.and_then(|(at, bytes)| {
            Some((ur_hal::Address::new(usize::try_from(at).ok()?)?, bytes))
        });
        found.map(|(at, bytes)| Range::new(at, bytes)).transpose()
    }
    fn function_facts(kernel: &Kernel<D>) -> Result<FunctionFacts> {
        let _on = kernel.enter()?;
        let fact = |fact| kernel.function.fact(fact);
        let items = fact(Fact::MaxItems)? as u32;
        let warp = (kernel.code.target.warp.max(1)) as u32;
        Ok(FunctionFacts {
            items: Some(items as usize),
            local_memory: kernel.own_local,
            private_memory: fact(Fact::Private)? as usize,
            arguments: kernel.parameters.as_ref().map(|all| all.len() as u32),
            argument_sizes: kernel.parameters.clone(),
            // The compilers write the attributes of kernels into the metadata.
            is_all_told: true,
            most_sub_group: warp,
            most_sub_groups: items.div_ceil(warp),
            registers: Some(fact(Fact::Registers)? as u32),
            ..FunctionFacts::default()
        })
    }
    fn allow_local(kernel: &Kernel<D>, dynamic: usize) -> Result<()> {
        let (own, all) = (kernel.own_local, kernel.code.target.local_memory);
        if dynamic > 0 && own.saturating_add(dynamic) > all {
            return Err(Error::new(
                ErrorKind::OutOfResources,
                format!(
                    "a group needs {dynamic} bytes of local memory and {own} of the kernel's own, and may \
                     have {all}: use less, or see UR_CUDA_MAX_LOCAL_MEM_SIZE"
                ),
            ));
        }
        if own + dynamic <= ALWAYS_ALLOWED || dynamic <= kernel.allowed.load(Relaxed) as usize {
            return Ok(());
        }
        // The maximum at once: a smaller value could undercut a concurrent launch of the same function.
        let most = (all - own) as i32;
        let _on = kernel.enter()?;
        kernel.function.allow_dynamic(most)?;
        kernel.twin.map_or(Ok(()), |twin| twin.allow_dynamic(most))?;
        kernel.allowed.store(most as u32, Relaxed);
        Ok(())
    }
    fn resident_groups(kernel: &Kernel<D>, group: [u32; 3], local: usize) -> Result<u32> {
        let _on = kernel.enter()?;
        let items: u32 = group.iter().product();
        let each = kernel.function.groups(items as i32, local)?;
        Ok((each * kernel.code.target.units).max(0) as u32)
    }
    fn best_group(kernel: &Kernel<D>, _: [usize; 3], local: usize) -> Result<Option<GroupChoice>> {
        let _on = kernel.enter()?;
        let told = kernel.function.best_items(local)?;
        Ok(told.map(|items| GroupChoice::About(items as usize)))
    }
    /// Sets the preference of both variants.
    fn prefer(kernel: &Kernel<D>, what: CachePreference) -> Result<()> {
        let what = match what {
            CachePreference::None => 0,
            CachePreference::LocalMemory => 1,
            CachePreference::Cache => 2,
        };
        let _on = kernel.enter()?;
        let told = kernel.function.prefer(what);
        let told = told.and_then(|()| kernel.twin.map_or(Ok(()), |twin| twin.prefer(what)));
        match told {
            // A driver without this function chooses by itself, as with the default preference.
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(()),
            told => Ok(told?),
        }
    }
}

/// Compiles pieces of code and links them if `complete`. If not, only checks that they compile, and returns
/// the first piece. Also returns the driver's log.
fn join<D: Dialect>(
    target: &Target,
    pieces: &[Piece<'_, Family<D>>],
    complete: bool,
    options: Options,
) -> (Result<Arc<Image>>, String) {
    let on = match Entered::<D>::enter(target.context) {
        Ok(on) => on,
        Err(error) => return (Err(error), String::new()),
    };
    let input = |(at, piece): (usize, &Piece<'_, Family<D>>)| {
        let (image, name) = (piece.code, CString::new(format!("program {at}")).unwrap_or_default());
        match image.form() {
            Form::Ptx => (Input::Ptx, image.terminated().to_owned(), name),
            Form::Cubin => (Input::Cubin, image.given().to_owned(), name),
            Form::Fatbin => (Input::Fatbin, image.given().to_owned(), name),
        }
    };
    let inputs: Vec<_> = pieces.iter().enumerate().map(input).collect();
    let (joined, log) = module::link(&on, &inputs, complete, options);
    let image = joined.and_then(|bytes| match complete {
        true => {
            let parts: Vec<_> = pieces.iter().map(|piece| piece.code).collect();
            Ok(Arc::new(Image::of::<D>(&bytes)?.linked_of(&parts)))
        }
        false => Ok(Arc::clone(pieces[0].code)),
    });
    (image.map_err(about_code), log)
}
/// The options from the flags of all pieces; of contradicting ones the last counts.
fn options_of<D: Dialect>(
    pieces: &[Piece<'_, Family<D>>],
) -> std::result::Result<Options, (Error, String)> {
    let flags: Vec<_> = pieces.iter().map(|piece| piece.flags).collect();
    options(&flags.join(" ")).map_err(|why| (Error::new(ErrorKind::BuildFailed, why.clone()), why))
}
/// Turns a driver error about the code into `PROGRAM_BUILD_FAILURE`; errors about the device or about memory
/// keep their code.
fn about_code(error: Error) -> Error {
    match error.kind() {
        kind if kind.is_want() || kind == ErrorKind::Unsupported => error,
        _ => error.with_kind(ErrorKind::BuildFailed),
    }
}

/// Parses build options: `-maxrregcount=N`, `-ON`, `-g`, `-lineinfo`, each with one dash or two. Options for
/// other compilers are ignored.
///
/// # Errors
/// Returns what is wrong with an option, for the build log.
pub(super) fn options(text: &str) -> std::result::Result<Options, String> {
    let mut all = Options::default();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
        match name.trim_start_matches('-') {
            "maxrregcount" => {
                let number = value.or_else(|| words.next()).and_then(|n| n.parse().ok());
                let number = number.filter(|&n| (1..=1024).contains(&n));
                all.registers = Some(number.ok_or_else(|| {
                    format!("{word}: registers of a thread are a number from 1 to 1024")
                })?);
            }
            "g" | "device-debug" if word.starts_with('-') => all.debug = true,
            "lineinfo" | "generate-line-info" => all.lines = true,
            other => {
                let level = other.strip_prefix('O').filter(|_| word.starts_with('-'));
                let level = level.and_then(|n| n.parse().ok()).filter(|n| *n <= 4);
                all.optimization = level.or(all.optimization);
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_driver_are_found_among_those_of_others() {
        let none = Options::default();
        assert_eq!(options("--cuda-path=/x -cl-fast-relaxed-math -Ofast O2 g -o-g").unwrap(), none);
        let all = options("-g --maxrregcount=64 -lineinfo -O1 -O3").unwrap();
        let expected =
            Options { registers: Some(64), optimization: Some(3), debug: true, lines: true };
        assert_eq!(all, expected);
        assert_eq!(options(" -maxrregcount 32 ").unwrap().registers, Some(32));
        for wrong in ["-maxrregcount", "-maxrregcount=", "-maxrregcount=x", "-maxrregcount=0"] {
            assert!(options(wrong).unwrap_err().contains("from 1 to 1024"), "{wrong}");
        }
    }
}
