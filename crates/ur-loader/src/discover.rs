//! Which adapters are looked for, and where. `library` opens them.
//!
//! The order is that of the loader that oneAPI ships (see `docs/decisions/0010-the-loader.md`). If
//! `UR_ADAPTERS_FORCE_LOAD` names files, these are the only adapters. Else the loader looks for every adapter
//! that it knows by name, except those that `ONEAPI_DEVICE_SELECTOR` rules out (`UR_LOADER_PRELOAD_FILTER=0`
//! disables this filter). It looks in the folders of `UR_ADAPTERS_SEARCH_PATH`, among the adapters that are
//! linked in, in the loader's own folder, and in the system's library folders. The first place where the
//! adapter opens is used.
use crate::{log, paths, selected};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};
use ur_sys::{ur_backend_t as Backend, ur_dditable_t, ur_device_type_t as Kind};

/// An adapter to look for.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// Its name in the log: `cuda`, or the path that the user gave.
    pub(crate) name: String,
    /// The places to look in, in order of preference.
    pub(crate) places: Vec<Place>,
}
/// Where an adapter may be.
#[derive(Debug)]
pub(crate) enum Place {
    /// A file at this path.
    File(PathBuf),
    /// A library of this name, found through the system's library search.
    System(String),
    /// Linked into this program.
    Builtin(&'static ur_dditable_t),
}

/// An adapter that is known by name, with what is known of its devices before it is loaded.
struct Known {
    name: &'static str,
    backend: Backend,
    kinds: &'static [Kind],
}
/// The known adapters, in the order in which they are listed to programs.
const KNOWN: [Known; 7] = [
    Known { name: "cuda", backend: Backend::CUDA, kinds: &[Kind::GPU] },
    Known { name: "hip", backend: Backend::HIP, kinds: &[Kind::GPU] },
    Known { name: "level_zero", backend: Backend::LEVEL_ZERO, kinds: &[Kind::GPU, Kind::VPU] },
    Known { name: "level_zero_v2", backend: Backend::LEVEL_ZERO, kinds: &[Kind::GPU, Kind::VPU] },
    Known { name: "native_cpu", backend: Backend::NATIVE_CPU, kinds: &[Kind::CPU] },
    Known { name: "offload", backend: Backend::OFFLOAD, kinds: &[Kind::GPU, Kind::CPU] },
    Known {
        name: "opencl",
        backend: Backend::OPENCL,
        kinds: &[Kind::CPU, Kind::GPU, Kind::FPGA, Kind::MCA],
    },
];

const FORCE: &str = "UR_ADAPTERS_FORCE_LOAD";
const SEARCH: &str = "UR_ADAPTERS_SEARCH_PATH";
const FILTER: &str = "UR_LOADER_PRELOAD_FILTER";

/// Returns the file name of the adapter called `name`.
fn file_name(name: &str) -> String {
    format!("libur_adapter_{name}.so.0")
}

/// Returns the adapters to look for; only the mock adapter if `mock` is set.
pub(crate) fn candidates(mock: bool) -> Vec<Candidate> {
    if mock {
        return vec![named("mock", &search())];
    }
    if let Some(forced) = forced() {
        return forced;
    }
    let search = search();
    let wanted = wanted();
    KNOWN.iter().filter(|known| wanted(known)).map(|known| named(known.name, &search)).collect()
}

/// Returns the paths that an environment variable lists; `None` if it is unset, empty or malformed.
fn listed(variable: &str) -> Option<Vec<PathBuf>> {
    let value = std::env::var_os(variable).filter(|value| !value.is_empty())?;
    match paths::list(&value) {
        Ok(paths) if paths.is_empty() => {
            log::warn(format_args!("{variable} names nothing and is ignored"));
            None
        }
        Ok(paths) => Some(paths),
        Err(wrong) => {
            log::warn(format_args!(
                "{variable} is ignored: {wrong}. Write PATH,PATH,... with quotation marks around a path that \
                 has a comma"
            ));
            None
        }
    }
}

fn forced() -> Option<Vec<Candidate>> {
    let fit = |path: &PathBuf| {
        let name = path.display();
        if path.extension().is_some_and(|e| e == "a") {
            log::warn(format_args!("{FORCE}: {name} is a static library and is left out"));
            return false;
        }
        let there = path.try_exists().unwrap_or(false);
        if !there {
            log::warn(format_args!("{FORCE}: there is no {name}{}", hint(path)));
        }
        there
    };
    let forced = once_each(listed(FORCE)?.into_iter().filter(fit));
    Some(forced.map(|path| candidate(path.display().to_string(), path)).collect())
}
fn candidate(name: String, path: PathBuf) -> Candidate {
    // The dynamic linker would search its library folders for a path without a slash.
    let path = if path.is_absolute() { path } else { Path::new(".").join(path) };
    Candidate { name, places: vec![Place::File(path)] }
}
/// Returns a hint for users who separate paths as shells do.
fn hint(path: &Path) -> &'static str {
    match path.to_string_lossy().contains([':', ';']) {
        true => "; paths are separated by commas",
        false => "",
    }
}

fn search() -> Vec<PathBuf> {
    let there = |folder: &PathBuf| {
        let there = folder.is_dir();
        if !there {
            let name = folder.display();
            log::warn(format_args!("{SEARCH}: there is no folder {name}{}", hint(folder)));
        }
        there
    };
    once_each(listed(SEARCH).unwrap_or_default().into_iter().filter(there)).collect()
}
/// Leaves out paths that lead to the same file as an earlier one, so that an adapter named twice is used
/// once.
fn once_each(paths: impl Iterator<Item = PathBuf>) -> impl Iterator<Item = PathBuf> {
    let mut seen = HashSet::new();
    paths.filter(move |path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())))
}

/// Returns a predicate: whether a known adapter could have devices that the selector accepts.
fn wanted() -> impl Fn(&Known) -> bool {
    let off = std::env::var_os(FILTER).is_some_and(|value| !paths::is_on(&value));
    let selector = match selected::selector() {
        Ok(selector) => selector.filter(|_| !off),
        Err(wrong) => {
            log::warn(format_args!(
                "{} rules out no adapter: {wrong}. No device can be selected by it",
                selected::VARIABLE
            ));
            None
        }
    };
    move |known| {
        let wanted = selector.as_ref().is_none_or(|s| s.may_use(known.backend, known.kinds));
        if !wanted {
            log::info(format_args!("{} is ruled out by {}", known.name, selected::VARIABLE));
        }
        wanted
    }
}

/// Returns a known adapter with all places where it may be.
fn named(name: &str, search: &[PathBuf]) -> Candidate {
    let file = file_name(name);
    let mut places: Vec<_> = search.iter().map(|folder| Place::File(folder.join(&file))).collect();
    places.extend(builtin(name).map(Place::Builtin));
    places.extend(crate::library::own_folder().map(|folder| Place::File(folder.join(&file))));
    places.push(Place::System(file));
    Candidate { name: name.to_string(), places }
}

#[cfg(feature = "builtin")]
fn builtin(name: &str) -> Option<&'static ur_dditable_t> {
    Some(match name {
        "native_cpu" => &ur_cpu::TABLE,
        "cuda" => &ur_cuda::CUDA_TABLE,
        "hip" => &ur_cuda::HIP_TABLE,
        "level_zero_v2" => &ur_level_zero::TABLE,
        "mock" => &ur_mock::MOCK_TABLE,
        _ => return None,
    })
}
#[cfg(not(feature = "builtin"))]
fn builtin(_name: &str) -> Option<&'static ur_dditable_t> {
    None
}
