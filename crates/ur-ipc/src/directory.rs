//! The directories of exporters' sockets: where they are, whether one may be trusted, and how a name in it is reached
//! without a race. Listening there is left to `entrance`, the exchange over the sockets to `broker` and `fetch`.
use crate::{
    Error, ErrorKind, InstanceId, Result,
    access::OVERFLOW_UID,
    envelope::SocketScope,
    identity,
    waiting::{connect_by, uninterrupted},
};
use rustix::{
    fs::{
        Access, AtFlags, CWD, Dir, DirEntry, FileType, Mode, OFlags, Stat, access, chmod, fchmod,
        fstat, mkdir, openat, statat,
    },
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with},
    process::geteuid,
};
use std::{
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    time::Instant,
};

/// The environment variable that names the directory. If it is set, no other directory is used.
pub const VARIABLE: &str = "CAUSEWAY_DIR";
/// How many names left by dead exporters one start examines at most.
const SWEPT: usize = 1024;

/// A directory that passed the checks, held open so that names in it are looked up in that very directory.
pub(crate) struct Directory {
    pub fd: OwnedFd,
    /// Absolute: the process may change its working directory.
    pub path: PathBuf,
    /// Hash of device and inode.
    pub id: u64,
    /// The user id of its owner.
    pub owner: u32,
    mode: u32,
}

/// Why a directory is not used: the error, and a reason in words.
type Flaw = (Errno, &'static str);

impl Directory {
    /// Opens a directory that belongs to one of `owners`, is not a symbolic link, and that no other user can write. The
    /// user id that stands for all owners outside this user namespace must not be among `owners`.
    pub fn open(path: &Path, owners: &[u32]) -> Result<Self, Flaw> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = uninterrupted(|| openat(CWD, path, flags, Mode::empty()));
        let fd = opened.map_err(|e| (e, why_closed(path, e)))?;
        let stat = fstat(&fd).map_err(|e| (e, ""))?;
        if !owners.contains(&stat.st_uid) {
            return Err((Errno::PERM, "another user owns it"));
        }
        if stat.st_mode & 0o022 != 0 {
            let sticky = stat.st_mode & 0o1000 != 0; // like /tmp
            let why = match sticky {
                true => "it is for all users: make one of your own in it (`mkdir -m 0700`)",
                false => "others can write it: run `chmod 0700` on it",
            };
            return Err((Errno::PERM, why));
        }
        let mut place = [0; 16];
        place[..8].copy_from_slice(&stat.st_dev.to_le_bytes());
        place[8..].copy_from_slice(&stat.st_ino.to_le_bytes());
        let id = identity::hash(b"causeway socket ", &place).max(1);
        // Fails if there is no working directory; the path then stays as it is.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
        Ok(Self { fd, path, id, owner: stat.st_uid, mode: stat.st_mode & 0o777 })
    }
    /// Checks whether sockets of this kind may be made in the directory. Its mode is never changed here, because the
    /// user may use the directory for other things too.
    fn check_for_export(&self, scope: SocketScope) -> Result<(), Flaw> {
        match scope {
            SocketScope::Others if self.mode & 0o077 != 0o011 => {
                Err((Errno::PERM, "exports to others need it to be of mode 0711"))
            }
            // Permission to traverse it is harmless: as long as they cannot be listed, names are secrets.
            SocketScope::Private if self.mode & 0o066 != 0 => {
                Err((Errno::PERM, "others can list it: run `chmod 0700` on it"))
            }
            _ => Ok(()),
        }
    }
    /// Opens a directory for this user's sockets of this kind, and makes it if necessary.
    pub fn for_export(path: &Path, scope: SocketScope) -> Result<Self, Flaw> {
        let mode = Mode::from_raw_mode(if scope == SocketScope::Others { 0o711 } else { 0o700 });
        let made = match uninterrupted(|| mkdir(path, mode)) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(e) => return Err((e, why_not_made(e))),
        };
        let mut directory = Self::open(path, &[geteuid().as_raw()])?;
        if made && directory.mode != mode.as_raw_mode() {
            // The umask removed bits. The mode is changed on the directory that was opened and checked, whatever its
            // path names by now.
            change_mode(&directory.fd, mode).map_err(|e| (e, "its mode cannot be set"))?;
            directory.mode = mode.as_raw_mode();
        }
        directory.check_for_export(scope)?;
        Ok(directory)
    }
    /// Why the directory is unfit for a user's exports, in words; `None` if it is fit.
    pub fn trouble(path: &Path, user: u32, scope: SocketScope) -> Option<String> {
        let opened = Self::open(path, &[user]).and_then(|d| d.check_for_export(scope));
        // A missing directory is made when it is needed, if its parent permits.
        let missing = |parent: &Path| {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            let possible = access(parent, Access::WRITE_OK | Access::EXEC_OK);
            possible.map_err(|errno| match why_not_made(errno) {
                "" => (errno, "it is not there, and cannot be made"),
                why => (errno, why),
            })
        };
        let fit = match (opened, path.parent()) {
            (Err((Errno::NOENT, _)), Some(parent)) => missing(parent),
            (opened, _) => opened,
        };
        fit.err().map(|(errno, why)| match why {
            "" => errno.to_string(),
            why => format!("{errno}: {why}"),
        })
    }
    /// The instances that have sockets of this kind in the directory.
    pub fn exporters(&self, scope: SocketScope) -> Vec<String> {
        let names = self.names().into_iter();
        let instance = |name: String| match scope {
            SocketScope::Private => is_instance(&name).then_some(name),
            SocketScope::Others => {
                name.strip_suffix(OTHERS).filter(|name| is_instance(name)).map(Into::into)
            }
        };
        names.take(SWEPT).filter_map(instance).collect()
    }
    /// The names in the directory, as many as one start examines; none if it cannot be read.
    pub fn names(&self) -> Vec<String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = uninterrupted(|| openat(&self.fd, ".", flags, Mode::empty()));
        let Ok(entries) = readable.and_then(Dir::new) else { return Vec::new() };
        let name = |entry: DirEntry| entry.file_name().to_str().ok().map(String::from);
        entries.flatten().filter_map(name).take(SWEPT).collect()
    }
    /// The address of the socket of this name. It goes through /proc, where the directory is certain to be the one that
    /// was checked, and where its path's length does not count. A process that is not dumpable cannot use its own
    /// /proc, and some containers have none: there the directory's path is used, and the exporter proves its identity
    /// by its credentials.
    pub fn address(&self, name: &str) -> Result<SocketAddrUnix, Errno> {
        let through = in_proc(&self.fd);
        match access(&through, Access::EXISTS) {
            Err(Errno::ACCESS | Errno::NOENT) => SocketAddrUnix::new(self.path.join(name)),
            _ => SocketAddrUnix::new(format!("{through}/{name}")),
        }
    }
}

