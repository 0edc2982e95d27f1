//! The adapter and a driver for it, for tests that start programs. Without a word the driver is the software
//! one; `CAUSEWAY_CUDA=real` takes the machine's. `CAUSEWAY_CUDA_ADAPTER` and `CAUSEWAY_CONFORMANCE` name an
//! adapter and a suite that are built already, for machines that cannot build them.
use std::{
    env,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

#[allow(dead_code, reason = "not every test of this folder starts clients")]
#[path = "../../../native-cpu/tests/common/client.rs"]
pub mod client;

/// A folder with what was built, gone when the test ends.
pub struct World {
    dir: PathBuf,
    adapter: PathBuf,
}
impl World {
    /// The adapter, and the software driver unless the real one is asked for; `None`, and said why, where there
    /// is neither the one nor a way to build it.
    pub fn new(name: &str) -> Option<Self> {
        let dir = env::temp_dir().join(format!("causeway-cuda-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let mut world = Self { adapter: dir.join("cuda/libur_adapter_cuda.so.0"), dir };
        match named("CAUSEWAY_CUDA_ADAPTER") {
            Some(adapter) => world.adapter = adapter,
            None => {
                let mut dist = cargo()?;
                dist.args(["run", "--quiet", "--package", "xtask", "--", "dist", "--debug"]);
                built(dist.args(["--only", "cuda", "--out"]).arg(&world.dir));
            }
        }
        if !is_real() {
            let mut driver = cargo()?;
            driver.args(["build", "--package", "soft-cuda", "--message-format", "json"]);
            let told = built(&mut driver);
            let file = told.split('"').find(|w| w.ends_with("/libsoft_cuda.so"));
            std::fs::create_dir(world.drivers()).unwrap();
            let driver = world.drivers().join("libcuda.so.1");
            std::fs::copy(file.unwrap(), driver).unwrap();
        }
        Some(world)
    }
    /// The adapter's file.
    #[allow(dead_code, reason = "one test of this folder needs it")]
    pub fn adapter(&self) -> &Path {
        &self.adapter
    }
    /// The folder in which the adapter is found by its name.
    #[allow(dead_code, reason = "one test of this folder needs it")]
    pub fn folder(&self) -> &Path {
        self.adapter.parent().unwrap()
    }
    fn drivers(&self) -> PathBuf {
        self.dir.join("driver")
    }
    /// The command on the driver that is asked for.
    pub fn on_driver<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        if is_real() { command } else { command.env("LD_LIBRARY_PATH", self.drivers()) }
    }
    /// The conformance suite.
    #[allow(dead_code, reason = "one test of this folder needs it")]
    pub fn suite(&self) -> Option<PathBuf> {
        if let Some(suite) = named("CAUSEWAY_CONFORMANCE") {
            return Some(suite);
        }
        let mut suite = cargo()?;
        // The other programs are selected so that nothing is built anew for want of a feature.
        suite.args(["build", "--bin", "ur-conformance", "--message-format", "json"]);
        suite.args(["--package", "ur-conformance", "--package", "causeway-cli"]);
        suite.args(["--package", "xtask"]);
        let told = built(&mut suite);
        // Cargo names the file of each thing it builds; the program comes last.
        let (_, last) = told.rsplit_once("\"executable\":\"").expect("the package has a program");
        last.split('"').next().map(PathBuf::from)
    }
}
impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
/// Whether the machine's own driver is to be used.
pub fn is_real() -> bool {
    env::var("CAUSEWAY_CUDA").is_ok_and(|v| v == "real")
}
fn named(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from)
}
/// Cargo in the source tree; `None`, and said so, where there is none.
pub fn cargo() -> Option<Command> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    if !root().join("Cargo.toml").exists() || Command::new(&cargo).arg("-V").output().is_err() {
        let _ = writeln!(std::io::stderr(), "skipped: there is no source tree to build from here");
        return None;
    }
    let mut cargo = Command::new(cargo);
    cargo.current_dir(root());
    Some(cargo)
}
fn built(command: &mut Command) -> String {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}
pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
