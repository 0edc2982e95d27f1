//! The output of `causeway open`: a new file that appears complete or not at all, an existing file that is
//! written in place, or standard output.
use crate::failure::{Failure, Result};
use rustix::{
    fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, linkat, openat},
    io::Errno,
    process::{Pid, getegid, geteuid, test_kill_process},
};
use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
    process,
};

/// An output. A file that is not [finished](Self::finish) is removed.
pub enum Output {
    Stdout,
    /// Written in place: a pipe, a device, or a file with several names or of another user.
    Special(File, PathBuf),
    File {
        part: Part,
        file: File,
        path: PathBuf,
    },
}

/// A file in progress, in the folder of its final path.
pub enum Part {
    /// It has no name yet, so that nothing remains if this process is killed.
    Nameless,
    /// For file systems without unnamed files. It is removed on drop or, if this process is killed, by the
    /// next process that writes to the same path.
    Named(PathBuf),
}
impl Part {
    /// Creates a file that is to become `path`.
    fn create(path: &Path) -> io::Result<(Self, File)> {
        if let Some(file) = nameless_beside(path) {
            return Ok((Self::Nameless, file));
        }
        remove_stale(path);
        let name = part_of(path);
        let file = File::create_new(&name)?;
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive); // marks it as in use
        Ok((Self::Named(name), file))
    }
    /// Gives the file its final name, replacing an existing file.
    fn finish(&self, file: &File, path: &Path) -> io::Result<()> {
        match self {
            Self::Named(part) => fs::rename(part, path),
            Self::Nameless => match link(file, path) {
                // Linking never replaces a file, renaming does.
                Err(Errno::EXIST) => {
                    let name = part_of(path);
                    let _removed_on_failure = Self::Named(name.clone());
                    link(file, &name)?;
                    fs::rename(name, path)
                }
                linked => Ok(linked?),
            },
        }
    }
}
impl Drop for Part {
    fn drop(&mut self) {
        if let Self::Named(name) = self {
            let _ = fs::remove_file(name); // gone already once it has its final name
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}
/// Creates an unnamed file that can be linked, in the folder of `path`; `None` where that is not possible.
fn nameless_beside(path: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, folder_of(path), flags, Mode::from_raw_mode(0o666)).ok()?);
    Path::new(&in_proc(&file)).exists().then_some(file)
}
fn in_proc(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
fn link(file: &File, to: &Path) -> Result<(), Errno> {
    linkat(CWD, in_proc(file), CWD, to, AtFlags::SYMLINK_FOLLOW)
}

/// The suffix of a part file's name, after the file's name and this process's id.
const PART: &str = ".part";
fn part_of(path: &Path) -> PathBuf {
    let mut name: OsString = path.file_name().unwrap_or_default().into();
    name.push(format!(".{}{PART}", process::id()));
    path.with_file_name(name)
}
/// Returns the id of the process that wrote the part file `name` of the file `of`.
fn writer(name: &OsStr, of: &OsStr) -> Option<Pid> {
    let rest = name.as_bytes().strip_prefix(of.as_bytes())?.strip_prefix(b".")?;
    let number = str::from_utf8(rest.strip_suffix(PART.as_bytes())?).ok()?;
    Pid::from_raw(number.parse().ok()?)
}
/// Removes part files for `path` that processes of this user left when they were killed.
fn remove_stale(path: &Path) {
    let Ok(entries) = fs::read_dir(folder_of(path)) else { return };
    for entry in entries.flatten() {
        let Some(pid) = writer(&entry.file_name(), path.file_name().unwrap_or_default()) else {
            continue;
        };
        let is_dead = test_kill_process(pid) == Err(Errno::SRCH);
        if !is_dead || !entry.metadata().is_ok_and(|about| about.is_file() && is_ours(&about)) {
            continue;
        }
        // The id may be that of a process in another pid namespace; the lock tells whether it is still
        // writing.
        let file = OpenOptions::new().write(true).open(entry.path());
        if file.is_ok_and(|f| flock(f, FlockOperation::NonBlockingLockExclusive).is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Follows symbolic links at the end of a path, also to a target that does not exist.
fn target_of(path: &Path) -> io::Result<PathBuf> {
    const MOST: usize = 40; // as the kernel
    let mut path = path.to_path_buf();
    for _ in 0..MOST {
        match fs::read_link(&path) {
            Ok(to) => path = path.with_file_name("").join(to),
            Err(_) => return Ok(path), // not a link or not there: opening it reports errors
        }
    }
    Err(Errno::LOOP.into())
}
/// Whether a file that this process creates would have the same owner and group.
fn is_ours(about: &fs::Metadata) -> bool {
    (about.uid(), about.gid()) == (geteuid().as_raw(), getegid().as_raw())
}

impl Output {
    /// Begins to write to `path`, or to standard output if it is `-`. An existing file keeps its mode, owner
    /// and names: symbolic links are followed, and a file that has several names or belongs to another user
    /// is written in place.
    pub fn create(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        let failed = |error| Failure::system(format!("write {}", path.display()), &error);
        // The file behind all links. Links are resolved here because the target of a dangling link can be
        // created.
        let path = &target_of(path).map_err(failed)?;
        let about = fs::metadata(path).ok();
        if let Some(about) = &about
            && (!about.is_file() || about.nlink() > 1 || !is_ours(about))
        {
            let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
            if about.is_file() {
                file.set_len(0).map_err(failed)?;
            }
            return Ok(Self::Special(file, path.into()));
        }
        let (part, file) = Part::create(path).map_err(failed)?;
        if let Some(about) = about {
            file.set_permissions(about.permissions()).map_err(failed)?;
        }
        Ok(Self::File { part, file, path: path.into() })
    }
    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Stdout => {
                io::stdout().lock().write_all(bytes).map_err(|error| Failure::stdout(&error))
            }
            Self::Special(file, path) | Self::File { file, path, .. } => file
                .write_all(bytes)
                .map_err(|error| Failure::system(format!("write {}", path.display()), &error)),
        }
    }
    /// Completes the output; a new file gets its name.
    pub fn finish(self) -> Result<()> {
        match self {
            Self::Stdout => io::stdout().lock().flush().map_err(|error| Failure::stdout(&error)),
            Self::Special(..) => Ok(()),
            Self::File { part, file, path } => part
                .finish(&file, &path)
                .map_err(|error| Failure::system(format!("write {}", path.display()), &error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_dead_are_removed_and_those_of_the_living_stay() {
        let folder = std::env::temp_dir().join(format!("causeway-parts-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("name");
        let mut other = process::Command::new("true").spawn().unwrap();
        other.wait().unwrap();
        let dead = folder.join(format!("name.{}.part", other.id()));
        let kept = [
            part_of(&path),
            folder.join("name.part"),
            folder.join(format!("other.{}.part", other.id())),
            folder.join(format!("name.{}x.part", other.id())),
        ];
        for file in kept.iter().chain([&dead]) {
            fs::write(file, "").unwrap();
        }
        let locked = File::open(&dead).unwrap();
        flock(&locked, FlockOperation::NonBlockingLockExclusive).unwrap();
        remove_stale(&path);
        assert!(dead.exists(), "its writer lives elsewhere");
        drop(locked);
        remove_stale(&path);
        assert!(!dead.exists());
        assert!(kept.iter().all(|file| file.exists()));
        fs::remove_dir_all(&folder).unwrap();
    }
}
