//! `cargo xtask gpu-bundle`: one archive that a machine with a GPU, but without Rust, a compiler or a
//! network, can run: the adapters, the conformance suite, the `causeway` command, the tests of the
//! CUDA adapter, programs for the unmodified SYCL runtime with that runtime, the Python module's
//! wheel, and a script.
use crate::{
    dist::{self, execute},
    python, root,
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

type Result<T> = std::result::Result<T, String>;

/// The largest archive that is of use: what carries it to such a machine may take no more.
const MOST: u64 = 60 << 20;
/// What the SYCL runtime consists of, in the environment that the tests of `native-cpu` install.
const RUNTIME: &[&str] = &[
    "libsycl.so.9",
    "libur_loader.so.0",
    "libimf.so",
    "libintlc.so.5",
    "libirng.so",
    "libsvml.so",
];
/// What is to be packed.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Only the Python module's wheel and what python.sh runs with it, into target/gpu-python/
    #[arg(long)]
    only_module: bool,
}

/// Files that go in as they are.
const SCRIPTS: &[&str] = &[
    "xtask/gpu/run.sh",
    "xtask/gpu/torch_capture.py",
    "xtask/gpu/torch_segments.py",
    "xtask/gpu/with_torch.py",
    "xtask/gpu/share_tensor.py",
    "benches/probes/cuda_events.c",
];
/// The same, for the Python module.
const OF_THE_MODULE: &[&str] = &[
    "xtask/gpu/python.sh",
    "xtask/gpu/module.py",
    "xtask/gpu/module_costs.py",
    "crates/causeway-python/tests/kills.py",
    "crates/causeway-python/benches/calls.py",
    "examples/python/share_tensor.py",
];

/// Builds `target/gpu-bundle/` and `target/gpu-bundle.tar.xz`, or the module's part alone.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.only_module {
        return module(&emptied("target/gpu-python", &["bin"])?);
    }
    let folder = emptied("target/gpu-bundle", &["bin", "lib", "sycl", "tests", "module/bin"])?;
    let request = dist::Request {
        only: vec!["cuda".into(), "native_cpu".into(), "loader".into()],
        debug: false,
        out: Some(folder.join("dist")),
        ..dist::Request::default()
    };
    dist::run(&request)?;
    programs(&folder)?;
    tests(&folder)?;
    sycl(&folder)?;
    module(&folder.join("module"))?;
    scripts(SCRIPTS, &folder)?;
    pack(&folder)
}
/// A new folder with these in it.
fn emptied(name: &str, parts: &[&str]) -> Result<PathBuf> {
    let folder = root().join(name);
    if folder.is_dir() {
        fs::remove_dir_all(&folder).map_err(|e| at(&folder, &e))?;
    }
    for part in parts {
        let part = folder.join(part);
        fs::create_dir_all(&part).map_err(|e| at(&part, &e))?;
    }
    Ok(folder)
}
/// What python.sh runs: the wheel, and the calls of the Rust crate that it is compared with.
fn module(folder: &Path) -> Result<()> {
    let wheel = python::release()?;
    copy(&wheel, &folder.join(wheel.file_name().expect("it has one")))?;
    let calls = ["--package", "causeway", "--example", "calls"];
    execute(cargo().args(["build", "--quiet", "--release"]).args(calls))?;
    stripped(&target().join("release/examples/calls"), &folder.join("bin/calls"))?;
    scripts(OF_THE_MODULE, folder)?;
    println!("{}", folder.display());
    Ok(())
}
fn scripts(scripts: &[&str], folder: &Path) -> Result<()> {
    for script in scripts {
        let name = Path::new(script).file_name().expect("each has one");
        copy(&root().join(script), &folder.join(name))?;
    }
    Ok(())
}

fn at(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(drop).map_err(|e| at(from, &e))
}
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |dir| root().join(dir))
}
fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}
/// A copy without symbols.
fn stripped(from: &Path, to: &Path) -> Result<()> {
    execute(Command::new("strip").arg("-o").arg(to).arg(from))
}

