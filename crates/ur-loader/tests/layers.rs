//! The layers, each seen at work by a program of its own: this test starts itself again as that
//! program, with the environment that the layer is asked for by.
#[path = "layers/programs.rs"]
mod programs;

use std::process::{Command, Output};

const VALIDATION: &str = "UR_LAYER_FULL_VALIDATION";

/// What a program said on the standard error; it ended well.
fn heard(program: &str, environment: &[(&str, &str)]) -> String {
    let Output { status, stderr, stdout } = run(program, environment);
    let said = String::from_utf8_lossy(&stderr).into_owned();
    assert!(status.success(), "{program}: {status}\n{}{said}", String::from_utf8_lossy(&stdout));
    said
}
/// What the leak checks said of a program, and the sizes that the program said: names and numbers.
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
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "program", "--ignored", "--nocapture", "--test-threads", "1"]);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("UR_") {
            command.env_remove(name);
        }
    }
    command.env_remove("CAUSEWAY_TRACE").env("ONEAPI_DEVICE_SELECTOR", "native_cpu:*");
    command.env("PROGRAM", program).envs(environment.iter().copied());
    command.output().unwrap()
}
/// The reports of the validation layers: the first line of each.
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
        ("urEventWait", "INVALID_VALUE: num_events == 0"),
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
        // Three times opened and once closed.
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
    // And the pool, which a reference is left to.
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
fn a_trace_without_a_listener_says_nothing() {
    let said = heard("well", &[("UR_ENABLE_LAYERS", "UR_LAYER_TRACING")]);
    assert!(!said.contains("--->"), "{said}");
}
#[test]
fn wrong_names_and_sanitizers_are_warnings_and_change_nothing_else() {
    let said = heard("well", &[("UR_ENABLE_LAYERS", "nope,,UR_LAYER_ASAN;\u{7},UR_LAYER_MSAN")]);
    let warnings = said.lines().filter(|l| l.contains("UR_ENABLE_LAYERS: there is no layer"));
    assert_eq!(warnings.count(), 1, "{said}");
    assert!(said.contains("UR_LAYER_MSAN does nothing here"), "{said}");
}

/// A file for a trace, gone when this is dropped.
struct Scratch(std::path::PathBuf);
impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("causeway-{}-{name}", std::process::id())))
    }
    fn trace(&self, form: &str, program: &str) -> String {
        let to = format!("{form}:{}", self.0.display());
        let layers = format!("{VALIDATION},UR_LAYER_TRACING");
        heard(program, &[("UR_ENABLE_LAYERS", &layers), ("CAUSEWAY_TRACE", &to)]);
        std::fs::read_to_string(&self.0).unwrap()
    }
}
impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
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
    assert!(alloc["thread"].is_u64() && alloc["duration_ns"].is_u64());
}
#[test]
fn sixteen_threads_are_told_of_no_fault_that_they_do_not_make() {
    let said = heard("threads", &[("UR_ENABLE_LAYERS", VALIDATION)]);
    assert_eq!(reports(&said), [""; 0], "{said}");
}
#[test]
fn a_child_of_a_fork_neither_hangs_nor_tells_of_its_parents_objects() {
    let scratch = Scratch::new("fork");
    let to = format!("chrome:{}", scratch.0.display());
    let layers = format!("{VALIDATION},UR_LAYER_TRACING");
    let said = heard("fork", &[("UR_ENABLE_LAYERS", &layers), ("CAUSEWAY_TRACE", &to)]);
    assert_eq!(reports(&said), [""; 0], "{said}");
    let trace = std::fs::read_to_string(&scratch.0).unwrap();
    serde_json::from_str::<Vec<serde_json::Value>>(&trace).unwrap();
}