/// Why a path that exists could not be opened as a directory, where the error alone says too little.
fn why_closed(path: &Path, errno: Errno) -> &'static str {
    if !matches!(errno, Errno::NOTDIR | Errno::LOOP) {
        return "";
    }
    let kind =
        statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map(|s| FileType::from_raw_mode(s.st_mode));
    match kind {
        Ok(FileType::Symlink) => "it is a link, which is not followed: name what it leads to",
        Ok(_) => "something else has this name",
        Err(_) => "a part of the path is no directory",
    }
}
/// Why a directory could not be made, where the error alone says too little.
fn why_not_made(errno: Errno) -> &'static str {
    match errno {
        Errno::NOENT => "the directory that it is to be in does not exist: make that first",
        Errno::NOTDIR => "a part of the path is no directory",
        Errno::ACCESS | Errno::PERM => "it is not there, and cannot be made",
        _ => "",
    }
}

/// The path through /proc of what a descriptor opens.
fn in_proc(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// Changes the mode of the directory that an `O_PATH` descriptor holds, and not of anything that has its name by now.
pub(crate) fn change_mode(held: &OwnedFd, mode: Mode) -> Result<(), Errno> {
    match chmod(in_proc(held), mode) {
        // A process that is not dumpable cannot use its own /proc; a directory can also be reopened through itself.
        Err(Errno::ACCESS | Errno::NOENT) => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            fchmod(uninterrupted(|| openat(held, ".", flags, Mode::empty()))?, mode)
        }
        changed => changed,
    }
}

