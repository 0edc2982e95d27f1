//! Each layer is tested by a program of its own: this test runs itself again as that program, with the
//! environment that turns the layer on.
#[path = "layers/programs.rs"]
mod programs;

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    process::{Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

const VALIDATION: &str = "UR_LAYER_FULL_VALIDATION";

/// Returns what a program wrote to the standard error; asserts that it succeeded.
fn heard(program: &str, environment: &[(&str, &str)]) -> String {
    let Output { status, stderr, stdout } = run(program, environment);
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert!(status.success(), "{program}: {status}\n{}{said}", String::from_utf8_lossy(&stdout));
    said
}
/// Returns what the leak checks reported for a program, and the sizes that the program printed as NAME=SIZE.
fn heard_with_sizes(program: &str) -> (String, Vec<(String, String)>) {
    let Output { status, stderr, stdout } =
        run(program, &[("UR_ENABLE_LAYERS", "UR_LAYER_LEAK_CHECKING")]);
    let [said, shown] = [stderr, stdout].map(|of| String::from_utf8_lossy(&of).into_owned());
    assert!(status.success(), "{program}: {status}\n{shown}{said}");
    let sizes = shown.split_whitespace().filter_map(|word| word.split_once('='));
    let sizes = sizes.map(|(name, size)| (name.into(), size.into())).collect();
    (said, sizes)
}
fn run(program: &str, environment: &[(&str, &str)]) -> Output {
    run_by(Command::new(std::env::current_exe().unwrap()), program, environment)
}
fn run_by(mut command: Command, program: &str, environment: &[(&str, &str)]) -> Output {
    prepare(&mut command, program, environment);
    command.output().unwrap()
}
fn prepare(command: &mut Command, program: &str, environment: &[(&str, &str)]) {
    command.args(["--exact", "program", "--ignored", "--nocapture", "--test-threads", "1"]);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("UR_") {
            command.env_remove(name);
        }
    }
    command.env_remove("CAUSEWAY_TRACE").env("ONEAPI_DEVICE_SELECTOR", "native_cpu:*");
    command.env("PROGRAM", program).envs(environment.iter().copied());
}
/// The first line of each report of the validation layers.
fn reports(said: &str) -> Vec<&str> {
    said.lines().filter_map(|line| line.strip_prefix("<VALIDATION>[ERROR]: ")).collect()
}

/// Not a test: the program that the others start.
#[test]
#[ignore = "is started by the other tests"]
fn program() {
    programs::run(&std::env::var("PROGRAM").unwrap());
}

