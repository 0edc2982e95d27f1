//! Buffers: host memory of the core or of the application, at a fixed address.
use super::{Cpu, device::DriverContext, host::host};
use std::convert::Infallible;
use ur_hal::MakesBuffers;

impl MakesBuffers for Cpu {
    type Buffer = Infallible;
    fn largest_buffer(_: &DriverContext) -> usize {
        usize::try_from(host().memory).unwrap_or(usize::MAX)
    }
}
