//! Policies: which processes may open memory, and whether they may write it. They are chosen when memory is allocated.
use crate::{Error, ErrorKind, Result};
use std::{fmt, str::FromStr};

/// Which processes may open memory. The kernel identifies the process that opens it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Access {
    /// Processes with the exporter's effective user.
    #[default]
    SameUser,
    /// Processes with this effective user. They must be able to traverse the directory of sockets (`CAUSEWAY_DIR`; mode
    /// 0711).
    User(u32),
    /// The process that has this pid when the memory is allocated, and no later process with that pid (Linux 6.9).
    Process(u32),
}

/// Which processes may open memory, and whether they may write it. Such memory has a descriptor of its own, so it takes
/// whole pages. [`Buffer::with_policy`](crate::Buffer::with_policy) allocates it; the policy cannot be changed later.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// use causeway::{Access, Buffer, Context, Device, Policy, Queue};
///
/// let context = Context::new(&Device::first()?)?;
/// let queue = Queue::new(&context)?;
/// let policy = Policy { access: Access::SameUser, is_read_only: true };
/// let weights = Buffer::<f32>::with_policy(&context, 1024, policy)?;
/// weights.fill(&queue, 0.5)?; // this process writes it; a process that opens its ticket only reads it
/// let export = weights.share()?;
/// # drop(export);
/// assert_eq!("process:1".parse::<Access>()?, Access::Process(1));
/// # Ok(()) }
/// # check().unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Policy {
    /// Which processes may open it.
    pub access: Access,
    /// Whether only the process that allocated it may write it: the kernel refuses writable mappings to others.
    pub is_read_only: bool,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameUser => f.pad("same-user"),
            Self::User(user) => write!(f, "user:{user}"),
            Self::Process(process) => write!(f, "process:{process}"),
        }
    }
}
impl FromStr for Access {
    type Err = Error;
    /// Parses `same-user`, `user:UID` or `process:PID`.
    fn from_str(text: &str) -> Result<Self> {
        let number = |text: &str| text.parse().ok();
        let read = match text.split_once(':') {
            None if text == "same-user" => Some(Self::SameUser),
            Some(("user", uid)) => number(uid).map(Self::User),
            Some(("process", pid)) => number(pid).map(Self::Process),
            _ => None,
        };
        read.ok_or_else(|| {
            let sentence = format!(
                "access {text:?} cannot be: it is same-user, user:UID or process:PID, with numbers"
            );
            Error::new(ErrorKind::Unsuitable, sentence)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_reads_back_from_its_text_and_nothing_else_is_read() {
        for access in [Access::SameUser, Access::User(0), Access::Process(u32::MAX)] {
            assert_eq!(access.to_string().parse::<Access>().unwrap(), access);
        }
        for wrong in
            ["", "user", "user:", "user:-1", "user:bob", "process:4294967296", "any", "same-user:1"]
        {
            assert_eq!(
                wrong.parse::<Access>().unwrap_err().kind(),
                ErrorKind::Unsuitable,
                "{wrong}"
            );
        }
    }
}
