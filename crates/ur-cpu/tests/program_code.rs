//! The code of programs: what cannot be loaded, and how long it stays in the process. What is read
//! and written in it is loaded_code.rs's.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
mod common;
use common::{code::*, ur::*};
use std::{
    ffi::CStr,
    fs,
    ptr::{null, null_mut},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
};
use ur_result_t as R;

/// The code of a refusal, which says why.
#[track_caller]
fn code<T: std::fmt::Debug>(outcome: Outcome<T>) -> R {
    outcome.expect_err("a refusal").code
}
fn variable(codes: &Codes, program: ur_program_handle_t, name: &CStr) -> Outcome<(usize, usize)> {
    let (mut size, mut at) = (0, null_mut());
    let device = codes.ur.device;
    let code = call!(program.get_global_variable_pointer(
        device,
        program,
        name.as_ptr(),
        &mut size,
        &mut at
    ));
    codes.ur.check(code).map(|()| (size, at.addr()))
}
fn write(codes: &Codes, program: ur_program_handle_t, name: &CStr, at: usize, from: &[u8]) -> R {
    call!(enqueue.device_global_variable_write(
        codes.queue,
        program,
        name.as_ptr(),
        true,
        from.len(),
        at,
        from.as_ptr().cast(),
        0,
        null(),
        null_mut()
    ))
}
fn read(codes: &Codes, program: ur_program_handle_t, name: &CStr, at: usize, to: &mut [u8]) -> R {
    call!(enqueue.device_global_variable_read(
        codes.queue,
        program,
        name.as_ptr(),
        true,
        to.len(),
        at,
        to.as_mut_ptr().cast(),
        0,
        null(),
        null_mut()
    ))
}

