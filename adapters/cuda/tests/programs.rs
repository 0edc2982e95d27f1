//! Programs as a C program builds, links and asks them, on whatever driver of CUDA there is. Without a device the
//! tests say so and are skipped.
mod c;

use c::*;
use std::{
    ffi::{CStr, c_void},
    ptr::{null, null_mut},
};
use ur_sys::{ur_program_build_info_t as B, ur_program_info_t as P, ur_result_t as R, *};

const PTX: &str = include_str!("kernels.ptx");
const HEAD: &str = ".version 7.0\n.target sm_70\n.address_size 64\n";

/// One query's bytes: `ask!(program.get_info(program, P::IL))`.
macro_rules! ask {
    ($table:ident . $slot:ident ( $($argument:expr),* )) => {{
        let mut bytes = 0;
        let code = call!($table.$slot($($argument,)* 0, null_mut(), &mut bytes));
        let mut answer = vec![0_u8; bytes];
        if code == R::SUCCESS && bytes > 0 {
            let at: *mut c_void = answer.as_mut_ptr().cast();
            assert_eq!(call!($table.$slot($($argument,)* bytes, at, null_mut())), R::SUCCESS);
        }
        if code == R::SUCCESS { Ok(answer) } else { Err(code) }
    }};
}
fn text(bytes: Vec<u8>) -> String {
    CStr::from_bytes_with_nul(&bytes).unwrap().to_str().unwrap().to_owned()
}
fn word(bytes: &[u8]) -> u32 {
    u32::from_ne_bytes(bytes.try_into().unwrap())
}
fn sizes(bytes: &[u8]) -> Vec<usize> {
    bytes.chunks(8).map(|eight| usize::from_ne_bytes(eight.try_into().unwrap())).collect()
}

#[test]
fn a_built_program_tells_its_kernels_without_their_twins_and_its_code() {
    let Some(cuda) = Cuda::new() else { return };
    let program = cuda.program(PTX.as_bytes(), None).unwrap();
    let names = || ask!(program.get_info(program, P::KERNEL_NAMES));
    assert_eq!(names().unwrap_err(), R::ERROR_INVALID_PROGRAM_EXECUTABLE);
    let status = || word(&ask!(program.get_build_info(program, cuda.device, B::STATUS)).unwrap());
    assert_eq!(status(), ur_program_build_status_t::NONE.0);
    let options = c"-maxrregcount=64 --cuda-path=/nowhere";
    cuda.build(program, options.as_ptr()).unwrap();
    cuda.build(program, options.as_ptr()).unwrap();
    assert_eq!(status(), ur_program_build_status_t::SUCCESS.0);
    let kind = ask!(program.get_build_info(program, cuda.device, B::BINARY_TYPE)).unwrap();
    assert_eq!(word(&kind), ur_program_binary_type_t::EXECUTABLE.0);
    let said = ask!(program.get_build_info(program, cuda.device, B::OPTIONS)).unwrap();
    assert_eq!(text(said), options.to_str().unwrap());
    assert_eq!(text(names().unwrap()), "add;count;fill;limited;place;record;reduce;vector_add;x");
    assert_eq!(sizes(&ask!(program.get_info(program, P::NUM_KERNELS)).unwrap()), [9]);
    assert_eq!(sizes(&ask!(program.get_info(program, P::BINARY_SIZES)).unwrap()), [PTX.len()]);
    let mut code = vec![0_u8; PTX.len()];
    let mut at = code.as_mut_ptr();
    let to = (&raw mut at).cast();
    assert_eq!(call!(program.get_info(program, P::BINARIES, 8, to, null_mut())), R::SUCCESS);
    assert!(code == PTX.as_bytes());
    assert_eq!(ask!(program.get_info(program, P::IL)).unwrap(), []);
    cuda.release_program(program);
}

