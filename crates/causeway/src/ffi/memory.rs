//! Owned ranges of device-visible addresses: allocated, opened from another process, or mapped to physical memory.
//! Nothing here reads or writes the memory; commands do that.
#![expect(unsafe_code, reason = "calls the C ABI")]
use super::{Api, Context, Exported, Physical, slot};
use crate::{Access, Error, ErrorKind, Policy, Result};
use std::{ffi::c_void, ops::Range, sync::Arc};
use ur_sys::*;

/// A range of device-visible addresses, released on drop in the way that corresponds to its origin.
pub(crate) struct Memory {
    context: Arc<Context>,
    address: usize,
    bytes: usize,
    writable: bool,
    /// The policy with which it was allocated; the default policy for other memory.
    policy: Policy,
    origin: Origin,
}
enum Origin {
    Allocated,
    Opened,
    /// The physical memory outlives its mapping.
    Mapped(#[expect(dead_code, reason = "kept alive")] Arc<Physical>),
}

/// The origin of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemoryKind {
    /// Allocated in this process.
    Allocated,
    /// Opened from a ticket.
    Opened,
    /// A mapping of physical memory.
    Mapped,
}

/// A policy as the ABI's descriptor. The adapter sets `held` if it enforces the policy.
fn asked(policy: Policy, held: &mut u32) -> cw_ipc_policy_desc_t {
    let (access, id) = match policy.access {
        Access::SameUser => (CW_IPC_ACCESS_SAME_USER, 0),
        Access::User(user) => (CW_IPC_ACCESS_USER, user),
        Access::Process(process) => (CW_IPC_ACCESS_PROCESS, process),
    };
    cw_ipc_policy_desc_t {
        stype: CW_STRUCTURE_TYPE_IPC_POLICY_DESC,
        pNext: std::ptr::null(),
        access,
        id,
        flags: if policy.is_read_only { CW_IPC_POLICY_READ_ONLY } else { 0 },
        held,
    }
}

