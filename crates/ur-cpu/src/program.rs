//! Connects the core's programs and kernels to this backend's contexts, devices and queues. Code is loaded in
//! `code.rs`.
use super::{Context, Cpu, Device, code::MAX_WORK_GROUP, native_code::LOCAL_MEMORY};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Object, Owned},
};
use ur_core::over_driver::own_handle;
use ur_core::program::{self, HasCode, RunsCode};
use ur_hal::{Capabilities, LaunchLimits};
use ur_sys::ur_native_handle_t;

/// What `ur_program_handle_t` points at.
pub type Program = program::Program<Cpu>;
/// What `ur_kernel_handle_t` points at.
pub type Kernel = program::Kernel<Cpu>;

impl HasCode for Cpu {
    const REFUSES_EMPTY_RANGES: bool = true;
    fn target(_context: &Context, _device: &Device) -> Result<()> {
        Ok(())
    }
    /// Work-items are called one after the other, so there are no cooperative launches.
    fn launches(_device: &Device) -> Result<(Capabilities, LaunchLimits)> {
        let limits = LaunchLimits {
            items: MAX_WORK_GROUP,
            group: [MAX_WORK_GROUP; 3],
            grid: [usize::MAX; 3],
            sub_group: 1,
            local_memory: LOCAL_MEMORY,
        };
        Ok((Capabilities::NONE, limits))
    }
    /// Commands keep the code that they execute.
    fn leave(_context: usize, what: impl Send + 'static) {
        drop(what);
    }
    fn sweep_code() {}
}
impl RunsCode for Cpu {
    fn native_program(program: &Object<Program>) -> Result<ur_native_handle_t> {
        own_handle::of(program)
    }
    fn program_of_native(
        native: ur_native_handle_t,
        context: &Owned<Context>,
        _is_owned: bool,
    ) -> Result<Owned<Program>> {
        let program = own_handle::find::<Program>(native)?;
        own_handle::check_context(program.context(), context)?;
        Ok(program)
    }
    fn native_kernel(kernel: &Object<Kernel>) -> Result<ur_native_handle_t> {
        own_handle::of(kernel)
    }
    fn kernel_of_native(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        program: Option<Borrowed<'_, Program>>,
        _is_owned: bool,
    ) -> Result<Owned<Kernel>> {
        let kernel = own_handle::find::<Kernel>(native)?;
        own_handle::check_context(kernel.program().context(), &context)?;
        match program.is_none_or(|said| kernel.program().same(&said)) {
            true => Ok(kernel),
            false => Err(Error::new(
                ErrorCode::InvalidProgram,
                "the native handle is that of another program's kernel",
            )),
        }
    }
}
