//! Who may open an allocation, and whether they may write it: what callers chain to the descriptor of USM
//! (`causeway/policy.h`).
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

/// What an allocation is made for beside its size.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Who may open it.
    pub access: Access,
    /// Whether only its maker may write it.
    pub is_read_only: bool,
    held: *mut u32,
}
impl Policy {
    /// What a descriptor asks for, if it asks for any.
    ///
    /// # Errors
    /// `INVALID_ENUMERATION` for kinds and flags that there are not, `UNSUPPORTED_FEATURE` for a process that there is not.
    pub fn of(desc: &ur_usm_desc_t) -> Result<Option<Self>> {
        let Some(asked) = chain::extension::<cw_ipc_policy_desc_t>(desc)? else { return Ok(None) };
        let unknown = |what: String| Err(Error::new(ErrorCode::InvalidEnumeration, what));
        let access = match asked.access {
            CW_IPC_ACCESS_SAME_USER => Access::SameUser,
            CW_IPC_ACCESS_USER => Access::User(asked.id),
            CW_IPC_ACCESS_PROCESS => Access::Process(Process::with_pid(asked.id)?),
            other => return unknown(format!("there is no access {other}: see causeway/policy.h")),
        };
        if asked.flags & !CW_IPC_POLICY_READ_ONLY != 0 {
            return unknown(format!("a policy has flags that there are not: {:#x}", asked.flags));
        }
        let is_read_only = asked.flags & CW_IPC_POLICY_READ_ONLY != 0;
        Ok(Some(Self { access, is_read_only, held: asked.held }))
    }
    /// Whether any allocation does.
    pub fn is_usual(&self) -> bool {
        self.access == Access::SameUser && !self.is_read_only
    }
    /// Tells the caller that it is held to.
    pub fn confirm(&self) {
        if let Ok(held) = UsmPtr::new(self.held.cast()) {
            held.write(1_u32);
        }
    }
}
