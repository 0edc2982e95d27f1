//! Which events of a dialect are over, for those who want to be called back.
use super::{Event, device, driver::Dialect};
use ur_adapter::error::Result;
pub(super) use ur_core::over_driver::watch::call_when_over;
use ur_core::over_driver::watch::{Watch, Watched};
use ur_sys::ur_event_status_t;

impl<D: Dialect> Watched for Event<D> {
    fn watch() -> &'static Watch<Self> {
        &D::statics().watch
    }
    fn check_fork() -> Result<()> {
        device::check_fork::<D>()
    }
    fn is_over(&self) -> bool {
        let Ok(_on) = self.enter() else { return true };
        let pending = [ur_event_status_t::SUBMITTED, ur_event_status_t::RUNNING];
        !self.status().is_ok_and(|status| pending.contains(&status))
    }
}
