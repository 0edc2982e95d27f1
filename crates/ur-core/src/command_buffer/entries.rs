//! The entries of command buffers, except those that append a [`Request`](ur_adapter::api::Request), which are in
//! `command/`.
use super::{
    Change, Command, CommandBuffer, Launch, Recording, Records, Shared, Signallers, State,
    SyncPoints, update,
};
use crate::{
    c_arguments,
    kernels::arguments::RecordedArguments,
    over_driver::{OverDriver, own_handle},
    process_mutex::ProcessMutex,
};
use std::{mem::offset_of, sync::Arc};
use ur_adapter::{
    api::CommandBufferExpApi,
    command::{Appended, Asked},
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_sys::{ur_exp_command_buffer_desc_t as Descriptor, *};

impl<D: Records> CommandBuffer<D> {
    fn append_launch(
        &self,
        kernel: Borrowed<'_, D::Kernel>,
        (offset, global, local): (Option<&[usize]>, &[usize], Option<&[usize]>),
        arguments: &[ur_exp_kernel_arg_properties_t],
        alternatives: &[Borrowed<'_, D::Kernel>],
        asked: Asked<'_, OverDriver<D>>,
    ) -> Appended<D> {
        if alternatives.iter().any(|one| one.same(&kernel)) {
            return Error::refuse(
                ErrorCode::InvalidValue,
                "the kernel is among its own alternatives: name it once",
            );
        }
        for one in [kernel].iter().chain(alternatives) {
            if !one.program().context().same(&self.0.context) {
                return Error::refuse(
                    ErrorCode::InvalidKernel,
                    "the kernel and the command buffer are of different contexts",
                );
            }
            one.on(&self.0.device)?;
        }
        let choice = |one: &Borrowed<'_, D::Kernel>| Ok((one.own()?, RecordedArguments::default()));
        let launch = Arc::new(Launch {
            kernel: kernel.own()?,
            arguments: RecordedArguments::new(arguments)?,
            choices: alternatives.iter().map(choice).collect::<Result<_>>()?,
            offset: offset.map(<[usize]>::to_vec),
            global: global.to_vec(),
            local: local.map(<[usize]>::to_vec),
        });
        let step = launch.step(self.0.place())?;
        self.0.append(ur_command_t::KERNEL_LAUNCH, step, Some(launch), asked)
    }
}
impl<D: Records> CommandBufferExpApi for OverDriver<D> {
    fn command_buffer_create_exp(
        context: Borrowed<'_, Self::Context>,
        device: Borrowed<'_, Self::Device>,
        desc: &Descriptor,
    ) -> Result<Owned<CommandBuffer<D>>> {
        context.check(device)?;
        let (context, device) = (context.own()?, device.own()?);
        let is_profiled = desc.enableProfiling != 0;
        let recording = Recording::new((&context, &device), is_profiled)?;
        Ok(Owned::new(CommandBuffer(Arc::new(Shared {
            context,
            device,
            is_updatable: desc.isUpdatable != 0,
            is_in_order: desc.isInOrder != 0,
            is_profiled,
            state: ProcessMutex::new(State {
                recording,
                nodes: vec![],
                signallers: Signallers::default(),
                is_final: false,
                change: None,
                has_natives: false,
                points: SyncPoints::default(),
                handles: vec![],
            }),
        }))))
    }
    fn command_buffer_finalize_exp(buffer: Borrowed<'_, CommandBuffer<D>>) -> Result<()> {
        let state = &mut *buffer.0.lock()?;
        if state.is_final {
            return Error::refuse(
                ErrorCode::InvalidOperation,
                "the command buffer is finalized already",
            );
        }
        state.recording.close(&state.nodes, Change::All)?;
        state.is_final = true;
        Ok(())
    }
    fn command_buffer_append_kernel_launch_exp(
        buffer: Borrowed<'_, CommandBuffer<D>>,
        kernel: Borrowed<'_, D::Kernel>,
        offset: Option<&[usize]>,
        global: &[usize],
        local: Option<&[usize]>,
        alternatives: &[Borrowed<'_, D::Kernel>],
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
        events: &[Borrowed<'_, D::Event>],
        event: bool,
        command: bool,
    ) -> Appended<D> {
        let asked = Asked { points, events, event, command };
        buffer.append_launch(kernel, (offset, global, local), &[], alternatives, asked)
    }
    fn command_buffer_append_kernel_launch_with_args_exp(
        buffer: Borrowed<'_, CommandBuffer<D>>,
        kernel: Borrowed<'_, D::Kernel>,
        offset: Option<&[usize]>,
        global: &[usize],
        local: Option<&[usize]>,
        args: Option<&[ur_exp_kernel_arg_properties_t]>,
        alternatives: &[Borrowed<'_, D::Kernel>],
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
        events: &[Borrowed<'_, D::Event>],
        event: bool,
        command: bool,
    ) -> Appended<D> {
        let (asked, args) = (Asked { points, events, event, command }, args.unwrap_or_default());
        buffer.append_launch(kernel, (offset, global, local), args, alternatives, asked)
    }
    /// Calls the function once, now. It appends commands to `child`, or to the native handle of the command buffer.
    /// What `child` contains afterwards is recorded.
    fn command_buffer_append_native_command_exp(
        buffer: Borrowed<'_, CommandBuffer<D>>,
        function: ur_exp_command_buffer_native_command_function_t,
        data: Option<UsmPtr>,
        child: Option<Borrowed<'_, CommandBuffer<D>>>,
        points: Option<&[ur_exp_command_buffer_sync_point_t]>,
    ) -> Result<ur_exp_command_buffer_sync_point_t> {
        let (buffer, child) = (buffer.own()?, child.map(|child| child.own()).transpose()?);
        let shared = &buffer.0;
        if let Some(child) = &child
            && (!child.0.context.same(&shared.context) || !child.0.device.same(&shared.device))
        {
            return Error::refuse(
                ErrorCode::InvalidCommandBufferExp,
                "the child is a command buffer of another context or device",
            );
        }
        shared.lock()?.follows(points, false)?; // checked before the function is called
        c_arguments::function(function, data)?.call();
        shared.append_all(child.as_ref().map(|child| &*child.0), points)
    }
    fn command_buffer_update_kernel_launch_exp(
        buffer: Borrowed<'_, CommandBuffer<D>>,
        updates: &[ur_exp_command_buffer_update_kernel_launch_desc_t],
    ) -> Result<()> {
        update::launches(buffer, updates)
    }
    fn command_buffer_update_signal_event_exp(
        command: Borrowed<'_, Command<D>>,
    ) -> Result<Owned<D::Event>> {
        update::signal(&command)
    }
    fn command_buffer_update_wait_events_exp(
        command: Borrowed<'_, Command<D>>,
        events: &[Borrowed<'_, D::Event>],
    ) -> Result<()> {
        update::waits(&command, events)
    }
    fn command_buffer_get_info_exp(
        buffer: Borrowed<'_, CommandBuffer<D>>,
        name: ur_exp_command_buffer_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match name {
            ur_exp_command_buffer_info_t::REFERENCE_COUNT => answer.value(&buffer.api_refs()),
            ur_exp_command_buffer_info_t::DESCRIPTOR => answer.value(&buffer.0.descriptor()),
            _ => Error::no_answer("a command buffer", name),
        }
    }
    fn command_buffer_get_native_handle_exp(
        buffer: Borrowed<'_, CommandBuffer<D>>,
    ) -> Result<ur_native_handle_t> {
        let native = buffer.0.lock()?.recording.native()?;
        native.map_or_else(|| own_handle::of(&buffer), Ok)
    }
}
impl<D: Records> Shared<D> {
    /// The descriptor with which it was made, in the layout that callers use. Padding bytes and the extension chain are
    /// 0.
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