#[test]
fn a_program_without_faults_is_told_of_none() {
    let said = heard("well", &[("UR_ENABLE_LAYERS", VALIDATION)]);
    assert_eq!(reports(&said), [""; 0], "{said}");
}
#[test]
fn nothing_that_the_reference_reports_falsely_is_reported() {
    let said = heard("suspects", &[("UR_ENABLE_LAYERS", VALIDATION)]);
    assert_eq!(reports(&said), [""; 0], "{said}");
}
#[test]
fn null_handles_null_pointers_values_and_flags_are_refused_with_their_codes() {
    let said = heard("parameters", &[("UR_ENABLE_LAYERS", "UR_LAYER_PARAMETER_VALIDATION")]);
    let reports = reports(&said);
    for (call, code) in [
        ("urQueueFinish", "INVALID_NULL_HANDLE: hQueue is null"),
        ("urContextCreate", "INVALID_NULL_POINTER: phContext is null"),
        ("urDeviceGet", "INVALID_ENUMERATION: DeviceType is no value of its type"),
        ("urContextCreate", "INVALID_ENUMERATION: pProperties->flags has bits that are no flags"),
        ("urUSMHostAlloc", "INVALID_USM_SIZE: size == 0"),
        ("urEventWait", "INVALID_VALUE: numEvents == 0"),
        ("urEnqueueEventsWait", "INVALID_EVENT_WAIT_LIST: phEventWaitList holds a null event"),
    ] {
        let found = reports.iter().any(|r| r.starts_with(call) && r.ends_with(code));
        assert!(found, "{call}: {code}\n{said}");
    }
}
#[test]
fn a_handle_is_reported_when_it_is_used_or_released_after_its_release() {
    let said = heard("released", &[("UR_ENABLE_LAYERS", "UR_LAYER_LIFETIME_VALIDATION")]);
    let reports = reports(&said);
    assert_eq!(reports.len(), 2, "{said}");
    for (report, call) in reports.iter().zip(["urContextGetInfo", "urContextRelease"]) {
        assert!(report.starts_with(&format!("{call}: the Context 0x")), "{report}");
        assert!(
            report.contains("is used after its last reference was released by urContextRelease")
        );
    }
    assert!(said.contains("it was made by urContextCreate here:"), "{said}");
}
#[test]
fn objects_of_two_contexts_in_one_call_are_reported() {
    let said = heard("parents", &[("UR_ENABLE_LAYERS", "UR_LAYER_LIFETIME_VALIDATION")]);
    let reports = reports(&said);
    assert_eq!(reports.len(), 1, "{said}");
    assert!(reports[0].starts_with("urEnqueueMemBufferFill: the Mem 0x"), "{said}");
    assert!(reports[0].ends_with("use objects of one context"), "{said}");
}
#[test]
fn a_handle_that_no_call_gave_is_reported() {
    let said = heard("foreign", &[("UR_ENABLE_LAYERS", "UR_LAYER_LIFETIME_VALIDATION")]);
    let reports = reports(&said);
    assert!(reports.iter().any(|r| r.contains("is a Context, not a Queue")), "{said}");
    assert!(reports.iter().any(|r| r.contains("is an Adapter, not a Context")), "{said}");
}
#[test]
fn what_is_never_released_is_told_at_the_end_with_the_place_of_its_making() {
    let said = heard("leak", &[("UR_ENABLE_LAYERS", "UR_LAYER_LEAK_CHECKING")]);
    let reports = reports(&said);
    assert_eq!(reports.len(), 2, "{said}");
    let of = |what: &str| reports.iter().find(|r| r.contains(what)).copied().unwrap_or_default();
    assert!(
        of("2 reference(s) to the Context").ends_with("made by urContextCreate here:"),
        "{said}"
    );
    assert!(of("1 reference(s) to the Queue").ends_with("made by urQueueCreate here:"), "{said}");
    assert!(said.contains("programs::leak"), "no backtrace names the program:\n{said}");
    // Each backtrace begins at the program's call.
    let first: Vec<_> = said.lines().filter_map(|line| line.strip_prefix("   0: ")).collect();
    let first: Vec<_> = first.into_iter().take(reports.len()).collect();
    let of_the_program = |frame: &&str| frame.contains("programs::World::");
    assert!(first.len() == 2 && first.iter().all(of_the_program), "{said}");
}
#[test]
fn memory_ranges_and_ipc_handles_that_are_given_back_are_not_told() {
    let said = heard("memory", &[("UR_ENABLE_LAYERS", VALIDATION)]);
    assert_eq!(reports(&said), [""; 0], "{said}");
}
#[test]
fn memory_ranges_and_ipc_handles_that_are_kept_are_told_with_kind_size_and_place() {
    let (said, sizes) = heard_with_sizes("memory-leak");
    let size = |of: &str| sizes.iter().find(|(name, _)| name == of).unwrap().1.as_str();
    let reports = reports(&said);
    for (what, size, why, call) in [
        ("host USM", "64", "was never freed", "urUSMHostAlloc"),
        ("device USM", "101", "was never freed", "urUSMDeviceAlloc"),
        ("shared USM", "102", "was never freed", "urUSMSharedAlloc"),
        ("device USM", "103", "was never freed", "urEnqueueUSMDeviceAllocExp"),
        ("device USM", "104", "was never freed", "urUSMDeviceAlloc"),
        ("pitched USM", size("PITCHED"), "was never freed", "urUSMPitchedAllocExp"),
        ("range of addresses", size("RANGE"), "was never freed", "urVirtualMemReserve"),
        (
            "IPC handle of USM",
            size("TICKET"),
            "was taken 1 time(s) more than put back",
            "urIPCGetMemHandleExp",
        ),
        // Opened three times and closed once.
        (
            "memory of an IPC handle",
            "101",
            "was opened 2 time(s) more than closed",
            "urIPCOpenMemHandleExp",
        ),
    ] {
        let end = format!(" ({size} bytes) {why}; given by {call} here:");
        let of_it = |r: &&&str| r.starts_with(&format!("{what} at 0x")) && r.ends_with(&end);
        assert_eq!(reports.iter().filter(of_it).count(), 1, "{what}{end}\n{said}");
    }
    // The pool is reported too, because a reference to it is left.
    assert!(reports.iter().any(|r| r.starts_with("1 reference(s) to the UsmPool")), "{said}");
    assert_eq!(reports.len(), 10, "{said}");
    assert!(said.contains("memory::kept"), "no backtrace names the program:\n{said}");
}
#[test]
fn calls_that_fail_neither_get_nor_give_back() {
    let (said, sizes) = heard_with_sizes("memory-failed");
    let mut reports = reports(&said);
    reports.sort_unstable();
    let [memory, range] = reports[..] else { panic!("{said}") };
    assert!(memory.starts_with("device USM at 0x") && memory.contains("(101 bytes)"), "{memory}");
    let size = format!("({} bytes) was never freed", sizes[0].1);
    assert!(range.starts_with("range of addresses at 0x") && range.contains(&size), "{range}");
}
#[test]
fn commands_that_run_past_their_memory_are_refused() {
    let said = heard("bounds", &[("UR_ENABLE_LAYERS", "UR_LAYER_BOUNDS_CHECKING")]);
    let reports = reports(&said);
    assert_eq!(reports.len(), 7, "{said}");
    assert!(
        reports[0].contains("pDst touches 65 bytes at offset 0 of an allocation of 64 bytes"),
        "{said}"
    );
    assert!(reports[1].contains("pSrc touches 32 bytes at offset 40 of an allocation"), "{said}");
    assert!(reports[2].starts_with("urEnqueueUSMFill is refused"), "{said}");
    assert!(reports[3].starts_with("urEnqueueUSMMemcpy2D is refused"), "{said}");
    assert!(
        reports[4].contains("hBuffer touches 36 bytes at offset 29 of a buffer of 64 bytes"),
        "{said}"
    );
    assert!(reports[5].contains("hBuffer touches 12 bytes at offset 53 of a buffer"), "{said}");
    assert!(
        reports[6].contains("hBuffer touches 8 bytes at offset 60 of a buffer of 64 bytes"),
        "{said}"
    );
}
#[test]
fn a_block_of_an_image_past_its_end_in_any_direction_is_refused() {
    let said = heard("images", &[("UR_ENABLE_LAYERS", "UR_LAYER_BOUNDS_CHECKING")]);
    let reports = reports(&said);
    assert_eq!(reports.len(), 4, "{said}");
    let first = "hImageSrc touches [2, 1, 1] pixels from [7, 3, 0] on of an image of [8, 4, 1]";
    assert!(reports[0].contains(first), "{said}");
}
#[test]
fn a_trace_for_people_has_every_call_with_its_arguments_and_result() {
    let environment =
        [("UR_ENABLE_LAYERS", "UR_LAYER_TRACING"), ("UR_LOG_TRACING", "level:info;output:stderr")];
    let said = heard("well", &environment);
    let begun = said.lines().filter(|l| l.starts_with("   ---> ur")).count();
    let ended: Vec<_> = said.lines().filter(|l| l.starts_with("   <--- ur")).collect();
    assert!(begun == ended.len() && begun > 10, "{said}");
    let create = ended.iter().find(|l| l.contains("urContextCreate(")).unwrap();
    assert!(create.contains("(.DeviceCount = 1, .phDevices = 0x"), "{create}");
    assert!(create.contains(") -> UR_RESULT_SUCCESS; "), "{create}");
}
#[test]
fn a_trace_reads_nothing_that_a_refused_call_has_not_written() {
    let trace = Scratch::new("unanswered").trace("json", "unanswered");
    let calls = trace.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let refused: Vec<_> = calls.filter(|call| call["result"] != "UR_RESULT_SUCCESS").collect();
    let where_to = ["pPropValue", "ppMessage", "ppPlatformOption"];
    for (call, parameter) in refused.iter().zip(where_to) {
        let shown = call["arguments"][parameter].as_str().unwrap();
        assert!(shown.starts_with("0x") && !shown.contains(' '), "{call}");
    }
    assert_eq!(refused.len(), where_to.len(), "{trace}");
}
#[test]
fn a_trace_and_a_log_that_reach_the_limit_on_files_end_nobody() {
    for form in ["chrome", "json"] {
        let scratch = Scratch::new(&format!("limit-{form}"));
        let mut environment = scratch.environment(form).to_vec();
        let log = format!("level:info;output:file,{}", scratch.0.with_extension("log").display());
        environment.push(("UR_LOG_LOADER", log));
        let environment: Vec<_> =
            environment.iter().map(|(n, value)| (*n, value.as_str())).collect();
        let mut shell = Command::new("bash");
        shell
            .args(["-c", "ulimit -f 2 && exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap());
        let ran = run_by(shell, "threads", &environment);
        assert!(ran.status.success(), "{}: {}", ran.status, String::from_utf8_lossy(&ran.stderr));
        let trace = scratch.traces().into_values().next().unwrap();
        // The trace is complete up to where it ends.
        let records: Vec<serde_json::Value> = match form {
            "chrome" => serde_json::from_str(&trace).unwrap(),
            _ => trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        };
        assert!(records.len() > 3, "{trace}");
        std::fs::remove_file(scratch.0.with_extension("log")).unwrap();
    }
}
#[test]
fn a_reader_of_a_trace_that_leaves_ends_nobody() {
    let scratch = Scratch::new("reader");
    let pipe = scratch.0.join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let value = format!("json:{}", pipe.display());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut first = [0];
            std::io::Read::read_exact(&mut std::fs::File::open(&pipe).unwrap(), &mut first)
                .unwrap();
        });
        heard("threads", &[("UR_ENABLE_LAYERS", "UR_LAYER_TRACING"), ("CAUSEWAY_TRACE", &value)]);
    });
}
#[test]
fn wrong_names_and_sanitizers_are_warnings_and_change_nothing_else() {
    let said = heard("well", &[("UR_ENABLE_LAYERS", "nope,,UR_LAYER_ASAN;\u{7},UR_LAYER_MSAN")]);
    let warnings = said.lines().filter(|l| l.contains("UR_ENABLE_LAYERS: there is no layer"));
    assert_eq!(warnings.count(), 1, "{said}");
    assert!(said.contains("UR_LAYER_MSAN does nothing here"), "{said}");
}

