//! Where the reason of a refused call is reported: to the adapter's callback, and to the log that
//! `UR_LOG_NATIVE_CPU` names. Each scene runs in a process of its own, because the environment is read once.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
#[path = "../../ur-cpu/tests/common/mod.rs"]
mod common;
use common::{Place, ur::*};
use std::{
    ffi::{CStr, c_char, c_void},
    process::{Command, Output},
    ptr::{self, null_mut},
    sync::Mutex,
};
use ur_adapter::object::Backend;
use ur_cuda::{CUDA_TABLE, HIP_TABLE};
use ur_level_zero::TABLE as ZERO_TABLE;
use ur_logger_level_t as Level;
use ur_result_t as R;

const SCENE: &str = "CAUSEWAY_TEST_SCENE";
const LOG: &str = "UR_LOG_NATIVE_CPU";
const BACKEND: &str = "CAUSEWAY_NATIVE_CPU_BACKEND";

static HEARD: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());
/// The `user_data` of the callbacks that were called, as numbers.
static TOLD: Mutex<Vec<usize>> = Mutex::new(Vec::new());
unsafe extern "C" fn hear(level: Level, line: *const c_char, whose: *mut c_void) {
    TOLD.lock().unwrap().push(whose.addr());
    let line = unsafe { CStr::from_ptr(line) }.to_str().unwrap().to_owned();
    HEARD.lock().unwrap().push((level, line));
}
fn listen(ur: &Ur, level: Level) {
    let code = call!(adapter.set_logger_callback(ur.adapter, Some(hear), null_mut(), level));
    assert_eq!(code, R::SUCCESS);
}
fn heard() -> Vec<(Level, String)> {
    std::mem::take(&mut HEARD.lock().unwrap())
}
/// A refused call, a query without an answer, and a successful call.
fn three_calls(ur: &Ur) {
    let mut size = 0;
    let unanswered = ur_device_info_t::FAN_SPEED;
    let code = call!(device.get_info(ur.device, unanswered, 0, null_mut(), &mut size));
    assert_eq!(code, R::ERROR_UNSUPPORTED_ENUMERATION);
    let code = call!(usm.free(ur.context, (&raw mut size).cast()));
    assert_eq!(code, R::ERROR_INVALID_MEM_OBJECT);
    assert_eq!(call!(context.retain(ur.context)), R::SUCCESS);
}

/// Queries with a buffer that is too small, on each adapter of the process; in the second round in reverse
/// order. No driver is needed.
fn each_adapter_refuses_once() {
    let tables =
        [("native_cpu", &TABLE), ("cuda", &CUDA_TABLE), ("hip", &HIP_TABLE), ("zero", &ZERO_TABLE)];
    let adapters = tables.map(|(name, table)| {
        let (mut adapter, mut count) = (ur_adapter_handle_t::NULL, 0);
        let get = table.adapter.get.unwrap();
        assert_eq!(unsafe { get(1, &mut adapter, &mut count) }, R::SUCCESS, "{name}");
        let listen = table.adapter.set_logger_callback.unwrap();
        let whose = ptr::from_ref(name).cast_mut().cast();
        assert_eq!(unsafe { listen(adapter, Some(hear), whose, Level::WARN) }, R::SUCCESS);
        (name, table, adapter)
    });
    let refuse = |(name, table, adapter): (&str, &ur_dditable_t, ur_adapter_handle_t)| {
        let (get_info, mut byte) = (table.adapter.get_info.unwrap(), 0_u8);
        let (to, info) = ((&raw mut byte).cast(), ur_adapter_info_t::BACKEND);
        let code = unsafe { get_info(adapter, info, 1, to, null_mut()) };
        assert_eq!(code, R::ERROR_INVALID_SIZE, "{name}");
    };
    let said = |i: usize| ptr::from_ref(tables[i].0).cast::<c_void>().addr();
    let early = std::mem::take(&mut *TOLD.lock().unwrap());
    assert!(
        early.iter().all(|&whose| whose == said(2)),
        "what is wrong with a variable is told once"
    );
    adapters.into_iter().for_each(refuse);
    adapters.into_iter().rev().for_each(refuse);
    let cpus = TABLE.adapter.set_logger_callback_level.unwrap();
    assert_eq!(unsafe { cpus(adapters[0].2, Level::QUIET) }, R::SUCCESS);
    adapters.into_iter().for_each(refuse);
    let heard = std::mem::take(&mut *TOLD.lock().unwrap());
    assert_eq!(heard, [0, 1, 2, 3, 3, 2, 1, 0, 1, 2, 3].map(said));
}