/// The suite and the command.
fn programs(folder: &Path) -> Result<()> {
    let packages = ["--package", "ur-conformance", "--package", "causeway-cli"];
    execute(cargo().args(["build", "--quiet", "--release", "--bins"]).args(packages))?;
    for program in ["ur-conformance", "causeway"] {
        stripped(&target().join("release").join(program), &folder.join("bin").join(program))?;
    }
    let bench = ["bench", "--quiet", "--no-run", "--package", "causeway-benches"];
    let built = cargo()
        .args(bench)
        .args(["--bench", "cuda", "--message-format", "json"])
        .output()
        .map_err(|e| format!("cargo: {e}"))?;
    let executable = executables(&built.stdout)
        .pop()
        .ok_or_else(|| format!("the benchmark was not built: {}", text(&built.stderr)))?;
    stripped(&executable.1, &folder.join("bin/bench"))
}
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
/// What cargo says that it made: the names of targets, and executables.
fn executables(messages: &[u8]) -> Vec<(String, PathBuf)> {
    let lines = text(messages);
    let field = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!("\"{name}\":\""))?;
        Some(rest.split_once('"')?.0.to_string())
    };
    let made = lines.lines().filter(|line| line.contains("\"reason\":\"compiler-artifact\""));
    made.filter_map(|line| {
        let target = line.split_once("\"target\":")?.1;
        Some((field(target, "name")?, field(line, "executable")?.into()))
    })
    .collect()
}
/// The tests of the CUDA adapter, as programs.
fn tests(folder: &Path) -> Result<()> {
    let words = ["test", "--quiet", "--release", "--no-run", "--package", "cuda"];
    let built = cargo()
        .args(words)
        .args(["--message-format", "json"])
        .output()
        .map_err(|e| format!("cargo: {e}"))?;
    if !built.status.success() {
        return Err(text(&built.stderr));
    }
    for (name, executable) in executables(&built.stdout) {
        stripped(&executable, &folder.join("tests").join(name))?;
    }
    Ok(())
}
/// The SYCL runtime and our programs for it, which tests of `native-cpu` install and compile.
fn sycl(folder: &Path) -> Result<()> {
    execute(cargo().args(["test", "--quiet", "--package", "native-cpu", "--test", "sycl"]))?;
    let from = root().join("target/sycl");
    for library in RUNTIME {
        copy(&from.join("venv/lib").join(library), &folder.join("lib").join(library))?;
    }
    let builds = fs::read_dir(from.join("build")).map_err(|e| at(&from, &e))?;
    // Half-made ones have an extension, and those of other tests lack this program.
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.bytes().all(|byte| byte.is_ascii_hexdigit()) && path.join("each").exists()
    };
    let newest = builds
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(is_ours)
        .max_by_key(|path| path.metadata().and_then(|m| m.modified()).ok())
        .ok_or("no SYCL program was compiled: g++ and Python are needed")?;
    for program in fs::read_dir(&newest).map_err(|e| at(&newest, &e))? {
        let program = program.map_err(|e| at(&newest, &e))?;
        copy(&program.path(), &folder.join("sycl").join(program.file_name()))?;
    }
    Ok(())
}
fn pack(folder: &Path) -> Result<()> {
    let archive = folder.with_extension("tar.xz");
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(folder.with_file_name("")).arg("-cJf").arg(&archive).arg("gpu-bundle");
    execute(tar.env("XZ_OPT", "-6 -T2"))?;
    let bytes = fs::metadata(&archive).map_err(|e| at(&archive, &e))?.len();
    println!("{} {:.1} MiB", archive.display(), bytes as f64 / f64::from(1 << 20));
    match bytes <= MOST {
        true => Ok(()),
        false => Err(format!("the archive is larger than {} MiB", MOST >> 20)),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn executables_are_found_in_what_cargo_says() {
        let said = br#"{"reason":"compiler-artifact","package_id":"x","target":{"kind":["test"],"name":"suite"},"executable":"/t/suite-1"}
{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"cuda"},"executable":null}
{"reason":"build-finished","success":true}"#;
        assert_eq!(super::executables(said), [("suite".to_string(), "/t/suite-1".into())]);
    }
}
