//! Which events are over, for those who want to be called back.
use super::{Event, platform};
use ur_adapter::error::Result;
pub(super) use ur_core::over_driver::watch::call_when_over;
use ur_core::over_driver::watch::{Watch, Watched};
use ur_sys::ur_event_status_t;

impl Watched for Event {
    fn watch() -> &'static Watch<Self> {
        static WATCH: Watch<Event> = Watch::new();
        &WATCH
    }
    fn check_fork() -> Result<()> {
        platform::check_fork()
    }
    fn is_over(&self) -> bool {
        let pending = [ur_event_status_t::SUBMITTED, ur_event_status_t::RUNNING];
        !self.status().is_ok_and(|status| pending.contains(&status))
    }
}
