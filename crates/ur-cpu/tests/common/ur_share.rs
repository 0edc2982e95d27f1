//! The eleven sharing entries by kind of object, and what is shared: physical memory, events, commands.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
use super::ur::*;
use crate::call;
use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};

const NO_LIST: (u32, *const ur_event_handle_t) = (0, null());

impl Ur {
    pub fn get(&self, kind: Kind, object: *mut c_void) -> Outcome<Given> {
        let (mut data, mut size) = (null_mut(), 0);
        let (context, to, n) = (self.context, &raw mut data, &raw mut size);
        self.check(match kind {
            Kind::Memory => call!(ipc_exp.get_mem_handle_exp(context, object, to, n)),
            Kind::Physical => {
                let object = ur_physical_mem_handle_t(object);
                call!(ipc_exp.get_phys_mem_handle_exp(context, object, to, n))
            }
            Kind::Event => {
                call!(ipc_exp.get_event_handle_exp(ur_event_handle_t(object), to, n))
            }
        })?;
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) }.to_vec();
        Ok(Given { data, bytes })
    }
    pub fn put(&self, kind: Kind, data: *mut c_void) -> Outcome<()> {
        self.check(match kind {
            Kind::Memory => call!(ipc_exp.put_mem_handle_exp(self.context, data)),
            Kind::Physical => call!(ipc_exp.put_phys_mem_handle_exp(self.context, data)),
            Kind::Event => call!(ipc_exp.put_event_handle_exp(self.context, data)),
        })
    }
    /// An address, or a handle.
    pub fn open(&self, kind: Kind, bytes: &[u8]) -> Outcome<*mut c_void> {
        let (context, device, size) = (self.context, self.device, bytes.len());
        let (data, mut object) = (bytes.as_ptr().cast_mut().cast::<c_void>(), null_mut::<c_void>());
        let to = &raw mut object;
        self.check(match kind {
            Kind::Memory => call!(ipc_exp.open_mem_handle_exp(context, device, data, size, to)),
            Kind::Physical => {
                call!(ipc_exp.open_phys_mem_handle_exp(context, device, data, size, to.cast()))
            }
            Kind::Event => call!(ipc_exp.open_event_handle_exp(context, data, size, to.cast())),
        })
        .inspect_err(|_| assert!(object.is_null(), "a failed open leaves the result alone"))?;
        assert!(!object.is_null());
        Ok(object)
    }
    /// Ends what an open gave.
    pub fn close(&self, kind: Kind, object: *mut c_void) -> Outcome<()> {
        self.check(match kind {
            Kind::Memory => call!(ipc_exp.close_mem_handle_exp(self.context, object)),
            Kind::Physical => {
                let object = ur_physical_mem_handle_t(object);
                call!(ipc_exp.close_phys_mem_handle_exp(self.context, object))
            }
            Kind::Event => call!(event.release(ur_event_handle_t(object))),
        })
    }
    pub fn new_physical(&self, bytes: usize, shareable: bool) -> Outcome<*mut c_void> {
        let stype = ur_structure_type_t::PHYSICAL_MEM_PROPERTIES;
        let flags = match shareable {
            true => ur_physical_mem_flags_t::ENABLE_IPC,
            false => ur_physical_mem_flags_t::default(),
        };
        let properties = ur_physical_mem_properties_t { stype, pNext: null_mut(), flags };
        let mut made = ur_physical_mem_handle_t::NULL;
        let (context, device) = (self.context, self.device);
        self.check(call!(physical_mem.create(context, device, bytes, &properties, &mut made)))?;
        Ok(made.0)
    }
    /// Maps all of `object` at an address of the adapter's choice.
    pub fn map(&self, object: *mut c_void, bytes: usize) -> Outcome<*mut c_void> {
        let mut at = null_mut();
        self.check(call!(virtual_mem.reserve(self.context, null(), bytes, &mut at)))?;
        let (object, access) =
            (ur_physical_mem_handle_t(object), ur_virtual_mem_access_flags_t::READ_WRITE);
        self.check(call!(virtual_mem.map(self.context, at, bytes, object, 0, access)))?;
        Ok(at)
    }
    pub fn unmap(&self, at: *mut c_void, bytes: usize) -> Outcome<()> {
        self.check(call!(virtual_mem.unmap(self.context, at, bytes)))?;
        self.check(call!(virtual_mem.free(self.context, at, bytes)))
    }
    pub fn new_event(&self, flags: ur_exp_event_flags_t) -> Outcome<*mut c_void> {
        let stype = ur_structure_type_t::EXP_EVENT_DESC;
        let desc = ur_exp_event_desc_t { stype, pNext: null(), flags };
        let mut event = ur_event_handle_t::NULL;
        let (context, device) = (self.context, self.device);
        self.check(call!(event_exp.create_exp(context, device, &desc, &mut event)))?;
        Ok(event.0)
    }
    pub fn wait(&self, events: &[*mut c_void]) -> Outcome<()> {
        let count = u32::try_from(events.len()).unwrap();
        self.check(call!(event.wait(count, events.as_ptr().cast())))
    }
    pub fn status(&self, event: *mut c_void) -> Outcome<ur_event_status_t> {
        let (event, name) = (ur_event_handle_t(event), ur_event_info_t::COMMAND_EXECUTION_STATUS);
        let status =
            self.value::<u32>(|size, to, n| call!(event.get_info(event, name, size, to, n)))?;
        Ok(ur_event_status_t(status))
    }
    /// Signals a reusable event when what is before it in `queue`, and `after`, is done.
    pub fn signal(
        &self,
        queue: ur_queue_handle_t,
        event: *mut c_void,
        after: &[*mut c_void],
    ) -> Outcome<()> {
        let (count, list) = list(after);
        let mut event = ur_event_handle_t(event);
        let entry = TABLE.enqueue.events_wait_with_barrier_ext.unwrap();
        self.check(unsafe { entry(queue, null(), count, list, &mut event) })
    }
    /// A command that is done when `after` is: its event.
    pub fn follow(&self, queue: ur_queue_handle_t, after: &[*mut c_void]) -> Outcome<*mut c_void> {
        let (count, list) = list(after);
        let mut event = ur_event_handle_t::NULL;
        self.check(call!(enqueue.events_wait(queue, count, list, &mut event)))?;
        Ok(event.0)
    }
    pub fn finish(&self, queue: ur_queue_handle_t) -> Outcome<()> {
        self.check(call!(queue.finish(queue)))
    }
    /// Copies `bytes` and waits.
    pub fn copy(
        &self,
        queue: ur_queue_handle_t,
        to: *mut c_void,
        from: *const c_void,
        bytes: usize,
    ) -> Outcome<()> {
        let (n, list) = NO_LIST;
        let none = null_mut();
        self.check(call!(enqueue.usm_memcpy(queue, true, to, from, bytes, n, list, none)))
    }
}
fn list(events: &[*mut c_void]) -> (u32, *const ur_event_handle_t) {
    match events {
        [] => NO_LIST,
        some => (u32::try_from(some.len()).unwrap(), some.as_ptr().cast()),
    }
}
