//! What the driver's queues can do.
use super::super::driver::driver;

/// Whether the driver can execute regular lists in immediate ones.
pub fn can_batch() -> bool {
    driver().has("command_list_immediate_append_command_lists_exp")
}
