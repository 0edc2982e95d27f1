//! Where exporters' sockets are: which directory, whether it may be trusted, how a name in it is reached without a race,
//! and the sweeping of what dead exporters left. What is said over the sockets is the broker's and fetch's.
use crate::{Error, ErrorKind, InstanceId, Result, envelope::Door, fork::Guarded, identity};
use rustix::{
    fs::{
        Access, AtFlags, CWD, Dir, DirEntry, FlockOperation, Mode, OFlags, access, chmod, chmodat,
        flock, fstat, mkdir, openat, statat, unlinkat,
    },
    io::Errno,
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
        sockopt::{Timeout, set_socket_timeout},
    },
    process::geteuid,
};
use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
    time::Duration,
};

/// Names this one in the environment: if set, no other directory is used.
pub const VARIABLE: &str = "CAUSEWAY_DIR";
/// How many leavings of dead exporters one start looks at.
const SWEPT: usize = 1024;
/// Tries to take one's own lock. Sweepers hold it for an instant only, and not one after the other.
const LOCKED: u32 = 1000;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// A directory that passed the checks, held open: names in it cannot be moved under us.
pub(crate) struct Directory {
    fd: OwnedFd,
    pub path: PathBuf,
    /// Hash of device and inode.
    pub id: u64,
    /// Whose it is.
    owner: u32,
}

impl Directory {
    /// A directory of `owner`'s, not a link, which nobody else can write.
    pub fn open(path: &Path, owner: u32, door: Door) -> Result<Self, (Errno, &'static str)> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(CWD, path, flags, Mode::empty()).map_err(|e| match e {
            Errno::NOTDIR | Errno::LOOP => (e, "not a directory, or a link to one"),
            e => (e, ""),
        })?;
        let stat = fstat(&fd).map_err(|e| (e, ""))?;
        if stat.st_uid != owner {
            return Err((Errno::PERM, "another user owns it"));
        }
        if stat.st_mode & 0o022 != 0 {
            return Err((Errno::PERM, "others can write it: chmod it to 0700"));
        }
        if door == Door::Others && stat.st_mode & 0o077 != 0o011 {
            return Err((Errno::PERM, "exports to others need it to be of mode 0711"));
        }
        let mut place = [0; 16];
        place[..8].copy_from_slice(&stat.st_dev.to_le_bytes());
        place[8..].copy_from_slice(&stat.st_ino.to_le_bytes());
        let id = identity::hash(b"causeway socket ", &place).max(1);
        Ok(Self { fd, path: path.into(), id, owner })
    }
    /// The directory for exports behind this kind of door, made if need be.
    ///
    /// # Errors
    /// [`ErrorKind::Directory`], with every path that was tried.
    pub fn for_export(door: Door) -> Result<Self> {
        let user = geteuid().as_raw();
        let mut tried = Tried::default();
        for path in candidates(user, door) {
            let mode = if door == Door::Others { 0o711 } else { 0o700 };
            match mkdir(&path, Mode::from_raw_mode(mode)) {
                Ok(()) => drop(chmod(&path, Mode::from_raw_mode(mode))), // the umask took bits; `open` checks
                Err(Errno::EXIST) => {}
                Err(e) => {
                    tried.add(&path, e, "");
                    continue;
                }
            }
            match Self::open(&path, user, door) {
                Ok(directory) => return Ok(directory),
                Err((errno, why)) => tried.add(&path, errno, why),
            }
        }
        let sentence = format!("no directory for sockets can be used ({})", tried.text);
        let error = Error::new(ErrorKind::Directory, sentence)
            .advise(format!("set {VARIABLE} to a directory of yours that only you can write"));
        Err(match tried.errno {
            Some(errno) => error.with_errno(errno),
            None => error,
        })
    }
    /// The instances whose sockets behind that kind of door are in it.
    pub fn exporters(&self, door: Door) -> Vec<String> {
        let names = self.names().into_iter();
        let instance = |name: String| match door {
            Door::Private => is_instance(&name).then_some(name),
            Door::Others => {
                name.strip_suffix(OTHERS).filter(|name| is_instance(name)).map(Into::into)
            }
        };
        names.take(SWEPT).filter_map(instance).collect()
    }
    /// What is in it, as far as a start looks; nothing if it cannot be read.
    fn names(&self) -> Vec<String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = openat(&self.fd, ".", flags, Mode::empty());
        let Ok(entries) = readable.and_then(Dir::new) else { return Vec::new() };
        let name = |entry: DirEntry| entry.file_name().to_str().ok().map(String::from);
        entries.flatten().filter_map(name).take(SWEPT).collect()
    }
    /// Through /proc, the directory is the one that was checked, and its length does not count.
    /// To a process that is not dumpable its own /proc is closed: it goes by the directory's path,
    /// and who answers there proves by its credentials that it is the one.
    fn address(&self, name: &str) -> Result<SocketAddrUnix, Errno> {
        let through = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        match access(&through, Access::EXISTS) {
            Err(Errno::ACCESS) => SocketAddrUnix::new(self.path.join(name)),
            _ => SocketAddrUnix::new(format!("{through}/{name}")),
        }
    }
}