/// The last error that each adapter returns after another one failed in the same thread.
fn each_adapter_keeps_its_own_failure() {
    let tables = [&TABLE, &CUDA_TABLE, &HIP_TABLE, &ZERO_TABLE];
    let adapters = tables.map(|table| {
        let (mut adapter, get) = (ur_adapter_handle_t::NULL, table.adapter.get.unwrap());
        assert_eq!(unsafe { get(1, &mut adapter, null_mut()) }, R::SUCCESS);
        (table, adapter)
    });
    let refuse = |(table, adapter): (&ur_dditable_t, ur_adapter_handle_t), name| {
        let (get_info, mut byte) = (table.adapter.get_info.unwrap(), 0_u8);
        unsafe { get_info(adapter, name, 1, (&raw mut byte).cast(), null_mut()) }
    };
    let lent = |(table, adapter): (&ur_dditable_t, ur_adapter_handle_t)| {
        let (mut sentence, mut status) = (ptr::null(), 0);
        let get = table.adapter.get_last_error.unwrap();
        assert_eq!(unsafe { get(adapter, &mut sentence, &mut status) }, R::SUCCESS);
        sentence
    };
    let text = |lent| unsafe { CStr::from_ptr(lent) }.to_str().unwrap();
    let (short, unknown) = (ur_adapter_info_t::BACKEND, ur_adapter_info_t(0x7777));
    assert_eq!(refuse(adapters[0], short), R::ERROR_INVALID_SIZE);
    let first = lent(adapters[0]);
    assert_eq!(adapters.map(lent).map(text).map(str::is_empty), [false, true, true, true]);
    assert_eq!(refuse(adapters[1], unknown), R::ERROR_INVALID_ENUMERATION);
    let said = adapters.map(lent).map(text);
    assert!(said[0].contains("INVALID_SIZE"), "{said:?}");
    assert!(said[1].contains("INVALID_ENUMERATION"), "{said:?}");
    assert_eq!(said[2..], ["", ""]);
    // The returned string stays valid and unchanged.
    assert_eq!(lent(adapters[0]), first);
}

/// Runs the scene for which this process was started; does nothing in the test's own process.
#[test]
fn scene() {
    match std::env::var(SCENE).as_deref() {
        Ok("calls") => three_calls(&Ur::new()),
        Ok("calls of C") => {
            print_as_c(c"before\n");
            three_calls(&Ur::new());
            print_as_c(c"after\n");
        }
        Ok("callback") => {
            let ur = Ur::new();
            three_calls(&ur); // no callback is set yet
            listen(&ur, Level::WARN);
            three_calls(&ur);
            let warned = heard();
            assert_eq!(warned.len(), 1, "{warned:?}");
            assert_eq!(warned[0].0, Level::WARN);
            let line = &warned[0].1;
            assert!(
                line.starts_with("urUSMFree: 0x") && line.contains("INVALID_MEM_OBJECT"),
                "{line}"
            );
            let set_level = |level| call!(adapter.set_logger_callback_level(ur.adapter, level));
            assert_eq!(set_level(Level::DEBUG), R::SUCCESS);
            three_calls(&ur);
            let levels: Vec<_> = heard().into_iter().map(|(level, _)| level).collect();
            assert_eq!(levels, [Level::INFO, Level::WARN]);
            assert_eq!(set_level(Level::QUIET), R::SUCCESS);
            three_calls(&ur);
            assert_eq!(heard(), []);
            assert_eq!(set_level(Level(5)), R::ERROR_INVALID_ENUMERATION);
        }
        Ok("adapters") => each_adapter_refuses_once(),
        Ok("failures") => each_adapter_keeps_its_own_failure(),
        Ok("loader") => {
            let mut table = TABLE.adapter;
            let old = ur_api_version_t::_0_11;
            let code = unsafe {
                ur_adapter::entry::fill(Backend::Cpu, "NATIVE_CPU", old, &mut table, &TABLE.adapter)
            };
            assert_eq!(code, R::ERROR_UNSUPPORTED_VERSION);
        }
        Ok("environment") => {
            let ur = Ur::new();
            listen(&ur, Level::WARN);
            let early: Vec<_> = heard().into_iter().map(|(_, line)| line).collect();
            println!("@@{}", early.join("@@"));
            listen(&ur, Level::WARN);
            assert_eq!(heard(), [], "once");
        }
        Ok("backend") => {
            let ur = Ur::new();
            let info = ur_adapter_info_t::BACKEND;
            let of_adapter: u32 = ur
                .value(|size, to, ret| call!(adapter.get_info(ur.adapter, info, size, to, ret)))
                .unwrap();
            let info = ur_platform_info_t::BACKEND;
            let of_platform: u32 = ur
                .value(|size, to, ret| call!(platform.get_info(ur.platform, info, size, to, ret)))
                .unwrap();
            assert_eq!(of_adapter, of_platform);
            let mut text = [0_u8; 256];
            let (to, info) = (text.as_mut_ptr().cast(), ur_platform_info_t::VERSION);
            let code = call!(platform.get_info(ur.platform, info, 256, to, null_mut()));
            assert_eq!(code, R::SUCCESS);
            let version = CStr::from_bytes_until_nul(&text).unwrap().to_str().unwrap();
            println!("@@{of_adapter} {version}");
        }
        Ok(other) => panic!("{other}"),
        Err(_) => {}
    }
}
fn play(scene: &str, variables: &[(&str, &str)]) -> (String, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["scene", "--exact", "--nocapture"]).env(SCENE, scene);
    command.env_remove(LOG).env_remove(BACKEND).envs(variables.iter().copied());
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert!(status.success(), "{scene}: {stdout}\n{stderr}");
    (stdout, stderr)
}
/// Prints through C's buffered standard output, as a C program does.
fn print_as_c(text: &CStr) {
    // SAFETY: the format is a C string without conversions.
    unsafe { libc::printf(text.as_ptr()) };
}
/// The lines that the log wrote.
fn lines(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.find("<NATIVE_CPU>[").map(|at| &line[at..])).collect()
}

