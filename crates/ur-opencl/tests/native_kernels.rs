//! Native handles of programs and kernels, on the first platform that compiles OpenCL C; without one they are skipped.
#![allow(unsafe_code, reason = "plays the C caller")]
use std::ptr::{null, null_mut};
use ur_opencl::TABLE;
use ur_sys::{ur_result_t as R, *};

/// Calls an entry, whose arguments are live handles and writable places.
macro_rules! call { ($table:ident.$entry:ident($($argument:expr),* $(,)?)) => {{
    let entry = TABLE.$table.$entry.unwrap();
    // SAFETY: live handles, writable places, and texts that end with a NUL.
    unsafe { entry($($argument),*) }
}} }

/// A context of the first device that there is.
fn context() -> Option<ur_context_handle_t> {
    let (mut adapter, mut platform) = (ur_adapter_handle_t::NULL, ur_platform_handle_t::NULL);
    let (mut device, mut context) = (ur_device_handle_t::NULL, ur_context_handle_t::NULL);
    let (all, none) = (ur_device_type_t::ALL, null_mut());
    assert_eq!(call!(adapter.get(1, &raw mut adapter, none)), R::SUCCESS);
    let mut count = 0;
    assert_eq!(call!(platform.get(adapter, 0, null_mut(), &raw mut count)), R::SUCCESS);
    if count == 0 {
        return None;
    }
    assert_eq!(call!(platform.get(adapter, 1, &raw mut platform, null_mut())), R::SUCCESS);
    assert_eq!(call!(device.get(platform, all, 1, &raw mut device, null_mut())), R::SUCCESS);
    let code = call!(context.create(1, &raw const device, null(), &raw mut context));
    assert_eq!(code, R::SUCCESS);
    Some(context)
}
fn program(context: ur_context_handle_t) -> ur_program_handle_t {
    let (mut program, text) =
        (ur_program_handle_t::NULL, "kernel void f(global int *a) { *a = 1; }");
    let (at, length) = (text.as_ptr().cast(), text.len());
    let code = call!(program.create_with_il(context, at, length, null(), &raw mut program));
    assert_eq!(code, R::SUCCESS);
    program
}
fn native(program: ur_program_handle_t) -> Result<usize, R> {
    let mut native = 0;
    let code = call!(program.get_native_handle(program, &raw mut native));
    if code == R::SUCCESS { Ok(native) } else { Err(code) }
}

#[test]
fn a_native_kernel_is_taken_with_its_own_program_alone() {
    let Some(context) = context() else {
        println!("skipped: there is no platform of OpenCL");
        return;
    };
    let [own, other] = [(); 2].map(|()| program(context));
    assert_eq!(native(own), Err(R::ERROR_INVALID_PROGRAM_EXECUTABLE));
    for one in [own, other] {
        assert_eq!(call!(program.build(context, one, null())), R::SUCCESS);
    }
    let (mut kernel, mut handle) = (ur_kernel_handle_t::NULL, 0);
    assert_eq!(call!(kernel.create(own, c"f".as_ptr(), &raw mut kernel)), R::SUCCESS);
    assert_eq!(call!(kernel.get_native_handle(kernel, &raw mut handle)), R::SUCCESS);
    let adopt = |program, handle| {
        let mut made = ur_kernel_handle_t::NULL;
        let to = &raw mut made;
        let code = call!(kernel.create_with_native_handle(handle, context, program, null(), to));
        if code == R::SUCCESS {
            assert_eq!(call!(kernel.release(made)), R::SUCCESS);
        }
        code
    };
    assert_eq!(adopt(other, handle), R::ERROR_INVALID_KERNEL);
    assert_eq!(adopt(own, 0), R::ERROR_INVALID_NULL_HANDLE);
    assert_eq!(adopt(ur_program_handle_t::NULL, handle), R::ERROR_INVALID_NULL_HANDLE);
    assert_eq!(adopt(own, handle), R::SUCCESS);
    // A program of the native handle is the same program to the driver.
    let (mut again, of_own) = (ur_program_handle_t::NULL, native(own).unwrap());
    let code = call!(program.create_with_native_handle(of_own, context, null(), &raw mut again));
    assert_eq!(code, R::SUCCESS);
    assert_eq!((adopt(again, handle), native(again)), (R::SUCCESS, Ok(of_own)));
    let code = call!(program.create_with_native_handle(0, context, null(), &raw mut again));
    assert_eq!(code, R::ERROR_INVALID_NULL_HANDLE);
    assert_eq!(call!(kernel.release(kernel)), R::SUCCESS);
    for one in [own, other, again] {
        assert_eq!(call!(program.release(one)), R::SUCCESS);
    }
    assert_eq!(call!(context.release(context)), R::SUCCESS);
}
