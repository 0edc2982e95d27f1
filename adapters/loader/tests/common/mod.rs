//! Our loader and some adapters as `cargo xtask dist` makes them, the loader that oneAPI ships, and
//! programs that run against either.
#![allow(dead_code, reason = "not every test of this folder needs all of it")]
#[path = "../../../native-cpu/tests/common/client.rs"]
pub mod client;
use client::{Ran, Runtime};
use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, Weak},
};
use ur_lock::locked;

pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A folder with what was asked for, gone when the test ends.
pub struct Dist(pub PathBuf);

impl Dist {
    /// Ours: the loader is in a folder of its own, where it finds no adapters by itself.
    pub fn build(name: &str, adapters: &[&str]) -> Self {
        let dir = std::env::temp_dir().join(format!("causeway-{name}-{}", std::process::id()));
        let dist = Self(dir);
        dist.make(&dist.loader(), &["loader"]);
        dist.make(&dist.adapters(), adapters);
        dist.gather(adapters);
        dist
    }
    fn make(&self, out: &Path, only: &[&str]) {
        if only.is_empty() {
            return fs::create_dir_all(out).unwrap();
        }
        let mut dist = Command::new(env!("CARGO"));
        dist.args(["run", "--quiet", "--package", "xtask", "--", "dist", "--debug"]);
        let only = only.iter().flat_map(|name| ["--only", name]);
        let done = dist.args(only).arg("--out").arg(out).current_dir(root()).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    /// Puts the adapters side by side, where one folder of a search path finds them all.
    fn gather(&self, adapters: &[&str]) {
        for name in adapters {
            let file = format!("libur_adapter_{name}.so.0");
            fs::rename(self.adapters().join(name).join(&file), self.adapters().join(&file))
                .unwrap();
        }
    }
    /// Where our loader is.
    pub fn loader(&self) -> PathBuf {
        self.0.join("loader")
    }
    /// Where the adapters are.
    pub fn adapters(&self) -> PathBuf {
        self.0.join("adapters")
    }
    pub fn adapter(&self, name: &str) -> String {
        self.adapters().join(format!("libur_adapter_{name}.so.0")).display().to_string()
    }
    /// A program of `clients/`, linked with our loader by name: any of that name will do.
    pub fn client(&self, source: &str) -> PathBuf {
        let program = self.0.join(source.trim_end_matches(".c"));
        let sources = root().join("adapters/loader/tests/clients");
        self.cc(&["-pthread", "-L", "loader", "-lur_loader"], &sources.join(source), &program);
        program
    }
    /// A shared object made of `source`, in a folder of its own, under the name of an adapter.
    pub fn object(&self, name: &str, source: &str) -> PathBuf {
        let folder = self.0.join("objects");
        fs::create_dir_all(&folder).unwrap();
        let (c, object) = (folder.join(format!("{name}.c")), folder.join(format!("{name}.so")));
        fs::write(&c, source).unwrap();
        self.cc(&["-shared", "-fPIC"], &c, &object);
        object
    }
    fn cc(&self, last: &[&str], source: &Path, to: &Path) {
        let mut cc = Command::new("cc");
        cc.args(["-std=c99", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I"]);
        cc.arg(root().join("include")).arg(source).arg("-o").arg(to).current_dir(&self.0);
        let done = cc.args(last).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    /// Runs a program on our loader.
    pub fn ours(&self, program: &Path, words: &[&str], environment: &[(&str, String)]) -> Ran {
        on(&self.loader(), program, words, environment)
    }
}
impl Drop for Dist {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What the tests that run at one time share, and is gone with the last of them.
pub struct Shared<T>(Mutex<Weak<T>>);

impl<T> Shared<T> {
    pub const fn new() -> Self {
        Self(Mutex::new(Weak::new()))
    }
    pub fn get(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut shared = locked(&self.0);
        shared.upgrade().unwrap_or_else(|| {
            let made = Arc::new(make());
            *shared = Arc::downgrade(&made);
            made
        })
    }
}

/// A folder with the shipped loader and what it needs, but none of the adapters that come with it;
/// none, and it was said why, where that cannot be had.
pub fn shipped() -> Option<PathBuf> {
    let lib = Runtime::installed()?.lib();
    let folder = client::folder().join("loader");
    fs::create_dir_all(&folder).unwrap();
    for name in ["libur_loader.so.0", "libimf.so", "libintlc.so.5", "libirng.so", "libsvml.so"] {
        // Another test may have been as quick.
        match symlink(lib.join(name), folder.join(name)) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => panic!("{name}: {e}"),
            _ => {}
        }
    }
    Some(folder)
}

/// Runs a program on the loader in `folder`.
pub fn on(folder: &Path, program: &Path, words: &[&str], environment: &[(&str, String)]) -> Ran {
    let mut command = client::client(program);
    command.args(words).env("LD_LIBRARY_PATH", folder);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    client::run(&mut command)
}