#[test]
fn role() {
    common::role();
}
#[test]
fn the_callback_hears_each_refusal_once_at_its_level() {
    play("callback", &[]);
    // The log that the environment names gets the lines as well as the callback.
    let (_, stderr) = play("callback", &[(LOG, "level:warning")]);
    assert_eq!(lines(&stderr).len(), 4 + 1, "{stderr}"); // and the enumerator that is none
}
#[test]
fn nothing_is_written_that_nobody_asked_for() {
    for value in ["", "level:quiet", "flush:debug", "output:stdout"] {
        let (stdout, stderr) = play("calls", &[(LOG, value)]);
        assert!(lines(&stdout).is_empty() && lines(&stderr).is_empty(), "{value}");
    }
    let (stdout, stderr) = play("calls", &[]);
    assert!(lines(&stdout).is_empty() && lines(&stderr).is_empty());
}
#[test]
fn lines_go_where_the_environment_says() {
    let (stdout, stderr) = play("calls", &[(LOG, "level:warning")]);
    assert!(lines(&stdout).is_empty());
    let said = lines(&stderr);
    assert_eq!(said.len(), 1, "{stderr}");
    assert!(said[0].starts_with("<NATIVE_CPU>[WARNING]: "), "{stderr}");
    let (stdout, stderr) = play("calls", &[(LOG, "output:stdout;level:debug")]);
    assert!(lines(&stderr).is_empty());
    assert_eq!(lines(&stdout).len(), 2, "{stdout}");
    let place = Place::new();
    let file = place.0.join("a,b;".trim_end_matches(';'));
    let value = format!("level:info;flush:info;output:file,{}", file.display());
    for played in 1..=2 {
        let (stdout, stderr) = play("calls", &[(LOG, &value)]);
        assert!(lines(&stdout).is_empty() && lines(&stderr).is_empty());
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 2 * played, "it is appended to: {text}");
        assert!(text.lines().all(|line| line.starts_with("<NATIVE_CPU>[")), "{text}");
    }
}
#[test]
fn each_adapter_of_a_process_has_a_log_of_its_own() {
    let quiet = [("UR_LOG_CUDA", ""), ("UR_LOG_HIP", ""), ("UR_LOG_LEVEL_ZERO_V2", "")];
    let prefixes = |text: &str| {
        let heads = text.lines().filter_map(|line| line.split_once("]: urAdapterGetInfo: "));
        let heads = heads.filter_map(|(head, _)| Some(head[head.rfind('<')?..].to_owned()));
        heads.collect::<Vec<_>>()
    };
    // Only HIP's log is enabled: none of its lines appears under the name of an adapter that was loaded
    // before.
    let asked = [quiet[0], ("UR_LOG_HIP", "level:warning"), quiet[2]];
    let (stdout, stderr) = play("adapters", &asked);
    assert!(prefixes(&stdout).is_empty(), "{stdout}");
    assert_eq!(prefixes(&stderr), ["<HIP>[WARNING"; 3], "{stderr}");

    // Each adapter has its own level and output.
    let asked = [
        (LOG, "level:error"),
        ("UR_LOG_CUDA", "level:warning"),
        ("UR_LOG_HIP", "level:info;output:stdout"),
        ("UR_LOG_LEVEL_ZERO_V2", "level:debug"),
    ];
    let (stdout, stderr) = play("adapters", &asked);
    let (cuda, zero) = ("<CUDA>[WARNING", "<LEVEL_ZERO_V2>[WARNING");
    assert_eq!(prefixes(&stderr), [cuda, zero, zero, cuda, cuda, zero], "{stderr}");
    assert_eq!(prefixes(&stdout), ["<HIP>[WARNING"; 3], "{stdout}");
    // An invalid level is reported under the name of the adapter whose variable has it.
    let (_, stderr) = play("adapters", &[("UR_LOG_HIP", "loud")]);
    assert!(stderr.contains("<HIP>[WARNING]: UR_LOG_HIP is ignored"), "{stderr}");
}
#[test]
fn each_adapter_of_a_process_has_a_last_error_of_its_own() {
    play("failures", &[]);
}
#[test]
fn lines_on_the_standard_output_are_in_order_with_what_c_prints() {
    let (stdout, _) = play("calls of C", &[(LOG, "output:stdout;level:debug")]);
    let said = lines(&stdout);
    assert_eq!(said.len(), 2, "{stdout}");
    let at = |text: &str| stdout.find(text).unwrap_or_else(|| panic!("{text} in {stdout}"));
    assert!(at("before") < at(said[0]), "{stdout}");
    assert!(at(said[1]) < at("after"), "{stdout}");
}
#[test]
fn a_loader_that_is_refused_leaves_its_reason_in_the_log() {
    let (_, stderr) = play("loader", &[(LOG, "level:warning")]);
    let said = lines(&stderr);
    assert_eq!(said.len(), 1, "{stderr}");
    assert!(said[0].contains("the loader speaks UR_API_VERSION_0_11"), "{stderr}");
}
#[test]
fn a_value_that_cannot_be_used_is_one_warning_and_no_more() {
    for value in
        ["debug", "level:loud", "level:debug;output:file,/nowhere/at/all", "level:debug;x:y"]
    {
        let (stdout, stderr) = play("environment", &[(LOG, value)]);
        assert_eq!(lines(&stderr).len(), 1, "{value}: {stderr}");
        assert!(stderr.contains("UR_LOG_NATIVE_CPU is ignored"), "{stderr}");
        assert!(
            stdout.contains("@@UR_LOG_NATIVE_CPU is ignored"),
            "told to the callback: {stdout}"
        );
    }
}
#[test]
fn the_adapter_passes_for_opencl_if_asked_to() {
    let said = |value: &[(&str, &str)]| {
        let (stdout, _) = play("backend", value);
        let at = stdout.find("@@").unwrap();
        stdout[at + 2..].lines().next().unwrap().to_owned()
    };
    let (native, opencl) = (ur_backend_t::NATIVE_CPU.0, ur_backend_t::OPENCL.0);
    for value in [&[][..], &[(BACKEND, "native_cpu")], &[(BACKEND, "")], &[(BACKEND, "OpenCL!")]] {
        assert!(said(value).starts_with(&format!("{native} Causeway")), "{value:?}");
    }
    assert!(said(&[(BACKEND, "opencl")]).starts_with(&format!("{opencl} OpenCL 3.0 ")));
    let (stdout, _) = play("environment", &[(BACKEND, "cuda")]);
    assert!(stdout.contains("@@CAUSEWAY_NATIVE_CPU_BACKEND=cuda is ignored"), "{stdout}");
    let (_, stderr) = play("backend", &[(BACKEND, "cuda"), (LOG, "level:warning")]);
    assert_eq!(lines(&stderr).len(), 1, "{stderr}");
}