#[test]
fn objects_that_cannot_be_loaded_say_why_in_the_build_log() {
    let Some(object) = example() else { return };
    let codes = Codes::new();
    let missing =
        "void gone(void); void kernel(void *const *a, void *s) { (void)a; (void)s; gone(); }";
    let Some(missing) = compiled(missing) else { return };
    let mut foreign = object.to_vec();
    foreign[18] = 0xf3; // for another machine
    // Where it is cut decides what is missed first.
    let short = ["not a whole ELF file", "cut off"];
    let loader = ["could not load", "could not load"];
    let cases = [
        (&object[..object.len() / 2], short),
        (&object[..64], short),
        (&missing, ["gone", "gone"]),
        (&foreign, loader),
    ];
    for (bytes, why) in cases {
        let program = codes.program(bytes).unwrap();
        let failure = codes.build(program).expect_err("it cannot be loaded");
        assert_eq!(failure.code, R::ERROR_PROGRAM_BUILD_FAILURE);
        let log = codes.log(program);
        assert!(why.iter().any(|why| log.contains(why)), "{log}");
        assert!(failure.sentence.contains(&log), "{}", failure.sentence);
        let (device, name) = (codes.ur.device, ur_program_build_info_t::STATUS);
        let query =
            |size, to, ret| call!(program.get_build_info(program, device, name, size, to, ret));
        let status: u32 = codes.ur.value(query).unwrap();
        assert_eq!(status, ur_program_build_status_t::ERROR.0);
        assert_eq!(code(codes.kernel(program, "kernel")), R::ERROR_INVALID_PROGRAM_EXECUTABLE);
        assert_eq!(code(codes.compile(program)), R::ERROR_PROGRAM_BUILD_FAILURE);
        codes.release_program(program);
    }
}
#[test]
fn building_again_keeps_the_kernels_that_there_are() {
    let Some(object) = example() else { return };
    let codes = Codes::new();
    let program = codes.program(object).unwrap();
    codes.build(program).unwrap();
    let before = variable(&codes, program, c"scale").unwrap();
    codes.build(program).unwrap();
    assert_eq!(variable(&codes, program, c"scale"), Ok(before));
    codes.release_program(program);
}
#[test]
fn functions_and_variables_are_there_once_built_and_not_under_each_others_names() {
    let Some(object) = example() else { return };
    let codes = Codes::new();
    let program = codes.program(object).unwrap();
    let (device, mut at) = (codes.ur.device, null_mut());
    let mut function = |name: &CStr| {
        let code = call!(program.get_function_pointer(device, program, name.as_ptr(), &mut at));
        codes.ur.check(code).map(|()| at.addr())
    };
    assert_eq!(code(function(c"visit")), R::ERROR_INVALID_PROGRAM_EXECUTABLE);
    assert_eq!(code(variable(&codes, program, c"scale")), R::ERROR_INVALID_PROGRAM_EXECUTABLE);
    codes.build(program).unwrap();
    let (visit, scaled) = (function(c"visit").unwrap(), function(c"scaled").unwrap());
    assert!(visit != 0 && visit != scaled);
    assert_eq!(code(function(c"scale")), R::ERROR_INVALID_KERNEL_NAME, "a variable");
    assert_eq!(code(function(c"")), R::ERROR_INVALID_KERNEL_NAME);
    let (size, at) = variable(&codes, program, c"visits").unwrap();
    assert_eq!(size, 32);
    assert_eq!(unsafe { *(at as *const u64) }, 0);
    assert_eq!(variable(&codes, program, c"scale").unwrap().0, 4);
    assert_eq!(code(variable(&codes, program, c"visit")), R::ERROR_INVALID_VALUE, "a function");
    let (size, none) = (null_mut(), null_mut());
    let wrong =
        call!(program.get_global_variable_pointer(device, program, c"scale".as_ptr(), size, none));
    assert_eq!(wrong, R::ERROR_INVALID_NULL_POINTER);
    codes.release_program(program);
}
#[test]
fn code_is_unloaded_when_the_last_kernel_of_it_goes() {
    let farewell = "unsigned *farewell; \
        void kernel(void *const *a, void *s) { (void)a; (void)s; } \
        __attribute__((destructor)) static void leave(void) { if (farewell) ++*farewell; }";
    let Some(object) = compiled(farewell) else { return };
    let codes = Codes::new();
    let gone = AtomicU32::new(0);
    let program = codes.program(&object).unwrap();
    codes.build(program).unwrap();
    let address = gone.as_ptr().expose_provenance().to_ne_bytes();
    assert_eq!(write(&codes, program, c"farewell", 0, &address), R::SUCCESS);
    let kernel = codes.kernel(program, "kernel").unwrap();
    codes.release_program(program);
    codes.run(kernel, items(&[100]), &[]).unwrap();
    assert_eq!(gone.load(Relaxed), 0, "a kernel of it is there");
    assert_eq!(call!(queue.finish(codes.queue)), R::SUCCESS);
    codes.release(kernel);
    common::eventually("it is unloaded", || gone.load(Relaxed) == 1);
}
#[test]
fn code_is_not_left_in_a_file_that_anybody_can_change() {
    let Some(object) = example() else { return };
    let codes = Codes::new();
    let program = codes.program(object).unwrap();
    codes.build(program).unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let code: Vec<_> = maps.lines().filter(|line| line.contains("causeway-code")).collect();
    assert!(!code.is_empty(), "it comes from a memfd");
    for line in code {
        let [permissions, path] = [1, 5].map(|n| line.split_whitespace().nth(n).unwrap());
        assert!(path.starts_with("/memfd:"), "{line}");
        assert!(!permissions.contains("wx"), "{line}");
    }
    codes.release_program(program);
}
#[test]
fn kernels_are_made_by_name_from_many_threads_while_the_program_is_built() {
    let Some(object) = example() else { return };
    let codes = Codes::new();
    let program = codes.program(object).unwrap();
    let program = Shared(program);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                codes.build(program.program()).unwrap();
                for _ in 0..100 {
                    let kernel = codes.kernel(program.program(), "visit").unwrap();
                    codes.run(kernel, items(&[1]), &[]).unwrap();
                    codes.release(kernel);
                }
            });
        }
    });
    let mut bytes = [0; 8];
    assert_eq!(read(&codes, program.program(), c"visits", 0, &mut bytes), R::SUCCESS);
    assert_eq!(u64::from_ne_bytes(bytes), 800);
    codes.release_program(program.program());
}

/// A program that any thread may use.
#[derive(Clone, Copy)]
struct Shared(ur_program_handle_t);
// Handles are C's: any thread may use them.
unsafe impl Send for Shared {}
unsafe impl Sync for Shared {}
impl Shared {
    fn program(self) -> ur_program_handle_t {
        self.0
    }
}
