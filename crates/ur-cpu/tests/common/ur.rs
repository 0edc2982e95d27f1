//! The adapter's table as a C program calls it, with what every call here shares: one adapter, one device, one context.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
pub use super::call::Call;
use std::{
    ffi::{CStr, c_void},
    ptr::{null, null_mut},
};
pub use ur_cpu::TABLE;
pub use ur_sys::*;

/// Calls an entry of the table: `call!(usm.free(context, at))`.
#[macro_export]
macro_rules! call {
    ($table:ident . $slot:ident ( $($argument:expr),* $(,)? )) => {
        $crate::common::ur::Call::call(
            $crate::common::ur::TABLE.$table.$slot.expect("no slot is empty"),
            ($($argument,)*),
        )
    };
}
/// What an entry answered other than success, and its sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    pub code: ur_result_t,
    pub sentence: String,
}
pub type Outcome<T> = Result<T, Refused>;

/// The three kinds of object that processes share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Memory,
    Physical,
    Event,
}
pub const KINDS: [Kind; 3] = [Kind::Memory, Kind::Physical, Kind::Event];
impl Kind {
    pub fn named(word: &str) -> Self {
        *KINDS.iter().find(|kind| kind.word() == word).unwrap_or_else(|| panic!("{word}"))
    }
    pub fn word(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Physical => "physical",
            Self::Event => "event",
        }
    }
}

/// What `Get` lends until `Put`.
#[derive(Clone, Debug)]
pub struct Given {
    pub data: *mut c_void,
    pub bytes: Vec<u8>,
}

/// A program's adapter, device and context.
#[derive(Clone, Copy)]
pub struct Ur {
    pub adapter: ur_adapter_handle_t,
    pub platform: ur_platform_handle_t,
    pub device: ur_device_handle_t,
    pub context: ur_context_handle_t,
}
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Usm {
    Device,
    Host,
    Shared,
}

fn one<H>(get: impl Fn(u32, *mut H, *mut u32) -> ur_result_t, none: H) -> H {
    let (mut handle, mut count) = (none, 0);
    assert_eq!(get(1, &mut handle, &mut count), ur_result_t::SUCCESS);
    assert!(count >= 1);
    handle
}

impl Ur {
    pub fn new() -> Self {
        let none = ur_adapter_handle_t::NULL;
        let adapter = one(|n, to, count| call!(adapter.get(n, to, count)), none);
        let none = ur_platform_handle_t::NULL;
        let platform = one(|n, to, count| call!(platform.get(adapter, n, to, count)), none);
        let (all, none) = (ur_device_type_t::ALL, ur_device_handle_t::NULL);
        let device = one(|n, to, count| call!(device.get(platform, all, n, to, count)), none);
        let mut ur = Self { adapter, platform, device, context: ur_context_handle_t::NULL };
        ur.context = ur.new_context();
        ur
    }
    pub fn new_context(&self) -> ur_context_handle_t {
        let mut context = ur_context_handle_t::NULL;
        let code = call!(context.create(1, &self.device, null(), &mut context));
        assert_eq!(code, ur_result_t::SUCCESS);
        context
    }
    /// A sub-device of one compute unit; `None` on a machine with one.
    pub fn a_part(&self) -> Option<ur_device_handle_t> {
        let value = ur_device_partition_value_t { count: 1 };
        let rule =
            ur_device_partition_property_t { r#type: ur_device_partition_t::BY_COUNTS, value };
        let properties = ur_device_partition_properties_t {
            stype: ur_structure_type_t::DEVICE_PARTITION_PROPERTIES,
            pNext: null_mut(),
            pProperties: &rule,
            PropCount: 1,
        };
        let mut part = ur_device_handle_t::NULL;
        let info = ur_device_info_t::MAX_COMPUTE_UNITS;
        let units: u32 = self
            .value(|size, to, ret| call!(device.get_info(self.device, info, size, to, ret)))
            .unwrap();
        if units < 2 {
            return None;
        }
        let code = call!(device.partition(self.device, &properties, 1, &mut part, null_mut()));
        self.check(code).expect("a part");
        Some(part)
    }
    /// The sentence of this thread's last failure, and errno.
    pub fn last_error(&self) -> (String, i32) {
        let (mut message, mut errno) = (null(), 0);
        let code = call!(adapter.get_last_error(self.adapter, &mut message, &mut errno));
        assert_eq!(code, ur_result_t::SUCCESS);
        if message.is_null() {
            return (String::new(), errno);
        }
        (unsafe { CStr::from_ptr(message) }.to_string_lossy().into_owned(), errno)
    }
    pub fn check(&self, code: ur_result_t) -> Outcome<()> {
        match code {
            ur_result_t::SUCCESS => Ok(()),
            code => Err(Refused { code, sentence: self.last_error().0 }),
        }
    }
    /// A plain value that an information query answers with.
    pub fn value<T: Copy + Default>(
        &self,
        query: impl FnOnce(usize, *mut c_void, *mut usize) -> ur_result_t,
    ) -> Outcome<T> {
        let (mut value, mut size) = (T::default(), 0);
        let code = query(size_of::<T>(), (&raw mut value).cast(), &mut size);
        self.check(code)?;
        assert_eq!(size, size_of::<T>());
        Ok(value)
    }
    pub fn new_queue(&self, flags: ur_queue_flags_t) -> ur_queue_handle_t {
        let stype = ur_structure_type_t::QUEUE_PROPERTIES;
        let properties = ur_queue_properties_t { stype, pNext: null_mut(), flags };
        let mut queue = ur_queue_handle_t::NULL;
        let code = call!(queue.create(self.context, self.device, &properties, &mut queue));
        self.check(code).expect("a queue");
        queue
    }
    pub fn alloc(&self, usm: Usm, bytes: usize) -> Outcome<*mut c_void> {
        let (none, mut at) = (ur_usm_pool_handle_t::NULL, null_mut());
        let (context, device) = (self.context, self.device);
        self.check(match usm {
            Usm::Device => call!(usm.device_alloc(context, device, null(), none, bytes, &mut at)),
            Usm::Shared => call!(usm.shared_alloc(context, device, null(), none, bytes, &mut at)),
            Usm::Host => call!(usm.host_alloc(context, null(), none, bytes, &mut at)),
        })?;
        Ok(at)
    }
    pub fn free(&self, at: *mut c_void) -> Outcome<()> {
        self.check(call!(usm.free(self.context, at)))
    }
}
