//! Programs that nobody here wrote, or that a runtime from elsewhere runs: what installs them, once,
//! under `target/sycl`, and what starts them with an environment of their own and a time limit.
use super::root;
use std::io::Write as _;
use std::{
    collections::hash_map::DefaultHasher,
    fs::{self, File},
    hash::{Hash as _, Hasher as _},
    iter,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};
use ur_lock::locked;

/// Intel's SYCL runtime, its loader, and what the loader needs, as pip asks for them.
const RUNTIME: &[&str] = &[
    "intel-sycl-rt==2026.2.0 --hash=sha256:ad920da1ffcb43edbc03422a7c85094997e6d578f9ab534743442af70bcbfaa1",
    "intel-cmplr-lib-ur==2026.2.0 --hash=sha256:0d0a5099aa2e1e38375b509c2a8182e719ed74aa656b2a800ddf6cfbd3384b80",
    "intel-cmplr-lib-rt==2026.2.0 --hash=sha256:9f713083073a820d2496a6da8e8d4f3482aba6640f74521d25ea48dcebe72748",
];

/// Past the capture of the harness: nobody must take this for a pass.
pub fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Where everything of this file lies; the same for every build folder.
pub fn folder() -> PathBuf {
    let folder = root().join("target/sycl");
    fs::create_dir_all(&folder).unwrap();
    folder.canonicalize().unwrap()
}

/// A Python environment with the SYCL runtime in it.
#[derive(Clone)]
pub struct Runtime(PathBuf);

impl Runtime {
    /// Installed now if it is not there yet; `None`, and said why, where that cannot be.
    pub fn installed() -> Option<Self> {
        static INSTALLED: OnceLock<Result<Runtime, String>> = OnceLock::new();
        let installed =
            INSTALLED.get_or_init(|| Self(folder().join("venv")).with("runtime", RUNTIME));
        match installed {
            Ok(runtime) => Some(runtime.clone()),
            Err(why) => {
                skipped(why);
                None
            }
        }
    }
    /// The same environment with more packages in it; `name` says which, for the note that it has them.
    pub fn with(self, name: &str, packages: &[&str]) -> Result<Self, String> {
        let wanted = packages.join("\n") + "\n";
        let note = folder().join(format!("{name}.txt"));
        // Tests of several processes may want it at once; the lock goes with the file.
        let lock = File::create(folder().join("lock")).map_err(|e| e.to_string())?;
        lock.lock().map_err(|e| e.to_string())?;
        if fs::read_to_string(&note).is_ok_and(|has| has == wanted) && self.python().exists() {
            return Ok(self);
        }
        if !self.python().exists() {
            let environment = self.0.display().to_string();
            python("python3".as_ref(), &["-m", "venv", &environment])?;
        }
        let fresh = note.with_extension("wanted");
        fs::write(&fresh, &wanted).map_err(|e| e.to_string())?;
        let list = fresh.display().to_string();
        // Without dependencies: their versions are in the list too, the numeric libraries are not.
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"];
        let from = ["--only-binary", ":all:", "--require-hashes", "-r", list.as_str()];
        python(&self.python(), &[&pip[..], &from[..]].concat())?;
        fs::rename(&fresh, &note).map_err(|e| e.to_string())?;
        Ok(self)
    }
    /// The folder of libraries of other packages, which this environment does not see.
    pub fn beside(&self, name: &str, packages: &[&str]) -> Result<PathBuf, String> {
        let (into, wanted) = (folder().join(name), packages.join("\n") + "\n");
        let note = into.join("packages.txt");
        let lock = File::create(folder().join("lock")).map_err(|e| e.to_string())?;
        lock.lock().map_err(|e| e.to_string())?;
        if !fs::read_to_string(&note).is_ok_and(|has| has == wanted) {
            let list = folder().join(format!("{name}.wanted"));
            fs::write(&list, &wanted).map_err(|e| e.to_string())?;
            let [list, to] = [&list, &into].map(|path| path.display().to_string());
            let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
            let from = ["--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", &list];
            let where_to = ["--ignore-installed", "--prefix", &to];
            python(&self.python(), &[&pip[..], &from[..], &where_to[..]].concat())?;
            fs::rename(list, &note).map_err(|e| e.to_string())?;
        }
        Ok(into.join("lib"))
    }
    pub fn python(&self) -> PathBuf {
        self.0.join("bin/python3")
    }
    pub fn lib(&self) -> PathBuf {
        self.0.join("lib")
    }
    pub fn include(&self) -> PathBuf {
        self.0.join("include")
    }
}

