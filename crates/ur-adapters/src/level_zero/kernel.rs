//! Kernels: functions of built programs, and what is known of them. Launching them is `launch.rs`'s.
use super::{
    Context, Device, LevelZero, Program, Queue, device_info,
    driver::RawKernel,
    launch, linger,
    native::{
        kernel::{Facts, NativeKernel},
        module::NativeModule,
    },
    program::no_kernel,
};
use crate::kernels::{
    geometry::{Limits, Range},
    given,
    metadata::Wanted,
};
use std::{
    ffi::{CStr, CString},
    sync::{Arc, Mutex, PoisonError},
};
use ur_adapter::{
    api::KernelApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_sys::*;
use ze_sys::*;

/// What `ur_kernel_handle_t` points at.
#[derive(Debug)]
pub struct Kernel {
    program: Owned<Program>,
    name: CString,
    /// On each device that its program was built for.
    on: Vec<OnDevice>,
}
/// A kernel on one device.
#[derive(Debug)]
pub(super) struct OnDevice {
    pub(super) device: Owned<Device>,
    pub(super) native: Arc<NativeKernel>,
    pub(super) limits: Limits,
    /// Whether there is code that would say how large groups may be at most.
    tells_most: bool,
    /// The size of groups that was chosen last, and what for.
    chosen: Mutex<Option<([usize; 3], [usize; 3])>>,
}
impl OnDevice {
    fn new(
        device: Owned<Device>,
        native: NativeKernel,
        (wanted, tells_most): (Wanted, bool),
    ) -> Self {
        let (told, facts) = (device.limits(), *native.facts());
        let three = |all: [u32; 3]| all.map(|n| n as usize);
        let size = (facts.group != [0; 3]).then_some(facts.group);
        let limits = Limits {
            items: facts.most_items.unwrap_or(told.maxTotalGroupSize as usize),
            group: three([told.maxGroupSizeX, told.maxGroupSizeY, told.maxGroupSizeZ]),
            grid: three([told.maxGroupCountX, told.maxGroupCountY, told.maxGroupCountZ]),
            warp: multiple(&device, &facts),
            wanted: Wanted { size: size.or(wanted.size), ..wanted },
        };
        let (native, chosen) = (Arc::new(native), Mutex::default());
        Self { device, native, limits, tells_most, chosen }
    }
    /// What it is like there.
    pub(super) fn facts(&self) -> &Facts {
        self.native.facts()
    }
    /// The size of groups that we choose: the driver's choice, where that divides the range.
    ///
    /// # Errors
    /// `INVALID_WORK_GROUP_SIZE` where none fits; the driver's own.
    pub(super) fn choose(&self, range: &Range) -> Result<[usize; 3]> {
        let chosen = || self.chosen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((global, local)) = *chosen()
            && global == range.global
        {
            return Ok(local);
        }
        let best = match range.global.map(u32::try_from) {
            // More than the driver can be asked about.
            _ if self.limits.wanted.size.is_some() => self.limits.items,
            [Ok(x), Ok(y), Ok(z)] => {
                let local = self.native.turn().suggest([x, y, z])?.map(|n| n.max(1) as usize);
                if self.limits.local(range, &local).is_ok() {
                    *chosen() = Some((range.global, local));
                    return Ok(local);
                }
                local.into_iter().fold(1, usize::saturating_mul)
            }
            _ => self.limits.items,
        };
        let local = self.limits.suggest(range, best)?;
        *chosen() = Some((range.global, local));
        Ok(local)
    }
}
/// What numbers of items of a group go well.
fn multiple(device: &Device, facts: &Facts) -> usize {
    let sizes = device_info::sub_groups(device);
    let told = facts.multiple.or((facts.sub_group != 0).then_some(facts.sub_group as usize));
    told.unwrap_or(sizes.iter().copied().max().unwrap_or(1) as usize).max(1)
}

impl Kernel {
    /// The program whose function it is.
    pub fn program(&self) -> &Owned<Program> {
        &self.program
    }
    /// It on a device, or on what that is a part of.
    ///
    /// # Errors
    /// `INVALID_DEVICE` for one that its program was not made for, `INVALID_PROGRAM_EXECUTABLE` for
    /// one that it was not built for.
    pub(super) fn on(&self, device: &Device) -> Result<&OnDevice> {
        if let Some(found) = self.on.iter().find(|one| one.device.is(device)) {
            return Ok(found);
        }
        if let Some(parent) = device.parent() {
            return self.on(parent);
        }
        self.program.place(device)?;
        Err(Error::new(
            ErrorCode::InvalidProgramExecutable,
            "the kernel's program was not built for this device when the kernel was made",
        ))
    }
    /// The first device's: all have the same parameters.
    fn any(&self) -> &OnDevice {
        &self.on[0]
    }
    fn each(&self, call: impl Fn(&NativeKernel) -> Result<()>) -> Result<()> {
        self.on.iter().try_for_each(|one| call(&one.native))
    }
}
impl Drop for Kernel {
    /// Launches of it may be under way.
    fn drop(&mut self) {
        let natives: Vec<_> = self.on.drain(..).map(|one| one.native).collect();
        linger::leave(self.program.context().as_handle().addr(), natives);
    }
}
fn unanswered(name: impl std::fmt::Debug) -> Result<()> {
    Err(Error::new(
        ErrorCode::UnsupportedEnumeration,
        format!("a kernel of Level Zero has no answer to {name:?}"),
    ))
}

impl KernelApi for LevelZero {
    fn kernel_create(program: Borrowed<'_, Program>, name: &CStr) -> Result<Owned<Kernel>> {
        let (mut on, wanted) = (vec![], program.wanted(name));
        for (device, module) in program.built()? {
            let native = NativeKernel::create(&module, name)?;
            on.extend(native.map(|native| OnDevice::new(device, native, wanted)));
        }
        if on.is_empty() {
            return Err(no_kernel(name));
        }
        Ok(Owned::new(Kernel { program: program.own()?, name: name.to_owned(), on }))
    }
    fn kernel_get_info(
        kernel: Borrowed<'_, Kernel>,
        name: ur_kernel_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_kernel_info_t as I;
        let any = kernel.any();
        match name {
            I::FUNCTION_NAME => answer.str(&kernel.name.to_string_lossy()),
            I::NUM_ARGS => answer.value(&any.facts().arguments),
            I::REFERENCE_COUNT => answer.value(&kernel.api_refs()),
            I::CONTEXT => answer.handle(kernel.program.context()),
            I::PROGRAM => answer.handle(&kernel.program),
            I::ATTRIBUTES => answer.str(&any.native.attributes()?),
            I::SPILL_MEM_SIZE => {
                let each: Vec<_> = kernel.on.iter().map(|one| one.facts().spilled).collect();
                answer.slice(&each)
            }
            _ => unanswered(name), // among them registers: the driver does not tell
        }
    }
    fn kernel_get_group_info(
        kernel: Borrowed<'_, Kernel>,
        device: Borrowed<'_, Device>,
        name: ur_kernel_group_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_kernel_group_info_t as I;
        let on = kernel.on(&device)?;
        let (limits, facts) = (&on.limits, on.facts());
        match name {
            I::GLOBAL_WORK_SIZE => {
                let most = |d: usize| limits.group[d].saturating_mul(limits.grid[d]);
                answer.slice(&[0, 1, 2].map(most))
            }
            I::WORK_GROUP_SIZE => answer.value(&limits.items),
            I::COMPILE_WORK_GROUP_SIZE => answer.slice(&facts.group), // 0: it asks for none
            // The driver does not tell what a kernel allows at most: its SPIR-V does, or the metadata.
            I::COMPILE_MAX_WORK_GROUP_SIZE => match limits.wanted.most {
                None if !on.tells_most => unanswered(name),
                most => answer.slice(&most.unwrap_or_default()), // 0: it asks for none
            },
            I::COMPILE_MAX_LINEAR_WORK_GROUP_SIZE => match limits.wanted.most_in_all {
                Some(most) => answer.value(&most),
                None => unanswered(name),
            },
            I::LOCAL_MEM_SIZE => answer.value(&facts.local),
            I::PRIVATE_MEM_SIZE => answer.value(&facts.private),
            I::PREFERRED_WORK_GROUP_SIZE_MULTIPLE => answer.value(&limits.warp),
            _ => unanswered(name),
        }
    }
    fn kernel_get_sub_group_info(
        kernel: Borrowed<'_, Kernel>,
        device: Borrowed<'_, Device>,
        name: ur_kernel_sub_group_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_kernel_sub_group_info_t as I;
        let facts = kernel.on(&device)?.facts();
        match name {
            I::MAX_SUB_GROUP_SIZE => answer.value(&facts.most_sub_group),
            I::MAX_NUM_SUB_GROUPS => answer.value(&facts.most_sub_groups),
            I::COMPILE_NUM_SUB_GROUPS => answer.value(&facts.sub_groups),
            I::SUB_GROUP_SIZE_INTEL => answer.value(&facts.sub_group),
            _ => unanswered(name),
        }
    }
    /// The driver's on its first device. Whoever has it may set arguments.
    fn kernel_get_native_handle(kernel: Borrowed<'_, Kernel>) -> Result<ur_native_handle_t> {
        let native = &kernel.any().native;
        native.lend();
        Ok(native.raw().addr() as ur_native_handle_t)
    }
    /// A kernel of one of the program's modules; it is not destroyed here unless it is given to us.
    fn kernel_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        program: Option<Borrowed<'_, Program>>,
        properties: Option<&ur_kernel_native_properties_t>,
    ) -> Result<Owned<Kernel>> {
        let refused = |code, why: &'static str| Err(Error::new(code, why));
        let Some(raw) = RawKernel::from_addr(native) else {
            return refused(ErrorCode::InvalidNullHandle, "the native kernel is null");
        };
        let Some(program) = program else {
            let why = "a kernel of a native handle needs its program: make one of its module";
            return refused(ErrorCode::InvalidNullHandle, why);
        };
        if !program.context().same(&context) {
            let why = "the program of the native kernel is of another context";
            return refused(ErrorCode::InvalidContext, why);
        }
        let owned = properties.is_some_and(|one| one.isNativeHandleOwned);
        let (device, module): (_, Arc<NativeModule>) = program.built()?.swap_remove(0);
        let native = NativeKernel::adopted(raw, owned, &module)?;
        let name = native.name()?;
        let wanted = program.wanted(&name);
        let on = vec![OnDevice::new(device, native, wanted)];
        Ok(Owned::new(Kernel { program: program.own()?, name, on }))
    }
    fn kernel_get_suggested_local_work_size(
        kernel: Borrowed<'_, Kernel>,
        queue: Borrowed<'_, Queue>,
        offset: &[usize],
        global: &[usize],
    ) -> Result<Vec<usize>> {
        launch::suggest(kernel, queue, offset, global, None)
    }
    fn kernel_get_suggested_local_work_size_with_args(
        kernel: Borrowed<'_, Kernel>,
        queue: Borrowed<'_, Queue>,
        offset: &[usize],
        global: &[usize],
        arguments: Option<&[ur_exp_kernel_arg_properties_t]>,
    ) -> Result<Vec<usize>> {
        launch::suggest(kernel, queue, offset, global, Some(arguments.unwrap_or_default()))
    }
    fn kernel_set_exec_info(
        kernel: Borrowed<'_, Kernel>,
        name: ur_kernel_exec_info_t,
        size: usize,
        _properties: Option<&ur_kernel_exec_info_properties_t>,
        value: UsmPtr,
    ) -> Result<()> {
        use ur_kernel_exec_info_t as I;
        let all = ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST
            | ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE
            | ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED;
        let wrong = || {
            let why = format!("{name:?} is not {size} bytes long");
            Err(Error::new(ErrorCode::InvalidSize, why))
        };
        match name {
            I::USM_INDIRECT_ACCESS if size == size_of::<ur_bool_t>() => {
                let flags = if given::byte(value) != 0 { all } else { 0 };
                kernel.each(|native| native.reach(flags))
            }
            // Of what kind they are need not be looked up: reaching more costs nothing.
            I::USM_PTRS if size > 0 && size.is_multiple_of(size_of::<usize>()) => {
                kernel.each(|native| native.reach(all))
            }
            I::CACHE_CONFIG if size == size_of::<u32>() => {
                let flags = match ur_kernel_cache_config_t(given::word(value)) {
                    ur_kernel_cache_config_t::DEFAULT => 0,
                    ur_kernel_cache_config_t::LARGE_SLM => ZE_CACHE_CONFIG_FLAG_LARGE_SLM,
                    ur_kernel_cache_config_t::LARGE_DATA => ZE_CACHE_CONFIG_FLAG_LARGE_DATA,
                    other => {
                        let why = format!("{other:?} is no way to divide a cache");
                        return Err(Error::new(ErrorCode::InvalidValue, why));
                    }
                };
                kernel.each(|native| native.prefer(flags))
            }
            I::USM_INDIRECT_ACCESS | I::USM_PTRS | I::CACHE_CONFIG => wrong(),
            _ => Err(ErrorCode::InvalidEnumeration.into()),
        }
    }
    fn kernel_set_specialization_constants(
        _kernel: Borrowed<'_, Kernel>,
        _constants: &[ur_specialization_constant_info_t],
    ) -> Result<()> {
        Err(Error::new(
            ErrorCode::UnsupportedFeature,
            "constants are the program's here: set them before it is built",
        ))
    }
    fn kernel_suggest_max_cooperative_group_count(
        kernel: Borrowed<'_, Kernel>,
        device: Borrowed<'_, Device>,
        local: &[usize],
        _local_memory: usize,
    ) -> Result<u32> {
        let on = kernel.on(&device)?;
        let items = local.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        if items.is_none_or(|n| !(1..=on.limits.items).contains(&n)) {
            return Err(Error::new(
                ErrorCode::InvalidWorkGroupSize,
                format!("a group of {local:?} items: this kernel runs 1 to {}", on.limits.items),
            ));
        }
        let mut size = [1; 3];
        size.iter_mut().zip(local).for_each(|(to, from)| *to = *from as u32);
        let mut turn = on.native.turn();
        turn.group(size)?;
        turn.most_cooperative()
    }
}
