//! `causeway/policy.h`: who may open device memory, and whether they may write it. It is no part of Unified Runtime: other
//! adapters ignore it, and leave `held` as it is.
use crate::{ur_structure_type_t, ur_usm_alloc_info_t};
use std::ffi::c_void;

/// What `stype` of a [`cw_ipc_policy_desc_t`] has to be; no version of Unified Runtime uses the number.
pub const CW_STRUCTURE_TYPE_IPC_POLICY_DESC: ur_structure_type_t = ur_structure_type_t(0x4357_0001);
/// `access`: processes of the exporter's effective user.
pub const CW_IPC_ACCESS_SAME_USER: u32 = 0;
/// `access`: processes whose effective user is `id`.
pub const CW_IPC_ACCESS_USER: u32 = 1;
/// `access`: the process whose number is `id` when the memory is allocated, and no later process of that number.
pub const CW_IPC_ACCESS_PROCESS: u32 = 2;
/// `flags`: whoever opens the memory may read it only.
pub const CW_IPC_POLICY_READ_ONLY: u32 = 1;

/// For `urUSMGetMemAllocInfo`: a `ur_bool_t`, true if another process has the allocation open now.
pub const CW_USM_ALLOC_INFO_IS_OPEN_ELSEWHERE: ur_usm_alloc_info_t =
    ur_usm_alloc_info_t(0x4357_0002);

/// Chained to the `ur_usm_desc_t` of `urUSMDeviceAlloc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cw_ipc_policy_desc_t {
    /// `CW_STRUCTURE_TYPE_IPC_POLICY_DESC`
    pub stype: ur_structure_type_t,
    /// The next structure of the chain.
    pub pNext: *const c_void,
    /// One of `CW_IPC_ACCESS_*`.
    pub access: u32,
    /// The user or the process.
    pub id: u32,
    /// `CW_IPC_POLICY_READ_ONLY`, or 0.
    pub flags: u32,
    /// Null, or where an adapter that holds the policy writes 1.
    pub held: *mut u32,
}