fn python(python: &Path, arguments: &[&str]) -> Result<(), String> {
    let out = Command::new(python).args(arguments).output();
    let out = out.map_err(|e| format!("{}: {e}; Python 3 is needed", python.display()))?;
    let said = String::from_utf8_lossy(&out.stderr);
    let last = said.lines().rfind(|l| !l.trim().is_empty()).unwrap_or("it did not say why");
    if out.status.success() {
        return Ok(());
    }
    Err(format!(
        "the SYCL runtime could not be installed ({} {}): {last}",
        python.display(),
        arguments.join(" ")
    ))
}

/// What a program was given, said and complained of.
pub struct Ran {
    pub well: bool,
    pub said: String,
    pub complained: String,
}

/// A program with an environment of its own: nothing of the caller's that runtimes look at.
pub fn client(program: &Path) -> Command {
    // Nothing here is to take long; a hang is a failure and not a blocked test.
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", "120"]).arg(program);
    let known = ["UR_", "SYCL_", "ONEAPI_", "ZE_", "CAUSEWAY_", "XPTI_"];
    for (name, _) in std::env::vars_os() {
        if known.iter().any(|k| name.to_string_lossy().starts_with(k)) {
            command.env_remove(name);
        }
    }
    command.env_remove("LD_LIBRARY_PATH").env("SYCL_CACHE_PERSISTENT", "0");
    // Devices of OpenCL that the machine may have would be taken before ours.
    command.env("OCL_ICD_VENDORS", "/nonexistent");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}
pub fn end(child: Child) -> Ran {
    let out = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { well: out.status.success(), said: text(&out.stdout), complained: text(&out.stderr) }
}
pub fn run(command: &mut Command) -> Ran {
    end(command.spawn().unwrap())
}

