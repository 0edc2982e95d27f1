//! Connects the core's programs and kernels to this backend's contexts, devices, queues and native handles.
//! Code is loaded in `code.rs`.
use super::{
    Context, Device, LevelZero,
    code::Target,
    device_info,
    driver::{RawKernel, RawModule},
    memory::Memory,
    native::{kernel::NativeKernel, module::NativeModule},
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Object, Owned},
};
use ur_core::{
    memory::deferred_free,
    program::{self, HasCode, RunsCode},
};
use ur_hal::{Capabilities, Capability, LaunchLimits};
use ur_sys::ur_native_handle_t;

/// What `ur_program_handle_t` points at.
pub type Program = program::Program<LevelZero>;
/// What `ur_kernel_handle_t` points at.
pub type Kernel = program::Kernel<LevelZero>;

fn refused<T>(code: ErrorCode, why: &'static str) -> Result<T> {
    Err(Error::new(code, why))
}
impl HasCode for LevelZero {
    fn target(context: &Context, device: &Device) -> Result<Target> {
        Ok(Target {
            context: Arc::clone(context.native()),
            device: device.raw(),
            has_linker: context.platform().extensions().has("ZE_experimental_module_program"),
        })
    }
    fn launches(device: &Device) -> Result<(Capabilities, LaunchLimits)> {
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
    fn leave(context: usize, what: impl Send + 'static) {
        deferred_free::leave::<Memory>(context, what);
    }
    fn sweep_code() {
        deferred_free::sweep::<Memory>();
    }
}
impl RunsCode for LevelZero {
    /// The module on the first device that the program was built for.
    fn native_program(program: &Object<Program>) -> Result<ur_native_handle_t> {
        Ok(program.built()?[0].1.raw().addr() as ur_native_handle_t)
    }
    /// Wraps a module of the context's devices.
    fn program_of_native(
        native: ur_native_handle_t,
        context: &Owned<Context>,
        is_owned: bool,
    ) -> Result<Owned<Program>> {
        let Some(raw) = RawModule::from_addr(native) else {
            return refused(ErrorCode::InvalidNullHandle, "the native program is null");
        };
        let module = Arc::new(NativeModule::adopted(raw, is_owned, context.native().clone()));
        let devices = context.devices().to_vec();
        Ok(Program::adopted(context.clone(), devices, |_| Arc::clone(&module)))
    }
    /// The driver's kernel on its first device. The receiver may set arguments.
    fn native_kernel(kernel: &Object<Kernel>) -> Result<ur_native_handle_t> {
        let native = kernel.any().function();
        native.lend();
        Ok(native.raw().addr() as ur_native_handle_t)
    }
    /// Wraps a kernel of one of the program's modules.
    fn kernel_of_native(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        program: Option<Borrowed<'_, Program>>,
        is_owned: bool,
    ) -> Result<Owned<Kernel>> {
        let Some(raw) = RawKernel::from_addr(native) else {
            return refused(ErrorCode::InvalidNullHandle, "the native kernel is null");
        };
        let program = ur_core::program::of_native_kernel(context, program)?;
        Kernel::adopted(program, |module| {
            let native = NativeKernel::adopted(raw, is_owned, module)?;
            let name = native.name()?;
            Ok((native, name))
        })
    }
}
