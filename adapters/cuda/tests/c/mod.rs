//! What a C program has of CUDA: programs, kernels and launches beside what it has of any driver.
#![allow(dead_code, reason = "each test binary uses its own part")]
pub mod one;

use crate::call;
pub use one::*;
use std::{
    ffi::{CStr, c_void},
    ptr::{null, null_mut},
};
pub use ur_cuda::CUDA_TABLE as TABLE;
use ur_sys::{ur_exp_kernel_arg_type_t as T, ur_exp_kernel_arg_value_t as V, ur_result_t as R, *};

/// The driver, and the variable that asks for the machine's.
pub const NAME: &str = "CUDA";
pub const VARIABLE: &str = "CAUSEWAY_CUDA";
pub type Cuda = One;
/// The driver's library, how the names of the software driver's own functions begin, and the codes of an error of memory and of
/// an unknown one.
pub const REFUSER: (&str, &str, [i32; 2]) = ("libcuda.so.1", "softCuda", [2, 999]);

fn ok(code: R) -> Result<(), R> {
    if code == R::SUCCESS { Ok(()) } else { Err(code) }
}

pub type Argument = ur_exp_kernel_arg_properties_t;
fn argument(r#type: T, index: u32, size: usize, value: V) -> Argument {
    let stype = ur_structure_type_t::EXP_KERNEL_ARG_PROPERTIES;
    ur_exp_kernel_arg_properties_t { stype, pNext: null_mut(), r#type, index, size, value }
}
pub fn value<A>(index: u32, value: &A) -> Argument {
    argument(T::VALUE, index, size_of::<A>(), V { value: (&raw const *value).cast() })
}
pub fn pointer(index: u32, to: *const c_void) -> Argument {
    argument(T::POINTER, index, 8, V { pointer: to })
}
pub fn memory(index: u32, buffer: ur_mem_handle_t) -> Argument {
    let flags = ur_mem_flags_t::READ_WRITE;
    let tuple = ur_exp_kernel_arg_mem_obj_tuple_t { hMem: buffer, flags };
    argument(T::MEM_OBJ, index, size_of_val(&tuple), V { memObjTuple: tuple })
}
pub fn local(index: u32, bytes: usize) -> Argument {
    argument(T::LOCAL, index, bytes, V { pointer: null() })
}

/// How a launch is to be, as a chain of descriptors.
pub struct Properties(ur_kernel_launch_ext_properties_t);
impl Properties {
    pub fn new(flags: ur_kernel_launch_flags_t, next: *const c_void) -> Self {
        let stype = ur_structure_type_t::KERNEL_LAUNCH_EXT_PROPERTIES;
        Self(ur_kernel_launch_ext_properties_t { stype, pNext: next.cast_mut(), flags })
    }
}
pub const COOPERATIVE: ur_kernel_launch_flags_t = ur_kernel_launch_flags_t::COOPERATIVE;
pub struct Cluster(ur_kernel_launch_cluster_property_t);
impl Cluster {
    pub fn new(groups: [u32; 3]) -> Self {
        let stype = ur_structure_type_t::KERNEL_LAUNCH_CLUSTER_PROPERTY;
        Self(ur_kernel_launch_cluster_property_t { stype, pNext: null_mut(), clusterDim: groups })
    }
    pub fn chain(&self) -> *const c_void {
        (&raw const self.0).cast()
    }
}
pub struct Scratch(ur_kernel_launch_workgroup_property_t);
impl Scratch {
    pub fn new(bytes: usize) -> Self {
        let stype = ur_structure_type_t::KERNEL_LAUNCH_WORKGROUP_PROPERTY;
        let none = null_mut();
        Self(ur_kernel_launch_workgroup_property_t {
            stype,
            pNext: none,
            workgroup_mem_size: bytes,
        })
    }
    pub fn chain(&self) -> *const c_void {
        (&raw const self.0).cast()
    }
}

impl One {
    pub fn program(
        &self,
        bytes: &[u8],
        metadata: Option<(&CStr, &[u8])>,
    ) -> Result<ur_program_handle_t, R> {
        let mut content = metadata.map(|(_, c)| [&[0; 8], c].concat()).unwrap_or_default();
        let entry = ur_program_metadata_t {
            pName: metadata.map_or(null(), |(name, _)| name.as_ptr()),
            r#type: ur_program_metadata_type_t::BYTE_ARRAY,
            size: content.len(),
            value: ur_program_metadata_value_t { pData: content.as_mut_ptr().cast() },
        };
        let properties = ur_program_properties_t {
            stype: ur_structure_type_t::PROGRAM_PROPERTIES,
            pNext: null_mut(),
            count: 1,
            pMetadatas: &entry,
        };
        let properties = metadata.map_or(null(), |_| &raw const properties);
        let (mut device, mut length, mut at) = (self.device, bytes.len(), bytes.as_ptr());
        let mut program = ur_program_handle_t::NULL;
        ok(call!(program.create_with_binary(
            self.context,
            1,
            &mut device,
            &mut length,
            &mut at,
            properties,
            &mut program
        )))?;
        Ok(program)
    }
    pub fn build(&self, program: ur_program_handle_t, options: *const i8) -> Result<(), R> {
        ok(call!(program.build(self.context, program, options)))
    }
    pub fn kernel(
        &self,
        program: ur_program_handle_t,
        name: &CStr,
    ) -> Result<ur_kernel_handle_t, R> {
        let mut kernel = ur_kernel_handle_t::NULL;
        ok(call!(kernel.create(program, name.as_ptr(), &mut kernel)))?;
        Ok(kernel)
    }
    /// A kernel; its program is released.
    pub fn kernel_of(&self, ptx: &str, name: &CStr) -> ur_kernel_handle_t {
        let program = self.program(ptx.as_bytes(), None).unwrap();
        self.build(program, null()).unwrap();
        let kernel = self.kernel(program, name).unwrap();
        self.release_program(program);
        kernel
    }
    pub fn launch(
        &self,
        kernel: ur_kernel_handle_t,
        offset: Option<&[usize]>,
        global: &[usize],
        local: Option<&[usize]>,
        arguments: &[Argument],
        after: &[ur_event_handle_t],
    ) -> Result<ur_event_handle_t, R> {
        let first = |list: Option<&[usize]>| list.map_or(null(), <[usize]>::as_ptr);
        let (count, waits) = (arguments.len() as u32, after.len() as u32);
        let arguments = if arguments.is_empty() { null() } else { arguments.as_ptr() };
        let after = if after.is_empty() { null() } else { after.as_ptr() };
        let mut event = ur_event_handle_t::NULL;
        ok(call!(enqueue_exp.kernel_launch_with_args_exp(
            self.queue,
            kernel,
            global.len() as u32,
            first(offset),
            global.as_ptr(),
            first(local),
            count,
            arguments,
            null(),
            waits,
            after,
            &mut event
        )))?;
        Ok(event)
    }
    /// Loads a kernel, and returns what launches it so that the device is lost when it runs: it uses an address that no device
    /// reaches. While a function of the host's holds a stream up, a driver may neither load nor unload one; it is never unloaded.
    pub fn ready_to_lose(&self) -> impl FnOnce() {
        let (kernel, memory) =
            (self.kernel_of(include_str!("../kernels.ptx"), c"fill"), self.device_memory(128));
        let launch = move |to: u64| {
            let arguments = [value(0, &to), value(1, &1_u32)];
            self.launch(kernel, None, &[16], Some(&[16]), &arguments, &[]).unwrap()
        };
        self.done(Ok(launch(memory.addr() as u64)));
        move || self.release_event(launch(16))
    }
    pub fn launch_as(
        &self,
        kernel: ur_kernel_handle_t,
        how: &Properties,
        global: &[usize],
        local: &[usize],
        arguments: &[Argument],
    ) -> Result<ur_event_handle_t, R> {
        let mut event = ur_event_handle_t::NULL;
        ok(call!(enqueue_exp.kernel_launch_with_args_exp(
            self.queue,
            kernel,
            global.len() as u32,
            null(),
            global.as_ptr(),
            local.as_ptr(),
            arguments.len() as u32,
            arguments.as_ptr(),
            &how.0,
            0,
            null(),
            &mut event
        )))?;
        Ok(event)
    }
    /// The first number of the device's compute capability.
    pub fn capability(&self) -> u32 {
        let mut text = [0_u8; 64];
        let (name, to) = (ur_device_info_t::VERSION, text.as_mut_ptr().cast());
        let code = call!(device.get_info(self.device, name, text.len(), to, null_mut()));
        assert_eq!(code, R::SUCCESS);
        let number = CStr::from_bytes_until_nul(&text).unwrap().to_str().unwrap();
        number.split('.').next().and_then(|n| n.parse().ok()).expect("a version like 9.0")
    }
    /// Waits for a command that was accepted.
    #[track_caller]
    pub fn done(&self, event: Result<ur_event_handle_t, R>) {
        let event = event.unwrap();
        assert_eq!(call!(event.wait(1, &event)), R::SUCCESS);
        self.release_event(event);
    }
    pub fn release(&self, kernel: ur_kernel_handle_t) {
        assert_eq!(call!(kernel.release(kernel)), R::SUCCESS);
    }
    pub fn release_program(&self, program: ur_program_handle_t) {
        assert_eq!(call!(program.release(program)), R::SUCCESS);
    }
    pub fn release_event(&self, event: ur_event_handle_t) {
        assert_eq!(call!(event.release(event)), R::SUCCESS);
    }
}
/// Whether a device's commands can use images that lie on another: each device has its own of them.
pub fn has_images_of(_device: ur_device_handle_t, _other: ur_device_handle_t) -> bool {
    true
}
