//! Adapters that are files: opening one, saying what is wrong with it if it does not open, and
//! asking its getters for its tables. A file that was opened stays open: objects and threads of the
//! adapter may outlive the loader's end, and the next start finds it again.
#![expect(unsafe_code, reason = "opens shared objects and calls what they export")]
use crate::{elf::diagnose, held::Held, log, paths};
use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use std::{
    ffi::{CStr, OsStr, c_void},
    mem::offset_of,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    ptr::{from_ref, null_mut},
    sync::OnceLock,
};
use ur_sys::*;

/// How an adapter is asked for one of its tables.
type Getter = unsafe extern "C" fn(ur_api_version_t, *mut c_void) -> ur_result_t;

macro_rules! getters {
    ($($group:ident $getter:ident $table:ident {
        $($(#[$doc:meta])* $slot:ident $c:ident $pfn:ident $name:ident(
            $($p:ident: $t:ty),* $(,)?
        ) by $($how:ident)+;)*
    })*) => {
        /// The getters, each with where its table is in the table of tables; `urAdapterGet`'s first.
        const GETTERS: &[(&str, usize)] =
            &[$((concat!(stringify!($getter), "\0"), offset_of!(ur_dditable_t, $group)),)*];
    };
}
entry_points!(getters);

/// An adapter's file, open for good, and what was found of it.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The dynamic linker's handle, by which it tells files apart.
    library: usize,
    getters: Vec<(&'static str, usize, Getter)>,
    /// `None` for a name that the system knows.
    identity: Option<Identity>,
    table: OnceLock<Result<ur_dditable_t, String>>,
}

/// Which file it was, and how it was then: another one may come to have its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    number: u64,
    length: u64,
    changed: (i64, i64),
}
impl Identity {
    fn of(path: &Path) -> Option<Self> {
        let file = path.metadata().ok()?;
        Some(Self {
            device: file.dev(),
            number: file.ino(),
            length: file.len(),
            changed: (file.mtime(), file.mtime_nsec()),
        })
    }
}
/// Every file that is open; those that have a path, under it.
static OPEN: Held<Vec<&'static Opened>> = Held::new(Vec::new());

/// Why a file did not open.
#[derive(Debug)]
pub(crate) enum Closed {
    /// There is none.
    Missing,
    /// A library that it needs is missing, as where a driver is not installed.
    Needs(String),
    /// It is no adapter.
    Wrong(String),
}

/// Opens a path, or a name that the system knows.
pub(crate) fn open(name: &OsStr) -> Result<&'static Opened, Closed> {
    let path = Path::new(name);
    let is_path = name.as_bytes().contains(&b'/');
    let identity = if is_path { Identity::of(path) } else { None };
    if is_path && identity.is_none() {
        return Err(Closed::Missing);
    }
    if let Some(opened) = known(identity) {
        return Ok(opened);
    }
    if is_path && let Some(wrong) = diagnose(path) {
        return Err(Closed::Wrong(wrong));
    }
    let deep = std::env::var_os("UR_ADAPTERS_DEEP_BIND").is_some_and(|value| paths::is_on(&value));
    let deep = if deep { libc::RTLD_DEEPBIND } else { 0 };
    // SAFETY: what the file does when it is opened is its maker's promise; there is no other way.
    let opened = unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_LOCAL | deep) };
    let error = match opened {
        Ok(library) => return Ok(keep(library, identity)),
        Err(error) => error.to_string(),
    };
    let own = error.starts_with(&*name.to_string_lossy());
    Err(match (own, error.contains("cannot open shared object file")) {
        (true, true) if !is_path => Closed::Missing,
        (false, true) => Closed::Needs(error),
        _ => Closed::Wrong(error),
    })
}
/// The file if it is open.
fn known(identity: Option<Identity>) -> Option<&'static Opened> {
    identity?;
    OPEN.lock().iter().copied().find(|one| one.identity == identity)
}
/// What was opened is opened again.
pub(crate) fn forget() {
    OPEN.lock().clear();
}
/// Keeps a library open. One that was open before, perhaps under another name, is counted once.
fn keep(library: Library, identity: Option<Identity>) -> &'static Opened {
    let raw = library.into_raw();
    let mut getters = Vec::new();
    for (name, at) in GETTERS {
        // Not by `Library::get`: for each that is missing, it would have an error composed.
        // SAFETY: the library is open, and the name ends with a NUL.
        let symbol = unsafe { libc::dlsym(raw, name.as_ptr().cast()) };
        if !symbol.is_null() {
            // SAFETY: functions of this name have this type, by the interface.
            let getter = unsafe { std::mem::transmute::<*mut c_void, Getter>(symbol) };
            getters.push((name.trim_end_matches('\0'), *at, getter));
        }
    }
    let mut open = OPEN.lock();
    if let Some(opened) = open.iter().find(|one| one.library == raw.addr()) {
        // SAFETY: `raw` was just opened once more, and that is taken back.
        drop(unsafe { Library::from_raw(raw) });
        return opened;
    }
    let opened: &_ = Box::leak(Box::new(Opened {
        library: raw.addr(),
        getters,
        identity,
        table: OnceLock::new(),
    }));
    open.push(opened);
    opened
}

