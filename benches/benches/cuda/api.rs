//! Calls our adapter through its table of C functions, as a program in any language does.
#![expect(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "calls the adapter as any C program does"
)]
use causeway_benches::Result;
use std::{
    ffi::{CStr, c_void},
    ptr::{null, null_mut},
};
use ur_cuda::CUDA_TABLE;
use ur_sys::*;

macro_rules! ur {
    ($table:ident.$entry:ident($($argument:expr),*)) => {{
        let entry = CUDA_TABLE.$table.$entry.ok_or(stringify!($entry))?;
        match unsafe { entry($($argument),*) } {
            ur_result_t::SUCCESS => Ok(()),
            code => Err(format!("{}.{}: {code:?}", stringify!($table), stringify!($entry))),
        }
    }};
}

pub struct Ur {
    pub context: ur_context_handle_t,
    pub device: ur_device_handle_t,
    pub queue: ur_queue_handle_t,
}
impl Ur {
    pub fn start() -> Result<Self> {
        let (mut adapter, mut platform) = (ur_adapter_handle_t::NULL, ur_platform_handle_t::NULL);
        let (mut device, mut count) = (ur_device_handle_t::NULL, 0);
        ur!(adapter.get(1, &raw mut adapter, &raw mut count))?;
        ur!(platform.get(adapter, 1, &raw mut platform, &raw mut count))?;
        ur!(device.get(platform, ur_device_type_t::ALL, 1, &raw mut device, &raw mut count))?;
        let (mut context, mut queue) = (ur_context_handle_t::NULL, ur_queue_handle_t::NULL);
        ur!(context.create(1, &raw const device, null(), &raw mut context))?;
        ur!(queue.create(context, device, null(), &raw mut queue))?;
        Ok(Self { context, device, queue })
    }
    pub fn alloc(&self, bytes: usize) -> Result<*mut c_void> {
        let mut at = null_mut();
        let none = ur_usm_pool_handle_t::NULL;
        ur!(usm.device_alloc(self.context, self.device, null(), none, bytes, &raw mut at))?;
        Ok(at)
    }
    pub fn free(&self, at: *mut c_void) -> Result<()> {
        Ok(ur!(usm.free(self.context, at))?)
    }
    pub fn get(&self, at: *mut c_void) -> Result<(*mut c_void, usize)> {
        let (mut data, mut size) = (null_mut(), 0);
        ur!(ipc_exp.get_mem_handle_exp(self.context, at, &raw mut data, &raw mut size))?;
        Ok((data, size))
    }
    pub fn put(&self, data: *mut c_void) -> Result<()> {
        Ok(ur!(ipc_exp.put_mem_handle_exp(self.context, data))?)
    }
    pub fn bytes((data, size): (*mut c_void, usize)) -> Vec<u8> {
        unsafe { std::slice::from_raw_parts(data.cast(), size) }.to_vec()
    }
    pub fn open(&self, handle: &[u8]) -> Result<*mut c_void> {
        let mut at = null_mut();
        let data = handle.as_ptr().cast_mut().cast();
        ur!(ipc_exp.open_mem_handle_exp(
            self.context,
            self.device,
            data,
            handle.len(),
            &raw mut at
        ))?;
        Ok(at)
    }
    pub fn close(&self, at: *mut c_void) -> Result<()> {
        Ok(ur!(ipc_exp.close_mem_handle_exp(self.context, at))?)
    }
    pub fn finish(&self) -> Result<()> {
        Ok(ur!(queue.finish(self.queue))?)
    }
    pub fn copy(&self, to: *mut c_void, from: *mut c_void, bytes: usize) -> Result<()> {
        let none = null_mut();
        Ok(ur!(enqueue.usm_memcpy(self.queue, false, to, from, bytes, 0, null(), none))?)
    }
    pub fn kernel(&self, ptx: &CStr, name: &CStr) -> Result<ur_kernel_handle_t> {
        let (mut program, mut kernel) = (ur_program_handle_t::NULL, ur_kernel_handle_t::NULL);
        let (bytes, size) = (ptx.to_bytes_with_nul(), ptx.to_bytes_with_nul().len());
        let (mut devices, mut data, mut sizes) = (self.device, bytes.as_ptr(), size);
        let create = (&raw mut devices, &raw mut sizes, &raw mut data);
        ur!(program.create_with_binary(
            self.context,
            1,
            create.0,
            create.1,
            create.2,
            null(),
            &raw mut program
        ))?;
        ur!(program.build(self.context, program, null()))?;
        ur!(kernel.create(program, name.as_ptr(), &raw mut kernel))?;
        Ok(kernel)
    }
    /// Launches one block of one thread, with one argument.
    pub fn launch(
        &self,
        kernel: ur_kernel_handle_t,
        argument: *mut c_void,
        event: Option<&mut ur_event_handle_t>,
    ) -> Result<()> {
        let argument = ur_exp_kernel_arg_properties_t {
            stype: ur_structure_type_t::EXP_KERNEL_ARG_PROPERTIES,
            pNext: null_mut(),
            r#type: ur_exp_kernel_arg_type_t::POINTER,
            index: 0,
            size: size_of::<*const c_void>(),
            value: ur_exp_kernel_arg_value_t { pointer: argument },
        };
        let (one, argument) = ([1_usize], [argument]);
        let out = event.map_or(null_mut(), std::ptr::from_mut);
        let (at, arguments, queue) = (one.as_ptr(), argument.as_ptr(), self.queue);
        Ok(ur!(enqueue_exp.kernel_launch_with_args_exp(
            queue,
            kernel,
            1,
            null(),
            at,
            at,
            1,
            arguments,
            null(),
            0,
            null(),
            out
        ))?)
    }
    pub fn release(&self, event: ur_event_handle_t) -> Result<()> {
        Ok(ur!(event.release(event))?)
    }
    pub fn shared_event(&self) -> Result<ur_event_handle_t> {
        let mut event = ur_event_handle_t::NULL;
        let desc = ur_exp_event_desc_t {
            stype: ur_structure_type_t::EXP_EVENT_DESC,
            pNext: null(),
            flags: ur_exp_event_flags_t::IPC_EXP,
        };
        ur!(event_exp.create_exp(self.context, self.device, &raw const desc, &raw mut event))?;
        Ok(event)
    }
    pub fn event_bytes(&self, event: ur_event_handle_t) -> Result<Vec<u8>> {
        let (mut data, mut size) = (null_mut(), 0);
        ur!(ipc_exp.get_event_handle_exp(event, &raw mut data, &raw mut size))?;
        Ok(Self::bytes((data, size)))
    }
    pub fn open_event(&self, handle: &[u8]) -> Result<ur_event_handle_t> {
        let mut event = ur_event_handle_t::NULL;
        ur!(ipc_exp.open_event_handle_exp(
            self.context,
            handle.as_ptr().cast(),
            handle.len(),
            &raw mut event
        ))?;
        Ok(event)
    }
    pub fn wait(&self, event: ur_event_handle_t) -> Result<()> {
        Ok(ur!(enqueue.events_wait(self.queue, 1, &raw const event, null_mut()))?)
    }
    pub fn signal(&self, mut event: ur_event_handle_t) -> Result<()> {
        let to = &raw mut event;
        Ok(ur!(enqueue.events_wait_with_barrier_ext(self.queue, null(), 0, null(), to))?)
    }
    /// Waits on the host.
    pub fn host_wait(&self, event: ur_event_handle_t) -> Result<()> {
        Ok(ur!(event.wait(1, &raw const event))?)
    }
    /// Blocks the commands behind it in the queue until `gate` is true.
    pub fn gate(&self, gate: &'static std::sync::atomic::AtomicBool) -> Result<()> {
        unsafe extern "C" fn pass(gate: *mut c_void) {
            let gate = unsafe { &*gate.cast::<std::sync::atomic::AtomicBool>() };
            while !gate.load(std::sync::atomic::Ordering::Acquire) {
                std::hint::spin_loop();
            }
        }
        let data = std::ptr::from_ref(gate).cast_mut().cast();
        let (none, call) = (null(), Some(pass as unsafe extern "C" fn(*mut c_void)));
        Ok(ur!(enqueue_exp.host_task_exp(self.queue, call, data, none, 0, null(), null_mut()))?)
    }
}
