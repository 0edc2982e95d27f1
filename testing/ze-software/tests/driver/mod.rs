//! The driver as a C caller sees it: its function tables, and the objects that every test needs.
#![allow(dead_code, reason = "each test uses its part")]
use std::ptr::{null, null_mut};
use ze_software as _;
use ze_sys::*;

macro_rules! tables {
    ($($field:ident: $table:ty = $getter:ident),* $(,)?) => {
        unsafe extern "C" { $(fn $getter(version: ze_api_version_t, to: *mut $table) -> ze_result_t;)* }
        /// All function tables.
        pub struct Ze { $(pub $field: $table,)* }
        impl Ze {
            fn tables() -> Self {
                Self { $($field: {
                    let mut table = <$table>::default();
                    assert_eq!(unsafe { $getter(0x1_0011, &mut table) }, 0);
                    table
                },)* }
            }
        }
    };
}
tables! {
    global: ze_global_dditable_t = zeGetGlobalProcAddrTable,
    driver: ze_driver_dditable_t = zeGetDriverProcAddrTable,
    device: ze_device_dditable_t = zeGetDeviceProcAddrTable,
    context: ze_context_dditable_t = zeGetContextProcAddrTable,
    queue: ze_command_queue_dditable_t = zeGetCommandQueueProcAddrTable,
    list: ze_command_list_dditable_t = zeGetCommandListProcAddrTable,
    list_exp: ze_command_list_exp_dditable_t = zeGetCommandListExpProcAddrTable,
    event: ze_event_dditable_t = zeGetEventProcAddrTable,
    pool: ze_event_pool_dditable_t = zeGetEventPoolProcAddrTable,
    fence: ze_fence_dditable_t = zeGetFenceProcAddrTable,
    module: ze_module_dditable_t = zeGetModuleProcAddrTable,
    log: ze_module_build_log_dditable_t = zeGetModuleBuildLogProcAddrTable,
    kernel: ze_kernel_dditable_t = zeGetKernelProcAddrTable,
    kernel_exp: ze_kernel_exp_dditable_t = zeGetKernelExpProcAddrTable,
    image: ze_image_dditable_t = zeGetImageProcAddrTable,
    image_exp: ze_image_exp_dditable_t = zeGetImageExpProcAddrTable,
    sampler: ze_sampler_dditable_t = zeGetSamplerProcAddrTable,
    mem: ze_mem_dditable_t = zeGetMemProcAddrTable,
    mem_exp: ze_mem_exp_dditable_t = zeGetMemExpProcAddrTable,
    physical: ze_physical_mem_dditable_t = zeGetPhysicalMemProcAddrTable,
    space: ze_virtual_mem_dditable_t = zeGetVirtualMemProcAddrTable,
}
/// Calls a function of a table.
#[macro_export]
macro_rules! ze {
    ($ze:expr, $table:ident.$row:ident($($arg:expr),* $(,)?)) => {
        {
            let row = $ze.$table.$row.expect(stringify!($row));
            #[allow(clippy::macro_metavars_in_unsafe, reason = "the tests are the C caller")]
            unsafe { row($($arg),*) }
        }
    };
}
/// Calls a function, which must succeed.
#[macro_export]
macro_rules! ok {
    ($ze:expr, $table:ident.$row:ident($($arg:expr),* $(,)?)) => {
        assert_eq!($crate::ze!($ze, $table.$row($($arg),*)), 0, stringify!($row))
    };
}
/// The driver, with one context on its first device.
pub struct World {
    pub ze: Ze,
    pub driver: ze_driver_handle_t,
    pub device: ze_device_handle_t,
    pub context: ze_context_handle_t,
}
impl World {
    pub fn new() -> Self {
        let ze = Ze::tables();
        let (mut driver, mut device, mut context) = (null_mut(), null_mut(), null_mut());
        ok!(ze, global.pfnInit(0));
        ok!(ze, driver.pfnGet(&mut 1, &mut driver));
        ok!(ze, device.pfnGet(driver, &mut 1, &mut device));
        let desc =
            ze_context_desc_t { stype: ZE_STRUCTURE_TYPE_CONTEXT_DESC, ..Default::default() };
        ok!(ze, context.pfnCreate(driver, &desc, &mut context));
        Self { ze, driver, device, context }
    }
    pub fn pool(&self, flags: u32, count: u32) -> ze_event_pool_handle_t {
        let stype = ZE_STRUCTURE_TYPE_EVENT_POOL_DESC;
        let desc = ze_event_pool_desc_t { stype, pNext: null(), flags, count };
        let mut pool = null_mut();
        ok!(self.ze, pool.pfnCreate(self.context, &desc, 0, null_mut(), &mut pool));
        pool
    }
    pub fn event(&self, pool: ze_event_pool_handle_t, index: u32) -> ze_event_handle_t {
        let stype = ZE_STRUCTURE_TYPE_EVENT_DESC;
        let desc = ze_event_desc_t { stype, pNext: null(), index, signal: 4, wait: 4 };
        let mut event = null_mut();
        ok!(self.ze, event.pfnCreate(pool, &desc, &mut event));
        event
    }
    pub fn counter(&self, flags: u32) -> ze_event_handle_t {
        let stype = ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC;
        let desc =
            ze_event_counter_based_desc_t { stype, pNext: null(), flags, signal: 4, wait: 4 };
        let mut event = null_mut();
        ok!(self.ze, event.pfnCounterBasedCreate(self.context, self.device, &desc, &mut event));
        event
    }
    pub fn immediate(&self, flags: u32) -> ze_command_list_handle_t {
        let desc = ze_command_queue_desc_t {
            stype: ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC,
            flags,
            mode: ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS,
            ..Default::default()
        };
        let mut list = null_mut();
        ok!(self.ze, list.pfnCreateImmediate(self.context, self.device, &desc, &mut list));
        list
    }
    pub fn recorded(&self, flags: u32) -> ze_command_list_handle_t {
        let stype = ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC;
        let desc = ze_command_list_desc_t { stype, flags, ..Default::default() };
        let mut list = null_mut();
        ok!(self.ze, list.pfnCreate(self.context, self.device, &desc, &mut list));
        list
    }
    pub fn queue(&self) -> ze_command_queue_handle_t {
        let stype = ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC;
        let desc = ze_command_queue_desc_t { stype, ..Default::default() };
        let mut queue = null_mut();
        ok!(self.ze, queue.pfnCreate(self.context, self.device, &desc, &mut queue));
        queue
    }
    pub fn execute(&self, queue: ze_command_queue_handle_t, mut list: ze_command_list_handle_t) {
        ok!(self.ze, queue.pfnExecuteCommandLists(queue, 1, &mut list, null_mut()));
    }
    /// Appends a copy of one number.
    pub fn copy(
        &self,
        list: ze_command_list_handle_t,
        (to, from): (*mut u64, *const u64),
        signal: ze_event_handle_t,
        waits: &mut [ze_event_handle_t],
    ) {
        let (count, waits) = (waits.len() as u32, waits.as_mut_ptr());
        let (to, from) = (to.cast(), from.cast());
        ok!(self.ze, list.pfnAppendMemoryCopy(list, to, from, 8, signal, count, waits));
    }
    pub fn barrier(
        &self,
        list: ze_command_list_handle_t,
        signal: ze_event_handle_t,
        waits: &mut [ze_event_handle_t],
    ) {
        let (count, waits) = (waits.len() as u32, waits.as_mut_ptr());
        ok!(self.ze, list.pfnAppendBarrier(list, signal, count, waits));
    }
    /// Whether an event is signalled.
    pub fn is_over(&self, event: ze_event_handle_t) -> bool {
        match ze!(self.ze, event.pfnQueryStatus(event)) {
            ZE_RESULT_SUCCESS => true,
            ZE_RESULT_NOT_READY => false,
            other => panic!("{other:#x}"),
        }
    }
    /// Waits for an event, for at most half a minute.
    pub fn wait(&self, event: ze_event_handle_t) {
        ok!(self.ze, event.pfnHostSynchronize(event, 30_000_000_000));
    }
    pub fn finish(&self, list: ze_command_list_handle_t) {
        ok!(self.ze, list.pfnHostSynchronize(list, 30_000_000_000));
    }
}
/// The flags of counter-based events for other processes: immediate lists, host-visible.
pub const SHARED: u32 = ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE
    | ZE_EVENT_COUNTER_BASED_FLAG_HOST_VISIBLE
    | ZE_EVENT_COUNTER_BASED_FLAG_IPC;
pub const IN_ORDER: u32 = ZE_COMMAND_QUEUE_FLAG_IN_ORDER;
pub const NONE: ze_event_handle_t = null_mut();