#[test]
fn code_that_is_broken_is_a_build_failure_with_a_log() {
    let Some(cuda) = Cuda::new() else { return };
    let broken = format!("{HEAD}.visible .entry k() {{ there is no such instruction; }}");
    let program = cuda.program(broken.as_bytes(), None).unwrap();
    let info = |name| ask!(program.get_build_info(program, cuda.device, name)).unwrap();
    assert_eq!(cuda.build(program, null()).unwrap_err(), R::ERROR_PROGRAM_BUILD_FAILURE);
    assert_eq!(word(&info(B::STATUS)), ur_program_build_status_t::ERROR.0);
    assert!(!text(info(B::LOG)).is_empty());
    let compile = |program| call!(program.compile(cuda.context, program, null()));
    assert_eq!(compile(program), R::ERROR_PROGRAM_BUILD_FAILURE);
    let code = cuda.kernel(program, c"k").unwrap_err();
    assert_eq!(code, R::ERROR_INVALID_PROGRAM_EXECUTABLE);
    cuda.release_program(program);
    for bytes in [&b"\x7fELF and no more"[..], b"no code", &[3, 2, 0x23, 7, 0, 0, 1, 0]] {
        assert_eq!(cuda.program(bytes, None).unwrap_err(), R::ERROR_INVALID_BINARY);
    }
    let good = cuda.program(PTX.as_bytes(), None).unwrap();
    let options = c"-maxrregcount=none";
    let refused = cuda.build(good, options.as_ptr()).unwrap_err();
    assert_eq!(refused, R::ERROR_PROGRAM_BUILD_FAILURE);
    cuda.build(good, null()).unwrap();
    cuda.release_program(good);
    let metadata = Some((c"k@reqd_work_group_size", &[1_u8, 2, 3][..]));
    assert_eq!(cuda.program(PTX.as_bytes(), metadata).unwrap_err(), R::ERROR_INVALID_VALUE);
}

/// A program of text, compiled.
fn compiled(cuda: &Cuda, text: &str) -> ur_program_handle_t {
    let program = cuda.program(text.as_bytes(), None).unwrap();
    assert_eq!(call!(program.compile(cuda.context, program, null())), R::SUCCESS);
    program
}
fn link(cuda: &Cuda, parts: &[ur_program_handle_t]) -> Result<ur_program_handle_t, R> {
    let (count, mut linked) = (parts.len() as u32, parts[0]);
    let code = call!(program.link(cuda.context, count, parts.as_ptr(), null(), &mut linked));
    if code == R::SUCCESS {
        return Ok(linked);
    }
    assert!(linked.is_null(), "whatever was there, it is null now");
    Err(code)
}
/// The code of a program.
fn code_of(program: ur_program_handle_t) -> Vec<u8> {
    let bytes = sizes(&ask!(program.get_info(program, P::BINARY_SIZES)).unwrap())[0];
    let mut code = vec![0_u8; bytes];
    let mut at = code.as_mut_ptr();
    let to = (&raw mut at).cast();
    assert_eq!(call!(program.get_info(program, P::BINARIES, 8, to, null_mut())), R::SUCCESS);
    code
}
/// What a kernel that writes one number writes.
fn result_of(cuda: &Cuda, program: ur_program_handle_t, name: &CStr, n: u32) -> u32 {
    let (kernel, to) = (cuda.kernel(program, name).unwrap(), cuda.device_memory(4));
    cuda.done(cuda.launch(kernel, None, &[1], None, &[pointer(0, to), value(1, &n)], &[]));
    let [number] = cuda.read::<u32, 1>(to);
    cuda.free(to);
    cuda.release(kernel);
    number
}
/// A kernel that writes the number that it is given, and `more`.
fn writer(name: &str, more: u32) -> String {
    format!(
        "{HEAD}.visible .entry {name}(\n.param .u64 {name}_at,\n.param .u32 {name}_n\n)\n{{\n\
         .reg .b32 %r<3>;\n.reg .b64 %d<3>;\nld.param.u64 %d1, [{name}_at];\n\
         ld.param.u32 %r1, [{name}_n];\ncvta.to.global.u64 %d2, %d1;\n\
         add.s32 %r2, %r1, {more};\nst.global.u32 [%d2], %r2;\nret;\n}}\n"
    )
}

#[test]
fn compiled_programs_are_linked_into_one_unless_they_have_one_name_for_two_kernels() {
    let Some(cuda) = Cuda::new() else { return };
    let parts =
        [("one", 1), ("two", 2), ("two", 3)].map(|(n, more)| compiled(&cuda, &writer(n, more)));
    let fresh = cuda.program(writer("three", 3).as_bytes(), None).unwrap();
    assert_eq!(link(&cuda, &[parts[0], fresh]).unwrap_err(), R::ERROR_INVALID_OPERATION);
    assert_eq!(link(&cuda, &parts).unwrap_err(), R::ERROR_PROGRAM_LINK_FAILURE);
    let linked = link(&cuda, &parts[..2]).unwrap();
    assert_eq!(text(ask!(program.get_info(linked, P::KERNEL_NAMES)).unwrap()), "one;two");
    assert_eq!(result_of(&cuda, linked, c"one", 5), 6);
    assert_eq!(result_of(&cuda, linked, c"two", 5), 7);
    parts.into_iter().chain([fresh, linked]).for_each(|program| cuda.release_program(program));
}

