//! Where `causeway open` writes: a new file that appears whole or not at all, one that is there already and keeps what
//! it is, or standard output.
use crate::failure::{Failure, Result};
use rustix::process::{getegid, geteuid};
use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process,
};

/// A place for bytes. Unless [finished](Self::finish), a file that was begun is removed.
pub enum Output {
    Stdout,
    /// Written in place: a pipe, a device, a file with several names or of another user.
    Special(File, PathBuf),
    File {
        part: Part,
        file: File,
        path: PathBuf,
    },
}

/// A file that is being written, beside its final place; removed on drop.
pub struct Part(PathBuf);
impl Drop for Part {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0); // gone already once it has its final name
    }
}

/// Where a path leads: the links at its end are followed, also to what is not there yet.
fn target_of(path: &Path) -> io::Result<PathBuf> {
    const MOST: usize = 40; // as the kernel
    let mut path = path.to_path_buf();
    for _ in 0..MOST {
        match fs::read_link(&path) {
            Ok(to) => path = path.with_file_name("").join(to),
            Err(_) => return Ok(path), // no link, or nothing: opening it tells
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}
/// Whether a file of ours in its place would have the same owner and group.
fn is_ours(about: &fs::Metadata) -> bool {
    (about.uid(), about.gid()) == (geteuid().as_raw(), getegid().as_raw())
}

impl Output {
    /// Begins to write to `path`, or to standard output if it is `-`. A file that is there keeps its mode, its owner
    /// and its names: what a link leads to is written, and a file that has several names, or belongs to another user,
    /// is written in place.
    pub fn create(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        let failed = |error| Failure::system(format!("write {}", path.display()), &error);
        // What is there behind all links. A link to nothing is followed by hand: its target can be created.
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
        let mut name: OsString = path.file_name().unwrap_or_default().into();
        name.push(format!(".{}.part", process::id()));
        let part = path.with_file_name(name);
        let file = File::create_new(&part).map_err(failed)?;
        let part = Part(part);
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
    /// Gives the file its name.
    pub fn finish(self) -> Result<()> {
        match self {
            Self::Stdout => io::stdout().lock().flush().map_err(|error| Failure::stdout(&error)),
            Self::Special(..) => Ok(()),
            Self::File { part, path, .. } => fs::rename(&part.0, &path)
                .map_err(|error| Failure::system(format!("write {}", path.display()), &error)),
        }
    }
}
