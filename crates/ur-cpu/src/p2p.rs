//! Access of devices to each other's memory. All devices of this adapter are the host's processor or parts of it: each
//! reaches all memory there is, always. So enabling and disabling change nothing and succeed, as they would on any device
//! that has no switch for it.
use super::{Cpu, device::DriverDevice};
use std::sync::Arc;
use ur_hal::{Reach, ReachesPeers, Result};

impl ReachesPeers for Cpu {
    fn reach(_: &Arc<DriverDevice>, _: &Arc<DriverDevice>) -> Result<Reach> {
        Ok(Reach::Atomics)
    }
    fn set_reach(_: &Arc<DriverDevice>, _: &Arc<DriverDevice>, _: bool) -> Result<()> {
        Ok(())
    }
}
