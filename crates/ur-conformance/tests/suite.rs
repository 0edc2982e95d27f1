//! Runs the suite as a program: on the CPU adapter as `cargo xtask dist` links it, and on objects that are no
//! adapters.
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

const SUITE: &str = env!("CARGO_BIN_EXE_ur-conformance");

/// A folder with the shared object, which is removed on drop.
struct Dist(PathBuf);
impl Dist {
    fn build(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("conformance-{name}-{}", std::process::id()));
        let mut dist = Command::new(env!("CARGO"));
        dist.args(["run", "--quiet", "--package", "xtask", "--", "dist", "--debug"]);
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let dist = dist.args(["--only", "native_cpu", "--out"]);
        let out = dist.arg(&dir).current_dir(root).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        Self(dir)
    }
    fn object(&self) -> PathBuf {
        self.0.join("native_cpu/libur_adapter_native_cpu.so.0")
    }
}
impl Drop for Dist {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
fn judge(adapter: &Path, arguments: &[&str]) -> Output {
    Command::new(SUITE).arg("--adapter").arg(adapter).args(arguments).output().unwrap()
}
/// Makes a shared object of a C file.
fn compile(source: &Path, object: &Path, flags: &[&str]) {
    let mut cc = Command::new("cc");
    cc.args(flags).args(["-shared", "-fPIC", "-o"]).arg(object).arg(source);
    assert!(cc.status().unwrap().success());
}
const STRICT: [&str; 3] = ["-Wall", "-Wextra", "-Werror"];
/// An adapter whose entries all say yes; with `HANGS` some never return.
const YES_MAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/yes_man.c");
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn our_cpu_adapter_passes_every_case_that_it_does_not_skip_for_a_reason() {
    let dist = Dist::build("all");
    let json = dist.0.join("outcomes.json");
    let (junit, html) = (dist.0.join("outcomes.xml"), dist.0.join("outcomes.html"));
    let files = [("--json", &json), ("--junit", &junit), ("--html", &html)];
    let files: Vec<_> =
        files.iter().flat_map(|(flag, file)| [*flag, file.to_str().unwrap()]).collect();
    let out = judge(&dist.object(), &files);
    let said = text(&out.stdout);
    let failures = said.split("\nfailures:\n").nth(1).unwrap_or(&said);
    assert!(out.status.success(), "{failures}\n{}", text(&out.stderr));

    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let records = report["records"].as_array().unwrap();
    assert!(records.len() > 1500, "{} cases", records.len());
    let passed = |family: &str| {
        let of = records.iter().filter(|r| r["family"] == family);
        of.filter(|r| r["outcome"] == "passed").count()
    };
    // The central features of this project must not be skipped.
    for family in ["ipc_memory", "ipc_physical", "ipc_event", "usm", "event", "queue"] {
        assert!(passed(family) > 20, "{family}: {} passed", passed(family));
    }
    for record in records.iter().filter(|r| r["outcome"] == "skipped") {
        assert!(!record["why"].as_str().unwrap().is_empty(), "skipped without a reason: {record}");
    }
    let cases = std::fs::read_to_string(junit).unwrap().matches("<testcase ").count();
    assert_eq!(cases, records.len());
    assert!(std::fs::read_to_string(html).unwrap().contains("Every case"));
}

#[test]
fn a_file_that_is_no_adapter_is_one_error_and_no_verdict() {
    let out = judge(Path::new(SUITE), &[]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("cannot be loaded"), "{}", text(&out.stderr));
    let out = judge(Path::new("/nowhere.so"), &[]);
    assert_eq!(out.status.code(), Some(2));
}

/// As one whose driver ends the process, with success.
#[test]
fn an_adapter_that_ends_who_loads_it_is_one_error_and_no_verdict() {
    let dir = std::env::temp_dir().join(format!("conformance-ends-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (source, object) = (dir.join("ends.c"), dir.join("ends.so"));
    let ends = "void _exit(int); __attribute__((constructor)) static void end(void) { _exit(0); }";
    std::fs::write(&source, ends).unwrap();
    compile(&source, &object, &["-w"]);
    let out = judge(&object, &[]);
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("it ended as it loaded the adapter"), "{:?}", out);
}

#[test]
fn the_list_names_every_case_with_its_rule() {
    let out = Command::new(SUITE).args(["--list", "--filter", "urQueueCreate"]).output().unwrap();
    let said = text(&out.stdout);
    let (rules, cases): (Vec<_>, Vec<_>) = said.lines().partition(|l| l.starts_with("    rule: "));
    assert!(cases.len() > 5 && cases.len() == rules.len(), "{said}");
    assert!(cases.iter().all(|case| case.contains("urQueueCreate")), "{said}");
    assert!(said.contains("a null context is INVALID_NULL_HANDLE"), "{said}");
}

/// A shared object that returns wrong results, and crashes in one entry.
const BAD: &str = r#"
typedef unsigned u;
static u get_adapter(u n, void **out, u *count) { if (count) *count = 1; if (out) *out = (void *)&get_adapter; return 0; }
static u crash(void) { volatile int *at = 0; return *at; }
static u one(void) { return 0; }
u urGetAdapterProcAddrTable(u version, void **table) {
    if (!table) return one();
    table[0] = (void *)get_adapter; table[1] = (void *)one; table[2] = (void *)crash; table[3] = (void *)one;
    table[4] = (void *)one; table[5] = (void *)one; table[6] = (void *)one;
    return 0;
}
"#;

#[test]
fn an_adapter_that_crashes_or_lies_fails_its_cases_and_leaves_the_suite_standing() {
    let dir = std::env::temp_dir().join(format!("conformance-bad-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (source, object) = (dir.join("bad.c"), dir.join("bad.so"));
    std::fs::write(&source, BAD).unwrap();
    compile(&source, &object, &["-w"]);
    // Without a loader in between: the object's handles are no real objects.
    let out = judge(&object, &["--through", "direct", "--filter", "urAdapter"]);
    std::fs::remove_dir_all(&dir).unwrap();
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("the process crashed: ended by signal 11"), "{said}");
    assert!(said.contains("where UR_RESULT_ERROR_INVALID_NULL_HANDLE was expected"), "{said}");
    // The total at the end equals the number of failures that the harness printed.
    let failed = said.lines().filter(|line| line.ends_with("FAILED")).count();
    let last = said.lines().rev().find(|line| line.starts_with("all ")).unwrap();
    let counted: usize = last.split_whitespace().last().unwrap().parse().unwrap();
    assert!(counted == failed && failed > 3, "{said}");
}

#[test]
fn an_adapter_that_says_yes_and_does_nothing_passes_no_case_about_memory() {
    let dir = std::env::temp_dir().join(format!("conformance-yes-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (json, object) = (dir.join("outcomes.json"), dir.join("yes_man.so"));
    compile(Path::new(YES_MAN), &object, &STRICT);
    // Only families whose names end in `memory`: the others behave alike and take long.
    let arguments = ["--through", "direct", "--filter", "memory::"];
    judge(&object, &[&arguments[..], &["--json", json.to_str().unwrap()]].concat());
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let records = report["records"].as_array().unwrap();
    assert!(records.len() > 100, "{} cases", records.len());
    let passed = records.iter().filter(|record| record["outcome"] == "passed");
    let passed: Vec<_> = passed.map(|record| record["title"].as_str().unwrap()).collect();
    assert_eq!(passed, ["memory::urGetMemProcAddrTable: the getter is there and fills every slot"]);
}

/// `urPlatformGet` does not return, so every case that needs a platform hangs in it.
#[test]
fn an_entry_that_hangs_fails_its_cases_in_time_and_the_run_goes_on() {
    let dir = std::env::temp_dir().join(format!("conformance-hang-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (json, object) = (dir.join("outcomes.json"), dir.join("hangs.so"));
    compile(Path::new(YES_MAN), &object, &[&STRICT[..], &["-DHANGS"]].concat());
    let began = Instant::now();
    let arguments = ["--through", "direct", "--filter", "platform::", "--deadline", "2", "-j", "8"];
    let out = judge(&object, &[&arguments[..], &["--json", json.to_str().unwrap()]].concat());
    let took = began.elapsed();
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stdout));
    let records = report["records"].as_array().unwrap();
    let hung: Vec<_> = records.iter().filter(|r| r["why"] == "not over after 2 s").collect();
    // Cases that only look at the table finish, although others hang.
    assert!(hung.len() > 5, "{records:#?}");
    assert!(records.iter().any(|r| r["outcome"] == "passed"), "{records:#?}");
    for record in &hung {
        assert_eq!(record["outcome"], "failed", "{record}");
        let took = record["seconds"].as_f64().unwrap();
        assert!((1.9..20.0).contains(&took), "{record}");
    }
    assert!(took < Duration::from_secs(120), "{took:?}");
    // No process is left behind: hanging workers were killed and waited for.
    let left = processes_with(object.to_str().unwrap());
    assert!(left.is_empty(), "left behind: {left:?}");
}
/// Returns the processes that have `argument` among their arguments.
fn processes_with(argument: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let has = |path: &PathBuf| {
        std::fs::read(path.join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).split('\0').any(|one| one == argument))
    };
    all.filter(has).collect()
}
