//! The entries of kernels.
use super::{Context, Device, Kernel, Program, RunsCode, launch};
use crate::{
    kernels::program_inputs,
    over_driver::{OverDriver, own_handle},
};
use std::ffi::CStr;
use ur_adapter::{
    api::KernelApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_hal::{CachePreference, Capability, NativeHandle, NativeObject};
use ur_sys::*;

impl<D: RunsCode> KernelApi for OverDriver<D> {
    fn kernel_create(program: Borrowed<'_, Program<D>>, name: &CStr) -> Result<Owned<Kernel<D>>> {
        Kernel::new(program.own()?, name)
    }
    fn kernel_get_info(
        kernel: Borrowed<'_, Kernel<D>>,
        name: ur_kernel_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_kernel_info_t as I;
        let facts = kernel.any().facts();
        match name {
            I::FUNCTION_NAME => answer.str(&kernel.name().to_string_lossy()),
            I::NUM_ARGS => match facts.arguments {
                Some(count) => answer.value(&count),
                None => Error::no_answer("a kernel", name),
            },
            I::REFERENCE_COUNT => answer.value(&kernel.api_refs()),
            I::CONTEXT => answer.handle(kernel.context()),
            I::PROGRAM => answer.handle(kernel.program()),
            I::ATTRIBUTES => answer.str(&D::attributes(kernel.any().function())?),
            I::NUM_REGS => match facts.registers {
                Some(count) => answer.value(&count),
                None => Error::no_answer("a kernel", name),
            },
            I::SPILL_MEM_SIZE => {
                let each = kernel.all().iter().map(|one| one.facts().spilled);
                match each.collect::<Option<Vec<_>>>() {
                    Some(each) => answer.slice(&each),
                    None => Error::no_answer("a kernel", name),
                }
            }
            _ => Error::no_answer("a kernel", name),
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
        let (limits, facts) = (on.limits(), on.facts());
        let wanted = limits.wanted;
        match name {
            I::GLOBAL_WORK_SIZE => {
                let most = |d: usize| limits.group[d].saturating_mul(limits.grid[d]);
                answer.slice(&[0, 1, 2].map(most))
            }
            I::WORK_GROUP_SIZE => answer.value(&limits.items),
            // 0 if the source does not specify one.
            I::COMPILE_WORK_GROUP_SIZE => answer.slice(&wanted.size.unwrap_or_default()),
            I::COMPILE_MAX_WORK_GROUP_SIZE => match wanted.most {
                None if !on.is_most_told => Error::no_answer("a kernel", name),
                most => answer.slice(&most.unwrap_or_default()),
            },
            I::COMPILE_MAX_LINEAR_WORK_GROUP_SIZE => match wanted.most_in_all {
                None if !facts.is_all_told => Error::no_answer("a kernel", name),
                most => answer.value(&most.unwrap_or_default()),
            },
            I::LOCAL_MEM_SIZE => answer.value(&facts.local_memory),
            I::PRIVATE_MEM_SIZE => answer.value(&facts.private_memory),
            I::PREFERRED_WORK_GROUP_SIZE_MULTIPLE => answer.value(&limits.warp),
            _ => Error::no_answer("a kernel", name),
        }
    }
    fn kernel_get_sub_group_info(
        kernel: Borrowed<'_, Kernel<D>>,
        device: Borrowed<'_, Device<D>>,
        name: ur_kernel_sub_group_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_kernel_sub_group_info_t as I;
        let on = kernel.on(&device)?;
        let facts = on.facts();
        match name {
            I::MAX_SUB_GROUP_SIZE => answer.value(&facts.most_sub_group),
            I::MAX_NUM_SUB_GROUPS => answer.value(&facts.most_sub_groups),
            // 0 if the source does not specify a number.
            I::COMPILE_NUM_SUB_GROUPS => answer.value(&facts.sub_groups.unwrap_or_default()),
            I::SUB_GROUP_SIZE_INTEL => {
                answer.value(&on.limits().wanted.sub_group.unwrap_or_default())
            }
            _ => Error::no_answer("a kernel", name),
        }
    }
    fn kernel_get_native_handle(kernel: Borrowed<'_, Kernel<D>>) -> Result<ur_native_handle_t> {
        match D::HAS_HANDLES {
            true => {
                let function = NativeObject::Function(&**kernel.any().function());
                Ok(D::native(function)?.0 as ur_native_handle_t)
            }
            false => own_handle::of(&kernel),
        }
    }
    fn kernel_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        program: Option<Borrowed<'_, Program<D>>>,
        properties: Option<&ur_kernel_native_properties_t>,
    ) -> Result<Owned<Kernel<D>>> {
        if !D::HAS_HANDLES {
            let kernel: Owned<Kernel<D>> = own_handle::find(native)?;
            own_handle::check_context(kernel.context(), &context)?;
            let is_its = program.is_none_or(|said| kernel.program().same(&said));
            let why = || "the native handle is that of another program's kernel";
            return Error::unless(is_its, ErrorCode::InvalidProgram, why).map(|()| kernel);
        }
        let Some(program) = program.filter(|_| native != 0) else {
            let why = "a kernel of a native handle needs the handle and its program";
            return Error::refuse(ErrorCode::InvalidNullHandle, why);
        };
        program.check_context(context)?;
        let is_owned = properties.is_some_and(|one| one.isNativeHandleOwned);
        Kernel::adopted(program.own()?, NativeHandle(native as u64), is_owned)
    }
    fn kernel_get_suggested_local_work_size(
        kernel: Borrowed<'_, Kernel<D>>,
        queue: Borrowed<'_, D::Queue>,
        offset: &[usize],
        global: &[usize],
    ) -> Result<Vec<usize>> {
        launch::suggest(kernel, queue, offset, global, None)
    }
    fn kernel_get_suggested_local_work_size_with_args(
        kernel: Borrowed<'_, Kernel<D>>,
        queue: Borrowed<'_, D::Queue>,
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
        let mut each = kernel.all().iter().map(|one| one.function());
        match name {
            I::USM_INDIRECT_ACCESS if size == size_of::<ur_bool_t>() => {
                let all = program_inputs::byte(value) != 0;
                each.try_for_each(|function| Ok(D::reach_all(function, all)?))
            }
            // Their kinds need not be looked up: access to more memory than needed costs nothing.
            I::USM_PTRS if size > 0 && size.is_multiple_of(size_of::<usize>()) => {
                each.try_for_each(|function| Ok(D::reach_all(function, true)?))
            }
            I::CACHE_CONFIG if size == size_of::<u32>() => {
                let what = match ur_kernel_cache_config_t(program_inputs::word(value)) {
                    ur_kernel_cache_config_t::DEFAULT => CachePreference::None,
                    ur_kernel_cache_config_t::LARGE_SLM => CachePreference::LocalMemory,
                    ur_kernel_cache_config_t::LARGE_DATA => CachePreference::Cache,
                    other => {
                        let why = format!("{other:?} is not a cache configuration");
                        return Error::refuse(ErrorCode::InvalidValue, why);
                    }
                };
                each.try_for_each(|function| Ok(D::prefer(function, what)?))
            }
            I::USM_INDIRECT_ACCESS | I::USM_PTRS | I::CACHE_CONFIG => {
                Error::refuse(ErrorCode::InvalidSize, format!("{name:?} is not {size} bytes long"))
            }
            _ => Err(ErrorCode::InvalidEnumeration.into()),
        }
    }
    fn kernel_set_specialization_constants(
        _kernel: Borrowed<'_, Kernel<D>>,
        _constants: &[ur_specialization_constant_info_t],
    ) -> Result<()> {
        let why = "constants are the program's: set them before it is built, if it has any";
        Error::refuse(ErrorCode::UnsupportedFeature, why)
    }
    fn kernel_suggest_max_cooperative_group_count(
        kernel: Borrowed<'_, Kernel<D>>,
        device: Borrowed<'_, Device<D>>,
        local: &[usize],
        local_memory: usize,
    ) -> Result<u32> {
        let on = kernel.on(&device)?;
        on.capabilities().require(Capability::CooperativeLaunch)?;
        let items = local.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        if items.is_none_or(|n| !(1..=on.limits().items).contains(&n)) {
            let most = on.limits().items;
            let why = format!("a group of {local:?} items: this kernel runs 1 to {most}");
            return Error::refuse(ErrorCode::InvalidWorkGroupSize, why);
        }
        let mut group = [1; 3];
        group.iter_mut().zip(local).for_each(|(to, from)| *to = *from as u32);
        D::allow_local(on.function(), local_memory)?;
        Ok(D::resident_groups(on.function(), group, local_memory)?)
    }
}
