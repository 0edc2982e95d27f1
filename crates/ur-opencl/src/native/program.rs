//! Programs: code in OpenCL's hands.
#![expect(unsafe_code, reason = "calls into the vendors' drivers")]
use super::own::{Own, Tells, bytes, number, text, zeroes};
use crate::{cl::*, code::Code, driver::*};
use std::{
    ffi::{CStr, CString},
    ptr::{null, null_mut},
};
use ur_hal::{Constant, Error, ErrorKind, Result};

/// A program of code, for one device. Nothing is compiled yet.
///
/// # Errors
/// The driver's own; `Unsupported` for SPIR-V where the platform takes none.
pub fn create(
    (context, device): (RawContext, RawDevice),
    extensions: &Extensions,
    code: &Code,
    constants: &[Constant],
) -> Result<Own<RawProgram>> {
    let (bytes, length) = (code.bytes().as_ptr(), code.bytes().len());
    let made = match code {
        Code::SpirV(_) => {
            // SAFETY: as many bytes as are told.
            unsafe { extensions.create_program_with_il(context, bytes.cast(), length) }
        }
        Code::Source(_) => {
            let text = bytes.cast();
            // SAFETY: one text of as many bytes as are told.
            unsafe {
                driver().create_program_with_source(context, 1, &raw const text, &raw const length)
            }
        }
        Code::Binary(_) => {
            let mut status = CL_SUCCESS;
            let (device, lengths) = (&raw const device, &raw const length);
            let (binary, told) = (&raw const bytes, &raw mut status);
            // SAFETY: one binary for one device, of as many bytes as are told; the status is writable.
            unsafe {
                driver().create_program_with_binary(context, 1, device, lengths, binary, told)
            }
        }
    };
    let program = made.map(Own::given).map_err(|error| match error.kind() {
        ErrorKind::InvalidValue => error.with_kind(ErrorKind::InvalidBinary),
        _ => error,
    })?;
    for (id, value) in constants {
        let (raw, value, size) = (program.raw(), value.as_ptr().cast(), value.len());
        // SAFETY: a live program; as many bytes as are told.
        unsafe { extensions.set_program_specialization_constant(raw, *id, size, value) }.ok()?;
    }
    Ok(program)
}
/// Compiles and links a program for a device.
///
/// # Errors
/// The driver's own.
pub fn build(program: &Own<RawProgram>, device: RawDevice, options: &CStr) -> Result<()> {
    let (raw, options) = (program.raw(), options.as_ptr());
    // SAFETY: live; one device; the options end with a NUL; without a callback the call returns when it is done.
    unsafe { driver().build_program(raw, 1, &raw const device, options, null(), null_mut()) }.ok()
}
/// Compiles a program, to be linked.
///
/// # Errors
/// The driver's own.
pub fn compile(program: &Own<RawProgram>, device: RawDevice, options: &CStr) -> Result<()> {
    let (raw, device, options) = (program.raw(), &raw const device, options.as_ptr());
    let (none, nothing) = (null(), null_mut());
    // SAFETY: as above, and without headers.
    unsafe { driver().compile_program(raw, 1, device, options, 0, null(), null(), none, nothing) }
        .ok()
}
/// Links compiled programs to one. `note` is for the log, which also a program has that could not be linked.
///
/// # Errors
/// The driver's own.
pub fn link(
    (context, device): (RawContext, RawDevice),
    options: &CStr,
    programs: &[RawProgram],
    note: impl FnMut(&Own<RawProgram>),
) -> Result<Own<RawProgram>> {
    let (count, first, options) = (programs.len() as u32, programs.as_ptr(), options.as_ptr());
    let (device, none, nothing, mut status) = (&raw const device, null(), null_mut(), CL_SUCCESS);
    let told = &raw mut status;
    // SAFETY: live objects, as many as are told; the options end with a NUL; the status is writable.
    let made = unsafe {
        driver().link_program(context, 1, device, options, count, first, none, nothing, told)
    };
    let program = made.flatten().map(Own::given);
    program.iter().for_each(note);
    Outcome::of("clLinkProgram", made.map(|_| status)).given(program)
}
/// What a program tells of its build for a device.
fn of_build(raw: RawProgram, device: RawDevice, name: cl_uint) -> Result<Vec<u8>> {
    // SAFETY: live; `bytes` passes room for as much as it says.
    bytes(|size, to, length| unsafe {
        driver().get_program_build_info(raw, device, name, size, to, length)
    })
}
/// Whether it is built for a device: compiled and linked.
///
/// # Errors
/// The driver's own.
pub fn is_built(raw: RawProgram, device: RawDevice) -> Result<bool> {
    let kind = of_build(raw, device, CL_PROGRAM_BINARY_TYPE)?;
    Ok(number(&kind) == CL_PROGRAM_BINARY_TYPE_EXECUTABLE)
}
/// What the compiler and the linker said.
pub fn log(program: &Own<RawProgram>, device: RawDevice) -> String {
    let said = of_build(program.raw(), device, CL_PROGRAM_BUILD_LOG);
    said.map_or_else(|error| format!("(the driver's log cannot be read: {error})"), |b| text(&b))
}
/// What was made of it for a device.
///
/// # Errors
/// The driver's own.
pub fn binary(program: &Own<RawProgram>, device: RawDevice) -> Result<Vec<u8>> {
    let raw = program.raw();
    let (devices, sizes) =
        (raw.numbers(CL_PROGRAM_DEVICES)?, raw.numbers(CL_PROGRAM_BINARY_SIZES)?);
    let mut all: Vec<Vec<u8>> = sizes.iter().map(|&size| zeroes(size)).collect::<Result<_>>()?;
    let mut places: Vec<*mut u8> = all.iter_mut().map(Vec::as_mut_ptr).collect();
    let (room, to) = (size_of_val(&*places), places.as_mut_ptr().cast());
    // SAFETY: live; a place for each device, with room for as many bytes as were told.
    unsafe { driver().get_program_info(raw, CL_PROGRAM_BINARIES, room, to, null_mut()) }.ok()?;
    let own = devices.iter().position(|&one| one == device.addr()).unwrap_or(0);
    let found = (own < all.len()).then(|| all.swap_remove(own)).filter(|bytes| !bytes.is_empty());
    found.ok_or_else(|| {
        let why = "the driver has no binary of this program";
        Error::new(ErrorKind::NotBuilt, why)
    })
}
/// What its kernels are called.
///
/// # Errors
/// The driver's own.
pub fn names(program: &Own<RawProgram>) -> Result<Vec<CString>> {
    let all = program.raw().text(CL_PROGRAM_KERNEL_NAMES)?;
    let names = all.split(';').filter(|name| !name.is_empty());
    Ok(names.filter_map(|name| CString::new(name).ok()).collect())
}
/// Whether there is something of the name that the driver was asked for.
fn is_named(told: Outcome) -> Result<bool> {
    match told.status() {
        Some(CL_INVALID_ARG_VALUE | CL_INVALID_VALUE) => Ok(false),
        _ => told.ok().map(|()| true),
    }
}
/// Where a variable is on a device, and its bytes; `None` where there is none of that name.
///
/// # Errors
/// `Unsupported` where the platform does not tell.
pub fn variable(
    extensions: &Extensions,
    program: &Own<RawProgram>,
    device: RawDevice,
    name: &CStr,
) -> Result<Option<(usize, usize)>> {
    let (mut bytes, mut at, raw) = (0, null_mut(), program.raw());
    let (name, size, to) = (name.as_ptr(), &raw mut bytes, &raw mut at);
    // SAFETY: live; the name ends with a NUL and both are writable.
    let told = unsafe { extensions.get_variable(device, raw, name, size, to) };
    Ok((is_named(told)? && !at.is_null()).then(|| (at.expose_provenance(), bytes)))
}
/// The address of a function on a device; `None` where there is none of that name.
///
/// # Errors
/// `Unsupported` where the platform does not tell.
pub fn function(
    extensions: &Extensions,
    program: &Own<RawProgram>,
    device: RawDevice,
    name: &CStr,
) -> Result<Option<usize>> {
    let (mut at, raw) = (0, program.raw());
    // SAFETY: live; the name ends with a NUL and the address is writable.
    let told = unsafe { extensions.get_function(device, raw, name.as_ptr(), &raw mut at) };
    Ok((is_named(told)? && at != 0).then_some(at as usize))
}
/// A kernel of it; `None` where there is none of that name.
///
/// # Errors
/// The driver's own.
pub fn kernel(program: &Own<RawProgram>, name: &CStr) -> Result<Option<Own<RawKernel>>> {
    // SAFETY: live; the name ends with a NUL.
    match unsafe { driver().create_kernel(program.raw(), name.as_ptr()) } {
        Ok(raw) => Ok(Some(Own::given(raw))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
/// What a kernel tells of itself on a device; `None` for what it does not tell.
pub fn of_group(kernel: RawKernel, device: RawDevice, name: u32) -> Option<Vec<usize>> {
    // SAFETY: live; `bytes` passes room for as much as it says.
    let told = bytes(|size, to, length| unsafe {
        driver().get_kernel_work_group_info(kernel, device, name, size, to, length)
    });
    Some(told.ok()?.chunks(8).map(|one| number(one) as usize).collect())
}
/// What a kernel tells of its sub-groups, for groups of so many items.
pub fn of_sub_group(
    extensions: &Extensions,
    (kernel, device): (RawKernel, RawDevice),
    name: u32,
    group: [usize; 3],
) -> Option<u32> {
    let (given, from) = (size_of_val(&group), group.as_ptr().cast());
    // SAFETY: as above; as many bytes of sizes as are told.
    let told = bytes(|size, to, length| unsafe {
        extensions.get_kernel_sub_group_info(kernel, device, name, given, from, size, to, length)
    });
    u32::try_from(number(&told.ok()?)).ok()
}
