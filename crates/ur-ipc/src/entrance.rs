//! The entrance: the socket on which an exporter listens, with its name and its lock file. It removes the names of dead
//! exporters, and is bound again when its own name has gone. `directory` chooses the directory.
use crate::{
    Error, ErrorKind, InstanceId, Result,
    directory::{
        Directory, OTHERS, Tried, VARIABLE, candidates, change_mode, inode, is_instance, name_of,
    },
    envelope::SocketScope,
    fork::Guarded,
    waiting::uninterrupted,
};
use rustix::{
    fs::{
        AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, fchmod, flock, fstat, openat, statat,
        unlinkat,
    },
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, bind, connect, listen, socket_with},
    process::geteuid,
};
use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long an exporter waits for its own lock file. Sweepers of other processes hold it briefly, unless they are stopped or
/// get no processor.
const LOCK_PATIENCE: Duration = Duration::from_millis(500);
/// How long it sleeps between two attempts.
const LOCK_NAP: Duration = Duration::from_micros(50);
/// How many connections may wait to be accepted.
const BACKLOG: i32 = 256;

/// A listening socket and its name, which is removed when this is dropped.
pub(crate) struct Entrance {
    listener: Guarded,
    /// Held while the name is in use; shared with the entrance that is bound in this one's place.
    lock: Arc<Guarded>,
    directory: Directory,
    name: String,
    /// Device and inode of the socket that was bound under the name.
    bound: (u64, u64),
}

