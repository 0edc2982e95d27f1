//! Access policies: which peers may open an export. A peer is identified by what the kernel says of it, never by what
//! it says of itself.
use crate::{Error, ErrorKind, Result, waiting::look_at};
use rustix::{
    event::PollFlags,
    fs::{fstat, fstatfs},
    io::Errno,
    process::{Pid, PidfdFlags, geteuid, pidfd_open},
};
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};
use ur_mapping::peer_credentials;

/// The user id that the kernel shows for users whom this user namespace does not map. It may stand for anybody, so it
/// is never admitted.
pub(crate) const OVERFLOW_UID: u32 = 65534;

/// Who may open an exported object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Access {
    /// Processes with the exporter's effective user.
    #[default]
    SameUser,
    /// Processes with this effective user.
    User(u32),
    /// This one process.
    Process(Process),
}

/// Why this process can share nothing; `None` if it can.
pub(crate) fn own_trouble() -> Option<&'static str> {
    (geteuid().as_raw() == OVERFLOW_UID).then_some(
        "this process runs as user 65534 (nobody), which stands for every user that has no number here: no process could be admitted as the same user; run it as another user",
    )
}

impl Access {
    /// Processes with this effective user.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for the user who stands for those that have no number here, and is never admitted.
    pub fn user(uid: u32) -> Result<Self> {
        if uid == OVERFLOW_UID {
            let why = "user 65534 (nobody) stands for every user that has no number here, and no process could be admitted as it: name another user";
            return Err(Error::new(ErrorKind::Unsupported, why));
        }
        Ok(Self::User(uid))
    }
    /// Whether the policy admits this peer.
    pub(crate) fn admits(self, peer: &Peer) -> bool {
        if peer.uid == OVERFLOW_UID {
            return false;
        }
        match self {
            Access::SameUser => peer.is_same_user(),
            Access::User(uid) => peer.uid == uid,
            Access::Process(process) => peer.process() == Some(process), // an unidentified process is not admitted
        }
    }
    /// Whether the policy may admit peers of another user, so that the socket must lie in a directory open to others.
    pub(crate) fn reaches_others(self) -> bool {
        match self {
            Access::SameUser => false,
            Access::User(uid) => uid != geteuid().as_raw(),
            Access::Process(process) => process.uid != Some(geteuid().as_raw()),
        }
    }
}

/// A process, identified among all others of this boot by the inode of its pidfd. A pid would not do, because pids are
/// reused.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    inode: u64,
    /// Its user at the time of the query. It decides which directory the socket lies in, not who is admitted.
    uid: Option<u32>,
}
impl PartialEq for Process {
    fn eq(&self, other: &Self) -> bool {
        self.inode == other.inode
    }
}
impl Eq for Process {}
impl std::hash::Hash for Process {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.inode.hash(state);
    }
}

impl Process {
    /// The process with this pid, which must not have been reaped yet: a child of the caller, for example, or the
    /// caller.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if there is no such process, or on a kernel before 6.9.
    pub fn with_pid(pid: u32) -> Result<Self> {
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pidfd = raw.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        // The fields are real, effective, …. The owner of the /proc directory would be root for a process that is not
        // dumpable.
        let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let uid = uids.and_then(|uids| uids.split_whitespace().nth(1)?.parse().ok());
        let process = pidfd.and_then(|pidfd| Self::behind(&pidfd));
        process.map(|process| Self { uid, ..process }).ok_or_else(|| {
            let why = "no such process, or a kernel before 6.9 which cannot tell processes apart for good: share with a user instead";
            Error::new(ErrorKind::Unsupported, why)
        })
    }
    /// The process behind a pidfd; `None` on kernels without pidfs, where all pidfds share one inode.
    pub(crate) fn behind(pidfd: &OwnedFd) -> Option<Self> {
        const PIDFS_MAGIC: u64 = 0x5049_4446;
        let on_pidfs = u64::try_from(fstatfs(pidfd).ok()?.f_type).ok()? == PIDFS_MAGIC;
        let stat = on_pidfs.then(|| fstat(pidfd).ok()).flatten()?;
        Some(Self { inode: stat.st_ino, uid: None })
    }
}

/// The other end of a socket, as the kernel identifies it.
pub(crate) struct Peer {
    pub uid: u32,
    /// Whether its user is this process's own effective user.
    same_user: bool,
    pidfd: Option<Arc<OwnedFd>>,
    who: Who,
}

/// A process as far as the kernel identifies it; the key under which its connections are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    Process(u64),
    /// A pid, where pidfds do not identify processes. If the pid is reused, two processes count as one.
    Pid(i32),
    /// Some process of this user in another pid namespace.
    SomeOf(u32),
}
impl Who {
    /// Whether it identifies one process.
    pub fn is_known(self) -> bool {
        !matches!(self, Self::SomeOf(_))
    }
}