#[test]
fn calls_across_programs_are_linked_into_machine_code_that_is_a_program_again() {
    let Some(cuda) = Cuda::new() else { return };
    if std::env::var_os("CAUSEWAY_CUDA").is_none_or(|which| which != "real") {
        println!(
            "skipped: machine code and calls need a real driver, and CAUSEWAY_CUDA=real to say so"
        );
        return;
    }
    let callee = format!(
        "{HEAD}.visible .func (.param .b32 out) twice(.param .b32 in)\n{{ .reg .b32 %r<3>;\n\
         ld.param.u32 %r1, [in]; add.s32 %r2, %r1, %r1; st.param.b32 [out], %r2; ret; }}\n"
    );
    let caller = format!(
        "{HEAD}.extern .func (.param .b32 out) twice(.param .b32 in);\n\
         .visible .entry doubled(.param .u64 at, .param .u32 n)\n{{ .reg .b32 %r<3>; .reg .b64 %d<3>;\n\
         ld.param.u64 %d1, [at]; ld.param.u32 %r1, [n]; cvta.to.global.u64 %d2, %d1;\n\
         {{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call.uni (b), twice, (a);\n\
         ld.param.b32 %r2, [b]; }}\nst.global.u32 [%d2], %r2; ret; }}\n"
    );
    let parts = [callee, caller].map(|text| compiled(&cuda, &text));
    // Nobody has `twice`.
    assert_eq!(link(&cuda, &parts[1..]).unwrap_err(), R::ERROR_PROGRAM_LINK_FAILURE);
    let linked = link(&cuda, &parts).unwrap();
    let code = code_of(linked);
    let again = cuda.program(&code, None).unwrap();
    cuda.build(again, null()).unwrap();
    for program in [linked, again] {
        assert_eq!(text(ask!(program.get_info(program, P::KERNEL_NAMES)).unwrap()), "doubled");
        assert_eq!(result_of(&cuda, program, c"doubled", 21), 42);
    }
    // Machine code that is cut off is refused before the driver sees it.
    for end in [64, code.len() / 2, code.len() - 1] {
        assert_eq!(cuda.program(&code[..end], None).unwrap_err(), R::ERROR_INVALID_BINARY);
    }
    parts.into_iter().chain([linked, again]).for_each(|program| cuda.release_program(program));
}

