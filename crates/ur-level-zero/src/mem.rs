//! Buffers: memory at an address that all devices of a context can access. The native handle of a buffer is its address.
use super::{
    DriverDevice, LevelZero,
    context::DriverContext,
    native::memory::{self, Piece},
    p2p,
};
use std::sync::Arc;
use ur_hal::{
    Address, AdoptedBuffer, Error, ErrorKind, MakesBuffers, NativeHandle, Placement, Range, Result,
};
use ze_sys::ZE_MEMORY_TYPE_DEVICE;

/// Whether each of these devices can access the memory of all others.
fn is_in_reach(devices: &[Arc<DriverDevice>]) -> Result<bool> {
    let mut pairs = devices.iter().flat_map(|home| devices.iter().map(move |one| (one, home)));
    pairs.try_fold(true, |all, (one, home)| Ok(all && p2p::can_access(one, home)?))
}
impl MakesBuffers for LevelZero {
    /// The driver has no way to use it.
    const USES_HOST_MEMORY: bool = false;
    type Buffer = Piece;
    /// Memory of the first device, if all others access that and it has memory of its own, else host memory.
    fn placement(context: &DriverContext) -> Result<Placement> {
        let on_device = !context.devices()[0].is_integrated() && is_in_reach(context.devices())?;
        Ok(if on_device { Placement::First } else { Placement::Host })
    }
    /// The memory from the address to the end of the allocation there.
    fn adopt_buffer(
        context: &DriverContext,
        NativeHandle(at): NativeHandle,
        is_owned: bool,
    ) -> Result<AdoptedBuffer<Piece>> {
        let unknown = || {
            let why = format!("{at:#x} is no memory that Level Zero knows");
            Error::new(ErrorKind::InvalidMemory, why)
        };
        let start = Address::new(at as usize).ok_or_else(unknown)?;
        let known = memory::known(context.native(), at)?.ok_or_else(unknown)?;
        let bytes = (known.base as usize + known.bytes).saturating_sub(start.get());
        Ok(AdoptedBuffer {
            memory: Range::new(start, bytes)?,
            is_hosts: known.kind != ZE_MEMORY_TYPE_DEVICE,
            object: is_owned.then(|| Piece::at_address(context.native(), at)),
        })
    }
}
