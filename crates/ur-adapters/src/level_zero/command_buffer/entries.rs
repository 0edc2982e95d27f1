//! The entries of command buffers: what is recorded for each.
use super::{
    Appended, Ask, Command, CommandBuffer, Node, Shared, State, Step, buffers, refused,
    update::{self, Launch},
};
use crate::from_c;
use crate::level_zero::{
    Context, Device, Event, Kernel, LevelZero, Mem,
    native::{list::NativeList, queue::can_batch, recorded::Kept},
};
use std::{
    mem::offset_of,
    ptr::null,
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
        step: Step,
        ask: Ask<'_>,
    ) -> Appended {
        self.0.append(command, step, None, ask)
    }
    #[expect(clippy::too_many_arguments, reason = "as many as C's")]
    fn append_launch(
        &self,
        kernel: Borrowed<'_, Kernel>,
        offset: Option<&[usize]>,
        global: &[usize],
        local: Option<&[usize]>,
        arguments: &[ur_exp_kernel_arg_properties_t],
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
            one.on(&self.0.device)?;
        }
        let none = Arc::new(Kept::new(&[])?);
        let choice = |one: &Borrowed<'_, Kernel>| Ok((one.own()?, Arc::clone(&none)));
        let launch = Arc::new(Launch {
            device: self.0.device.clone(),
            kernel: kernel.own()?,
            arguments: Arc::new(Kept::new(arguments)?),
            choices: alternatives.iter().map(choice).collect::<Result<_>>()?,
            offset: offset.map(<[usize]>::to_vec),
            global: global.to_vec(),
            local: local.map(<[usize]>::to_vec),
        });
        self.0.append(ur_command_t::KERNEL_LAUNCH, launch.step(), Some(launch), ask)
    }
}

impl CommandBufferExpApi for LevelZero {
    fn command_buffer_create_exp(
        context: Borrowed<'_, Context>,
        device: Borrowed<'_, Device>,
        desc: &Descriptor,
    ) -> Result<Owned<CommandBuffer>> {
        context.check(device)?;
        if !can_batch() {
            return refused(
                ErrorCode::UnsupportedFeature,
                "this driver cannot execute command lists in queues: a newer one may",
            );
        }
        let (context, device) = (context.own()?, device.own()?);
        let ordinal = device.compute()?.ordinal;
        let list = NativeList::regular(context.native(), device.raw(), ordinal, null())?;
        Ok(Owned::new(CommandBuffer(Arc::new(Shared {
            context,
            device,
            is_updatable: desc.isUpdatable != 0,
            is_in_order: desc.isInOrder != 0,
            is_profiled: desc.enableProfiling != 0,
            state: Mutex::new(State::new(list)),
        }))))
    }
    fn command_buffer_finalize_exp(buffer: Borrowed<'_, CommandBuffer>) -> Result<()> {
        let mut state = buffer.0.lock();
        if state.is_final {
            return refused(ErrorCode::InvalidOperation, "the command buffer is finalized already");
        }
        state.list.close()?;
        state.is_final = true;
        Ok(())
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
        buffer.append_launch(kernel, offset, global, local, &[], alternatives, ask)
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
        let arguments = args.unwrap_or_default();
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
        let offsets = (from_offset, to_offset);
        let step = buffers::copy(&buffer.0.device, (from, to), offsets, size)?;
        buffer.append(ur_command_t::MEM_BUFFER_COPY, step, ask)
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
        let step = buffers::transfer(&buffer.0.device, mem, (offset, size), from, true)?;
        buffer.append(ur_command_t::MEM_BUFFER_WRITE, step, ask)
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
        let step = buffers::transfer(&buffer.0.device, mem, (offset, size), to, false)?;
        buffer.append(ur_command_t::MEM_BUFFER_READ, step, ask)
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
        let (from, to) = ((from, source), (to, target));
        let step = buffers::copy_rect(&buffer.0.device, from, to, region)?;
        buffer.append(ur_command_t::MEM_BUFFER_COPY_RECT, step, ask)
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
        let (mem, host) = ((mem, inside), (from, host));
        let step = buffers::transfer_rect(&buffer.0.device, mem, host, region, true)?;
        buffer.append(ur_command_t::MEM_BUFFER_WRITE_RECT, step, ask)
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
        let (mem, host) = ((mem, inside), (to, host));
        let step = buffers::transfer_rect(&buffer.0.device, mem, host, region, false)?;
        buffer.append(ur_command_t::MEM_BUFFER_READ_RECT, step, ask)
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
        let step = buffers::fill(&buffer.0.device, mem, pattern, (offset, size))?;
        buffer.append(ur_command_t::MEM_BUFFER_FILL, step, ask)
    }
    /// The function is called once, now. It appends to the command list that is the buffer's native
    /// handle, or to `child`, what is in which then is recorded.
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
        buffer.0.lock().check_points(points)?; // before anything is called
        from_c::function(function, data)?.call();
        let copy = |node: &Node| {
            (node.command, Arc::clone(&node.step), node.waits.clone(), node.signal.clone())
        };
        let recorded = child
            .as_ref()
            .map(|child| -> Vec<_> { child.0.lock().nodes.iter().map(copy).collect() });
        let mut state = buffer.0.lock();
        state.check_points(points)?; // C may have finalized it
        state.has_natives |= child.is_none();
        let turn = buffer.0.turn(&state.list)?;
        for (command, step, waits, signal) in recorded.unwrap_or_default() {
            step(&turn)?;
            let waited = waits.len();
            state.nodes.push(Node { step, command, waits, waited, signal });
        }
        Ok(state.point())
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
                format!("a command buffer of Level Zero has no answer to {name:?}"),
            )),
        }
    }
    fn command_buffer_get_native_handle_exp(
        buffer: Borrowed<'_, CommandBuffer>,
    ) -> Result<ur_native_handle_t> {
        Ok(buffer.0.lock().list.raw().addr() as ur_native_handle_t)
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
