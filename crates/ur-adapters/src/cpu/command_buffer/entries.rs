//! The entries of command buffers: what is recorded for each.
use super::{
    Appended, Ask, Command, CommandBuffer, Shared, State, refused,
    update::{self, Launch},
};
use crate::cpu::{
    Context, Cpu, Device, Event, Kernel, Mem,
    engine::Work,
    enqueue_mem, launch,
    native_code::Arguments,
    native_handle,
    recording::{Recording, Replay},
};
use crate::from_c;
use std::{
    mem::offset_of,
    sync::{Arc, Mutex},
};
use ur_adapter::{
    api::CommandBufferExpApi,
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::{HostBytes, UsmPtr},
    object::{Borrowed, Owned},
    region,
};
use ur_sys::{ur_exp_command_buffer_desc_t as Descriptor, *};

impl CommandBuffer {
    pub(in super::super) fn append(
        &self,
        command: ur_command_t,
        work: Work,
        ask: Ask<'_>,
    ) -> Appended {
        self.0.append(command, work, None, ask)
    }
    #[expect(clippy::too_many_arguments, reason = "as many as C's")]
    fn append_launch(
        &self,
        kernel: Borrowed<'_, Kernel>,
        offset: Option<&[usize]>,
        global: &[usize],
        local: Option<&[usize]>,
        arguments: Arguments,
        alternatives: &[Borrowed<'_, Kernel>],
        ask: Ask<'_>,
    ) -> Appended {
        if alternatives.iter().any(|one| one.same(&kernel)) {
            return refused(
                ErrorCode::InvalidValue,
                "the kernel is among its own alternatives: name it once",
            );
        }
        for one in [kernel].iter().chain(alternatives) {
            if !one.program().context().same(&self.0.context) {
                return refused(
                    ErrorCode::InvalidKernel,
                    "the kernel and the command buffer are of different contexts",
                );
            }
            one.program().check(&self.0.device)?;
        }
        let range = launch::range(kernel.any(), offset, global, local)?;
        let none = |one: &Borrowed<'_, Kernel>| Ok((one.own()?, Arguments::default()));
        let choices = alternatives.iter().map(none).collect::<Result<_>>()?;
        let (kernel, dimensions) = (kernel.own()?, global.len());
        let launch = Launch { kernel, choices, arguments, dimensions, range };
        let work = launch.work(&self.0);
        self.0.append(ur_command_t::KERNEL_LAUNCH, work, Some(launch), ask)
    }
}

impl CommandBufferExpApi for Cpu {
    fn command_buffer_create_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        desc: &Descriptor,
    ) -> Result<Owned<CommandBuffer>> {
        context.check(device)?;
        let is_profiled = desc.enableProfiling != 0;
        let address = context.as_handle().addr();
        Ok(Owned::new(CommandBuffer(Arc::new(Shared {
            context: context.own()?,
            device: device.own()?,
            is_updatable: desc.isUpdatable != 0,
            is_in_order: desc.isInOrder != 0,
            is_profiled,
            replay: Replay::new(address, Recording::default(), is_profiled),
            state: Mutex::new(State::default()),
        }))))
    }
    fn command_buffer_finalize_exp(buffer: Borrowed<'_, CommandBuffer>) -> Result<()> {
        match std::mem::replace(&mut buffer.0.lock().is_final, true) {
            false => Ok(()),
            true => refused(ErrorCode::InvalidOperation, "the command buffer is finalized already"),
        }
    }
    fn command_buffer_append_kernel_launch_exp(
        buffer: Borrowed<'_, CommandBuffer>,
        kernel: Borrowed<'_, Kernel>,
        offset: Option<&[usize]>,
        global: &[usize],
        local: Option<&[usize]>,
        alternatives: &[Borrowed<'_, Kernel>],
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
        events: &[Borrowed<'_, Event>],
        event: bool,
        command: bool,
    ) -> Appended {
        let ask = Ask { points, events, event, command };
        let none = Arguments::default();
        buffer.append_launch(kernel, offset, global, local, none, alternatives, ask)
    }
    fn command_buffer_append_kernel_launch_with_args_exp(
        buffer: Borrowed<'_, CommandBuffer>,
        kernel: Borrowed<'_, Kernel>,
        offset: Option<&[usize]>,
        global: &[usize],
        local: Option<&[usize]>,
        args: Option<&[ur_exp_kernel_arg_properties_t]>,
        alternatives: &[Borrowed<'_, Kernel>],
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
        events: &[Borrowed<'_, Event>],
        event: bool,
        command: bool,
    ) -> Appended {
        let ask = Ask { points, events, event, command };
        let arguments = Arguments::new(args.unwrap_or_default())?;
        buffer.append_launch(kernel, offset, global, local, arguments, alternatives, ask)
    }
    fn command_buffer_append_mem_buffer_copy_exp(
        buffer: Borrowed<'_, CommandBuffer>,
        from: Borrowed<'_, Mem>,
        to: Borrowed<'_, Mem>,
        from_offset: usize,
        to_offset: usize,
        size: usize,
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
        events: &[Borrowed<'_, Event>],
        event: bool,
        command: bool,
    ) -> Appended {
        let ask = Ask { points, events, event, command };
        let work = enqueue_mem::buffer_copy_work(from, to, from_offset, to_offset, size)?;
        buffer.append(ur_command_t::MEM_BUFFER_COPY, work, ask)
    }
    fn command_buffer_append_mem_buffer_write_exp(
        buffer: Borrowed<'_, CommandBuffer>,
        mem: Borrowed<'_, Mem>,
        offset: usize,
        size: usize,
        from: UsmPtr,
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
        events: &[Borrowed<'_, Event>],
        event: bool,
        command: bool,
    ) -> Appended {
        let ask = Ask { points, events, event, command };
        let work = enqueue_mem::buffer_write_work(mem, offset, size, from)?;
        buffer.append(ur_command_t::MEM_BUFFER_WRITE, work, ask)
    }
    fn command_buffer_append_mem_buffer_read_exp(
        buffer: Borrowed<'_, CommandBuffer>,
        mem: Borrowed<'_, Mem>,
        offset: usize,
        size: usize,
        to: UsmPtr,
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
        events: &[Borrowed<'_, Event>],
        event: bool,
        command: bool,
    ) -> Appended {
        let ask = Ask { points, events, event, command };
        let work = enqueue_mem::buffer_read_work(mem, offset, size, to)?;
        buffer.append(ur_command_t::MEM_BUFFER_READ, work, ask)
    }
    fn command_buffer_append_mem_buffer_copy_rect_exp(
        buffer: Borrowed<'_, CommandBuffer>,
        from: Borrowed<'_, Mem>,
        to: Borrowed<'_, Mem>,
        source: ur_rect_offset_t,
        target: ur_rect_offset_t,
        region: ur_rect_region_t,
        source_row: usize,
        source_slice: usize,
        target_row: usize,
        target_slice: usize,
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
        events: &[Borrowed<'_, Event>],
        event: bool,
        command: bool,
    ) -> Appended {
        let ask = Ask { points, events, event, command };
        let source = region::place(source, source_row, source_slice);
        let target = region::place(target, target_row, target_slice);
        let work = enqueue_mem::buffer_copy_rect_work(from, to, source, target, region)?;
        buffer.append(ur_command_t::MEM_BUFFER_COPY_RECT, work, ask)
    }
    fn command_buffer_append_mem_buffer_write_rect_exp(
        buffer: Borrowed<'_, CommandBuffer>,
        mem: Borrowed<'_, Mem>,
        inside: ur_rect_offset_t,
        host: ur_rect_offset_t,
        region: ur_rect_region_t,
        row: usize,
        slice: usize,
        host_row: usize,
        host_slice: usize,
        from: UsmPtr,
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
        events: &[Borrowed<'_, Event>],
        event: bool,
        command: bool,
    ) -> Appended {
        let ask = Ask { points, events, event, command };
        let (inside, host) =
            (region::place(inside, row, slice), region::place(host, host_row, host_slice));
        let work = enqueue_mem::buffer_write_rect_work(mem, inside, host, region, from)?;
        buffer.append(ur_command_t::MEM_BUFFER_WRITE_RECT, work, ask)
    }
    fn command_buffer_append_mem_buffer_read_rect_exp(
        buffer: Borrowed<'_, CommandBuffer>,
        mem: Borrowed<'_, Mem>,
        inside: ur_rect_offset_t,
        host: ur_rect_offset_t,
        region: ur_rect_region_t,
        row: usize,
        slice: usize,
        host_row: usize,
        host_slice: usize,
        to: UsmPtr,
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
        events: &[Borrowed<'_, Event>],
        event: bool,
        command: bool,
    ) -> Appended {
        let ask = Ask { points, events, event, command };
        let (inside, host) =
            (region::place(inside, row, slice), region::place(host, host_row, host_slice));
        let work = enqueue_mem::buffer_read_rect_work(mem, inside, host, region, to)?;
        buffer.append(ur_command_t::MEM_BUFFER_READ_RECT, work, ask)
    }
    fn command_buffer_append_mem_buffer_fill_exp(
        buffer: Borrowed<'_, CommandBuffer>,
        mem: Borrowed<'_, Mem>,
        pattern: HostBytes<'_>,
        offset: usize,
        size: usize,
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
        events: &[Borrowed<'_, Event>],
        event: bool,
        command: bool,
    ) -> Appended {
        let ask = Ask { points, events, event, command };
        let work = enqueue_mem::buffer_fill_work(mem, pattern, offset, size)?;
        buffer.append(ur_command_t::MEM_BUFFER_FILL, work, ask)
    }
    /// The function is there to add to `child` with the means of what lies below, which here are
    /// those of this adapter: it is called once, now, and what is in `child` then is recorded.
    fn command_buffer_append_native_command_exp(
        buffer: Borrowed<'_, CommandBuffer>,
        function: ur_exp_command_buffer_native_command_function_t,
        data: Option<UsmPtr>,
        child: Option<Borrowed<'_, CommandBuffer>>,
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
    ) -> Result<ur_exp_command_buffer_sync_point_t> {
        let (buffer, child) = (buffer.own()?, child.map(|child| child.own()).transpose()?);
        if let Some(child) = &child
            && (!child.0.context.same(&buffer.0.context) || !child.0.device.same(&buffer.0.device))
        {
            return refused(
                ErrorCode::InvalidCommandBufferExp,
                "the child is a command buffer of another context or device",
            );
        }
        buffer.0.follows(&buffer.0.lock(), points)?; // before anything is called
        from_c::function(function, data)?.call();
        let recording = child.map(|child| child.0.replay.copy());
        buffer.0.append_all(recording.as_ref(), points)
    }
    fn command_buffer_update_kernel_launch_exp(
        buffer: Borrowed<'_, CommandBuffer>,
        updates: &[ur_exp_command_buffer_update_kernel_launch_desc_t],
    ) -> Result<()> {
        update::launches(buffer, updates)
    }
    fn command_buffer_update_signal_event_exp(
        command: Borrowed<'_, Command>,
    ) -> Result<Owned<Event>> {
        update::signal(command)
    }
    fn command_buffer_update_wait_events_exp(
        command: Borrowed<'_, Command>,
        events: &[Borrowed<'_, Event>],
    ) -> Result<()> {
        update::waits(command, events)
    }
    fn command_buffer_get_info_exp(
        buffer: Borrowed<'_, CommandBuffer>,
        name: ur_exp_command_buffer_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_exp_command_buffer_info_t::REFERENCE_COUNT => answer.value(&buffer.api_refs()),
            ur_exp_command_buffer_info_t::DESCRIPTOR => answer.value(&buffer.0.descriptor()),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("a command buffer of the CPU has no answer to {name:?}"),
            )),
        }
    }
    fn command_buffer_get_native_handle_exp(
        buffer: Borrowed<'_, CommandBuffer>,
    ) -> Result<ur_native_handle_t> {
        native_handle::of(&buffer)
    }
}
impl Shared {
    /// What C made it of, as C lays that out; bytes between the members are 0, as is the chain.
    fn descriptor(&self) -> [u8; size_of::<Descriptor>()] {
        let mut bytes = [0; size_of::<Descriptor>()];
        let stype = ur_structure_type_t::EXP_COMMAND_BUFFER_DESC.0.to_ne_bytes();
        let at = offset_of!(Descriptor, stype);
        bytes[at..at + stype.len()].copy_from_slice(&stype);
        bytes[offset_of!(Descriptor, isUpdatable)] = self.is_updatable.into();
        bytes[offset_of!(Descriptor, isInOrder)] = self.is_in_order.into();
        bytes[offset_of!(Descriptor, enableProfiling)] = self.is_profiled.into();
        bytes
    }
}
