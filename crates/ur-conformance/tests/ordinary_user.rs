//! The sharing families of the suite on the CPU adapter, run as an ordinary user: all exporters, importers
//! and the suite itself have no capability and use a runtime directory of that user. If the test runs as
//! root, it starts the suite as another user; otherwise the user is an ordinary one already.
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

const SUITE: &str = env!("CARGO_BIN_EXE_ur-conformance");
/// The families that cross processes, with the least number of cases that must pass in each.
const FAMILIES: [(&str, usize); 3] = [("ipc_memory", 60), ("ipc_physical", 60), ("ipc_event", 60)];
/// A user id that is not used on this machine.
const ORDINARY: u32 = 41_237;

fn main() -> ExitCode {
    let name = "sharing_holds_for_processes_of_an_ordinary_user";
    let trial = Trial::ignorable_test(name, sharing_holds_for_an_ordinary_user);
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
}

/// A folder that other users can enter, with all that the suite needs, which is removed on drop.
struct Place(PathBuf);
impl Place {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("conformance-user-{}", std::process::id()));
        let place = Self(path);
        place.folder("", 0o755);
        let mut dist = Command::new(env!("CARGO"));
        dist.args(["run", "--quiet", "--package", "xtask", "--", "dist", "--debug"]);
        dist.args(["--only", "native_cpu", "--out"]).arg(place.0.join("dist"));
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let out = dist.current_dir(root).output().unwrap();
        assert!(out.status.success(), "{}", text(&out.stderr));
        // The build folder may be inaccessible to other users.
        fs::copy(SUITE, place.0.join("suite")).unwrap();
        place
    }
    fn folder(&self, name: &str, mode: u32) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }
    /// The suite on the adapter, run by a user who has only these folders.
    fn suite(&self, user: Option<u32>) -> Command {
        let folders = ["home", "tmp", "runtime"].map(|name| self.folder(name, 0o700));
        let mut suite = Command::new(self.0.join("suite"));
        suite.arg("--adapter").arg(self.0.join("dist/native_cpu/libur_adapter_native_cpu.so.0"));
        suite.arg("--json").arg(folders[1].join("outcomes.json")).current_dir(&folders[0]);
        for (family, _) in FAMILIES {
            suite.arg("--filter").arg(format!("{family}::"));
        }
        for (variable, folder) in ["HOME", "TMPDIR", "XDG_RUNTIME_DIR"].iter().zip(&folders) {
            suite.env(variable, folder);
            if let Some(user) = user {
                std::os::unix::fs::chown(folder, Some(user), Some(user)).unwrap();
            }
        }
        suite.env_remove("CAUSEWAY_DIR");
        if let Some(user) = user {
            // All user and group ids become those of the ordinary user, without supplementary groups.
            suite.uid(user).gid(user);
        }
        suite
    }
}
impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
/// Checks that root can start processes of other users, which is not so in every environment.
fn may_be_others() -> Result<(), String> {
    let mut other = Command::new("true");
    let started = other.uid(ORDINARY).gid(ORDINARY).current_dir("/").status();
    match started {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("a process of another user ends with {status}")),
        Err(error) => Err(format!("root cannot start a process of another user here: {error}")),
    }
}

fn sharing_holds_for_an_ordinary_user() -> Result<Completion, Failed> {
    let user = rustix::process::geteuid().is_root().then_some(ORDINARY);
    if user.is_some()
        && let Err(why) = may_be_others()
    {
        return Ok(Completion::ignored_with(why));
    }
    let place = Place::new();
    let out = place.suite(user).output().unwrap();
    let said = text(&out.stdout);
    let failures = said.split("\nfailures:\n").nth(1).unwrap_or(&said);
    assert!(out.status.success(), "{failures}\n{}", text(&out.stderr));
    assert_owner(&place.0.join("tmp/outcomes.json"), user);
    let report = fs::read_to_string(place.0.join("tmp/outcomes.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let mut passed = BTreeMap::<&str, usize>::new();
    for record in report["records"].as_array().unwrap() {
        if record["outcome"] == "passed" {
            *passed.entry(record["family"].as_str().unwrap()).or_default() += 1;
        }
    }
    // Guards against a run in which most cases were skipped for lack of rights.
    for (family, least) in FAMILIES {
        let count = passed.get(family).copied().unwrap_or(0);
        assert!(count >= least, "{family}: only {count} passed\n{said}");
    }
    Ok(Completion::Completed)
}
/// Checks that the suite ran as the ordinary user, who then owns the report.
fn assert_owner(file: &Path, user: Option<u32>) {
    let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(file).unwrap());
    assert_eq!(owner, user.unwrap_or(owner));
    assert_ne!(owner, 0, "judged as root");
}
