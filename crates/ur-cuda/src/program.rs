//! Connects the core's programs and kernels to this backend's contexts, devices, queues and native handles.
//! Code is loaded in `code.rs`.
//!
//! The native handle of a kernel is the driver's function on the program's first device. Creating a kernel of
//! a native handle requires the program: the handle is only compared with the functions of its module, never
//! passed to the driver, so an invalid one is refused.
use super::{
    Context, Device, Family,
    attribute::Attribute,
    code::{Code, Target},
    driver::{Dialect, RawModule},
    memory::Memory,
    native::module::Module,
};
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
pub type Program<D> = program::Program<Family<D>>;
/// What `ur_kernel_handle_t` points at.
pub type Kernel<D> = program::Kernel<Family<D>>;

impl<D: Dialect> HasCode for Family<D> {
    fn target(_context: &Context<D>, device: &Device<D>) -> Result<Target> {
        Ok(Target {
            context: device.context()?,
            local_memory: device.local_memory()? as usize,
            units: device.get(Attribute::Units)?,
            warp: device.get(Attribute::SubGroup)?,
        })
    }
    fn launches(device: &Device<D>) -> Result<(Capabilities, LaunchLimits)> {
        use Attribute as A;
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
    /// The contexts in which a kernel was launched are not recorded, so it waits for the queues of all
    /// contexts.
    fn leave(_context: usize, what: impl Send + 'static) {
        deferred_free::leave::<Memory<D>>(0, what);
    }
    fn sweep_code() {
        deferred_free::sweep::<Memory<D>>();
    }
}
impl<D: Dialect> RunsCode for Family<D> {
    /// The module on the first device that the program was built for.
    fn native_program(program: &Object<Program<D>>) -> Result<ur_native_handle_t> {
        Ok(program.built()?[0].1.module().raw().addr() as ur_native_handle_t)
    }
    /// Wraps a module of the context's first device.
    fn program_of_native(
        native: ur_native_handle_t,
        context: &Owned<Context<D>>,
        is_owned: bool,
    ) -> Result<Owned<Program<D>>> {
        let raw = RawModule::from_addr(native).ok_or_else(|| {
            Error::new(ErrorCode::InvalidValue, "a null module is no program: load one first")
        })?;
        let device = context.devices()[0].clone();
        let target = Self::target(context, &device)?;
        let code = Code::of(Module::of(raw, is_owned, target.context), target);
        Ok(Program::adopted(context.clone(), vec![device], |_| code.clone()))
    }
    fn native_kernel(kernel: &Object<Kernel<D>>) -> Result<ur_native_handle_t> {
        Ok(kernel.any().function().function().raw().addr() as ur_native_handle_t)
    }
    fn kernel_of_native(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        program: Option<Borrowed<'_, Program<D>>>,
        _is_owned: bool,
    ) -> Result<Owned<Kernel<D>>> {
        let program = program::of_native_kernel(context, program)?;
        let code = program.built()?.swap_remove(0).1;
        for name in program.names()? {
            let found = code.module().function(&name)?;
            if found.is_some_and(|one| one.raw().addr() as ur_native_handle_t == native) {
                return Kernel::new(program, &name);
            }
        }
        Err(Error::new(
            ErrorCode::InvalidKernel,
            format!(
                "{native:#x} is none of the functions that the program has on its first device"
            ),
        ))
    }
}