fn is_instance(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// What was tried in vain, for the error.
#[derive(Default)]
pub(crate) struct Tried {
    pub text: String,
    errno: Option<i32>,
    /// Whether the exporter's own directory was among them, by its hash.
    pub ids: Vec<u64>,
    /// Whether a socket refused because of its permissions.
    pub denied: bool,
}
impl Tried {
    fn add(&mut self, path: &Path, errno: Errno, why: &str) {
        let comma = if self.text.is_empty() { "" } else { ", " };
        let colon = if why.is_empty() { "" } else { ": " };
        self.text += &format!("{comma}{}: {errno}{colon}{why}", path.display());
        self.errno = Some(errno.raw_os_error());
        self.denied |= matches!(errno, Errno::ACCESS | Errno::PERM);
    }
    pub fn errno(&self) -> Option<i32> {
        self.errno
    }
    /// Whether the last one tried has no such socket, as opposed to one that nobody listens on.
    pub fn is_absent(&self) -> bool {
        self.errno == Some(Errno::NOENT.raw_os_error())
    }
}

/// The directories of a user's exporters, in the order in which they are tried.
pub(crate) fn candidates(user: u32, door: Door) -> Vec<PathBuf> {
    if let Some(only) = chosen() {
        return vec![only];
    }
    if door == Door::Others {
        return vec![format!("/tmp/causeway-{user}-others").into()];
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let ours = user == geteuid().as_raw() && !ur_mapping::is_privileged();
    let runtime = runtime.filter(|dir| ours && dir.is_absolute()).map(|dir| dir.join("causeway"));
    let rest = [format!("/run/user/{user}/causeway"), format!("/tmp/causeway-{user}")];
    let mut all: Vec<PathBuf> = runtime.into_iter().chain(rest.map(PathBuf::from)).collect();
    all.dedup();
    all
}

/// What the environment says, unless this program runs with more rights than its caller has.
fn chosen() -> Option<PathBuf> {
    let path = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()).map(PathBuf::from)?;
    (!ur_mapping::is_privileged()).then_some(path)
}

/// A listening socket with its name, which goes when this is dropped.
pub(crate) struct Entrance {
    listener: Guarded,
    lock: Guarded,
    directory: Directory,
    name: String,
}

impl Entrance {
    /// Sweeps the directory, then listens in it under the instance's name.
    pub fn open(instance: InstanceId, door: Door) -> Result<Self> {
        let directory = Directory::for_export(door)?;
        sweep(&directory);
        let name = name_of(instance, door);
        let what = |what: &str| format!("{what} in {}", directory.path.display());
        let lock = take_lock(&directory, &name).map_err(|e| {
            Error::system(what("lock the socket's name"), e).unless_limit(ErrorKind::Directory)
        })?;
        let listener = (|| {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            bind(&socket, &directory.address(&name)?)?;
            // Who may pass is the directory's and the broker's to say, and not the umask's.
            let mode = if door == Door::Others { 0o666 } else { 0o600 };
            // Fails if what was bound is not in the directory that was checked.
            chmodat(&directory.fd, &name, Mode::from_raw_mode(mode), AtFlags::empty())?;
            listen(&socket, BACKLOG)?;
            Ok(socket)
        })();
        let listener: OwnedFd = listener.map_err(|e: Errno| {
            let _ = unlinkat(&directory.fd, lock_name(&name), AtFlags::empty());
            Error::system(what("listen on a socket"), e).unless_limit(ErrorKind::Directory)
        })?;
        Ok(Self { listener: Guarded::new(listener), lock, directory, name })
    }
    /// Hash of the directory, for the ticket.
    pub fn directory(&self) -> u64 {
        self.directory.id
    }
    /// As which user this process listens here: the one that importers meet, whoever it is by now.
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
        if self.lock.is_ours() {
            // If they are gone already, so much the better; the lock is held until both are.
            let _ = unlinkat(&self.directory.fd, &self.name, AtFlags::empty());
            let _ = unlinkat(&self.directory.fd, lock_name(&self.name), AtFlags::empty());
        }
    }
}

