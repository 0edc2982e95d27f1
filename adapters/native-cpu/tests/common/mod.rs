//! The shared object as `cargo xtask dist` makes it, for the tests that load it.
use std::{path::PathBuf, process::Command};

#[allow(dead_code, reason = "not every test of this folder starts clients")]
pub mod client;

/// A folder with the shared object and the headers, gone when the test ends.
pub struct Dist(pub PathBuf);

impl Dist {
    pub fn build(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("causeway-{name}-{}", std::process::id()));
        let mut dist = Command::new(env!("CARGO"));
        dist.args(["run", "--quiet", "--package", "xtask", "--", "dist", "--debug"]);
        let out = dist
            .args(["--only", "native_cpu", "--only", "loader", "--out"])
            .arg(&dir)
            .current_dir(root())
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        Self(dir)
    }
    /// The folder in which the adapter is found by its name.
    #[allow(dead_code, reason = "not every test of this folder searches")]
    pub fn adapter(&self) -> PathBuf {
        self.0.join("native_cpu")
    }
    #[allow(dead_code, reason = "not every test of this folder names the file")]
    pub fn object(&self) -> PathBuf {
        self.adapter().join("libur_adapter_native_cpu.so.0")
    }
}
impl Drop for Dist {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
