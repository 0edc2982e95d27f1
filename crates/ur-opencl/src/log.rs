//! Messages to the user that no call can return.
use std::fmt::Display;
use ur_adapter::object::Backend;
use ur_hal::Severity;

/// Tells the user, by the adapter's log, what no call can return.
pub fn notice(severity: Severity, what: &dyn Display) {
    ur_adapter::log::notice(Backend::OpenCl, severity, what);
}
