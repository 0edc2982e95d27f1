//! Where `causeway open` writes: a file that appears whole or not at all, or standard output.
use crate::failure::{Failure, Result};
use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    process,
};

/// A place for bytes. Unless [finished](Self::finish), a file that was begun is removed.
pub enum Output {
    Stdout,
    /// Written in place: a pipe, a device.
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

impl Output {
    /// Begins to write to `path`, or to standard output if it is `-`.
    pub fn create(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        let failed = |error| Failure::system(format!("write {}", path.display()), &error);
        if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
            return Ok(Self::Special(file, path.into()));
        }
        let mut name: OsString = path.file_name().unwrap_or_default().into();
        name.push(format!(".{}.part", process::id()));
        let part = path.with_file_name(name);
        let file = File::create_new(&part).map_err(failed)?;
        Ok(Self::File { part: Part(part), file, path: path.into() })
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