impl Peer {
    /// Queries the kernel. Without `SO_PEERPIDFD` (before Linux 6.5) the pid is opened, and the socket is then checked
    /// for a hang-up: if its peer is still there, it was there while the pid was opened.
    pub fn of(socket: &impl AsFd) -> io::Result<Self> {
        let credentials = peer_credentials(socket)?;
        let pidfd = ur_mapping::peer_pidfd(socket);
        let pidfd = match pidfd.map_err(|e| (Errno::from_io_error(&e), e)) {
            Ok(pidfd) => Some(pidfd),
            Err((Some(Errno::NOPROTOOPT | Errno::INVAL), _)) => {
                let pid = Pid::from_raw(credentials.pid);
                let pidfd = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
                pidfd.filter(|_| !hung_up(socket))
            }
            // Without a pidfd the peer would not be identified by its process, so it is refused for now.
            Err((Some(Errno::MFILE | Errno::NFILE), e)) => return Err(e),
            Err(_) => None,
        };
        Ok(Self::new(credentials.uid, credentials.pid, pidfd))
    }
    fn new(uid: u32, pid: i32, pidfd: Option<OwnedFd>) -> Self {
        let same_user = uid == geteuid().as_raw() && uid != OVERFLOW_UID;
        let who = match pidfd.as_ref().and_then(Process::behind) {
            Some(process) => Who::Process(process.inode),
            None if pid > 0 => Who::Pid(pid),
            None => Who::SomeOf(uid),
        };
        Self { uid, same_user, pidfd: pidfd.map(Arc::new), who }
    }
    /// The process, as far as it is identified.
    pub fn who(&self) -> Who {
        self.who
    }
    pub fn is_same_user(&self) -> bool {
        self.same_user
    }
    pub fn pidfd(&self) -> Option<&Arc<OwnedFd>> {
        self.pidfd.as_ref()
    }
    pub fn into_pidfd(self) -> Option<Arc<OwnedFd>> {
        self.pidfd
    }
    fn process(&self) -> Option<Process> {
        self.pidfd.as_ref().and_then(|pidfd| Process::behind(pidfd))
    }
}

/// Whether the other end of a socket is closed.
pub(crate) fn hung_up(socket: &impl AsFd) -> bool {
    look_at(socket, PollFlags::empty()).is_ok_and(|seen| seen.contains(PollFlags::HUP))
}

/// Whether the process behind a pidfd has ended (a zombie has). `false` where the kernel does not tell.
pub(crate) fn is_dead(pidfd: &impl AsFd) -> bool {
    look_at(pidfd, PollFlags::IN).is_ok_and(|seen| !seen.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    /// A peer that is this very process.
    fn us() -> Peer {
        let pair =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        Peer::of(&pair.unwrap().0).unwrap()
    }
    fn me() -> u32 {
        geteuid().as_raw()
    }

    #[test]
    fn a_policy_admits_whom_it_names_and_nobody_else() {
        let peer = us();
        assert_eq!(peer.uid, me());
        assert!(Access::SameUser.admits(&peer) && Access::User(me()).admits(&peer));
        assert!(!Access::User(me() + 1).admits(&peer));
        let stranger = Peer::new(me() + 1, 0, None);
        assert!(!Access::SameUser.admits(&stranger) && Access::User(me() + 1).admits(&stranger));
    }
    #[test]
    fn a_process_is_told_by_what_it_is() {
        let ours = Process::with_pid(std::process::id()).unwrap();
        assert!(Access::Process(ours).admits(&us()));
        assert!(!Access::Process(ours).reaches_others());
        assert!(!Access::Process(ours).admits(&Peer::new(me(), 0, None)), "unknown is nobody");
        let first = Process::with_pid(1).unwrap();
        assert!(first != ours && !Access::Process(first).admits(&us()));
        assert_eq!(Process::with_pid(u32::MAX).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(Process::with_pid(0).unwrap_err().kind(), ErrorKind::Unsupported);
    }
    #[test]
    fn a_user_that_this_namespace_does_not_know_is_nobody() {
        let nobody = Peer::new(OVERFLOW_UID, 0, None);
        assert!(!Access::User(OVERFLOW_UID).admits(&nobody));
        assert_eq!(Access::user(OVERFLOW_UID).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(Access::user(me()).unwrap(), Access::User(me()));
        assert!(!nobody.is_same_user());
    }
    #[test]
    fn a_closed_socket_and_an_ended_process_are_seen() {
        let (one, other) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        assert!(!hung_up(&one));
        drop(other);
        assert!(hung_up(&one));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        child.wait().unwrap();
        assert!(is_dead(&pidfd));
    }
}
