//! `cargo xtask wheel`: the Python module, and the adapters as files beside it, as a wheel in `target/wheels/`, built by
//! maturin, which is fetched by pip into an environment of its own; and its tests, in that environment.
use crate::{
    dist::{self, execute},
    root,
};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

type Result<T> = std::result::Result<T, String>;

/// What is to be done.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Builds quickly, for this system alone, and runs the module's tests on what was built
    #[arg(long)]
    test: bool,
}

/// The oldest systems on which the wheel runs.
const COMPATIBILITY: &str = "manylinux_2_28";
/// Their C library, as Zig names it.
const TARGET: &str = "x86_64-linux-gnu.2.28";
/// The adapters that programs of SYCL load out of the wheel.
const ADAPTERS: [&str; 3] = ["native_cpu", "cuda", "level_zero"];

pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.test {
        let environment = Environment::new()?;
        environment.install(&["maturin>=1.9,<2", "numpy", "pytest", "pytest-xdist", "mypy"])?;
        let wheels = root().join("target/python/wheels");
        adapters(true, None)?;
        environment.build(&["--profile", "dev", "--compatibility", "linux"], &wheels)?;
        return environment.test(&wheels);
    }
    release().map(drop)
}
/// Builds the wheel for every system, and returns where it is.
pub fn release() -> Result<PathBuf> {
    let environment = Environment::new()?;
    // Zig's linker knows the C library of that age; this system's is newer.
    environment.install(&["maturin[zig]>=1.9,<2"])?;
    adapters(false, Some(environment.zig()?))?;
    let wheels = root().join("target/wheels");
    environment.build(&["--release", "--zig", "--compatibility", COMPATIBILITY], &wheels)?;
    newest(&wheels)
}

/// A virtual environment in `target/`.
struct Environment {
    bin: PathBuf,
}
impl Environment {
    fn new() -> Result<Self> {
        let folder = root().join("target/python/venv");
        if !folder.join("bin/pip").is_file() {
            execute(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        }
        Ok(Self { bin: folder.join("bin") })
    }
    fn install(&self, packages: &[&str]) -> Result<()> {
        let mut pip = Command::new(self.bin.join("pip"));
        execute(pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(packages))
    }
    /// A linker for the C library of `COMPATIBILITY`.
    fn zig(&self) -> Result<PathBuf> {
        let linker = self.bin.join("zig-cc");
        let python = self.bin.join("python");
        let script =
            format!("#!/bin/sh\nexec {} -m ziglang cc -target {TARGET} \"$@\"\n", python.display());
        let wrong = |e: std::io::Error| format!("{}: {e}", linker.display());
        fs::write(&linker, script).map_err(wrong)?;
        fs::set_permissions(&linker, fs::Permissions::from_mode(0o755)).map_err(wrong)?;
        Ok(linker)
    }
    fn build(&self, how: &[&str], to: &Path) -> Result<()> {
        let mut maturin = Command::new(self.bin.join("maturin"));
        maturin.args(["build", "--quiet", "--interpreter"]).arg(self.bin.join("python")).args(how);
        // Maturin looks for Zig's package, and for `python`, in the path.
        let path = std::env::var("PATH").unwrap_or_default();
        maturin.env("PATH", format!("{}:{path}", self.bin.display()));
        execute(maturin.arg("--out").arg(to).current_dir(package()))?;
        println!("{}", newest(to)?.display());
        Ok(())
    }
    /// Installs the wheel as a user would and runs the tests, CUDA's over the software driver.
    fn test(&self, wheels: &Path) -> Result<()> {
        let wheel = newest(wheels)?.display().to_string();
        self.install(&["--force-reinstall", "--no-deps", &wheel])?;
        execute(
            Command::new("cargo").args(["build", "--package", "soft-cuda"]).current_dir(root()),
        )?;
        let driver = root().join("target/python/soft-cuda");
        fs::create_dir_all(&driver).map_err(|e| format!("{}: {e}", driver.display()))?;
        let built = root().join("target/debug/libsoft_cuda.so");
        fs::copy(&built, driver.join("libcuda.so.1"))
            .map_err(|e| format!("{}: {e}", built.display()))?;
        let mut tests = Command::new(self.bin.join("python"));
        // Several at a time: most of their time they wait for other processes.
        tests.args(["-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", "-n", "4"]);
        execute(tests.env("LD_LIBRARY_PATH", &driver).current_dir(package()))
    }
}

/// Makes the adapters, and puts them where maturin takes them for files of the package.
fn adapters(debug: bool, linker: Option<PathBuf>) -> Result<()> {
    let only = ADAPTERS.map(String::from).into();
    let out = Some(dist::target().join("python/dist"));
    let made = dist::run(&dist::Request { only, out, debug, strip: true, linker })?;
    let folder = package().join("python/causeway_ipc/adapters");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for adapter in made {
        if !debug {
            runs_on_old(&adapter)?;
        }
        let to = folder.join(adapter.file_name().unwrap_or_default());
        fs::copy(&adapter, &to).map_err(|e| format!("{}: {e}", to.display()))?;
    }
    Ok(())
}

/// Refuses what asks for a C library that is newer than `COMPATIBILITY`.
fn runs_on_old(object: &Path) -> Result<()> {
    let listed = dist::output("objdump", &["-T"], object)?;
    let minor = |rest: &str| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0_u32)
    };
    match listed.split("GLIBC_2.").skip(1).map(minor).max() {
        Some(found @ 29..) => Err(format!("{} asks for glibc 2.{found}", object.display())),
        _ => Ok(()),
    }
}

fn package() -> PathBuf {
    root().join("crates/causeway-python")
}
/// The wheel that was made last.
fn newest(folder: &Path) -> Result<PathBuf> {
    let wrong = |e: std::io::Error| format!("{}: {e}", folder.display());
    let mut wheels = Vec::new();
    for entry in fs::read_dir(folder).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        if path.extension().is_some_and(|extension| extension == "whl") {
            let made = path.metadata().and_then(|data| data.modified()).map_err(wrong)?;
            wheels.push((made, path));
        }
    }
    let newest = wheels.into_iter().max().map(|(_, path)| path);
    newest.ok_or_else(|| format!("{}: no wheel", folder.display()))
}
