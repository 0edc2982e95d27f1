//! What a C program has of Level Zero: what is the same on CUDA is the other folder's.
#![allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../../../cuda/tests/c/one.rs"]
pub mod one;

use crate::call;
pub use one::*;
use std::ptr::null_mut;
pub use ur_level_zero::TABLE;
use ur_sys::{ur_result_t as R, *};

/// The driver, and the variable that asks for the machine's.
pub const NAME: &str = "Level Zero";
pub const VARIABLE: &str = "CAUSEWAY_LEVEL_ZERO";
pub type Zero = One;
/// The driver's library, how the names of the software driver's own functions begin, and the codes of an error of memory and of
/// an unknown one.
pub const REFUSER: (&str, &str, [i32; 2]) =
    ("libze_loader.so.1", "zeSoftware", [0x7000_0003, 0x7fff_fffe]);

impl One {
    /// What the driver calls the context.
    pub fn native(&self) -> ur_native_handle_t {
        let mut native: ur_native_handle_t = 0;
        assert_eq!(call!(context.get_native_handle(self.context, &mut native)), R::SUCCESS);
        native
    }
    /// What the driver calls the device.
    pub fn native_device(&self) -> ur_native_handle_t {
        let mut native: ur_native_handle_t = 0;
        assert_eq!(call!(device.get_native_handle(self.device, &mut native)), R::SUCCESS);
        native
    }
    pub fn finish(&self) {
        assert_eq!(call!(queue.finish(self.queue)), R::SUCCESS);
    }
}
/// Whether a device's commands can use images that lie on another.
pub fn has_images_of(device: ur_device_handle_t, other: ur_device_handle_t) -> bool {
    let (mut can, name) = (-1_i32, ur_exp_peer_info_t::UR_PEER_ACCESS_SUPPORT);
    let to = (&raw mut can).cast();
    let asked = call!(usm_p2p_exp.peer_access_get_info_exp(device, other, name, 4, to, null_mut()));
    assert_eq!(asked, R::SUCCESS);
    can == 1
}
/// Whether this run is the test's own: on the machine's driver, or on the software driver with these variables (`is_inside`).
pub fn is_inside_or_real(name: &str, variables: &[(&str, &str)]) -> bool {
    std::env::var(VARIABLE).as_deref() == Ok("real") || is_inside(name, variables)
}
/// Runs the test named `name` of this program on the software driver with these variables. Whether this is that run.
pub fn is_inside(name: &str, variables: &[(&str, &str)]) -> bool {
    if std::env::var_os(AGAIN).is_none() && std::env::var(VARIABLE).as_deref() != Ok("soft") {
        println!("skipped: the software driver alone does as it is told");
        return false;
    }
    is_alone(name, variables)
}
