//! Creates new objects, which the caller releases.
use super::{Bench, NO_LIST, Usm, exists, word};
use crate::{
    case::{Stop, Verdict},
    must,
    raw::Word,
};
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::*;

impl Bench {
    /// Creates a new object of a kind, which the caller releases.
    pub fn make(&self, kind: &str) -> Verdict<*mut c_void> {
        let queue_flags = ur_queue_flags_t::default();
        let read_write = ur_mem_flags_t::READ_WRITE;
        Ok(match kind {
            "Context" => self.new_context()?.0,
            "Queue" => self.new_queue(queue_flags)?.0,
            "Event" => {
                let (queue, mut event) = (self.queue()?, ur_event_handle_t::NULL);
                must!(self, enqueue.events_wait(queue, 0, null(), &mut event));
                exists(event.0)?;
                must!(self, event.wait(1, &event));
                event.0
            }
            "ProfiledEvent" => {
                let queue = self.new_queue(ur_queue_flags_t::PROFILING_ENABLE)?;
                let event = self.follow(queue, &[])?;
                self.wait(&[event])?;
                must!(self, queue.release(queue));
                event
            }
            "EventInError" => {
                let promised = self.promised.get();
                let event = crate::processes::event_in_error(self)?;
                self.promised.set(promised); // the promise applies only to events
                event
            }
            "FinalizedCommandBuffer" => {
                let buffer = self.new_command_buffer()?;
                must!(self, command_buffer_exp.finalize_exp(buffer));
                buffer.0
            }
            "IdleKernel" => crate::families::kernel::idle_kernel(self)?.0,
            "UpdatableCommandBuffer" => {
                let buffer = crate::families::recorded_kernels::new(self, true)?;
                must!(self, command_buffer_exp.finalize_exp(buffer));
                buffer.0
            }
            "ExpCommandBufferCommand" => self.new_command()?,
            "Mem" | "OtherMem" => self.new_buffer(read_write, 65536)?.0,
            "Image" | "OtherImage" => self.new_image(read_write, 16, 16)?.0,
            "Sampler" => self.new_sampler()?.0,
            "PhysicalMem" => {
                let bytes = self.granularity()?;
                self.new_physical(bytes, ur_physical_mem_flags_t::default())?.0
            }
            "UsmPool" => self.new_pool()?.0,
            "ExpCommandBuffer" => self.new_command_buffer()?.0,
            "ExpGraph" => {
                let (context, mut graph) = (self.context()?, ur_exp_graph_handle_t::NULL);
                must!(self, graph_exp.create_exp(context, &mut graph));
                exists(graph.0)?;
                graph.0
            }
            "ExpExecutableGraph" => {
                let graph = ur_exp_graph_handle_t(self.object("ExpGraph")?);
                let mut made = ur_exp_executable_graph_handle_t::NULL;
                must!(self, graph_exp.instantiate_graph_exp(graph, &mut made));
                made.0
            }
            "Program" => crate::families::program::new_program(self)?.0,
            "Kernel" => crate::families::kernel::new_kernel(self)?.0,
            other => return Err(Stop::skipped(format!("the suite has no way to make a {other}"))),
        })
    }
}
/// Objects that are created anew and that the caller releases.
impl Bench {
    pub fn new_context(&self) -> Verdict<ur_context_handle_t> {
        let (device, mut context) = (self.device()?, ur_context_handle_t::NULL);
        must!(self, context.create(1, &device, null(), &mut context));
        exists(context.0)?;
        Ok(context)
    }
    pub fn new_queue(&self, flags: ur_queue_flags_t) -> Verdict<ur_queue_handle_t> {
        let stype = ur_structure_type_t::QUEUE_PROPERTIES;
        let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
        let (context, device) = (self.context()?, self.device()?);
        let mut queue = ur_queue_handle_t::NULL;
        must!(self, queue.create(context, device, &properties, &mut queue));
        exists(queue.0)?;
        Ok(queue)
    }
    pub fn new_buffer(&self, flags: ur_mem_flags_t, bytes: usize) -> Verdict<ur_mem_handle_t> {
        let (context, mut buffer) = (self.context()?, ur_mem_handle_t::NULL);
        must!(self, mem.buffer_create(context, flags, bytes, null(), &mut buffer));
        exists(buffer.0)?;
        Ok(buffer)
    }
    /// Creates a 2D image with four bytes per pixel.
    pub fn new_image(
        &self,
        flags: ur_mem_flags_t,
        width: usize,
        height: usize,
    ) -> Verdict<ur_mem_handle_t> {
        let desc = ur_image_desc_t {
            stype: ur_structure_type_t::IMAGE_DESC,
            pNext: null(),
            r#type: ur_mem_type_t::IMAGE2D,
            width,
            height,
            depth: 1,
            arraySize: 1,
            rowPitch: 0,
            slicePitch: 0,
            numMipLevel: 0,
            numSamples: 0,
        };
        self.image_of(flags, &desc)
    }
    pub fn image_of(
        &self,
        flags: ur_mem_flags_t,
        desc: &ur_image_desc_t,
    ) -> Verdict<ur_mem_handle_t> {
        self.needs_images()?;
        let format = ur_image_format_t {
            channelOrder: ur_image_channel_order_t::RGBA,
            channelType: ur_image_channel_type_t::UNSIGNED_INT8,
        };
        let (context, mut image) = (self.context()?, ur_mem_handle_t::NULL);
        must!(self, mem.image_create(context, flags, &format, desc, null_mut(), &mut image));
        exists(image.0)?;
        Ok(image)
    }
    /// Like `needs`, but later calls may still return UNSUPPORTED_FEATURE.
    pub fn needs_images(&self) -> Verdict {
        let promised = self.promised.get();
        self.needs(ur_device_info_t::IMAGE_SUPPORT)?;
        self.promised.set(promised);
        Ok(())
    }
    pub fn new_sampler(&self) -> Verdict<ur_sampler_handle_t> {
        let desc = ur_sampler_desc_t {
            stype: ur_structure_type_t::SAMPLER_DESC,
            pNext: null(),
            normalizedCoords: true,
            addressingMode: ur_sampler_addressing_mode_t::CLAMP,
            filterMode: ur_sampler_filter_mode_t::LINEAR,
        };
        let (context, mut sampler) = (self.context()?, ur_sampler_handle_t::NULL);
        must!(self, sampler.create(context, &desc, &mut sampler));
        exists(sampler.0)?;
        Ok(sampler)
    }
    /// The granularity of virtual memory.
    pub fn granularity(&self) -> Verdict<usize> {
        let (context, device) = (self.context()?, self.device()?);
        let info = ur_virtual_mem_granularity_info_t::RECOMMENDED;
        Ok(crate::info!(self, virtual_mem.granularity_get_info(context, device, 1, info), usize))
    }
    pub fn new_physical(
        &self,
        bytes: usize,
        flags: ur_physical_mem_flags_t,
    ) -> Verdict<ur_physical_mem_handle_t> {
        let stype = ur_structure_type_t::PHYSICAL_MEM_PROPERTIES;
        let properties = ur_physical_mem_properties_t { stype, pNext: null_mut(), flags };
        let (context, device) = (self.context()?, self.device()?);
        let mut made = ur_physical_mem_handle_t::NULL;
        must!(self, physical_mem.create(context, device, bytes, &properties, &mut made));
        exists(made.0)?;
        Ok(made)
    }
    pub fn new_pool(&self) -> Verdict<ur_usm_pool_handle_t> {
        let stype = ur_structure_type_t::USM_POOL_DESC;
        let mut desc = ur_usm_pool_desc_t { stype, pNext: null(), flags: Default::default() };
        let (context, mut pool) = (self.context()?, ur_usm_pool_handle_t::NULL);
        must!(self, usm.pool_create(context, &mut desc, &mut pool));
        exists(pool.0)?;
        Ok(pool)
    }
    pub fn new_command_buffer(&self) -> Verdict<ur_exp_command_buffer_handle_t> {
        let desc = ur_exp_command_buffer_desc_t {
            stype: ur_structure_type_t::EXP_COMMAND_BUFFER_DESC,
            pNext: null(),
            isUpdatable: 0,
            isInOrder: 0,
            enableProfiling: 0,
        };
        let (context, device) = (self.context()?, self.device()?);
        let mut made = ur_exp_command_buffer_handle_t::NULL;
        must!(self, command_buffer_exp.create_exp(context, device, &desc, &mut made));
        exists(made.0)?;
        Ok(made)
    }
    /// Creates an updatable command in a command buffer that is not finalized: a launch of a kernel that does
    /// nothing.
    fn new_command(&self) -> Verdict<*mut c_void> {
        let desc = ur_exp_command_buffer_desc_t {
            stype: ur_structure_type_t::EXP_COMMAND_BUFFER_DESC,
            pNext: null(),
            isUpdatable: 1,
            isInOrder: 0,
            enableProfiling: 0,
        };
        let (context, device) = (self.context()?, self.device()?);
        let mut buffer = ur_exp_command_buffer_handle_t::NULL;
        must!(self, command_buffer_exp.create_exp(context, device, &desc, &mut buffer));
        self.made.borrow_mut().push(("ExpCommandBuffer".into(), buffer.0));
        let kernel = crate::families::kernel::idle_kernel(self)?;
        let (size, mut command) = ([1_usize; 3], null_mut::<c_void>());
        let sizes = word(size.as_ptr().cast());
        let one = Word::One(1);
        let mut words = vec![word(buffer.0), word(kernel.0), one, Word::One(0), sizes];
        words.extend([0; 9].map(Word::One));
        words.push(word((&raw mut command).cast()));
        let name = "urCommandBufferAppendKernelLaunchExp";
        let code = self.adapter.call(name, &words);
        let code = code.ok_or_else(|| Stop::skipped(format!("{name} is null")))?;
        self.succeeded(name, code)?;
        exists(command)?;
        Ok(command)
    }
    pub fn alloc(&self, usm: Usm, bytes: usize) -> Verdict<*mut c_void> {
        let (none, mut at) = (ur_usm_pool_handle_t::NULL, null_mut());
        let (context, device) = (self.context()?, self.device()?);
        match usm {
            Usm::Device => {
                must!(self, usm.device_alloc(context, device, null(), none, bytes, &mut at));
            }
            Usm::Shared => {
                must!(self, usm.shared_alloc(context, device, null(), none, bytes, &mut at));
            }
            Usm::Host => must!(self, usm.host_alloc(context, null(), none, bytes, &mut at)),
        }
        exists(at)?;
        Ok(at)
    }
    pub fn free(&self, at: *mut c_void) -> Verdict {
        must!(self, usm.free(self.context()?, at));
        Ok(())
    }
    /// Copies from host memory or USM to host memory or USM, and waits.
    pub fn copy(&self, to: *mut c_void, from: *const c_void, bytes: usize) -> Verdict {
        let ((n, list), none) = (NO_LIST, null_mut());
        must!(self, enqueue.usm_memcpy(self.queue()?, true, to, from, bytes, n, list, none));
        Ok(())
    }
    pub fn write(&self, to: *mut c_void, bytes: &[u8]) -> Verdict {
        self.copy(to, bytes.as_ptr().cast(), bytes.len())
    }
    pub fn read(&self, from: *const c_void, bytes: usize) -> Verdict<Vec<u8>> {
        let mut read = vec![0; bytes];
        self.copy(read.as_mut_ptr().cast(), from, bytes)?;
        Ok(read)
    }
}