impl Memory {
    /// Allocates `bytes` of device memory with unspecified contents.
    pub(crate) fn allocate(
        context: &Arc<Context>,
        bytes: usize,
        policy: Policy,
    ) -> Result<Arc<Self>> {
        const ENTRY: &str = "urUSMDeviceAlloc";
        let api = context.api();
        let alloc = slot(api.table.usm.device_alloc, ENTRY)?;
        let mut held = 0;
        let asked = asked(policy, &mut held);
        let desc = ur_usm_desc_t {
            stype: ur_structure_type_t::USM_DESC,
            pNext: (&raw const asked).cast(),
            hints: Default::default(),
            align: 0,
        };
        let is_usual = policy == Policy::default();
        let desc: *const _ = if is_usual { std::ptr::null() } else { &raw const desc };
        let device = context.raw_device();
        let (pool, mut at) = (ur_usm_pool_handle_t::NULL, std::ptr::null_mut());
        // SAFETY: live handles; descriptor and pool are optional, and the chained descriptor lives on the stack; a
        // place for the address.
        let code = unsafe { alloc(context.raw(), device, desc, pool, bytes, &mut at) };
        api.check(ENTRY, code)?;
        let (address, context) = (at as usize, context.clone());
        let new =
            Self { context, address, bytes, writable: true, policy, origin: Origin::Allocated };
        // SAFETY: a local variable, to which the adapter was given a pointer.
        if !is_usual && unsafe { (&raw const held).read_volatile() } != 1 {
            let sentence = "this adapter knows nothing of access and reading only: memory of it is shared with processes of the same user, which may write it";
            return Err(Error::new(ErrorKind::Unsupported, sentence)); // dropping `new` frees the memory
        }
        Ok(Arc::new(new))
    }
    /// Opens the memory that `handle` names. If `wanted` is given, the memory must have at least that many bytes, and
    /// the range is limited to them.
    pub(crate) fn open(
        context: &Arc<Context>,
        handle: &[u8],
        wanted: Option<usize>,
    ) -> Result<Arc<Self>> {
        const ENTRY: &str = "urIPCOpenMemHandleExp";
        let api = context.api();
        let open = slot(api.table.ipc_exp.open_mem_handle_exp, ENTRY)?;
        let (from, size, mut at) = (handle.as_ptr().cast_mut(), handle.len(), std::ptr::null_mut());
        // SAFETY: `size` bytes at `from`, which the entry only reads; live handles; a place for the address.
        let code = unsafe { open(context.raw(), context.raw_device(), from.cast(), size, &mut at) };
        api.check(ENTRY, code)?;
        let (address, origin) = (at as usize, Origin::Opened);
        let (context, policy) = (context.clone(), Policy::default());
        let mut memory = Self { context, address, bytes: 0, writable: true, policy, origin };
        let reach = memory.reach()?;
        memory.bytes = wanted.unwrap_or(reach);
        if memory.bytes > reach {
            let sentence = format!(
                "this ticket promises {} bytes, but the memory that it opens ends after {reach}: it was altered on its way, or made by another version",
                memory.bytes
            );
            return Err(Error::new(ErrorKind::Ticket, sentence));
        }
        memory.writable = memory.may_be_written();
        Ok(Arc::new(memory))
    }
    /// Whether opened memory may be written. An adapter that does not answer this has no read-only memory.
    fn may_be_written(&self) -> bool {
        let Some(get) = self.api().table.virtual_mem.get_info else { return true };
        let mut access = ur_virtual_mem_access_flags_t::default();
        let name = ur_virtual_mem_info_t::ACCESS_MODE;
        let (size, to) = (size_of_val(&access), (&raw mut access).cast());
        let context = self.context.raw();
        // SAFETY: a live context, an address that is only looked up, and a place of the stated size.
        let code =
            unsafe { get(context, self.at(0), self.bytes, name, size, to, std::ptr::null_mut()) };
        code != ur_result_t::SUCCESS || access != ur_virtual_mem_access_flags_t::READ_ONLY
    }
    /// Maps all of `physical` to a new range of addresses.
    pub(crate) fn map(physical: &Arc<Physical>, writable: bool) -> Result<Arc<Self>> {
        let (context, bytes) = (physical.context(), physical.bytes());
        let range = Reserved::new(context, bytes)?;
        let api = context.api();
        let map = slot(api.table.virtual_mem.map, "urVirtualMemMap")?;
        let access = if writable {
            ur_virtual_mem_access_flags_t::READ_WRITE
        } else {
            ur_virtual_mem_access_flags_t::READ_ONLY
        };
        let at = range.address as *const c_void;
        // SAFETY: a range reserved above, of the physical memory's own size.
        let code = unsafe { map(context.raw(), at, bytes, physical.raw(), 0, access) };
        api.check("urVirtualMemMap", code)?;
        let (context, origin) = (context.clone(), Origin::Mapped(physical.clone()));
        let policy = Policy::default();
        Ok(Arc::new(Self { context, address: range.keep(), bytes, writable, policy, origin }))
    }
    /// How many bytes of the allocation there are from this range's start.
    fn reach(&self) -> Result<usize> {
        Self::reach_of(&self.context, self.address)
    }
    /// How many bytes there are from an address to the end of its allocation.
    pub(crate) fn reach_of(context: &Context, address: usize) -> Result<usize> {
        Ok(Self::allocation_of(context, address)?.end.saturating_sub(address))
    }
    /// The addresses of the allocation that contains an address.
    pub(crate) fn allocation_of(context: &Context, address: usize) -> Result<Range<usize>> {
        const ENTRY: &str = "urUSMGetMemAllocInfo";
        let api = context.api();
        let get = slot(api.table.usm.get_mem_alloc_info, ENTRY)?;
        let info = |name| -> Result<usize> {
            api.value(ENTRY, |size, value, needed| {
                let at = address as *mut c_void;
                // SAFETY: `value` provides `size` bytes at `value`; the context is live, and the address is only looked
                // up.
                unsafe { get(context.raw(), at, name, size, value, needed) }
            })
        };
        let (base, size) = (info(ur_usm_alloc_info_t::BASE_PTR)?, info(ur_usm_alloc_info_t::SIZE)?);
        Ok(base..base.saturating_add(size))
    }
    /// Whether another process has the allocation open.
    pub(crate) fn is_open_elsewhere(&self) -> Result<bool> {
        const ENTRY: &str = "urUSMGetMemAllocInfo";
        let get = slot(self.api().table.usm.get_mem_alloc_info, ENTRY)?;
        let answer: ur_bool_t = self.api().value(ENTRY, |size, value, needed| {
            let name = CW_USM_ALLOC_INFO_IS_OPEN_ELSEWHERE;
            // SAFETY: `value` provides `size` bytes at `value`; the context is live, and the address is only looked up.
            unsafe { get(self.context.raw(), self.at(0), name, size, value, needed) }
        })?;
        Ok(answer != 0)
    }
    /// Shares the memory from `offset` on with other processes.
    pub(crate) fn share(self: &Arc<Self>, offset: usize) -> Result<Exported> {
        Exported::memory(&self.context, self.at(offset), self.clone())
    }
    fn api(&self) -> &'static Api {
        self.context.api()
    }
    /// The address of a byte; `offset` is at most `bytes`.
    pub(super) fn at(&self, offset: usize) -> *mut c_void {
        debug_assert!(offset <= self.bytes);
        (self.address + offset) as *mut c_void
    }
    /// Its origin.
    pub(crate) fn kind(&self) -> MemoryKind {
        match self.origin {
            Origin::Allocated => MemoryKind::Allocated,
            Origin::Opened => MemoryKind::Opened,
            Origin::Mapped(_) => MemoryKind::Mapped,
        }
    }
    /// Its first address.
    pub(crate) fn address(&self) -> usize {
        self.address
    }
    /// The length of the range.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
    /// Whether commands may write it.
    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }
    /// The policy with which it was allocated.
    pub(crate) fn policy(&self) -> Policy {
        self.policy
    }
    fn give_back(&self) -> Result<()> {
        let (api, context) = (self.api(), self.context.raw());
        match self.origin {
            Origin::Allocated => {
                let free = slot(api.table.usm.free, "urUSMFree")?;
                // SAFETY: allocated by this value, and no command needs it any more (`flight`).
                api.check("urUSMFree", unsafe { free(context, self.at(0)) })
            }
            Origin::Opened => {
                const ENTRY: &str = "urIPCCloseMemHandleExp";
                let close = slot(api.table.ipc_exp.close_mem_handle_exp, ENTRY)?;
                // SAFETY: returned by an open of this value, and no command needs it any more (`flight`).
                api.check(ENTRY, unsafe { close(context, self.at(0)) })
            }
            Origin::Mapped(_) => {
                let unmap = slot(api.table.virtual_mem.unmap, "urVirtualMemUnmap")?;
                // SAFETY: mapped by this value, and no command needs it any more (`flight`).
                let unmapped = unsafe { unmap(context, self.at(0), self.bytes) };
                api.check("urVirtualMemUnmap", unmapped)?;
                Reserved { context: &self.context, address: self.address, bytes: self.bytes }.free()
            }
        }
    }
}
impl Drop for Memory {
    fn drop(&mut self) {
        // The error is dropped here: the adapter has logged it.
        let _ = self.give_back();
    }
}

