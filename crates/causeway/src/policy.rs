//! Who may open memory, and whether they may write it: asked for when it is allocated.
use crate::{Error, ErrorKind, Result};
use std::{fmt, str::FromStr};

/// Which processes may open memory. The kernel says who asks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Access {
    /// Those of the exporter's effective user.
    #[default]
    SameUser,
    /// Those with this effective user. The directory of sockets (`CAUSEWAY_DIR`) has to be one that they may pass (mode 0711).
    User(u32),
    /// The one process that has this number when the memory is allocated, and no later one of that number (Linux 6.9).
    Process(u32),
}

/// Who may open memory, and whether they may write it. Such memory is behind a descriptor of its own, so it takes whole
/// pages; [`Buffer::with_policy`](crate::Buffer::with_policy) allocates it, and it stays as it was made.
///
/// ```
/// # fn check() -> causeway::Result<()> {
/// use causeway::{Access, Buffer, Context, Device, Policy, Queue};
///
/// let context = Context::new(&Device::first()?)?;
/// let queue = Queue::new(&context)?;
/// let policy = Policy { access: Access::SameUser, is_read_only: true };
/// let weights = Buffer::<f32>::with_policy(&context, 1024, policy)?;
/// weights.fill(&queue, 0.5)?; // its maker writes it, and whoever opens its ticket reads it
/// let export = weights.share()?;
/// # drop(export);
/// assert_eq!("process:1".parse::<Access>()?, Access::Process(1));
/// # Ok(()) }
/// # check().unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Policy {
    /// Who may open it.
    pub access: Access,
    /// Whether nobody but the process that allocated it may write it: the kernel refuses others a mapping for writing.
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
    /// Reads `same-user`, `user:UID` or `process:PID`.
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