impl Opened {
    /// Its table. Its getters are called once in a process.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(crate) fn table(&self) -> Result<&ur_dditable_t, String> {
        self.table.get_or_init(|| self.ask_all()).as_ref().map_err(String::clone)
    }
    /// The adapter's table, whose first part is whole: that of the adapter itself.
    fn ask_all(&self) -> Result<ur_dditable_t, String> {
        // SAFETY: tables are pointers, of which null is one.
        let mut table: ur_dditable_t = unsafe { std::mem::zeroed() };
        let (first, _) = GETTERS[0];
        let first = first.trim_end_matches('\0');
        if !self.getters.iter().any(|(name, ..)| *name == first) {
            return Err(format!("it exports no {first} and so is no adapter"));
        }
        for (name, at, getter) in &self.getters {
            // SAFETY: as in `ask`.
            let code = unsafe { ask(*getter, &mut table, *at) };
            match code {
                ur_result_t::SUCCESS => {}
                ur_result_t::ERROR_UNSUPPORTED_VERSION if *name == first => {
                    let ours = ur_api_version_t::CURRENT;
                    return Err(format!("it is of another version than the loader's, {ours:?}"));
                }
                code if *name == first => return Err(format!("its {name} answers {code:?}")),
                code => log::info(format_args!("an adapter's {name} answers {code:?}")),
            }
        }
        if self.getters.len() < GETTERS.len() {
            let lacks = GETTERS.len() - self.getters.len();
            log::debug(format_args!("an adapter has no getter for {lacks} of its tables"));
        }
        Ok(table)
    }
}

/// Has a getter fill its part of the table.
///
/// # Safety
/// `getter` is the one of the table at `at`.
unsafe fn ask(getter: Getter, table: &mut ur_dditable_t, at: usize) -> ur_result_t {
    // SAFETY: `at` is the offset of a table in the table of tables.
    let part = unsafe { (&raw mut *table).byte_add(at) };
    // SAFETY: the table is writable and of the getter's type.
    unsafe { getter(ur_api_version_t::CURRENT, part.cast()) }
}

/// The folder that the loader itself is in: of the shared object or of the program.
pub(crate) fn own_folder() -> Option<PathBuf> {
    static MARK: u8 = 0;
    let mut info = libc::Dl_info {
        dli_fname: null_mut(),
        dli_fbase: null_mut(),
        dli_sname: null_mut(),
        dli_saddr: null_mut(),
    };
    // SAFETY: an address of ours, and a place for the answer.
    let known = unsafe { libc::dladdr(from_ref(&MARK).cast(), &raw mut info) };
    if known == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the linker's name of a file that stays open.
    let file = unsafe { CStr::from_ptr(info.dli_fname) };
    let file = Path::new(OsStr::from_bytes(file.to_bytes()));
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => std::env::current_exe().ok()?.parent()?.to_path_buf(),
    };
    std::path::absolute(folder).ok()
}
