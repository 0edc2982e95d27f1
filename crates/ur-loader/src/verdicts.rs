//! What earlier processes of this user found of adapters' files, so that a child that tries getters
//! is made once for a file and not once in each process. Only good news is kept: a file that crashes
//! is tried again each time. A file that changed since is another one.
//!
//! They are lines in `$XDG_CACHE_HOME/causeway/adapters`, or in `~/.cache` where that is not set: what
//! tells a file apart, in decimal. A file of notes that is not ours alone is not believed; one that
//! cannot be written costs a child in the next process too, and nothing else. A program with more
//! rights than its user neither reads nor writes any.
use crate::{library::Identity, log};
use rustix::process::{getegid, geteuid, getgid, getuid};
use std::{
    cell::OnceCell,
    collections::BTreeSet,
    env, fs,
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

/// The first line: what the rest is, and whose trial it was.
const TITLE: &str = concat!("adapters tried by ur-loader ", env!("CARGO_PKG_VERSION"));
/// More than this is not read, and more lines are not kept.
const LONGEST: u64 = 64 << 10;
const MOST: usize = 256;
/// As much is read at once.
const SHORT: usize = 4 << 10;

/// What is known to come back, read when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct Notes(OnceCell<BTreeSet<Identity>>);
impl Notes {
    pub(crate) fn have(&self, file: Identity) -> bool {
        let read = || place().map(|path| read_from(&path)).unwrap_or_default();
        self.0.get_or_init(read).contains(&file)
    }
}
/// Notes that these come back, for processes to come.
pub(crate) fn add(fine: impl Iterator<Item = Identity>) {
    let fine: Vec<_> = fine.collect();
    if !fine.is_empty()
        && let Some(path) = place()
        && let Err(error) = add_to(&path, &fine)
    {
        log::debug(format_args!("{} is not written: {error}", path.display()));
    }
}

fn place() -> Option<PathBuf> {
    if getuid() != geteuid() || getgid() != getegid() {
        return None;
    }
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("causeway/adapters"))
}

fn read_from(path: &Path) -> BTreeSet<Identity> {
    let Ok(file) = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
    else {
        return BTreeSet::new();
    };
    let ours = |m: fs::Metadata| {
        m.is_file() && m.uid() == geteuid().as_raw() && m.mode() & 0o022 == 0 && m.len() <= LONGEST
    };
    let mut text = String::with_capacity(SHORT);
    let whole =
        file.metadata().is_ok_and(ours) && file.take(LONGEST).read_to_string(&mut text).is_ok();
    let mut lines = text.lines();
    if !whole || lines.next() != Some(TITLE) {
        return BTreeSet::new();
    }
    lines.filter_map(Identity::parse).collect()
}

fn add_to(path: &Path, fine: &[Identity]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    // Those of before that still fit; the newest come first. Of two processes that write at once the
    // later one wins, and the other's files are tried once more.
    let before = read_from(path);
    let before = before.into_iter().filter(|one| !fine.contains(one));
    let mut text = format!("{TITLE}\n");
    for one in fine.iter().copied().chain(before).take(MOST) {
        text += &format!("{one}\n");
    }
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let half = path.with_extension(format!("{}-{number}", std::process::id()));
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&half)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&half, path));
    if written.is_err() {
        let _gone = fs::remove_file(&half);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn folder(name: &str) -> PathBuf {
        let folder = env::temp_dir().join(format!("ur-loader-{name}-{}", std::process::id()));
        let _old = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }
    fn files(folder: &Path, count: usize) -> Vec<Identity> {
        let of = |number: usize| {
            let path = folder.join(number.to_string());
            fs::write(&path, number.to_string()).unwrap();
            Identity::of(&path).unwrap()
        };
        (0..count).map(of).collect()
    }

    #[test]
    fn what_was_noted_is_read_again_also_by_others_and_a_changed_file_is_another() {
        let folder = folder("verdicts");
        let (path, all) = (folder.join("a/b/adapters"), files(&folder, 3));
        assert!(read_from(&path).is_empty());
        add_to(&path, &all[..1]).unwrap();
        add_to(&path, &all[1..2]).unwrap();
        let known = read_from(&path);
        assert!(known.contains(&all[0]) && known.contains(&all[1]) && !known.contains(&all[2]));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(folder.join("a/b")).unwrap().mode() & 0o777, 0o700);
        fs::write(folder.join("0"), "changed, and longer").unwrap();
        assert!(!known.contains(&Identity::of(&folder.join("0")).unwrap()));
        assert_eq!(fs::read_dir(folder.join("a/b")).unwrap().count(), 1, "half files stay");
        fs::remove_dir_all(folder).unwrap();
    }
    #[test]
    fn notes_that_others_could_write_are_not_believed_and_garbage_says_nothing() {
        let folder = folder("verdicts-garbage");
        let (path, all) = (folder.join("adapters"), files(&folder, 1));
        add_to(&path, &all).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).unwrap();
        assert!(read_from(&path).is_empty());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let good = fs::read_to_string(&path).unwrap();
        assert_eq!(read_from(&path).len(), 1);
        for bad in [
            String::new(),
            "adapters tried by ur-loader 0.0.0-other\n1 2 3 4 5\n".into(),
            good.replacen("adapters", "Adapters", 1),
            "x".repeat(LONGEST as usize + 1),
        ] {
            fs::write(&path, &bad).unwrap();
            assert!(read_from(&path).is_empty(), "{:.40}", bad);
        }
        for line in [
            "",
            "1 2 3 4",
            "1 2 3 4 5 6",
            "1 2 3 4 x",
            "-1 2 3 4 5",
            "99999999999999999999 2 3 4 5",
        ] {
            fs::write(&path, format!("{good}{line}\n")).unwrap();
            assert_eq!(read_from(&path).len(), 1, "{line}");
        }
        let elsewhere = folder.join("link");
        std::os::unix::fs::symlink(&path, &elsewhere).unwrap();
        assert!(read_from(&elsewhere).is_empty());
        fs::remove_dir_all(folder).unwrap();
    }
    #[test]
    fn there_are_never_more_notes_than_are_read() {
        let folder = folder("verdicts-many");
        let (path, all) = (folder.join("adapters"), files(&folder, MOST + 20));
        all.chunks(30).for_each(|some| add_to(&path, some).unwrap());
        let known = read_from(&path);
        assert_eq!(known.len(), MOST);
        assert!(known.contains(all.last().unwrap()));
        assert!(fs::metadata(&path).unwrap().len() <= LONGEST);
        fs::remove_dir_all(folder).unwrap();
    }
}
