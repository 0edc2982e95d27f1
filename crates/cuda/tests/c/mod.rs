//! One device of CUDA with a context and a queue, as a C program has them.
#![allow(dead_code, reason = "each test binary uses its own part")]
use std::{
    ffi::{CStr, c_void},
    ptr::{null, null_mut},
};
pub use ur_adapters::cuda_family::CUDA_TABLE;
use ur_sys::{ur_exp_kernel_arg_type_t as T, ur_exp_kernel_arg_value_t as V, ur_result_t as R, *};

/// Calls an entry of the table: `call!(usm.free(context, at))`.
#[macro_export]
macro_rules! call {
    ($table:ident . $slot:ident ( $($argument:expr),* $(,)? )) => {
        $crate::c::Call::call(
            $crate::c::CUDA_TABLE.$table.$slot.expect("no slot is empty"),
            ($($argument,)*),
        )
    };
}
/// An entry with its arguments as one: what the macro calls without being unsafe in every place that it is used.
pub trait Call<Arguments> {
    fn call(self, arguments: Arguments) -> R;
}
macro_rules! entries { ($($($type:ident)*;)*) => { $(
    impl<$($type),*> Call<($($type,)*)> for unsafe extern "C" fn($($type),*) -> R {
        #[expect(non_snake_case, reason = "each is called like its type")]
        fn call(self, ($($type,)*): ($($type,)*)) -> R {
            unsafe { self($($type),*) }
        }
    }
)* } }
entries! {
    A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H;
    A B C D E F G H I; A B C D E F G H I J; A B C D E F G H I J K; A B C D E F G H I J K L;
    A B C D E F G H I J K L M; A B C D E F G H I J K L M N; A B C D E F G H I J K L M N O;
}
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

pub struct Cuda {
    pub device: ur_device_handle_t,
    pub context: ur_context_handle_t,
    pub queue: ur_queue_handle_t,
}
impl Cuda {
    /// `None`, with a word, where there is no device.
    pub fn new() -> Option<Self> {
        let first = Self::of(0);
        if first.is_none() {
            assert!(std::env::var_os("CAUSEWAY_CUDA").is_none(), "there is no device of CUDA");
            println!("skipped: there is no device of CUDA");
        }
        first
    }
    /// The device with this number, in a context of its own; `None` where there are not as many.
    pub fn of(number: usize) -> Option<Self> {
        let (mut adapter, mut platform, mut n) =
            (ur_adapter_handle_t::NULL, ur_platform_handle_t::NULL, 0);
        assert_eq!(call!(adapter.get(1, &mut adapter, null_mut())), R::SUCCESS);
        assert_eq!(call!(platform.get(adapter, 1, &mut platform, &mut n)), R::SUCCESS);
        let (mut devices, all) = ([ur_device_handle_t::NULL; 8], ur_device_type_t::ALL);
        if n > 0 {
            let _none = call!(device.get(platform, all, 8, devices.as_mut_ptr(), null_mut()));
        }
        let device = devices.get(number).copied().filter(|device| !device.0.is_null())?;
        let (mut context, mut queue) = (ur_context_handle_t::NULL, ur_queue_handle_t::NULL);
        assert_eq!(call!(context.create(1, &device, null(), &mut context)), R::SUCCESS);
        assert_eq!(call!(queue.create(context, device, null(), &mut queue)), R::SUCCESS);
        Some(Self { device, context, queue })
    }
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
    pub fn device_memory(&self, bytes: usize) -> *mut c_void {
        let mut at = null_mut();
        let pool = ur_usm_pool_handle_t::NULL;
        let code = call!(usm.device_alloc(self.context, self.device, null(), pool, bytes, &mut at));
        assert_eq!(code, R::SUCCESS);
        at
    }
    fn copy(&self, to: *mut c_void, from: *const c_void, bytes: usize) {
        let (queue, none) = (self.queue, null_mut());
        let code = call!(enqueue.usm_memcpy(queue, true, to, from, bytes, 0, null(), none));
        assert_eq!(code, R::SUCCESS);
    }
    pub fn write<E: Copy, const N: usize>(&self, to: *mut c_void, from: &[E; N]) {
        self.copy(to, from.as_ptr().cast(), size_of_val(from));
    }
    pub fn read<E: Copy + Default, const N: usize>(&self, from: *const c_void) -> [E; N] {
        let mut all = [E::default(); N];
        self.copy(all.as_mut_ptr().cast(), from, size_of_val(&all));
        all
    }
    pub fn free(&self, at: *mut c_void) {
        assert_eq!(call!(usm.free(self.context, at)), R::SUCCESS);
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
impl Drop for Cuda {
    fn drop(&mut self) {
        let released = call!(queue.release(self.queue));
        let released = (released, call!(context.release(self.context)));
        assert!(std::thread::panicking() || released == (R::SUCCESS, R::SUCCESS));
    }
}
