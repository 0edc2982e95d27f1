//! `causeway doctor --adapters` with adapters that crash, exit or hang, each in a different step: each is
//! reported with what it does, and the working adapter beside them is reported as working.
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// Source of an adapter in C, with code for its constructor, its getter and its `urAdapterGet`.
fn source([constructor, getter, get]: [&str; 3]) -> String {
    format!(
        "#include <stdlib.h>\n#include <unistd.h>\n#include <unified-runtime/ur_ddi.h>\n\
         __attribute__((constructor)) static void begin(void) {{ {constructor} }}\n\
         static ur_result_t get(uint32_t room, ur_adapter_handle_t *to, uint32_t *count) {{\n\
         (void)room; (void)to; {get} if (count) *count = 0; return UR_RESULT_SUCCESS; }}\n\
         static ur_result_t platforms(ur_adapter_handle_t a, uint32_t room, ur_platform_handle_t *to, uint32_t *count) {{\n\
         (void)a; (void)room; (void)to; if (count) *count = 0; return UR_RESULT_SUCCESS; }}\n\
         static ur_result_t devices(ur_platform_handle_t p, ur_device_type_t t, uint32_t room, ur_device_handle_t *to, uint32_t *count) {{\n\
         (void)p; (void)t; (void)room; (void)to; if (count) *count = 0; return UR_RESULT_SUCCESS; }}\n\
         ur_result_t urGetAdapterProcAddrTable(ur_api_version_t v, struct ur_adapter_dditable_t *table) {{\n\
         (void)v; {getter} table->pfnGet = get; return UR_RESULT_SUCCESS; }}\n\
         ur_result_t urGetPlatformProcAddrTable(ur_api_version_t v, struct ur_platform_dditable_t *table) {{\n\
         (void)v; table->pfnGet = platforms; return UR_RESULT_SUCCESS; }}\n\
         ur_result_t urGetDeviceProcAddrTable(ur_api_version_t v, struct ur_device_dditable_t *table) {{\n\
         (void)v; table->pfnGet = devices; return UR_RESULT_SUCCESS; }}\n"
    )
}

/// A folder of adapters, which is removed on drop.
struct Folder(PathBuf);
impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("causeway-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
    fn adapter(&self, name: &str, does: [&str; 3]) -> String {
        let (c, object) =
            (self.0.join(format!("{name}.c")), self.0.join(format!("libur_adapter_{name}.so.0")));
        fs::write(&c, source(does)).unwrap();
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
        let mut cc = Command::new("cc");
        cc.args(["-std=c99", "-D_GNU_SOURCE", "-shared", "-fPIC", "-I"]).arg(include);
        let done = cc.arg(c).arg("-o").arg(&object).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        object.display().to_string()
    }
}
impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn doctor(environment: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_causeway"));
    command.arg("doctor").args(arguments);
    for name in ["UR_ADAPTERS_FORCE_LOAD", "UR_ADAPTERS_SEARCH_PATH", "ONEAPI_DEVICE_SELECTOR"] {
        command.env_remove(name);
    }
    command.envs(environment.iter().copied()).output().unwrap()
}
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_adapter_that_crashes_ends_the_process_or_hangs_is_named_with_what_it_was_at() {
    let folder = Folder::new("doctor");
    let all = [
        ("constructor", ["abort();", "", ""], "crashes with SIGABRT while it is opened"),
        (
            "getter",
            ["", "*(volatile int *)0 = 1;", ""],
            "crashes with SIGSEGV while it is asked for its tables",
        ),
        (
            "listing",
            ["", "", "_exit(3);"],
            "ends the process with status 3 while it lists its platforms and devices",
        ),
        (
            "hang",
            ["", "for (;;) pause();", ""],
            "does not come back within 2 s while it is asked for its tables",
        ),
        // It closes its message pipe too, so the doctor only knows what it reported before.
        (
            "closes",
            ["", "for (int fd = 0; fd < 256; fd++) close(fd); for (;;) pause();", ""],
            "does not come back within 2 s while it is asked for its tables",
        ),
        (
            "closer",
            ["for (int fd = 0; fd < 256; fd++) close(fd);", "", ""],
            "closes descriptors that are not its own while it is opened",
        ),
        // Its child would keep the doctor's outputs open.
        ("leaves", ["if (fork() == 0) { sleep(300); _exit(0); }", "", ""], "works: 0 platforms"),
        ("silent", ["", "", "return UR_RESULT_ERROR_UNINITIALIZED;"], "lists no adapter"),
        (
            "prints",
            ["(void)!write(1, \"{\\\"Found\\\":\\\"Missing\\\"}\\n\", 21);", "", ""],
            "works: 0 platforms, 0 devices",
        ),
        ("good", ["", "", ""], "works: 0 platforms, 0 devices"),
    ];
    let files: Vec<_> = all.iter().map(|(name, does, _)| folder.adapter(name, *does)).collect();
    let begun = std::time::Instant::now();
    let ran =
        doctor(&[("UR_ADAPTERS_FORCE_LOAD", &files.join(","))], &["--adapters", "--timeout", "2"]);
    assert!(begun.elapsed().as_secs() < 200, "its outputs were held open");
    let (said, complained) = (text(&ran.stdout), text(&ran.stderr));
    assert_eq!(ran.status.code(), Some(1), "{said}{complained}");
    for (file, (_, _, finding)) in files.iter().zip(all) {
        let line = said.lines().find(|line| line.contains(file)).unwrap_or_default();
        assert!(line.contains(finding), "{finding}\n{said}{complained}");
    }
    assert!(complained.contains("6 adapters do not work"), "{complained}");
}

