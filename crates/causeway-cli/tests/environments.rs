//! Random environments: whatever the variables of the loader, the adapters and sharing contain, a command
//! ends in time, with success or with one sentence. `CAUSEWAY_TEST_ENVIRONMENTS` sets how many environments
//! are tried; the default is 60.
use proptest::{collection::vec, prelude::*, sample::select, test_runner::TestRunner};
use std::{
    ffi::OsString,
    fs,
    os::unix::{ffi::OsStringExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// How long a command may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// All variables that README lists, and those that name users' directories.
const VARIABLES: [&str; 19] = [
    "CAUSEWAY_DIR",
    "CAUSEWAY_MAX_IMPORTERS",
    "CAUSEWAY_NATIVE_CPU_BACKEND",
    "CAUSEWAY_TRACE",
    "ONEAPI_DEVICE_SELECTOR",
    "UR_ADAPTERS_FORCE_LOAD",
    "UR_ADAPTERS_SEARCH_PATH",
    "UR_CUDA_MAX_LOCAL_MEM_SIZE",
    "UR_CUDA_USM",
    "UR_ENABLE_LAYERS",
    "UR_LOADER_PRELOAD_FILTER",
    "UR_LOADER_USE_LEVEL_ZERO_V2",
    "UR_LOG_CUDA",
    "UR_LOG_LEVEL_ZERO",
    "UR_LOG_LOADER",
    "UR_LOG_NATIVE_CPU",
    "UR_LOG_TRACING",
    "UR_LOG_VALIDATION",
    "XDG_RUNTIME_DIR",
];
/// The parts of which values are composed: words with a meaning to some variable, and separators.
const WORDS: [&str; 47] = [
    "",
    "*",
    "!",
    ":",
    ";",
    ",",
    ".",
    "\"",
    "'",
    "=",
    "%p",
    "%",
    "0",
    "1",
    "-1",
    "7",
    "4294967296",
    "18446744073709551616",
    "1e9",
    "native_cpu",
    "cuda",
    "level_zero",
    "opencl",
    "hip",
    "gpu",
    "cpu",
    "native_cpu:*",
    "native_cpu:0.0",
    "!native_cpu:0",
    "level:debug",
    "level:info",
    "output:stdout",
    "output:stderr",
    "output:file,log",
    "flush:debug",
    "quiet",
    "UR_LAYER_FULL_VALIDATION",
    "UR_LAYER_PARAMETER_VALIDATION",
    "UR_LAYER_LEAK_CHECKING",
    "UR_LAYER_TRACING",
    "text",
    "json:trace",
    "chrome:trace.json",
    "/proc",
    "/dev/full",
    "/no/such",
    "legacy",
];
const COMMANDS: [&[&str]; 4] = [
    &["devices"],
    &["info", "--json"],
    &["demo", "--mib", "1", "--hops", "2"],
    &["open", "cw1-mem-0"],
];

/// Generates a value without a 0 byte and of a length that the kernel accepts.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let words = vec(select(&WORDS[..]), 0..8).prop_map(|words| words.concat().into_bytes());
    let bytes = vec(1_u8..=255, 0..64);
    let long = (select(&WORDS[..]), 1_usize..120_000)
        .prop_map(|(word, length)| word.bytes().chain(*b";").cycle().take(length).collect());
    prop_oneof![6 => words, 3 => bytes, 1 => long]
}
fn environment() -> impl Strategy<Value = Vec<(&'static str, Vec<u8>)>> {
    vec((select(&VARIABLES[..]), value()), 1..6)
}

/// The command's working directory, which contains files that it is made to write.
struct Folder(PathBuf);
impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("causeway-env-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}
impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(command: &[&str], environment: &[(&str, Vec<u8>)], folder: &Path) -> Result<Output, String> {
    let mut process = Command::new(env!("CARGO_BIN_EXE_causeway"));
    VARIABLES.iter().for_each(|variable| {
        process.env_remove(variable);
    });
    for (variable, value) in environment {
        process.env(variable, OsString::from_vec(value.clone()));
    }
    process.args(command).current_dir(folder);
    process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child: Child = process.spawn().map_err(|e| format!("not started: {e}"))?;
    let (pid, (done, waited)) = (child.id(), mpsc::channel());
    thread::spawn(move || done.send(child.wait_with_output()));
    match waited.recv_timeout(PATIENCE) {
        Ok(output) => output.map_err(|e| e.to_string()),
        Err(_) => {
            let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            Err(format!("it does not end within {} s", PATIENCE.as_secs()))
        }
    }
}
/// Accepts success, or a failure with a sentence.
fn judge(output: &Output) -> Result<(), String> {
    let said = String::from_utf8_lossy(&output.stderr);
    let end: String = said.chars().rev().take(600).collect::<Vec<_>>().into_iter().rev().collect();
    if said.contains("panicked at") {
        return Err(format!("it panicked: {end}"));
    }
    match (output.status.code(), output.status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(1), _) if said.lines().any(is_sentence) => Ok(()),
        (code, signal) => Err(format!("code {code:?}, signal {signal:?}: {end}")),
    }
}
fn is_sentence(line: &str) -> bool {
    line.strip_prefix("causeway: ").is_some_and(|said| said.split(' ').count() > 2)
}

#[test]
fn in_any_environment_a_command_ends_well_or_with_a_sentence() {
    let many = std::env::var("CAUSEWAY_TEST_ENVIRONMENTS").ok();
    let cases = many.map_or(60, |many| many.parse().expect("a number of environments"));
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let folder = Folder::new();
    let both = (environment(), select(&COMMANDS[..]));
    let judged = TestRunner::new(config).run(&both, |(environment, command)| {
        let judged = run(command, &environment, &folder.0).and_then(|output| judge(&output));
        judged.map_err(|why| {
            let shown = environment.iter().map(|(variable, value)| {
                format!("{variable}={:.200}", String::from_utf8_lossy(value))
            });
            let shown: Vec<_> = shown.collect();
            TestCaseError::fail(format!("{command:?} with {shown:?}: {why}"))
        })
    });
    if let Err(failure) = judged {
        panic!("{failure}");
    }
}
