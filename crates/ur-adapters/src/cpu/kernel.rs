//! Kernels: functions of a built program, and what can be known of native code. Launching them is
//! `launch.rs`'s.
use super::{
    Context, Cpu, Device, Program, Queue,
    device::MAX_WORK_GROUP,
    launch,
    native_code::{Arguments, Function},
    native_handle,
    program::{Code, no_kernel},
};
use crate::kernels::metadata::Wanted;
use std::{
    ffi::{CStr, CString},
    sync::Arc,
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
pub struct Kernel {
    program: Owned<Program>,
    name: CString,
    function: Function,
    wanted: Wanted,
    /// It stays loaded.
    code: Arc<Code>,
}
impl Kernel {
    /// The program whose function it is.
    pub fn program(&self) -> &Owned<Program> {
        &self.program
    }
    /// What it wants of its groups.
    pub(super) fn wanted(&self) -> Wanted {
        self.wanted
    }
    /// What is called.
    pub(super) fn function(&self) -> (Function, Arc<Code>) {
        (self.function, Arc::clone(&self.code))
    }
}

fn unanswered(name: impl std::fmt::Debug) -> Result<()> {
    Err(Error::new(
        ErrorCode::UnsupportedEnumeration,
        format!("native code does not tell {name:?}"),
    ))
}

impl KernelApi for Cpu {
    fn kernel_create(program: Borrowed<'_, Program>, name: &CStr) -> Result<Owned<Kernel>> {
        let code = program.code()?;
        let function = code.kernel(name).ok_or_else(|| no_kernel(name))?;
        let (program, wanted) = (program.own()?, program.wanted(name));
        Ok(Owned::new(Kernel { program, name: name.to_owned(), function, wanted, code }))
    }
    fn kernel_get_info(
        kernel: Borrowed<'_, Kernel>,
        name: ur_kernel_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_kernel_info_t as I;
        match name {
            I::FUNCTION_NAME => answer.str(&kernel.name.to_string_lossy()),
            I::REFERENCE_COUNT => answer.value(&kernel.api_refs()),
            I::CONTEXT => answer.handle(kernel.program.context()),
            I::PROGRAM => answer.handle(&kernel.program),
            I::ATTRIBUTES => answer.str(""), // native code carries none
            _ => unanswered(name),           // among them how many arguments it takes
        }
    }
    fn kernel_get_group_info(
        kernel: Borrowed<'_, Kernel>,
        device: Borrowed<'_, Device>,
        name: ur_kernel_group_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_kernel_group_info_t as I;
        kernel.program.check(device)?;
        let wanted = kernel.wanted;
        match name {
            I::WORK_GROUP_SIZE => answer.value(&MAX_WORK_GROUP),
            // 0: nothing is asked for.
            I::COMPILE_WORK_GROUP_SIZE => answer.slice(&wanted.size.unwrap_or_default()),
            I::COMPILE_MAX_WORK_GROUP_SIZE => answer.slice(&wanted.most.unwrap_or_default()),
            I::COMPILE_MAX_LINEAR_WORK_GROUP_SIZE => {
                answer.value(&wanted.most_in_all.unwrap_or_default())
            }
            // Its own variables are on the stack.
            I::LOCAL_MEM_SIZE | I::PRIVATE_MEM_SIZE => answer.value(&0_usize),
            I::PREFERRED_WORK_GROUP_SIZE_MULTIPLE => answer.value(&1_usize),
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
        kernel.program.check(device)?;
        match name {
            I::MAX_SUB_GROUP_SIZE => answer.value(&1_u32), // an item is called alone
            I::MAX_NUM_SUB_GROUPS => answer.value(&(MAX_WORK_GROUP as u32)),
            I::COMPILE_NUM_SUB_GROUPS | I::SUB_GROUP_SIZE_INTEL => answer.value(&0_u32), // none asked for
            _ => unanswered(name),
        }
    }
    fn kernel_get_native_handle(kernel: Borrowed<'_, Kernel>) -> Result<ur_native_handle_t> {
        native_handle::of(&kernel)
    }
    fn kernel_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        program: Option<Borrowed<'_, Program>>,
        _properties: Option<&ur_kernel_native_properties_t>,
    ) -> Result<Owned<Kernel>> {
        let kernel = native_handle::find::<Kernel>(native)?;
        native_handle::check_context(kernel.program.context(), context)?;
        match program.is_none_or(|said| kernel.program.same(&said)) {
            true => Ok(kernel),
            false => Err(Error::new(
                ErrorCode::InvalidProgram,
                "the native handle is that of another program's kernel",
            )),
        }
    }
    fn kernel_get_suggested_local_work_size(
        kernel: Borrowed<'_, Kernel>,
        queue: Borrowed<'_, Queue>,
        offset: &[usize],
        global: &[usize],
    ) -> Result<Vec<usize>> {
        launch::check(&queue, &kernel)?;
        let range = launch::range(queue.device(), kernel.wanted, Some(offset), global, None)?;
        Ok(range.local[..global.len()].to_vec())
    }
    fn kernel_get_suggested_local_work_size_with_args(
        kernel: Borrowed<'_, Kernel>,
        queue: Borrowed<'_, Queue>,
        offset: &[usize],
        global: &[usize],
        arguments: Option<&[ur_exp_kernel_arg_properties_t]>,
    ) -> Result<Vec<usize>> {
        Arguments::new(arguments.unwrap_or_default())?;
        Self::kernel_get_suggested_local_work_size(kernel, queue, offset, global)
    }
    fn kernel_set_exec_info(
        _kernel: Borrowed<'_, Kernel>,
        name: ur_kernel_exec_info_t,
        size: usize,
        _properties: Option<&ur_kernel_exec_info_properties_t>,
        _value: UsmPtr,
    ) -> Result<()> {
        use ur_kernel_exec_info_t as I;
        // Native code reaches all there is, whatever it was told; only the form is checked.
        let fits = match name {
            I::USM_INDIRECT_ACCESS => size == size_of::<ur_bool_t>(),
            I::USM_PTRS => size > 0 && size.is_multiple_of(size_of::<usize>()),
            I::CACHE_CONFIG => size == size_of::<u32>(),
            _ => return Err(ErrorCode::InvalidEnumeration.into()),
        };
        match fits {
            true => Ok(()),
            false => Err(Error::new(
                ErrorCode::InvalidSize,
                format!("{name:?} is not {size} bytes long"),
            )),
        }
    }
    fn kernel_set_specialization_constants(
        _kernel: Borrowed<'_, Kernel>,
        _constants: &[ur_specialization_constant_info_t],
    ) -> Result<()> {
        Err(Error::new(
            ErrorCode::UnsupportedFeature,
            "native code has no specialization constants",
        ))
    }
    fn kernel_suggest_max_cooperative_group_count(
        kernel: Borrowed<'_, Kernel>,
        device: Borrowed<'_, Device>,
        _local: &[usize],
        _local_memory: usize,
    ) -> Result<u32> {
        kernel.program.check(device)?;
        Err(Error::new(
            ErrorCode::UnsupportedFeature,
            "items are called one after the other: groups that wait for each other cannot run here",
        ))
    }
}
