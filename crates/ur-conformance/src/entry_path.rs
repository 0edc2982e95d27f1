//! The interface through which the suite calls an adapter: a loader, as programs do, or the adapter's own
//! tables. The outcomes must be the same.
#![expect(unsafe_code, reason = "starts a loader")]
use crate::adapter::fill_all;
use std::{convert::Infallible, fmt, path::Path, path::PathBuf, str::FromStr};
use ur_sys::*;

/// The interface between the suite and the adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryPath {
    /// This project's loader, which is linked into this program.
    Ours,
    /// The adapter's own tables.
    Direct,
    /// The shared object of a loader.
    Loader(PathBuf),
}
impl FromStr for EntryPath {
    type Err = Infallible;
    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "ours" => Self::Ours,
            "direct" => Self::Direct,
            path => Self::Loader(path.into()),
        })
    }
}
impl fmt::Display for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours => f.write_str("ours"),
            Self::Direct => f.write_str("direct"),
            Self::Loader(path) => write!(f, "{}", path.display()),
        }
    }
}

impl EntryPath {
    /// Whether it is the same file as the adapter: a loader with an adapter linked into it.
    pub fn is(&self, adapter: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().ok();
        matches!(self, Self::Loader(path) if real(path).is_some_and(|own| Some(own) == real(adapter)))
    }
    /// Returns the functions to call `adapter` by; `None` if these are its own.
    ///
    /// # Errors
    /// Returns a sentence if the loader cannot be loaded or does not start.
    pub fn tables(&self, adapter: &Path) -> Result<Option<ur_dditable_t>, String> {
        if *self == Self::Direct {
            return Ok(None);
        }
        // A loader that is the adapter itself has one linked into it, which it lists if no other file is
        // named.
        match self.is(adapter) {
            // SAFETY: the process has no other thread yet.
            true => unsafe { std::env::remove_var("UR_ADAPTERS_FORCE_LOAD") },
            // SAFETY: as above.
            false => unsafe { std::env::set_var("UR_ADAPTERS_FORCE_LOAD", adapter) },
        }
        let flags = ur_device_init_flags_t(0);
        let none = ur_loader_config_handle_t::NULL;
        let (code, tables) = match self {
            Self::Loader(path) => {
                let library = open(path)?;
                let init = b"urLoaderInit\0";
                // SAFETY: the interface defines the symbol of that name with this type.
                let init = unsafe { library.get::<ur_pfnLoaderInit_t>(init) };
                let init = init.map_err(|e| format!("{}: {e}", path.display()))?;
                // SAFETY: the arguments are no flags and no configuration.
                let code = unsafe { init(flags, none) };
                let mut tables = ur_dditable_t::EMPTY;
                fill_all(library, &mut tables);
                (code, tables)
            }
            _ => (ur_loader::life::loader_init(flags, none), ur_loader::entry::TABLE),
        };
        match code {
            ur_result_t::SUCCESS => Ok(Some(tables)),
            code => Err(format!("the loader does not start: {code:?}")),
        }
    }
}
fn open(path: &Path) -> Result<&'static libloading::Library, String> {
    // SAFETY: loading runs the object's constructors, which the user requested.
    let library = unsafe { libloading::Library::new(path) };
    let library = library.map_err(|e| format!("{} cannot be loaded: {e}", path.display()))?;
    Ok(Box::leak(Box::new(library)))
}
