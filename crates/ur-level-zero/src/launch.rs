//! Kernel launches: how they get into a command list, a queue's or a command buffer's.
use super::{
    native::{arguments::Arguments, list::List},
    program::OnDevice,
};
use ur_adapter::error::Result;
use ur_core::kernels::geometry::Range;
use ur_core::program::launch;
use ur_hal::Geometry;
use ur_sys::*;

/// What a caller asks for, beside where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'call> {
    pub(super) offset: Option<&'call [usize]>,
    pub(super) global: &'call [usize],
    pub(super) local: Option<&'call [usize]>,
    pub(super) arguments: &'call [ur_exp_kernel_arg_properties_t],
    pub(super) properties: Option<&'call ur_kernel_launch_ext_properties_t>,
}
/// A launch that was checked, on one device.
#[derive(Debug)]
pub(super) struct Launch<'call> {
    on: &'call OnDevice,
    geometry: Geometry,
    offset: [u32; 3],
    is_cooperative: bool,
    arguments: Arguments<'call>,
}
impl<'call> Launch<'call> {
    /// `None` where there is nothing to run: a range without items.
    ///
    /// # Errors
    /// As `urEnqueueKernelLaunchWithArgsExp` documents them.
    pub(super) fn new(on: &'call OnDevice, asked: Asked<'call>) -> Result<Option<Self>> {
        let launch::Asked { is_cooperative, cluster, .. } =
            launch::Asked::of(on, asked.properties)?;
        let range = Range::new(asked.offset, asked.global)?;
        let mut arguments = Arguments::new(asked.arguments, on.facts().arguments)?;
        let Some(geometry) = launch::geometry(on, &range, asked.local, 0, cluster)? else {
            return Ok(None);
        };
        let offset = range.offset_words()?.unwrap_or_default();
        arguments.resolve(on.device())?;
        Ok(Some(Self { on, geometry, offset, is_cooperative, arguments }))
    }
    /// Puts it into a list.
    ///
    /// # Errors
    /// Returns the driver's error.
    pub(super) fn append(&self, list: &List<'_>) -> Result<()> {
        let Geometry { groups, local, .. } = self.geometry;
        let mut turn = self.on.function().turn();
        let ends = list.ends();
        let events = (ends.signal, ends.count(), ends.waits());
        if !self.is_cooperative
            && let Some(mut places) = self.arguments.places(turn.accepted(self.offset))
        {
            let at_once = turn.append_with(list.raw(), groups, local, &mut places, events);
            if !at_once.is_unsupported() {
                return at_once.ok();
            }
            turn.refuse();
        }
        turn.group(local)?;
        turn.offset(self.offset)?;
        self.arguments.set(&mut turn)?;
        turn.accept(|| self.arguments.sizes());
        turn.append(list.raw(), groups, self.is_cooperative, events).ok()
    }
}
