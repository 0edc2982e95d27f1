//! Programs that nobody here wrote, or that a runtime from elsewhere runs: what installs them, once,
//! under `target/sycl`, and what starts them with an environment of their own and a time limit.
use super::root;
use std::io::Write as _;
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

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
