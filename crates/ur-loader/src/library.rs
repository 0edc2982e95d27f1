//! Adapters that are files: opens a file, says what is wrong if that fails, and gets its tables through its
//! getters. An opened file is never closed: objects and threads of the adapter may exist after the loader's
//! end, and the next start finds the file again.
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

/// An adapter's function that fills one of its tables.
type Getter = unsafe extern "C" fn(ur_api_version_t, *mut c_void) -> ur_result_t;

macro_rules! getters {
    ($($group:ident $getter:ident $table:ident {
        $($(#[$doc:meta])* $slot:ident $c:ident $pfn:ident $name:ident(
            $($p:ident: $t:ty),* $(,)?
        ) by $($how:ident)+;)*
    })*) => {
        /// The getters, each with the offset of its table in `ur_dditable_t`; the one of `urAdapterGet` is
        /// first.
        const GETTERS: &[(&str, usize)] =
            &[$((concat!(stringify!($getter), "\0"), offset_of!(ur_dditable_t, $group)),)*];
    };
}
entry_points!(getters);

/// An adapter's file, which is never closed, and what was found in it.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The dynamic linker's handle, which is the same for the same file.
    library: usize,
    getters: Vec<(&'static str, usize, Getter)>,
    /// `None` for a library that the system's search found by name.
    identity: Option<Identity>,
    table: OnceLock<Result<ur_dditable_t, String>>,
}

/// Identifies a file and its state when it was opened: later another file may have the same name.
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
/// Every open file.
static OPEN: Held<Vec<&'static Opened>> = Held::new(Vec::new());

/// Why a file did not open.
#[derive(Debug)]
pub(crate) enum Closed {
    /// There is no such file.
    Missing,
    /// A library that it needs is missing, as where a driver is not installed.
    Needs(String),
    /// It is not a usable adapter.
    Wrong(String),
}

/// Opens a path, or a library name that the system's search finds.
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
    // SAFETY: loading runs the file's constructors, which must be sound; the user who installed or named the
    // file is responsible for that.
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
/// Returns the file if it is open already.
fn known(identity: Option<Identity>) -> Option<&'static Opened> {
    identity?;
    OPEN.lock().iter().copied().find(|one| one.identity == identity)
}
/// Forgets the open files, so that the next start opens them again.
pub(crate) fn forget() {
    OPEN.lock().clear();
}
/// Keeps a library open. If it was open already, perhaps under another name, its entry is returned.
fn keep(library: Library, identity: Option<Identity>) -> &'static Opened {
    let raw = library.into_raw();
    let mut getters = Vec::new();
    for (name, at) in GETTERS {
        // `libc::dlsym` instead of `Library::get`, which would format an error for each missing symbol.
        //
        // SAFETY: the library is open, and the name ends with a NUL.
        let symbol = unsafe { libc::dlsym(raw, name.as_ptr().cast()) };
        if !symbol.is_null() {
            // SAFETY: the interface defines functions of this name with this type.
            let getter = unsafe { std::mem::transmute::<*mut c_void, Getter>(symbol) };
            getters.push((name.trim_end_matches('\0'), *at, getter));
        }
    }
    let mut open = OPEN.lock();
    if let Some(opened) = open.iter().find(|one| one.library == raw.addr()) {
        // SAFETY: `raw` comes from `into_raw` of this library; dropping it undoes the second open.
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
    /// Returns its table. The getters are called once in a process.
    ///
    /// # Errors
    /// Returns why the file cannot be used.
    pub(crate) fn table(&self) -> Result<&ur_dditable_t, String> {
        self.table.get_or_init(|| self.ask_all()).as_ref().map_err(String::clone)
    }
    /// Calls all getters. The first, for the adapter's own table, must succeed.
    fn ask_all(&self) -> Result<ur_dditable_t, String> {
        // SAFETY: a table consists of optional function pointers, for which zero is `None`.
        let mut table: ur_dditable_t = unsafe { std::mem::zeroed() };
        let (first, _) = GETTERS[0];
        let first = first.trim_end_matches('\0');
        if !self.getters.iter().any(|(name, ..)| *name == first) {
            return Err(format!("it exports no {first} and so is no adapter"));
        }
        for (name, at, getter) in &self.getters {
            // SAFETY: `GETTERS` pairs each getter with the offset of its table.
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

/// Calls a getter to fill its part of the table.
///
/// # Safety
/// `getter` is the getter of the table at offset `at`.
unsafe fn ask(getter: Getter, table: &mut ur_dditable_t, at: usize) -> ur_result_t {
    // SAFETY: the caller promises that `at` is the offset of a table in `ur_dditable_t`.
    let part = unsafe { (&raw mut *table).byte_add(at) };
    // SAFETY: the table is writable and has the getter's type, as the caller promises.
    unsafe { getter(ur_api_version_t::CURRENT, part.cast()) }
}

/// Returns the folder that contains the loader: that of the shared object, or of the program.
pub(crate) fn own_folder() -> Option<PathBuf> {
    static MARK: u8 = 0;
    let mut info = libc::Dl_info {
        dli_fname: null_mut(),
        dli_fbase: null_mut(),
        dli_sname: null_mut(),
        dli_saddr: null_mut(),
    };
    // SAFETY: the address is that of a static, and `info` is writable.
    let known = unsafe { libc::dladdr(from_ref(&MARK).cast(), &raw mut info) };
    if known == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: `dladdr` returned the name of a loaded file, which stays loaded.
    let file = unsafe { CStr::from_ptr(info.dli_fname) };
    let file = Path::new(OsStr::from_bytes(file.to_bytes()));
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        _ => std::env::current_exe().ok()?.parent()?.to_path_buf(),
    };
    std::path::absolute(folder).ok()
}
