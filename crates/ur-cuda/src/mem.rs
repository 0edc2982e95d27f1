//! Buffers: each device has its own allocation. The native handle of a buffer is its address on the device.
use super::{
    Family,
    context::DriverContext,
    driver::Dialect,
    native::memory::{self, Piece},
};
use ur_hal::{
    Address, AdoptedBuffer, Error, ErrorKind, MakesBuffers, NativeHandle, Placement, Range, Result,
};

impl<D: Dialect> MakesBuffers for Family<D> {
    type Buffer = Piece<D>;
    fn placement(_: &DriverContext<D>) -> Result<Placement> {
        Ok(Placement::Each)
    }
    /// The memory from the address to the end of the allocation there.
    fn adopt_buffer(
        context: &DriverContext<D>,
        NativeHandle(at): NativeHandle,
        is_owned: bool,
    ) -> Result<AdoptedBuffer<Piece<D>>> {
        let home = &context.devices()[0];
        let unknown = || {
            let why = format!("{at:#x} is no memory that {} knows", D::NAME);
            Error::new(ErrorKind::InvalidMemory, why)
        };
        let start = Address::new(at as usize).ok_or_else(unknown)?;
        let known = memory::known::<D>(&home.enter()?, at)?.ok_or_else(unknown)?;
        let bytes = (known.base as usize + known.bytes).saturating_sub(start.get());
        let memory = Range::new(start, bytes)?;
        let object = is_owned.then(|| Piece::adopted(home, at)).transpose()?;
        Ok(AdoptedBuffer { memory, is_hosts: false, object })
    }
}
