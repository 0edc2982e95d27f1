//! One device with a context and a queue, as a C program has them: of CUDA, or in the tests of Level Zero of that. The
//! table and what it is called are the folder's `c/mod.rs`'s to say.
#![allow(dead_code, reason = "each test binary uses its own part")]
#[path = "../../../../crates/ur-cpu/tests/common/call.rs"]
mod call;
use super::{NAME, VARIABLE};
pub use call::Call;
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};
use ur_sys::{ur_result_t as R, *};

/// Calls an entry of the table: `call!(usm.free(context, at))`.
#[macro_export]
macro_rules! call {
    ($table:ident . $slot:ident ( $($argument:expr),* $(,)? )) => {
        $crate::c::one::Call::call(
            $crate::c::TABLE.$table.$slot.expect("no slot is empty"),
            ($($argument,)*),
        )
    };
}
/// A command buffer whose commands follow one another, without updates and times.
pub const IN_ORDER_COMMANDS: ur_exp_command_buffer_desc_t = ur_exp_command_buffer_desc_t {
    stype: ur_structure_type_t::EXP_COMMAND_BUFFER_DESC,
    pNext: null(),
    isUpdatable: 0,
    isInOrder: 1,
    enableProfiling: 0,
};
pub struct One {
    pub device: ur_device_handle_t,
    pub context: ur_context_handle_t,
    pub queue: ur_queue_handle_t,
}
impl One {
    /// `None`, with a word, where there is no device.
    pub fn new() -> Option<Self> {
        let first = Self::of(0);
        if first.is_none() {
            assert!(std::env::var_os(VARIABLE).is_none(), "there is no device of {NAME}");
            println!("skipped: there is no device of {NAME}");
        }
        first
    }
    /// The device with this number, in a context of its own; `None` where there are not as many.
    pub fn of(number: usize) -> Option<Self> {
        let (mut adapter, mut platform, mut n) =
            (ur_adapter_handle_t::NULL, ur_platform_handle_t::NULL, 0);
        assert_eq!(call!(adapter.get(1, &mut adapter, null_mut())), R::SUCCESS);
        assert_eq!(call!(platform.get(adapter, 1, &mut platform, &mut n)), R::SUCCESS);
        let (mut devices, all) = ([ur_device_handle_t::NULL; 8], ur_device_type_t::ALL);
        if n > 0 {
            let _none = call!(device.get(platform, all, 8, devices.as_mut_ptr(), null_mut()));
        }
        let device = devices.get(number).copied().filter(|device| !device.0.is_null())?;
        let (mut context, mut queue) = (ur_context_handle_t::NULL, ur_queue_handle_t::NULL);
        assert_eq!(call!(context.create(1, &device, null(), &mut context)), R::SUCCESS);
        assert_eq!(call!(queue.create(context, device, null(), &mut queue)), R::SUCCESS);
        Some(Self { device, context, queue })
    }
    /// Two devices of one context, each with a queue; `None`, with a word, where there are not as many.
    pub fn pair() -> Option<[Self; 2]> {
        let first = Self::new()?;
        let Some(second) = Self::of(1) else {
            println!("skipped: it takes 2 devices in a context");
            return None;
        };
        let devices = [first.device, second.device];
        let (mut context, list) = (ur_context_handle_t::NULL, devices.as_ptr());
        assert_eq!(call!(context.create(2, list, null(), &mut context)), R::SUCCESS);
        let pair = devices.map(|device| {
            let mut queue = ur_queue_handle_t::NULL;
            assert_eq!(call!(queue.create(context, device, null(), &mut queue)), R::SUCCESS);
            assert_eq!(call!(context.retain(context)), R::SUCCESS);
            Self { device, context, queue }
        });
        assert_eq!(call!(context.release(context)), R::SUCCESS); // each has its own reference
        Some(pair)
    }
    pub fn device_memory(&self, bytes: usize) -> *mut c_void {
        let mut at = null_mut();
        let pool = ur_usm_pool_handle_t::NULL;
        let code = call!(usm.device_alloc(self.context, self.device, null(), pool, bytes, &mut at));
        assert_eq!(code, R::SUCCESS);
        at
    }
    fn copy(&self, to: *mut c_void, from: *const c_void, bytes: usize) {
        let (queue, none) = (self.queue, null_mut());
        let code = call!(enqueue.usm_memcpy(queue, true, to, from, bytes, 0, null(), none));
        assert_eq!(code, R::SUCCESS);
    }
    pub fn write<E: Copy, const N: usize>(&self, to: *mut c_void, from: &[E; N]) {
        self.copy(to, from.as_ptr().cast(), size_of_val(from));
    }
    pub fn read<E: Copy + Default, const N: usize>(&self, from: *const c_void) -> [E; N] {
        let mut all = [E::default(); N];
        self.copy(all.as_mut_ptr().cast(), from, size_of_val(&all));
        all
    }
    pub fn free(&self, at: *mut c_void) {
        assert_eq!(call!(usm.free(self.context, at)), R::SUCCESS);
    }
}
impl Drop for One {
    fn drop(&mut self) {
        let queue = call!(queue.release(self.queue));
        let context = call!(context.release(self.context));
        assert!(std::thread::panicking() || (queue, context) == (R::SUCCESS, R::SUCCESS));
    }
}
/// Set in a process that runs one test alone.
pub const AGAIN: &str = "CAUSEWAY_TEST_INSIDE";
/// Runs the test named `name` of this program in a process of its own, with these variables. Whether this is that run.
pub fn is_alone(name: &str, variables: &[(&str, &str)]) -> bool {
    if std::env::var_os(AGAIN).is_some() {
        return true;
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", name, "--nocapture"]).env(AGAIN, name);
    let out = again.envs(variables.iter().copied()).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    assert!(String::from_utf8_lossy(&out.stdout).contains("1 passed"), "{out:?}");
    false
}