/// A folder for traces, which is removed on drop.
struct Scratch(std::path::PathBuf);
impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("causeway-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
    /// The environment for a program, which its children inherit.
    fn environment(&self, form: &str) -> [(&'static str, String); 2] {
        let to = format!("{form}:{}", self.0.join("trace.json").display());
        [("UR_ENABLE_LAYERS", format!("{VALIDATION},UR_LAYER_TRACING")), ("CAUSEWAY_TRACE", to)]
    }
    fn hear(&self, form: &str, program: &str) -> String {
        let environment = self.environment(form);
        heard(program, &environment.each_ref().map(|(name, value)| (*name, value.as_str())))
    }
    /// The traces, by the process ids in their names.
    fn traces(&self) -> BTreeMap<u64, String> {
        let of = |file: std::io::Result<std::fs::DirEntry>| {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy();
            let pid = name.strip_prefix("trace.").and_then(|name| name.strip_suffix(".json"));
            (pid.unwrap().parse().unwrap(), std::fs::read_to_string(&path).unwrap())
        };
        std::fs::read_dir(&self.0).unwrap().map(of).collect()
    }
    /// The trace of the only process.
    fn trace(&self, form: &str, program: &str) -> String {
        self.hear(form, program);
        let traces = self.traces();
        assert_eq!(traces.len(), 1, "{:?}", traces.keys());
        traces.into_values().next().unwrap()
    }
}
impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
/// The calls of a trace in Chrome's format; asserts that all have the process id of the file's name.
fn calls((pid, trace): (&u64, &String)) -> Vec<String> {
    let events: Vec<serde_json::Value> = serde_json::from_str(trace).unwrap();
    assert!(events.iter().all(|event| event["pid"] == *pid), "{pid}: {trace}");
    events.iter().map(|event| event["name"].as_str().unwrap().to_string()).collect()
}
fn count(calls: &[String], of: &str) -> usize {
    calls.iter().filter(|call| *call == of).count()
}
#[test]
fn processes_that_run_at_once_with_one_variable_each_have_a_whole_trace() {
    let scratch = Scratch::new("at-once");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| scratch.hear("chrome", "threads"));
        }
    });
    let traces = scratch.traces();
    assert_eq!(traces.len(), 4);
    for trace in &traces {
        assert_eq!(count(&calls(trace), "urContextCreate"), 16 * programs::ROUNDS);
    }
}
#[test]
fn children_that_inherit_the_variable_leave_their_parents_trace_alone() {
    let scratch = Scratch::new("children");
    scratch.hear("chrome", "children");
    let traces = scratch.traces();
    // One of the program, one of a child that it forked and one of a child that it executed.
    assert_eq!(traces.len(), 3, "{:?}", traces.keys());
    for trace in &traces {
        assert_eq!(count(&calls(trace), "urUSMHostAlloc"), 1);
    }
}
#[test]
fn another_start_of_the_loader_goes_on_with_the_trace() {
    for form in ["chrome", "json"] {
        let scratch = Scratch::new(&format!("again-{form}"));
        let trace = scratch.trace(form, "again");
        let of = |name| trace.lines().filter(|line| line.contains(name)).count();
        assert_eq!(of("urUSMHostAlloc"), 3, "{trace}");
        if form == "chrome" {
            serde_json::from_str::<Vec<serde_json::Value>>(&trace).unwrap();
        }
    }
}
#[test]
fn a_trace_without_the_layer_and_the_layer_without_a_trace_are_said() {
    let said = heard("again", &[("CAUSEWAY_TRACE", "json")]);
    let told = "CAUSEWAY_TRACE is set, but no trace is written: add UR_LAYER_TRACING";
    assert_eq!(said.matches(told).count(), 1, "{said}");
    let said = heard("again", &[("UR_ENABLE_LAYERS", "UR_LAYER_TRACING")]);
    let told = "UR_LAYER_TRACING is on, but no trace is written: set CAUSEWAY_TRACE=chrome:FILE";
    assert_eq!(said.matches(told).count(), 1, "{said}");
    assert!(!said.contains("--->"), "{said}");
    // For a trace that cannot be written the reason is reported, without the advice to request one.
    let nowhere = [("UR_ENABLE_LAYERS", "UR_LAYER_TRACING"), ("CAUSEWAY_TRACE", "json:/no/such/t")];
    let said = heard("again", &nowhere);
    assert!(said.contains("cannot be written") && !said.contains(told), "{said}");
}
#[test]
fn a_chrome_trace_is_an_array_of_complete_events_of_every_thread() {
    let trace = Scratch::new("chrome").trace("chrome", "threads");
    let events: Vec<serde_json::Value> = serde_json::from_str(&trace).unwrap();
    let mut threads: Vec<_> = events.iter().map(|e| e["tid"].as_u64().unwrap()).collect();
    threads.sort_unstable();
    threads.dedup();
    assert!(threads.len() >= 16, "{} threads", threads.len());
    for event in &events {
        assert_eq!((event["ph"].as_str(), event["cat"].as_str()), (Some("X"), Some("ur")));
        assert!(event["ts"].as_f64().unwrap() >= 0.0 && event["dur"].as_f64().unwrap() >= 0.0);
        assert!(event["name"].as_str().unwrap().starts_with("ur"));
        assert_eq!(event["args"]["result"], "UR_RESULT_SUCCESS", "{event}");
    }
    let creates = events.iter().filter(|e| e["name"] == "urContextCreate").count();
    assert_eq!(creates, 16 * programs::ROUNDS);
}
#[test]
fn a_trace_in_json_is_an_object_for_each_call() {
    let trace = Scratch::new("json").trace("json", "well");
    let calls: Vec<serde_json::Value> =
        trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let alloc = calls.iter().find(|c| c["call"] == "urUSMHostAlloc").unwrap();
    assert_eq!(alloc["arguments"]["size"], "64");
    assert_eq!(alloc["result"], "UR_RESULT_SUCCESS");
    assert!(alloc["thread"].is_u64() && alloc["duration_ns"].is_u64() && alloc["pid"].is_u64());
}
#[test]
fn sixteen_threads_are_told_of_no_fault_that_they_do_not_make() {
    let said = heard("threads", &[("UR_ENABLE_LAYERS", VALIDATION)]);
    assert_eq!(reports(&said), [""; 0], "{said}");
}
/// The standard error is not read before the other thread reports the end of the loader, so until then the
/// layers are blocked on writing their reports.
#[test]
fn no_call_passes_layers_that_are_about_to_end() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    prepare(&mut command, "leaks", &[("UR_ENABLE_LAYERS", "UR_LAYER_LEAK_CHECKING")]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (down, heard) = mpsc::channel();
    let said = BufReader::new(child.stdout.take().unwrap());
    thread::spawn(move || {
        let mut lines = said.lines().map_while(Result::ok);
        let _ = down.send(lines.any(|line| line.ends_with("down")));
        lines.for_each(drop);
    });
    let is_down = heard.recv_timeout(Duration::from_secs(60));
    if is_down != Ok(true) {
        child.kill().unwrap();
    }
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    assert_eq!(is_down, Ok(true), "calls pass the layers");
    assert!(status.success() && stderr.len() > 1 << 16, "{status}, {}", stderr.len());
}
#[test]
fn threads_that_get_and_release_the_adapter_a_million_times_are_told_of_nothing() {
    let layers = "UR_LAYER_LIFETIME_VALIDATION,UR_LAYER_LEAK_CHECKING";
    let said = heard("adapters", &[("UR_ENABLE_LAYERS", layers)]);
    let reports = reports(&said);
    assert_eq!(reports, [""; 0], "{} reports", reports.len());
}
#[test]
fn of_two_threads_that_release_the_last_reference_at_once_one_is_told() {
    let said = heard("doubly", &[("UR_ENABLE_LAYERS", "UR_LAYER_LIFETIME_VALIDATION")]);
    let reports = reports(&said);
    let told = "is used after its last reference was released by urContextRelease";
    assert!(reports.iter().all(|report| report.contains(told)), "{said}");
    assert_eq!(reports.len(), programs::DOUBLE_RELEASES);
}
#[test]
fn a_child_of_a_fork_neither_hangs_nor_tells_of_its_parents_objects() {
    let scratch = Scratch::new("fork");
    let said = scratch.hear("chrome", "fork");
    assert_eq!(reports(&said), [""; 0], "{said}");
    let traces = scratch.traces();
    assert_eq!(traces.len(), 1, "{:?}", traces.keys());
    traces.iter().for_each(|trace| drop(calls(trace)));
}