/// What identifies a file, whatever its name.
pub(crate) fn inode(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// The suffix of sockets for other users: an exporter may have both kinds of socket in one directory.
pub(crate) const OTHERS: &str = "-others";
/// The name of an instance's socket of this kind.
pub(crate) fn name_of(instance: InstanceId, scope: SocketScope) -> String {
    match scope {
        SocketScope::Private => instance.to_string(),
        SocketScope::Others => format!("{instance}{OTHERS}"),
    }
}
pub(crate) fn is_instance(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The attempts that failed, for the error.
#[derive(Default)]
pub(crate) struct Tried {
    pub text: String,
    errno: Option<i32>,
    /// The directories that could be opened: their hashes, and their owners.
    opened: Vec<(u64, u32)>,
    /// Whether a socket or directory refused access because of its permissions.
    pub denied: bool,
    /// Whether the socket exists but has no listener any more.
    pub refused: bool,
    /// Whether a file system, or a quota on it, is full.
    pub is_full: bool,
}
impl Tried {
    pub fn add(&mut self, path: &Path, errno: Errno, why: &str) {
        let comma = if self.text.is_empty() { "" } else { ", " };
        let colon = if why.is_empty() { "" } else { ": " };
        self.text += &format!("{comma}{}: {errno}{colon}{why}", path.display());
        self.errno = Some(errno.raw_os_error());
        self.denied |= matches!(errno, Errno::ACCESS | Errno::PERM);
        self.refused |= errno == Errno::CONNREFUSED;
        self.is_full |= matches!(errno, Errno::NOSPC | Errno::DQUOT);
    }
    pub fn errno(&self) -> Option<i32> {
        self.errno
    }
    /// Whether the last place tried has no such socket, as opposed to one without a listener.
    pub fn is_absent(&self) -> bool {
        self.errno == Some(Errno::NOENT.raw_os_error())
    }
    /// Whether the exporter's own directory, which has this hash, was among those opened.
    pub fn was_in(&self, directory: u64) -> bool {
        self.owner_of(directory).is_some()
    }
    /// The owner of the exporter's own directory, if it was among those opened.
    pub fn owner_of(&self, directory: u64) -> Option<u32> {
        self.opened.iter().find(|(id, _)| *id == directory).map(|(_, owner)| *owner)
    }
}

/// The directories where a user's exporters may have their sockets, in the order in which they are tried.
pub(crate) fn candidates(user: u32, scope: SocketScope) -> Vec<PathBuf> {
    if let Some(only) = chosen() {
        return vec![only];
    }
    if scope == SocketScope::Others {
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

/// The directory that the environment names, unless this program runs with more privileges than its caller.
fn chosen() -> Option<PathBuf> {
    let path = std::env::var_os(VARIABLE).filter(|v| !v.is_empty()).map(PathBuf::from)?;
    // Absolute, so that every message names the directory that is meant. Fails if there is no working directory.
    let path = std::path::absolute(&path).unwrap_or(path);
    (!ur_mapping::is_privileged()).then_some(path)
}

/// A connection, and the owner of the directory that it leads through, as the kernel reports it.
pub(crate) struct Reached {
    pub socket: OwnedFd,
    pub owner: u32,
}

/// Where an exporter's socket may be. Made once for each connection, so that connecting again, on any thread, does not
/// read the environment.
pub(crate) struct Address {
    instance: InstanceId,
    scope: SocketScope,
    /// The users who may own the directories.
    owners: Vec<u32>,
    places: Vec<PathBuf>,
}
impl Address {
    /// `user` is the exporter's user according to the ticket, numbered as in the exporter's user namespace, which may
    /// differ from this process's: it is only a hint where to look. Directories of this process's own user are tried
    /// too.
    pub fn of(instance: InstanceId, user: u32, scope: SocketScope) -> Self {
        let us = geteuid().as_raw();
        let owners = [user, us].into_iter().filter(|uid| *uid != OVERFLOW_UID).collect();
        let places = places_of([user, us], scope).into_iter();
        // Absolute, as this process may change its working directory. Fails if there is none.
        let places = places.map(|path| std::path::absolute(&path).unwrap_or(path)).collect();
        Self { instance, scope, owners, places }
    }
    /// See [`is_listening`].
    pub fn is_listened_at(&self) -> Option<bool> {
        is_listening(self.instance, self.scope)
    }
}

/// Connects to the exporter's socket in the first directory that has it.
pub(crate) fn reach(to: &Address, deadline: Instant) -> Result<Result<Reached, Tried>> {
    let mut tried = Tried::default();
    for path in &to.places {
        let directory = match Directory::open(path, &to.owners) {
            Ok(directory) => directory,
            Err((e @ (Errno::MFILE | Errno::NFILE), _)) => {
                return Err(Error::system("open the socket directory", e));
            }
            Err((errno, why)) => {
                tried.add(path, errno, why);
                continue;
            }
        };
        tried.opened.push((directory.id, directory.owner));
        match connect_in(&directory, &name_of(to.instance, to.scope), deadline) {
            Ok(socket) => return Ok(Ok(Reached { socket, owner: directory.owner })),
            Err(e @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => {
                return Err(Error::system("connect to the exporter", e));
            }
            Err(Errno::AGAIN) => {
                let why = "the exporter does not accept connections: it is stopped, or flooded; try again";
                return Err(
                    Error::new(ErrorKind::TimedOut, why).with_errno(Errno::AGAIN.raw_os_error())
                );
            }
            Err(e) => tried.add(path, e, ""),
        }
    }
    Ok(Err(tried))
}

/// Whether a process listens on a socket of that name, in whatever directory and even if the name was removed: the
/// kernel lists the sockets of this network namespace with the names they were bound to. `None` if it does not tell.
pub(crate) fn is_listening(instance: InstanceId, scope: SocketScope) -> Option<bool> {
    let name = format!("/{}", name_of(instance, scope));
    let all = std::fs::read("/proc/net/unix").ok()?; // other sockets' names may be any bytes
    let listens = |line: &[u8]| {
        const ACCEPTS: &[u8] = b"00010000"; // __SO_ACCEPTCON
        let flags = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).nth(3);
        line.ends_with(name.as_bytes()) && flags == Some(ACCEPTS)
    };
    Some(all.split(|byte| *byte == b'\n').any(listens))
}

/// The directories of both users' exporters, each once.
fn places_of(users: [u32; 2], scope: SocketScope) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = Vec::new();
    for path in users.into_iter().flat_map(|user| candidates(user, scope)) {
        if !places.contains(&path) {
            places.push(path);
        }
    }
    places
}

fn connect_in(directory: &Directory, name: &str, deadline: Instant) -> Result<OwnedFd, Errno> {
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    connect_by(&socket, &directory.address(name)?, deadline)?; // which waits while the backlog is full
    Ok(socket)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    /// A directory for one test, of mode 0700.
    pub(crate) fn scratch(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("causeway-unit-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        set_mode(&path, 0o700);
        path
    }
    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fn me() -> u32 {
        geteuid().as_raw()
    }
    fn exports(path: &Path, scope: SocketScope) -> Result<(), Flaw> {
        Directory::for_export(path, scope).map(drop)
    }

    #[test]
    fn only_our_own_directory_that_nobody_else_writes_is_used() {
        let path = scratch("owned");
        assert!(Directory::open(&path, &[me()]).is_ok());
        assert!(Directory::open(&path, &[me() + 1, me()]).is_ok());
        let other = Directory::open(&path, &[me() + 1]).map(|_| ());
        assert_eq!(other.unwrap_err().0, Errno::PERM);
        for mode in [0o770, 0o702, 0o777] {
            set_mode(&path, mode);
            assert!(Directory::open(&path, &[me()]).is_err(), "{mode:o}");
        }
        fs::remove_dir_all(&path).unwrap();
    }
    #[test]
    fn a_directory_that_others_can_list_is_no_place_for_exports() {
        let path = scratch("modes");
        let why = |mode, scope| {
            set_mode(&path, mode);
            exports(&path, scope).err().map(|(_, why)| why)
        };
        for mode in [0o755, 0o750, 0o744, 0o704] {
            let why = why(mode, SocketScope::Private).unwrap();
            assert!(why.contains("others can list it") && why.contains("chmod 0700"), "{why}");
            assert!(Directory::open(&path, &[me()]).is_ok(), "an importer may look there");
        }
        for mode in [0o700, 0o711] {
            assert_eq!(why(mode, SocketScope::Private), None, "{mode:o}");
        }
        assert!(
            why(0o700, SocketScope::Others).is_some() && why(0o755, SocketScope::Others).is_some()
        );
        assert_eq!(why(0o711, SocketScope::Others), None);
        let unchanged = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(unchanged, 0o711, "the mode of what was there is its owner's to change");
        fs::remove_dir_all(&path).unwrap();
    }
    #[test]
    fn a_mode_is_changed_where_the_descriptor_leads_and_not_where_the_name_does() {
        let path = scratch("held");
        let (name, moved) = (path.join("name"), path.join("moved"));
        fs::create_dir(&name).unwrap();
        set_mode(&name, 0o700);
        let held = Directory::open(&name, &[me()]).unwrap();
        fs::rename(&name, &moved).unwrap();
        fs::create_dir(&name).unwrap();
        set_mode(&name, 0o700);
        change_mode(&held.fd, Mode::from_raw_mode(0o711)).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&name), mode(&moved)), (0o700, 0o711));
        fs::remove_dir_all(&path).unwrap();
    }
    #[test]
    fn a_link_to_a_directory_and_a_file_are_refused() {
        let path = scratch("links");
        let (link, file) = (path.join("link"), path.join("file"));
        symlink(&path, &link).unwrap();
        fs::write(&file, b"").unwrap();
        assert!(Directory::open(&link, &[me()]).is_err());
        assert!(Directory::open(&file, &[me()]).is_err());
        assert!(Directory::open(&path.join("absent"), &[me()]).is_err());
        fs::remove_dir_all(&path).unwrap();
    }
    #[test]
    fn an_exporter_is_looked_for_among_both_users_places_each_once() {
        let both = places_of([4711, 0], SocketScope::Others);
        if chosen().is_none() {
            assert_eq!(both, [4711, 0].map(|u| PathBuf::from(format!("/tmp/causeway-{u}-others"))));
        }
        assert_eq!(
            places_of([me(), me()], SocketScope::Private),
            candidates(me(), SocketScope::Private)
        );
    }
    #[test]
    fn this_test_runs_without_privileges_of_a_set_user_id_program() {
        assert!(!ur_mapping::is_privileged());
    }
}