#[test]
fn a_kernel_tells_what_it_takes_and_what_was_said_of_it() {
    use ur_kernel_group_info_t as G;
    use ur_kernel_info_t as K;
    let Some(cuda) = Cuda::new() else { return };
    let size = [8, 0, 0, 0, 2, 0, 0, 0];
    let program =
        cuda.program(PTX.as_bytes(), Some((c"fill@reqd_work_group_size", &size))).unwrap();
    cuda.build(program, null()).unwrap();
    let (fill, limited) =
        (cuda.kernel(program, c"fill").unwrap(), cuda.kernel(program, c"limited").unwrap());
    assert_eq!(cuda.kernel(program, c"none").unwrap_err(), R::ERROR_INVALID_KERNEL_NAME);
    let info = |name| ask!(kernel.get_info(fill, name)).unwrap();
    assert_eq!((text(info(K::FUNCTION_NAME)), word(&info(K::NUM_ARGS))), ("fill".into(), 2));
    assert!(word(&info(K::NUM_REGS)) > 0);
    let group =
        |kernel, name| sizes(&ask!(kernel.get_group_info(kernel, cuda.device, name)).unwrap());
    assert_eq!(group(fill, G::COMPILE_WORK_GROUP_SIZE), [8, 2, 1]);
    assert_eq!(group(limited, G::COMPILE_WORK_GROUP_SIZE), [0; 3]);
    assert_eq!(group(limited, G::WORK_GROUP_SIZE), [64]);
    assert_eq!(group(fill, G::PREFERRED_WORK_GROUP_SIZE_MULTIPLE), [32]);
    let mut local = [0; 2];
    let (global, mut native) = ([64, 64], 0);
    let suggest = |kernel, global: &[usize; 2], local: &mut [usize; 2]| {
        call!(kernel.get_suggested_local_work_size(
            kernel,
            cuda.queue,
            2,
            [0, 0].as_ptr(),
            global.as_ptr(),
            local.as_mut_ptr()
        ))
    };
    assert_eq!((suggest(fill, &global, &mut local), local), (R::SUCCESS, [8, 2]));
    assert_eq!((suggest(limited, &global, &mut local), local), (R::SUCCESS, [64, 1]));
    let (one, mut groups) = ([64], 0);
    let code = call!(kernel.suggest_max_cooperative_group_count(
        fill,
        cuda.device,
        1,
        one.as_ptr(),
        0,
        &mut groups
    ));
    assert!(code == R::SUCCESS && groups > 0 || code == R::ERROR_UNSUPPORTED_FEATURE, "{code:?}");
    // A native handle leads back; what is none of the program's functions is refused.
    let mut again = ur_kernel_handle_t::NULL;
    assert_eq!(call!(kernel.get_native_handle(limited, &mut native)), R::SUCCESS);
    let mut wrap = |native| {
        call!(kernel.create_with_native_handle(native, cuda.context, program, null(), &mut again))
    };
    assert_eq!(wrap(native ^ 8), R::ERROR_INVALID_KERNEL);
    assert_eq!(wrap(native), R::SUCCESS);
    assert_eq!(text(ask!(kernel.get_info(again, K::FUNCTION_NAME)).unwrap()), "limited");
    [fill, limited, again].into_iter().for_each(|kernel| cuda.release(kernel));
    let (mut module, mut borrowed) = (0, ur_program_handle_t::NULL);
    assert_eq!(call!(program.get_native_handle(program, &mut module)), R::SUCCESS);
    let code =
        call!(program.create_with_native_handle(module, cuda.context, null(), &mut borrowed));
    assert_eq!(code, R::SUCCESS);
    // It is built already; building it changes nothing.
    let status = || word(&ask!(program.get_build_info(borrowed, cuda.device, B::STATUS)).unwrap());
    assert_eq!(status(), ur_program_build_status_t::SUCCESS.0);
    cuda.release(cuda.kernel(borrowed, c"fill").unwrap());
    cuda.build(borrowed, null()).unwrap();
    assert_eq!(status(), ur_program_build_status_t::SUCCESS.0);
    cuda.release_program(borrowed);
    cuda.release(cuda.kernel(program, c"fill").unwrap());
    cuda.release_program(program);
}

#[test]
fn the_first_binary_for_nvptx64_is_chosen_and_only_ptx_is_intermediate_code() {
    let Some(cuda) = Cuda::new() else { return };
    let of = |target: &'static CStr| ur_device_binary_t {
        stype: ur_structure_type_t::DEVICE_BINARY,
        pNext: null_mut(),
        pDeviceTargetSpec: target.as_ptr(),
    };
    let mut chosen = 9;
    let mut select = |all: &[ur_device_binary_t]| {
        let (first, count) = (all.as_ptr(), all.len() as u32);
        (call!(device.select_binary(cuda.device, first, count, &mut chosen)), chosen)
    };
    let all = [of(c"spir64"), of(c"llvm_nvptx64"), of(c"nvptx64"), of(c"nvptx64")];
    assert_eq!(select(&all), (R::SUCCESS, 2));
    assert_eq!(select(&all[..2]).0, R::ERROR_INVALID_BINARY);
    let il = |bytes: &[u8]| {
        let (mut program, at) = (ur_program_handle_t::NULL, bytes.as_ptr().cast());
        let code =
            call!(program.create_with_il(cuda.context, at, bytes.len(), null(), &mut program));
        (code, program)
    };
    assert_eq!(il(&[3, 2, 0x23, 7, 0, 0, 1, 0]).0, R::ERROR_COMPILER_NOT_AVAILABLE);
    let (code, program) = il(PTX.as_bytes());
    assert_eq!(code, R::SUCCESS);
    assert!(ask!(program.get_info(program, P::IL)).unwrap() == PTX.as_bytes());
    cuda.build(program, null()).unwrap();
    cuda.release_program(program);
}