impl Entrance {
    /// Sweeps the first directory that can hold a socket, and listens there under the instance's name.
    ///
    /// # Errors
    /// [`ErrorKind::Directory`], with every path that was tried; [`ErrorKind::NoSpace`] if one of them is full; and
    /// errors of this process's limits.
    pub fn open(instance: InstanceId, scope: SocketScope) -> Result<Self> {
        Self::open_beside(instance, scope, None)
    }
    /// Binds the name of `old` again after its socket or directory has been removed: in the same directory, or, if that
    /// does not exist any more, in the one that a new exporter would use.
    ///
    /// # Errors
    /// As [`Entrance::open`]; `old` stays usable then.
    pub fn open_again(old: &Self, instance: InstanceId, scope: SocketScope) -> Result<Self> {
        Self::open_beside(instance, scope, Some(old))
    }
    fn open_beside(instance: InstanceId, scope: SocketScope, old: Option<&Self>) -> Result<Self> {
        let mut tried = Tried::default();
        let lock = old.map(|old| &old.lock);
        // First the directory where importers look: the environment's path may be relative to another working directory
        // by now.
        let mut paths = candidates(geteuid().as_raw(), scope);
        paths.splice(0..0, old.map(|old| old.directory.path.clone()));
        paths.dedup();
        for path in paths {
            let opened = Directory::for_export(&path, scope)
                .and_then(|directory| Self::open_in(directory, instance, scope, lock));
            match opened {
                Ok(entrance) => return Ok(entrance),
                Err((e @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM), _)) => {
                    let doing = format!("listen on a socket in {}", path.display());
                    return Err(Error::system(doing, e));
                }
                Err((errno, why)) => tried.add(&path, errno, why),
            }
        }
        let (kind, advice) = match tried.is_full {
            true => (ErrorKind::NoSpace, "free space or inodes there, or"),
            false => (ErrorKind::Directory, "please"),
        };
        let sentence = format!("no directory for sockets can be used ({})", tried.text);
        let error = Error::new(kind, sentence).advise(format!(
            "{advice} set {VARIABLE} to a directory of yours that only you can write"
        ));
        Err(match tried.errno() {
            Some(errno) => error.with_errno(errno),
            None => error,
        })
    }
    fn open_in(
        directory: Directory,
        instance: InstanceId,
        scope: SocketScope,
        held: Option<&Arc<Guarded>>,
    ) -> Result<Self, (Errno, &'static str)> {
        sweep(&directory);
        let name = name_of(instance, scope);
        let named = |lock: &Arc<Guarded>| is_named(&directory, &**lock, &lock_name(&name));
        let lock = match held.filter(|lock| named(lock).is_ok_and(|named| named)) {
            Some(lock) => lock.clone(),
            None => Arc::new(take_lock(&directory, &name).map_err(|e| explained(e, "lock"))?),
        };
        match listen_in(&directory, &name, scope) {
            Ok((listener, bound)) => {
                Ok(Self { listener: Guarded::new(listener), lock, directory, name, bound })
            }
            Err(e) => {
                if Arc::strong_count(&lock) == 1 {
                    let _ = unlinkat(&directory.fd, lock_name(&name), AtFlags::empty());
                }
                Err(explained(e, "bind"))
            }
        }
    }
    /// Whether importers find the entrance: the path leads to the socket that was bound. If only the lock file is
    /// missing, it is created again so that sweepers respect the socket.
    pub fn is_in_place(&mut self) -> bool {
        let path = self.directory.path.join(&self.name);
        let named = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW);
        if !named.is_ok_and(|stat| inode(&stat) == self.bound) {
            return false;
        }
        if is_named(&self.directory, &*self.lock, &lock_name(&self.name)) == Ok(false)
            && let Ok(lock) = take_lock(&self.directory, &self.name)
        {
            self.lock = Arc::new(lock); // a sweeper that comes in between finds the socket listening
        }
        true
    }
    /// Hash of the directory, for the ticket.
    pub fn directory(&self) -> u64 {
        self.directory.id
    }
    pub fn path(&self) -> &Path {
        &self.directory.path
    }
    /// The user as whom this process listens here, which importers see even if the process has changed its user since.
    pub fn user(&self) -> u32 {
        self.directory.owner
    }
}
impl AsFd for Entrance {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
impl Drop for Entrance {
    fn drop(&mut self) {
        if !self.listener.is_ours() {
            return;
        }
        // Removes only what is still this entrance's own, because the name may have been bound again. The lock is held
        // until both names are removed.
        let named = statat(&self.directory.fd, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        if named.is_ok_and(|stat| inode(&stat) == self.bound) {
            let _ = unlinkat(&self.directory.fd, &self.name, AtFlags::empty());
        }
        let lock = lock_name(&self.name);
        let is_last = Arc::strong_count(&self.lock) == 1;
        if is_last && is_named(&self.directory, &*self.lock, &lock) == Ok(true) {
            let _ = unlinkat(&self.directory.fd, lock, AtFlags::empty());
        }
    }
}

/// Explains an error number for a name in a directory.
fn explained(errno: Errno, doing: &'static str) -> (Errno, &'static str) {
    let why = match (errno, doing) {
        (Errno::NOSPC, _) => "its file system is full",
        (Errno::DQUOT, _) => "the quota on its file system is used up",
        (Errno::ROFS, _) => "its file system is read-only",
        (Errno::ADDRINUSE, _) => "another process listens under this exporter's name there",
        (_, "lock") => "the lock file of the socket cannot be made or taken there",
        _ => "a socket cannot be bound there",
    };
    (errno, why)
}

/// Binds a listening socket to the name; returns it with the device and inode that were bound.
fn listen_in(
    directory: &Directory,
    name: &str,
    scope: SocketScope,
) -> Result<(OwnedFd, (u64, u64)), Errno> {
    if is_free(directory, name) {
        let _ = unlinkat(&directory.fd, name, AtFlags::empty()); // left by this exporter itself
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    // The directory and the broker decide who may connect, not the umask: the socket has at most this mode while it is
    // being bound, and exactly this mode afterwards.
    let mode = Mode::from_raw_mode(if scope == SocketScope::Others { 0o666 } else { 0o600 });
    fchmod(&socket, mode)?;
    bind(&socket, &directory.address(name)?)?;
    let bound = (|| {
        // Fails if what was bound is not in the directory that was checked.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = uninterrupted(|| openat(&directory.fd, name, flags, Mode::empty()))?;
        let stat = fstat(&held)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Socket {
            return Err(Errno::NOTSOCK);
        }
        if stat.st_mode & 0o777 != mode.as_raw_mode() {
            change_mode(&held, mode)?;
        }
        listen(&socket, BACKLOG)?;
        Ok(inode(&stat))
    })();
    match bound {
        Ok(bound) => Ok((socket, bound)),
        Err(e) => {
            let _ = unlinkat(&directory.fd, name, AtFlags::empty());
            Err(e)
        }
    }
}

fn lock_name(name: &str) -> String {
    format!("{name}.lock")
}

/// Creates and locks `NAME.lock`. If a sweeper locks and unlinks it in between, the attempt is repeated.
///
/// A sweeper that holds the lock for too long may be stopped for hours, so its file is then unlinked and another one made: the
/// name is this exporter's alone. Such a sweeper leaves a socket alone that it finds listening. If it was stopped after
/// it had found none, it unlinks the names when it goes on; they are then bound again, as after a cleaner of temporary files.
fn take_lock(directory: &Directory, name: &str) -> Result<Guarded, Errno> {
    let name = lock_name(name);
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let begun = Instant::now();
    let mut patience = begun + LOCK_PATIENCE;
    while begun.elapsed() < 4 * LOCK_PATIENCE {
        let mode = Mode::from_raw_mode(0o600);
        let lock = uninterrupted(|| openat(&directory.fd, &name, flags, mode))?;
        match uninterrupted(|| flock(&lock, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) if is_named(directory, &lock, &name)? => return Ok(Guarded::new(lock)),
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) if Instant::now() < patience => std::thread::sleep(LOCK_NAP),
            Err(Errno::WOULDBLOCK) => {
                let _ = unlinkat(&directory.fd, &name, AtFlags::empty()); // or the sweeper has done so by now
                patience += LOCK_PATIENCE;
            }
            Err(e) => return Err(e),
        }
    }
    Err(Errno::WOULDBLOCK)
}

/// Whether the name still leads to this file. A lock on the file protects the name only then.
fn is_named(directory: &Directory, lock: &impl AsFd, name: &str) -> Result<bool, Errno> {
    let ours = fstat(lock)?;
    match statat(&directory.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) => Ok(inode(&named) == inode(&ours)),
        Err(Errno::NOENT) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Removes the sockets of dead exporters. Failures are ignored: the next start sweeps again.
fn sweep(directory: &Directory) {
    for name in directory.names() {
        let name = name.strip_suffix(".lock").unwrap_or(&name);
        let instance = name.strip_suffix(OTHERS).unwrap_or(name);
        if is_instance(instance) {
            sweep_one(directory, name);
        }
    }
}

fn sweep_one(directory: &Directory, name: &str) {
    // Without a lock file the socket does not belong to a broker of this library, or the lock file was removed by hand:
    // create one, so that no exporter starts under the name meanwhile.
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let (mode, lock) = (Mode::from_raw_mode(0o600), lock_name(name));
    let Ok(lock) = uninterrupted(|| openat(&directory.fd, &lock, flags, mode)) else { return };
    let has_lock = uninterrupted(|| flock(&lock, FlockOperation::NonBlockingLockExclusive)).is_ok()
        && is_named(directory, &lock, &lock_name(name)) == Ok(true);
    // The lock alone is no proof: a cleaner may have removed the lock file that a living exporter holds.
    if has_lock && is_free(directory, name) {
        let _ = unlinkat(&directory.fd, name, AtFlags::empty());
        let _ = unlinkat(&directory.fd, lock_name(name), AtFlags::empty());
    }
}

/// Whether no process listens under a name: the kernel refuses a connection, or there is no such name. With any other
/// result a process may be listening: on a socket of another kind, with a full backlog, or as another user.
fn is_free(directory: &Directory, name: &str) -> bool {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let Ok(socket) = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None) else {
        return false; // no descriptor to find out with
    };
    let Ok(address) = directory.address(name) else { return false };
    matches!(uninterrupted(|| connect(&socket, &address)), Err(Errno::CONNREFUSED | Errno::NOENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::tests::scratch;
    use std::{fs, path::PathBuf};

    fn open(path: &Path) -> Directory {
        Directory::open(path, &[geteuid().as_raw()]).unwrap()
    }
    /// Binds and locks a name as an exporter does; returns the listening socket too.
    fn bound(path: &Path, name: &str) -> (Directory, Guarded, OwnedFd) {
        let directory = open(path);
        let lock = take_lock(&directory, name).unwrap();
        let (socket, _) = listen_in(&directory, name, SocketScope::Private).unwrap();
        (directory, lock, socket)
    }
    fn left(path: &Path) -> Vec<String> {
        let names = fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name());
        let mut left: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        left.sort();
        left
    }

    #[test]
    fn sockets_of_the_dead_are_swept_and_those_of_the_living_stay() {
        let path = scratch("swept");
        let (dead, living) = ("0".repeat(32), "1".repeat(32));
        drop(bound(&path, &dead));
        let held = bound(&path, &living);
        fs::write(path.join("notes.txt"), b"somebody's own").unwrap();
        sweep(&held.0);
        assert_eq!(left(&path), [living.clone(), lock_name(&living), "notes.txt".into()]);
        fs::remove_dir_all(&path).unwrap();
    }
    #[test]
    fn a_sweeper_that_is_stopped_while_it_holds_the_lock_keeps_no_exporter_out() {
        let (path, name) = (scratch("stopped-sweeper"), "6".repeat(32));
        let directory = open(&path);
        let file = fs::File::create(path.join(lock_name(&name))).unwrap();
        flock(&file, FlockOperation::LockExclusive).unwrap(); // and it is stopped here
        let lock = take_lock(&directory, &name).unwrap();
        let (socket, _) = listen_in(&directory, &name, SocketScope::Private).unwrap();
        drop(file);
        sweep(&directory);
        assert_eq!(is_named(&directory, &lock, &lock_name(&name)), Ok(true));
        assert_eq!(left(&path), [name.clone(), lock_name(&name)]);
        drop((socket, lock));
        fs::remove_dir_all(&path).unwrap();
    }
    #[test]
    fn a_socket_that_somebody_listens_on_is_not_swept_although_its_lock_file_is_gone() {
        let path = scratch("unlocked");
        let (living, dead) = ("3".repeat(32), "4".repeat(32));
        let held = bound(&path, &living);
        drop(bound(&path, &dead));
        for name in [&living, &dead] {
            fs::remove_file(path.join(lock_name(name))).unwrap();
        }
        sweep(&held.0);
        sweep(&held.0); // the lock file that the first sweep made belongs to no exporter
        assert!(left(&path).contains(&living), "{:?}", left(&path));
        assert!(!left(&path).contains(&dead), "{:?}", left(&path));
        fs::remove_dir_all(&path).unwrap();
    }
    #[test]
    fn a_queue_of_connections_that_is_full_is_a_living_exporters() {
        let path = scratch("queue");
        let name = "5".repeat(32);
        let held = bound(&path, &name);
        listen(&held.2, 0).unwrap();
        let address = held.0.address(&name).unwrap();
        let mut waiting = Vec::new();
        loop {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket =
                socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
            match connect(&socket, &address) {
                Ok(()) => waiting.push(socket),
                Err(e) => break assert_eq!(e, Errno::AGAIN),
            }
        }
        assert!(!is_free(&held.0, &name));
        fs::remove_dir_all(&path).unwrap();
    }
    #[test]
    fn a_long_path_is_no_obstacle() {
        let path = scratch("long");
        let long: PathBuf = path.join("d".repeat(200));
        fs::create_dir(&long).unwrap();
        let (directory, ..) = bound(&long, &"2".repeat(32));
        assert_eq!(directory.path, long);
        assert!(long.join("2".repeat(32)).exists());
        fs::remove_dir_all(&path).unwrap();
    }
    #[test]
    fn a_socket_is_its_owners_alone_from_the_moment_that_it_has_a_name() {
        use std::os::unix::fs::PermissionsExt;
        let path = scratch("mode");
        let directory = open(&path);
        for (name, scope, mode) in
            [("a", SocketScope::Private, 0o600), ("b", SocketScope::Others, 0o666)]
        {
            let (_socket, bound) = listen_in(&directory, name, scope).unwrap();
            let metadata = fs::symlink_metadata(path.join(name)).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o777, mode);
            let stat = statat(&directory.fd, name, AtFlags::SYMLINK_NOFOLLOW).unwrap();
            assert_eq!(inode(&stat), bound);
        }
        fs::remove_dir_all(&path).unwrap();
    }
}
