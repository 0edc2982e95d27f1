//! Kernels: functions of built programs, and what is known of them. Launching them is `launch.rs`'s.
//!
//! A native handle is the driver's function on the kernel's first device. Making a kernel of one needs the
//! program, and finds the function there: what is none of its functions is refused without being looked at.
use super::{
    Context, Device, Family, Program, Queue,
    attribute::Attribute,
    code::{Code, TWIN},
    driver::Dialect,
    geometry::{Limits, Range},
    given, launch,
    metadata::Wanted,
    native::module::{Fact, Function},
    program::no_kernel,
};
use std::{
    ffi::{CStr, CString},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};
use ur_adapter::{
    api::KernelApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_sys::*;

/// What `ur_kernel_handle_t` points at.
#[derive(Debug)]
pub struct Kernel<D: Dialect> {
    program: Owned<Program<D>>,
    name: CString,
    wanted: Wanted,
    /// On each device that its program was built for.
    on: Vec<OnDevice<D>>,
}
/// A kernel on one device.
#[derive(Debug)]
pub(super) struct OnDevice<D: Dialect> {
    pub(super) device: Owned<Device<D>>,
    pub(super) function: Function<D>,
    /// Takes an offset behind the arguments.
    pub(super) twin: Option<Function<D>>,
    /// Bytes of each parameter, if anybody can tell.
    pub(super) parameters: Option<Vec<u32>>,
    pub(super) limits: Limits,
    /// Bytes of local memory that it declares itself, and all that a group may have.
    shared: (usize, usize),
    /// Bytes of dynamic local memory that the driver was told to allow.
    allowed: AtomicU32,
    /// The size of groups that was chosen last, and what for.
    chosen: Mutex<Option<Chosen>>,
    /// It stays loaded.
    _code: Arc<Code<D>>,
}
/// A range, dynamic local memory, and groups for both.
type Chosen = ([usize; 3], usize, [usize; 3]);
/// Bytes of local memory that every kernel may have.
const ALWAYS_ALLOWED: usize = 48 << 10;

impl<D: Dialect> OnDevice<D> {
    /// `None` where there is no kernel of that name.
    fn new(
        device: Owned<Device<D>>,
        code: Arc<Code<D>>,
        name: &CStr,
        wanted: Wanted,
    ) -> Result<Option<Self>> {
        let _on = device.enter()?;
        let Some(function) = code.module().function(name)? else { return Ok(None) };
        let twin = CString::new([name.to_bytes(), TWIN].concat()).unwrap_or_default();
        let twin = code.module().function(&twin)?;
        let told = function.parameters()?;
        let get = |attribute| device.get(attribute).map(|n| n as usize);
        let limits = Limits {
            items: function.fact(Fact::MaxItems)? as usize,
            group: [get(Attribute::GroupX)?, get(Attribute::GroupY)?, get(Attribute::GroupZ)?],
            grid: [get(Attribute::GridX)?, get(Attribute::GridY)?, get(Attribute::GridZ)?],
            warp: get(Attribute::SubGroup)?.max(1),
            wanted,
        };
        let shared = (function.fact(Fact::Shared)? as usize, device.local_memory()? as usize);
        let parameters = told.or_else(|| code.parameters(name));
        let (allowed, chosen) = (AtomicU32::new(0), Mutex::default());
        Ok(Some(Self {
            device,
            function,
            twin,
            parameters,
            limits,
            shared,
            allowed,
            chosen,
            _code: code,
        }))
    }
    /// Makes sure that `dynamic` bytes of local memory are allowed beside those that it declares.
    ///
    /// # Errors
    /// `OUT_OF_RESOURCES` for more than there are.
    pub(super) fn allow(&self, dynamic: usize) -> Result<()> {
        let (own, all) = self.shared;
        if dynamic > 0 && own.saturating_add(dynamic) > all {
            return Err(Error::new(
                ErrorCode::OutOfResources,
                format!(
                    "a group needs {dynamic} bytes of local memory and {own} of the kernel's own, and may \
                     have {all}: use less, or see UR_CUDA_MAX_LOCAL_MEM_SIZE"
                ),
            ));
        }
        if own + dynamic <= ALWAYS_ALLOWED || dynamic <= self.allowed.load(Relaxed) as usize {
            return Ok(());
        }
        // All that there is, once: whoever launches the same function from another thread loses nothing.
        let most = (all - own) as i32;
        let _on = self.device.enter()?;
        self.function.allow_dynamic(most)?;
        self.twin.map_or(Ok(()), |twin| twin.allow_dynamic(most))?;
        self.allowed.store(most as u32, Relaxed);
        Ok(())
    }
    /// The size of groups that we choose.
    ///
    /// # Errors
    /// `INVALID_WORK_GROUP_SIZE` where none fits; the driver's own.
    pub(super) fn choose(&self, range: &Range, dynamic: usize) -> Result<[usize; 3]> {
        let chosen = || self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((global, shared, local)) = *chosen()
            && (global, shared) == (range.global, dynamic)
        {
            return Ok(local);
        }
        let _on = self.device.enter()?;
        let best = self.function.best_items(dynamic)?.map_or(self.limits.items, |n| n as usize);
        let local = self.limits.suggest(range, best)?;
        *chosen() = Some((range.global, dynamic, local));
        Ok(local)
    }
}

impl<D: Dialect> Kernel<D> {
    /// The program whose function it is.
    pub fn program(&self) -> &Owned<Program<D>> {
        &self.program
    }
    /// It on a device.
    ///
    /// # Errors
    /// `INVALID_DEVICE` for one that its program was not made for, `INVALID_PROGRAM_EXECUTABLE` for one that
    /// it was not built for.
    pub(super) fn on(&self, device: &Device<D>) -> Result<&OnDevice<D>> {
        let found = self.on.iter().find(|one| one.device.number() == device.number());
        found.ok_or_else(|| match self.program.check(device) {
            Err(error) => error,
            Ok(()) => Error::new(
                ErrorCode::InvalidProgramExecutable,
                "the kernel's program was not built for this device when the kernel was made",
            ),
        })
    }
    /// The first device's: all have the same parameters.
    fn any(&self) -> &OnDevice<D> {
        &self.on[0]
    }
}
fn unanswered<D: Dialect>(name: impl std::fmt::Debug) -> Result<()> {
    Err(Error::new(
        ErrorCode::UnsupportedEnumeration,
        format!("a kernel of {} has no answer to {name:?}", D::NAME),
    ))
}

impl<D: Dialect> KernelApi for Family<D> {
    fn kernel_create(program: Borrowed<'_, Program<D>>, name: &CStr) -> Result<Owned<Kernel<D>>> {
        let wanted = program.metadata().wanted(name.to_bytes());
        let mut on = vec![];
        for (device, code) in program.built()? {
            on.extend(OnDevice::new(device, code, name, wanted)?);
        }
        if on.is_empty() {
            return Err(no_kernel(name));
        }
        let program = program.own()?;
        Ok(Owned::new(Kernel { program, name: name.to_owned(), wanted, on }))
    }
    fn kernel_get_info(
        kernel: Borrowed<'_, Kernel<D>>,
        name: ur_kernel_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_kernel_info_t as I;
        let any = kernel.any();
        match name {
            I::FUNCTION_NAME => answer.str(&kernel.name.to_string_lossy()),
            I::NUM_ARGS => match &any.parameters {
                Some(parameters) => answer.value(&(parameters.len() as u32)),
                None => unanswered::<D>(name),
            },
            I::REFERENCE_COUNT => answer.value(&kernel.api_refs()),
            I::CONTEXT => answer.handle(kernel.program.context()),
            I::PROGRAM => answer.handle(&kernel.program),
            I::ATTRIBUTES => answer.str(""), // the code carries none as text
            I::NUM_REGS => {
                let _on = any.device.enter()?;
                answer.value(&(any.function.fact(Fact::Registers)? as u32))
            }
            _ => unanswered::<D>(name), // among them what it spills: the driver does not tell
        }
    }
    fn kernel_get_group_info(
        kernel: Borrowed<'_, Kernel<D>>,
        device: Borrowed<'_, Device<D>>,
        name: ur_kernel_group_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_kernel_group_info_t as I;
        let on = kernel.on(&device)?;
        let (limits, wanted) = (&on.limits, kernel.wanted);
        let _on = on.device.enter()?;
        match name {
            I::GLOBAL_WORK_SIZE => {
                let most = |d: usize| limits.group[d].saturating_mul(limits.grid[d]);
                answer.slice(&[0, 1, 2].map(most))
            }
            I::WORK_GROUP_SIZE => answer.value(&limits.items),
            // 0: the code asks for none.
            I::COMPILE_WORK_GROUP_SIZE => answer.slice(&wanted.size.unwrap_or_default()),
            I::COMPILE_MAX_WORK_GROUP_SIZE => answer.slice(&wanted.most.unwrap_or_default()),
            I::COMPILE_MAX_LINEAR_WORK_GROUP_SIZE => {
                answer.value(&wanted.most_in_all.unwrap_or_default())
            }
            I::LOCAL_MEM_SIZE => answer.value(&(on.function.fact(Fact::Shared)? as usize)),
            I::PRIVATE_MEM_SIZE => answer.value(&(on.function.fact(Fact::Private)? as usize)),
            I::PREFERRED_WORK_GROUP_SIZE_MULTIPLE => answer.value(&limits.warp),
            _ => unanswered::<D>(name),
        }
    }
    fn kernel_get_sub_group_info(
        kernel: Borrowed<'_, Kernel<D>>,
        device: Borrowed<'_, Device<D>>,
        name: ur_kernel_sub_group_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_kernel_sub_group_info_t as I;
        let limits = kernel.on(&device)?.limits;
        match name {
            I::MAX_SUB_GROUP_SIZE => answer.value(&(limits.warp as u32)),
            I::MAX_NUM_SUB_GROUPS => answer.value(&(limits.items.div_ceil(limits.warp) as u32)),
            I::COMPILE_NUM_SUB_GROUPS => answer.value(&0_u32), // none asked for
            I::SUB_GROUP_SIZE_INTEL => answer.value(&kernel.wanted.sub_group.unwrap_or_default()),
            _ => unanswered::<D>(name),
        }
    }
    fn kernel_get_native_handle(kernel: Borrowed<'_, Kernel<D>>) -> Result<ur_native_handle_t> {
        Ok(kernel.any().function.raw().addr() as ur_native_handle_t)
    }
    fn kernel_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        program: Option<Borrowed<'_, Program<D>>>,
        _properties: Option<&ur_kernel_native_properties_t>,
    ) -> Result<Owned<Kernel<D>>> {
        let Some(program) = program else {
            let why = "a kernel of a native handle needs its program: make one of its module";
            return Err(Error::new(ErrorCode::InvalidNullHandle, why));
        };
        if !program.context().same(&context) {
            let why = "the program of the native kernel is of another context";
            return Err(Error::new(ErrorCode::InvalidContext, why));
        }
        let all = program.built()?;
        for name in program.names()? {
            let found = all[0].1.module().function(&name)?;
            if found.is_some_and(|f| f.raw().addr() as ur_native_handle_t == native) {
                return Self::kernel_create(program, &name);
            }
        }
        Err(Error::new(
            ErrorCode::InvalidKernel,
            format!(
                "{native:#x} is none of the functions that the program has on its first device"
            ),
        ))
    }
    fn kernel_get_suggested_local_work_size(
        kernel: Borrowed<'_, Kernel<D>>,
        queue: Borrowed<'_, Queue<D>>,
        offset: &[usize],
        global: &[usize],
    ) -> Result<Vec<usize>> {
        launch::suggest(kernel, queue, offset, global, None)
    }
    fn kernel_get_suggested_local_work_size_with_args(
        kernel: Borrowed<'_, Kernel<D>>,
        queue: Borrowed<'_, Queue<D>>,
        offset: &[usize],
        global: &[usize],
        arguments: Option<&[ur_exp_kernel_arg_properties_t]>,
    ) -> Result<Vec<usize>> {
        launch::suggest(kernel, queue, offset, global, Some(arguments.unwrap_or_default()))
    }
    fn kernel_set_exec_info(
        kernel: Borrowed<'_, Kernel<D>>,
        name: ur_kernel_exec_info_t,
        size: usize,
        _properties: Option<&ur_kernel_exec_info_properties_t>,
        value: UsmPtr,
    ) -> Result<()> {
        use ur_kernel_exec_info_t as I;
        // Kernels reach all memory that their device does, whatever was said; only the form is checked.
        let fits = match name {
            I::USM_INDIRECT_ACCESS => size == size_of::<ur_bool_t>(),
            I::USM_PTRS => size > 0 && size.is_multiple_of(size_of::<usize>()),
            I::CACHE_CONFIG => size == size_of::<u32>(),
            _ => return Err(ErrorCode::InvalidEnumeration.into()),
        };
        if !fits {
            let why = format!("{name:?} is not {size} bytes long");
            return Err(Error::new(ErrorCode::InvalidSize, why));
        }
        if name == I::CACHE_CONFIG { kernel.prefer(given::word(value)) } else { Ok(()) }
    }
    fn kernel_set_specialization_constants(
        _kernel: Borrowed<'_, Kernel<D>>,
        _constants: &[ur_specialization_constant_info_t],
    ) -> Result<()> {
        Err(Error::new(
            ErrorCode::UnsupportedFeature,
            format!("code for {} has no specialization constants", D::NAME),
        ))
    }
    fn kernel_suggest_max_cooperative_group_count(
        kernel: Borrowed<'_, Kernel<D>>,
        device: Borrowed<'_, Device<D>>,
        local: &[usize],
        local_memory: usize,
    ) -> Result<u32> {
        let on = kernel.on(&device)?;
        if !device.has(Attribute::Cooperative)? {
            let why = "groups of this device cannot wait for each other";
            return Err(Error::new(ErrorCode::UnsupportedFeature, why));
        }
        let items = local.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        let Some(items) = items.filter(|n| (1..=on.limits.items).contains(n)) else {
            return Err(Error::new(
                ErrorCode::InvalidWorkGroupSize,
                format!("a group of {local:?} items: this kernel runs 1 to {}", on.limits.items),
            ));
        };
        on.allow(local_memory)?;
        let _on = on.device.enter()?;
        let each = on.function.groups(items as i32, local_memory)?;
        Ok((each * device.get(Attribute::Units)?).max(0) as u32)
    }
}
impl<D: Dialect> Kernel<D> {
    /// More local memory, or more cache: on every device, the twin too.
    fn prefer(&self, what: u32) -> Result<()> {
        let what = match ur_kernel_cache_config_t(what) {
            ur_kernel_cache_config_t::DEFAULT => 0,
            ur_kernel_cache_config_t::LARGE_SLM => 1,
            ur_kernel_cache_config_t::LARGE_DATA => 2,
            other => {
                let why = format!("{other:?} is no way to divide a cache");
                return Err(Error::new(ErrorCode::InvalidValue, why));
            }
        };
        for one in &self.on {
            let _on = one.device.enter()?;
            let told = one.function.prefer(what);
            let told = told.and_then(|()| one.twin.map_or(Ok(()), |twin| twin.prefer(what)));
            match told {
                // A driver that cannot be told does as it sees fit, which is what the default asks for.
                Err(error) if error.code() == ErrorCode::UnsupportedFeature => {}
                told => told?,
            }
        }
        Ok(())
    }
}