#[test]
fn what_an_adapter_starts_in_a_session_of_its_own_ends_with_its_trial() {
    let folder = Folder::new("doctor-orphans");
    // It ends by itself if the doctor does not kill it.
    let starts = "if (fork() == 0) { setsid(); if (fork() == 0) { sleep(100); _exit(0); } sleep(100); _exit(0); }";
    let file = folder.adapter("starts", [starts, "", ""]);
    let ran = doctor(&[("UR_ADAPTERS_FORCE_LOAD", &file)], &["--adapters"]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    // A process that has the adapter mapped is a descendant of the trial's process.
    let maps = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("maps")).ok();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let living = processes.filter_map(maps).filter(|maps| maps.contains(&file)).count();
    assert_eq!(living, 0);
}

#[test]
fn an_adapter_that_is_named_twice_is_one() {
    let folder = Folder::new("doctor-twice");
    let file = folder.adapter("twice", ["", "", ""]);
    let link = folder.0.join("link.so");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let list = format!("{file},{file},{}", link.display());
    let ran = doctor(&[("UR_ADAPTERS_FORCE_LOAD", &list)], &["--adapters", "--json"]);
    let findings: Vec<serde_json::Value> = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
    let place = folder.0.to_str().unwrap();
    let list = format!("{place},{place}/.");
    let search = [("UR_ADAPTERS_SEARCH_PATH", &*list), ("ONEAPI_DEVICE_SELECTOR", "opencl:*")];
    fs::rename(&file, folder.0.join("libur_adapter_opencl.so.0")).unwrap();
    let ran = doctor(&search, &["--adapters", "--json"]);
    let findings: Vec<serde_json::Value> = serde_json::from_slice(&ran.stdout).unwrap();
    let here = |one: &&serde_json::Value| one["place"].as_str().unwrap().starts_with(place);
    assert_eq!(findings.iter().filter(here).count(), 1, "{findings:?}");
}

#[test]
fn what_is_linked_in_works_and_what_is_nowhere_is_said_to_be() {
    let ran =
        doctor(&[("ONEAPI_DEVICE_SELECTOR", "native_cpu:*;opencl:*")], &["--adapters", "--json"]);
    let (said, complained) = (text(&ran.stdout), text(&ran.stderr));
    assert!(ran.status.success(), "{said}{complained}");
    let findings: Vec<serde_json::Value> = serde_json::from_str(&said).unwrap();
    let used = findings.iter().find(|one| one["adapter"] == "native_cpu" && one["used"] == true);
    let used = used.unwrap_or_else(|| panic!("{said}"));
    assert_eq!((&used["place"], &used["works"]), (&"linked in".into(), &true.into()), "{said}");
    assert!(used["finding"].as_str().unwrap().starts_with("works: 1 platform, "), "{said}");
    assert!(findings.iter().any(|one| one["adapter"] == "opencl"), "{said}");
}

#[test]
fn without_a_word_everything_is_examined() {
    let folder = Folder::new("doctor-all");
    let (here, gone) = (folder.0.join("here"), folder.0.join("no/such"));
    fs::create_dir(&here).unwrap();
    fs::set_permissions(&here, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let ran = |place: &Path, arguments: &[&str]| {
        let place = place.to_str().unwrap();
        doctor(&[("ONEAPI_DEVICE_SELECTOR", "native_cpu:*"), ("CAUSEWAY_DIR", place)], arguments)
    };
    let works = "native_cpu  linked in: works: 1 platform, ";
    let (all, adapters) = (ran(&here, &[]), ran(&here, &["--adapters"]));
    for ran in [&all, &adapters] {
        assert!(ran.status.success(), "{}", text(&ran.stderr));
        assert!(text(&ran.stdout).contains(works), "{}", text(&ran.stdout));
    }
    let meets = format!("* sharing with this user  {}: can be used\n", here.display());
    assert!(text(&all.stdout).contains(&meets), "{}", text(&all.stdout));
    assert!(!text(&adapters.stdout).contains("sharing"), "{}", text(&adapters.stdout));
    let json = ran(&here, &["--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["sharing"][0]["used"], true, "{json}");
    assert!(json["adapters"].as_array().is_some_and(|all| !all.is_empty()), "{json}");
    // A missing directory is created when it is needed.
    let fresh = ran(&folder.0.join("fresh"), &[]);
    assert!(text(&fresh.stdout).contains("fresh: can be used\n"), "{}", text(&fresh.stdout));
    // A path without a slash is relative to the working directory.
    let mut relative = Command::new(env!("CARGO_BIN_EXE_causeway"));
    relative.arg("doctor").env("ONEAPI_DEVICE_SELECTOR", "native_cpu:*").current_dir(&folder.0);
    let relative = relative.env("CAUSEWAY_DIR", "relative").output().unwrap();
    let absolute = format!("{}: can be used\n", folder.0.join("relative").display());
    assert!(text(&relative.stdout).contains(&absolute), "{}", text(&relative.stdout));
    // The obstacle is named.
    let file = ran(Path::new("/dev/null"), &[]);
    let why = "something else has this name";
    assert!(text(&file.stdout).contains(why), "{}", text(&file.stdout));
    let why = "does not exist: make that first";
    assert!(text(&ran(&gone, &[]).stdout).contains(why));
    // If no directory can be used, the command fails and advises what to do.
    let nowhere = ran(&gone, &[]);
    assert_eq!(nowhere.status.code(), Some(1), "{}", text(&nowhere.stdout));
    assert!(text(&nowhere.stderr).contains("set CAUSEWAY_DIR to"), "{}", text(&nowhere.stderr));
}
