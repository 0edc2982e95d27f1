//! Access of devices to each other's memory. All devices are the host's processor or parts of it, and can
//! always access all memory. So enabling and disabling access succeed without effect.
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