/// A reserved range of addresses, released on drop unless kept.
struct Reserved<'a> {
    context: &'a Context,
    address: usize,
    bytes: usize,
}
impl<'a> Reserved<'a> {
    fn new(context: &'a Context, bytes: usize) -> Result<Self> {
        const ENTRY: &str = "urVirtualMemReserve";
        let reserve = slot(context.api().table.virtual_mem.reserve, ENTRY)?;
        let mut at = std::ptr::null_mut();
        // SAFETY: a live context, an address that the adapter chooses, a place for it.
        let code = unsafe { reserve(context.raw(), std::ptr::null(), bytes, &mut at) };
        context.api().check(ENTRY, code)?;
        Ok(Self { context, address: at as usize, bytes })
    }
    fn keep(self) -> usize {
        let address = self.address;
        std::mem::forget(self);
        address
    }
    fn free(self) -> Result<()> {
        let freed = self.give_back();
        std::mem::forget(self);
        freed
    }
    fn give_back(&self) -> Result<()> {
        const ENTRY: &str = "urVirtualMemFree";
        let free = slot(self.context.api().table.virtual_mem.free, ENTRY)?;
        let at = self.address as *const c_void;
        // SAFETY: a range that was reserved here and has nothing mapped.
        let code = unsafe { free(self.context.raw(), at, self.bytes) };
        self.context.api().check(ENTRY, code)
    }
}
impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        // The error that led here is returned instead; the adapter has logged this one.
        let _ = self.give_back();
    }
}
