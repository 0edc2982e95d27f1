//! Who hears why a call was refused: the callback of the adapter, and what `UR_LOG_NATIVE_CPU` names. Each scene is played
//! by a process of its own, as the environment is read once.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod common;
use common::{Place, ur::*};
use std::{
    ffi::{CStr, c_char, c_void},
    process::{Command, Output},
    ptr::null_mut,
    sync::Mutex,
};
use ur_logger_level_t as Level;
use ur_result_t as R;

const SCENE: &str = "CAUSEWAY_TEST_SCENE";
const LOG: &str = "UR_LOG_NATIVE_CPU";
const BACKEND: &str = "CAUSEWAY_NATIVE_CPU_BACKEND";

static HEARD: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());
unsafe extern "C" fn hear(level: Level, line: *const c_char, _: *mut c_void) {
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
/// A refusal, a question without an answer, and success.
fn three_calls(ur: &Ur) {
    let mut size = 0;
    let unanswered = ur_device_info_t::FAN_SPEED;
    let code = call!(device.get_info(ur.device, unanswered, 0, null_mut(), &mut size));
    assert_eq!(code, R::ERROR_UNSUPPORTED_ENUMERATION);
    let code = call!(usm.free(ur.context, (&raw mut size).cast()));
    assert_eq!(code, R::ERROR_INVALID_MEM_OBJECT);
    assert_eq!(call!(context.retain(ur.context)), R::SUCCESS);
}

/// What a process does that was started for it; nothing in the test's own.
#[test]
fn scene() {
    match std::env::var(SCENE).as_deref() {
        Ok("calls") => three_calls(&Ur::new()),
        Ok("callback") => {
            let ur = Ur::new();
            three_calls(&ur); // nobody listens yet
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
        Ok("loader") => {
            let mut table = TABLE.adapter;
            let old = ur_api_version_t::_0_11;
            let code =
                unsafe { ur_adapter::entry::fill("NATIVE_CPU", old, &mut table, &TABLE.adapter) };
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
/// The lines that a log of ours wrote.
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
    // What the environment asks for is a listener of its own.
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