/// What is compiled: the executable's name, the source, and the version of the standard.
pub type Program = (&'static str, &'static str, &'static str);

/// The programs of `examples/sycl` that run alone.
pub const ALONE: [&str; 6] = ["usm", "virtual_memory", "queues", "buffers", "surface", "garbage"];
/// All programs of `examples/sycl` without kernels: those that run alone, and the pair.
pub const EXAMPLES: [Program; 8] = [
    ("usm", "examples/sycl/usm.cpp", "17"),
    ("virtual_memory", "examples/sycl/virtual_memory.cpp", "17"),
    ("queues", "examples/sycl/queues.cpp", "17"),
    ("buffers", "examples/sycl/buffers.cpp", "17"),
    ("surface", "examples/sycl/surface.cpp", "17"),
    ("garbage", "examples/sycl/garbage.cpp", "17"),
    ("producer", "examples/sycl/producer.cpp", "17"),
    ("consumer", "examples/sycl/consumer.cpp", "17"),
];

/// What the tests that run at one time have in common, and gone with the last of them.
pub fn shared<T>(place: &Mutex<Weak<T>>, make: impl FnOnce() -> Option<T>) -> Option<Arc<T>> {
    let mut place = locked(place);
    if let Some(there) = place.upgrade() {
        return Some(there);
    }
    let made = Arc::new(make()?);
    *place = Arc::downgrade(&made);
    Some(made)
}
/// The folder of these programs; compiles, two at a time, those that no test has compiled yet. `None`, and it
/// was said why, where there is no C++ compiler.
pub fn programs(runtime: &Runtime, all: &[Program]) -> Option<PathBuf> {
    if Command::new("g++").arg("--version").output().is_err() {
        skipped("g++ is not installed");
        return None;
    }
    let build = folder().join("build");
    let keys: Vec<u64> = all.iter().map(|program| key(runtime, program)).collect();
    let mut whole = DefaultHasher::new();
    (all, &keys).hash(&mut whole);
    // The folder's name says from what.
    let into = build.join(format!("{:016x}", whole.finish()));
    if into.is_dir() {
        return Some(into);
    }
    let half = into.with_extension(std::process::id().to_string());
    fs::create_dir_all(&half).unwrap();
    let (next, all) = (&AtomicUsize::new(0), &all.iter().zip(keys).collect::<Vec<_>>()[..]);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            let (build, half) = (&build, &half);
            threads.spawn(move || {
                while let Some((program, key)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let compiled = build.join(format!("{key:016x}.program"));
                    if !compiled.exists() {
                        let new = half.join(format!("new-{key:016x}"));
                        compile(runtime, program, &new);
                        fs::rename(new, &compiled).unwrap();
                    }
                    fs::hard_link(compiled, half.join(program.0)).unwrap();
                }
            });
        }
    });
    // Another process may have been as quick: its programs are the same.
    if fs::rename(&half, &into).is_err() {
        fs::remove_dir_all(&half).unwrap();
    }
    Some(into)
}
/// A number that changes with all that a program is compiled from.
fn key(runtime: &Runtime, (_, source, standard): &Program) -> u64 {
    let mut key = DefaultHasher::new();
    (runtime.include(), standard).hash(&mut key);
    let files = [source, "examples/sycl/common.hpp"];
    files.map(|file| fs::read(root().join(file)).unwrap()).hash(&mut key);
    key.finish()
}
fn compile(runtime: &Runtime, (_, source, standard): &Program, program: &Path) {
    let mut compiler = Command::new("g++");
    compiler.args([&format!("-std=c++{standard}"), "-O1", "-Wall", "-Wextra", "-Werror"]);
    compiler.arg("-DSYCL_DISABLE_FSYCL_SYCLHPP_WARNING").arg("-isystem").arg(runtime.include());
    compiler.arg("-I").arg(root().join("examples/sycl"));
    compiler.arg(root().join(source)).arg("-o").arg(program);
    compiler.arg("-L").arg(runtime.lib()).arg("-lsycl");
    compiler.arg(format!("-Wl,-rpath,{}", runtime.lib().display()));
    let out = compiler.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// It said in the end that all was fine.
pub fn fine(name: &str, ran: &Ran) {
    let said = ran.said.lines().last();
    assert!(
        ran.well && said == Some(&format!("{name}: fine")),
        "{name}:\n{}\n{}",
        ran.said,
        ran.complained
    );
}
/// A producer and its consumers, each at the ends of two named pipes, which lie in `within`.
pub fn pair(within: &Path, consumers: usize, start: impl Fn(&str) -> Command) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let pipes: Vec<_> =
        (0..2 * consumers).map(|i| within.join(format!("pipe-{number}-{i}"))).collect();
    assert!(Command::new("mkfifo").args(&pipes).status().unwrap().success());
    let producer = start("producer").args(&pipes).spawn().unwrap();
    let consumers = pipes.chunks(2).map(|p| start("consumer").args(p).spawn().unwrap());
    // All have ended before anything is said of one: its failure is often another's.
    let started: Vec<_> = iter::once(producer).chain(consumers).collect();
    let ended: Vec<_> = started.into_iter().map(end).collect();
    let complaints: String = ended.iter().map(|r| r.complained.as_str()).collect();
    for (ran, name) in ended.iter().zip(iter::once("producer").chain(iter::repeat("consumer"))) {
        assert!(ran.well && ran.said == format!("{name}: fine\n"), "{}\n{complaints}", ran.said);
    }
}
