//! The sharing policy of an allocation: which processes may open it, and whether they may write it. Callers chain it to
//! the USM descriptor (`causeway/policy.h`).
use ur_adapter::{
    chain,
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
};
use ur_ipc::{Access, Process};
use ur_sys::{
    CW_IPC_ACCESS_PROCESS, CW_IPC_ACCESS_SAME_USER, CW_IPC_ACCESS_USER, CW_IPC_POLICY_READ_ONLY,
    cw_ipc_policy_desc_t, ur_usm_desc_t,
};

/// The policy that a caller requests for an allocation.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Who may open it.
    pub access: Access,
    /// Whether only the process that allocates it may write it.
    pub is_read_only: bool,
    held: *mut u32,
}
impl Policy {
    /// The policy in the descriptor's chain, if there is one.
    ///
    /// # Errors
    /// `INVALID_ENUMERATION` for unknown kinds of access and unknown flags; `UNSUPPORTED_FEATURE` for a process that
    /// does not exist, and for a user who can never be admitted.
    pub fn of(desc: &ur_usm_desc_t) -> Result<Option<Self>> {
        let Some(asked) = chain::extension::<cw_ipc_policy_desc_t>(desc)? else { return Ok(None) };
        let unknown = |what: String| Error::refuse(ErrorCode::InvalidEnumeration, what);
        let access = match asked.access {
            CW_IPC_ACCESS_SAME_USER => Access::SameUser,
            CW_IPC_ACCESS_USER => Access::user(asked.id)?,
            CW_IPC_ACCESS_PROCESS => Access::Process(Process::with_pid(asked.id)?),
            other => return unknown(format!("there is no access {other}: see causeway/policy.h")),
        };
        if asked.flags & !CW_IPC_POLICY_READ_ONLY != 0 {
            return unknown(format!("a policy has unknown flags: {:#x}", asked.flags));
        }
        let is_read_only = asked.flags & CW_IPC_POLICY_READ_ONLY != 0;
        Ok(Some(Self { access, is_read_only, held: asked.held }))
    }
    /// Whether it is the default policy, which every allocation can satisfy.
    pub fn is_usual(&self) -> bool {
        self.access == Access::SameUser && !self.is_read_only
    }
    /// Confirms to the caller, through the pointer in the descriptor, that the policy is enforced.
    pub fn confirm(&self) {
        if let Ok(held) = UsmPtr::new(self.held.cast()) {
            held.write(1_u32);
        }
    }
}