/// An exporter may have both doors in one directory.
const OTHERS: &str = "-others";
fn name_of(instance: InstanceId, door: Door) -> String {
    match door {
        Door::Private => instance.to_string(),
        Door::Others => format!("{instance}{OTHERS}"),
    }
}

fn lock_name(name: &str) -> String {
    format!("{name}.lock")
}

/// Creates and locks `NAME.lock`. A sweeper may lock and unlink it in between: then once more.
fn take_lock(directory: &Directory, name: &str) -> Result<Guarded, Errno> {
    let name = lock_name(name);
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..LOCKED {
        let lock = openat(&directory.fd, &name, flags, Mode::from_raw_mode(0o600))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if is_named(directory, &lock, &name)? => return Ok(Guarded::new(lock)),
            Ok(()) | Err(Errno::WOULDBLOCK) => std::thread::yield_now(),
            Err(e) => return Err(e),
        }
    }
    Err(Errno::WOULDBLOCK)
}

/// Whether the name still leads to this file. A lock counts for a name only then.
fn is_named(directory: &Directory, lock: &OwnedFd, name: &str) -> Result<bool, Errno> {
    let ours = fstat(lock)?;
    match statat(&directory.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Removes sockets whose exporters died. A failure here costs nobody anything: the next start sweeps again.
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
    // Without a lock file the socket is no broker's of ours, or its lock file was unlinked first by hand: create one, so
    // that no exporter starts under the name meanwhile.
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(lock) = openat(&directory.fd, lock_name(name), flags, Mode::from_raw_mode(0o600)) else {
        return;
    };
    let free = flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok();
    if free && is_named(directory, &lock, &lock_name(name)).is_ok_and(|named| named) {
        let _ = unlinkat(&directory.fd, name, AtFlags::empty());
        let _ = unlinkat(&directory.fd, lock_name(name), AtFlags::empty());
    }
}

/// Connects to the exporter's socket, wherever it is.
pub(crate) fn reach(
    instance: InstanceId,
    user: u32,
    door: Door,
    patience: Duration,
) -> Result<Result<OwnedFd, Tried>> {
    let mut tried = Tried::default();
    for path in candidates(user, door) {
        let directory = match Directory::open(&path, user, door) {
            Ok(directory) => directory,
            Err((Errno::MFILE, _)) => {
                return Err(Error::system("open the socket directory", Errno::MFILE));
            }
            Err((errno, why)) => {
                tried.add(&path, errno, why);
                continue;
            }
        };
        tried.ids.push(directory.id);
        match connect_in(&directory, &name_of(instance, door), patience) {
            Ok(socket) => return Ok(Ok(socket)),
            Err(e @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
                return Err(Error::system("connect to the exporter", e));
            }
            Err(Errno::AGAIN) => {
                let why = "the exporter does not accept connections: it is stopped, or flooded; try again";
                return Err(
                    Error::new(ErrorKind::TimedOut, why).with_errno(Errno::AGAIN.raw_os_error())
                );
            }
            Err(e) => tried.add(&path, e, ""),
        }
    }
    Ok(Err(tried))
}

fn connect_in(directory: &Directory, name: &str, patience: Duration) -> Result<OwnedFd, Errno> {
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(patience))?; // for a full backlog
    set_socket_timeout(&socket, Timeout::Recv, Some(patience))?;
    connect(&socket, &directory.address(name)?)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    fn scratch(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("causeway-unit-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        path
    }
    fn me() -> u32 {
        geteuid().as_raw()
    }
    fn entrance(path: &Path, name: &str) -> (Directory, Guarded) {
        let directory = Directory::open(path, me(), Door::Private).unwrap();
        let lock = take_lock(&directory, name).unwrap();
        let socket =
            socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .unwrap();
        bind(&socket, &directory.address(name).unwrap()).unwrap();
        (directory, lock)
    }

    #[test]
    fn only_our_own_directory_that_nobody_else_writes_is_used() {
        let path = scratch("owned");
        assert!(Directory::open(&path, me(), Door::Private).is_ok());
        let other = Directory::open(&path, me() + 1, Door::Private).map(|_| ());
        assert_eq!(other.unwrap_err().0, Errno::PERM);
        for mode in [0o770, 0o702, 0o777] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(Directory::open(&path, me(), Door::Private).is_err(), "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        assert!(Directory::open(&path, me(), Door::Others).is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o711)).unwrap();
        assert!(Directory::open(&path, me(), Door::Others).is_ok());
        fs::remove_dir_all(&path).unwrap();
    }
    #[test]
    fn a_link_to_a_directory_and_a_file_are_refused() {
        let path = scratch("links");
        let (link, file) = (path.join("link"), path.join("file"));
        symlink(&path, &link).unwrap();
        fs::write(&file, b"").unwrap();
        assert!(Directory::open(&link, me(), Door::Private).is_err());
        assert!(Directory::open(&file, me(), Door::Private).is_err());
        assert!(Directory::open(&path.join("absent"), me(), Door::Private).is_err());
        fs::remove_dir_all(&path).unwrap();
    }
    #[test]
    fn sockets_of_the_dead_are_swept_and_those_of_the_living_stay() {
        let path = scratch("swept");
        let (dead, living) = ("0".repeat(32), "1".repeat(32));
        drop(entrance(&path, &dead));
        let held = entrance(&path, &living);
        fs::write(path.join("notes.txt"), b"somebody's own").unwrap();
        sweep(&held.0);
        let names = fs::read_dir(&path).unwrap().map(|e| e.unwrap().file_name());
        let mut left: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        left.sort();
        assert_eq!(left, [living.clone(), lock_name(&living), "notes.txt".into()]);
        fs::remove_dir_all(&path).unwrap();
    }
    #[test]
    fn a_long_path_is_no_obstacle() {
        let path = scratch("long");
        let long = path.join("d".repeat(200));
        fs::create_dir(&long).unwrap();
        let (directory, _lock) = entrance(&long, &"2".repeat(32));
        assert_eq!(directory.path, long);
        assert!(long.join("2".repeat(32)).exists());
        fs::remove_dir_all(&path).unwrap();
    }
    #[test]
    fn this_test_runs_without_privileges_of_a_set_user_id_program() {
        assert!(!ur_mapping::is_privileged());
    }
}
