//! Programs and kernels: what the core's are told of contexts, devices, queues and native handles. Code is `code.rs`'s.
use super::{
    Context, Device, OpenCl,
    cl::*,
    code::{Function, Module, Target},
    driver::{RawKernel, RawProgram},
    memory::Memory,
    native::{
        kernel::Kernel as NativeKernel,
        own::{Own, Tells},
        program::is_built,
    },
};
use std::{ffi::CString, sync::Arc};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Object, Owned},
};
use ur_core::{
    memory::deferred_free,
    program::{self, HasCode, RunsCode},
};
use ur_hal::{Capabilities, LaunchLimits};
use ur_sys::*;

/// What `ur_program_handle_t` points at.
pub type Program = program::Program<OpenCl>;
/// What `ur_kernel_handle_t` points at.
pub type Kernel = program::Kernel<OpenCl>;

fn null<T>(what: &str) -> Result<T> {
    Err(Error::new(ErrorCode::InvalidNullHandle, format!("the native {what} is null")))
}
fn target(context: &Context, device: &Device) -> Target {
    let (context, local) = (Arc::clone(context.driver()), device.facts().local);
    Target { context, device: device.raw(), local }
}
impl HasCode for OpenCl {
    fn target(context: &Context, device: &Device) -> Result<Target> {
        Ok(target(context, device))
    }
    fn launches(device: &Device) -> Result<(Capabilities, LaunchLimits)> {
        let facts = device.facts();
        let (items, group) = facts.items;
        let sub_group = facts.sub_groups.iter().max().map_or(1, |n| *n as usize);
        let grid = [u32::MAX as usize; 3];
        let limits = LaunchLimits { items, group, grid, sub_group, local_memory: facts.local };
        Ok((Capabilities::NONE, limits))
    }
    fn leave(context: usize, what: impl Send + 'static) {
        deferred_free::leave::<Memory>(context, what);
    }
    fn sweep_code() {
        deferred_free::sweep::<Memory>();
    }
}
impl RunsCode for OpenCl {
    /// The program on its first device that it is built for.
    fn native_program(program: &Object<Program>) -> Result<ur_native_handle_t> {
        Ok(program.built()?[0].1.program.raw().addr() as ur_native_handle_t)
    }
    /// A built program of devices of the context.
    fn program_of_native(
        native: ur_native_handle_t,
        context: &Owned<Context>,
        is_owned: bool,
    ) -> Result<Owned<Program>> {
        let Some(raw) = RawProgram::from_addr(native) else { return null("program") };
        raw.check_context(CL_PROGRAM_CONTEXT, context.raw(), ErrorCode::InvalidContext)?;
        let its = raw.numbers(CL_PROGRAM_DEVICES)?;
        let own = context.devices().iter().filter(|one| its.contains(&one.raw().addr()));
        let mut devices: Vec<_> = own.cloned().collect();
        if devices.is_empty() {
            let why = "the native program is for none of the context's devices";
            return Err(Error::new(ErrorCode::InvalidDevice, why));
        }
        devices.retain(|one| is_built(raw, one.raw()).unwrap_or(false));
        if devices.is_empty() {
            let why = "the native program is built for none of the context's devices: call clBuildProgram first";
            return Err(Error::new(ErrorCode::InvalidProgramExecutable, why));
        }
        let program = Own::adopted(raw, is_owned)?;
        Ok(Program::adopted(context.clone(), devices, |device| Module {
            program: program.clone(),
            target: target(context, device),
        }))
    }
    /// The driver's on its first device.
    fn native_kernel(kernel: &Object<Kernel>) -> Result<ur_native_handle_t> {
        Ok(kernel.any().function().kernel.raw().addr() as ur_native_handle_t)
    }
    fn kernel_of_native(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        program: Option<Borrowed<'_, Program>>,
        is_owned: bool,
    ) -> Result<Owned<Kernel>> {
        let Some(raw) = RawKernel::from_addr(native) else { return null("kernel") };
        let program = program::of_native_kernel(context, program)?;
        Kernel::adopted(program, |module| {
            let name = raw.text(CL_KERNEL_FUNCTION_NAME)?;
            let name = CString::new(name).map_err(|_| Error::from(ErrorCode::InvalidKernel))?;
            let raw = Own::adopted(raw, is_owned)?;
            let kernel = NativeKernel::new(raw, module.target.context.extensions());
            Ok((Function::new(kernel, &module.target), name))
        })
    }
}
