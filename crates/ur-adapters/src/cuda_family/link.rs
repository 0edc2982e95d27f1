//! Linking: programs become one, for each device by itself; and which of several binaries a device takes.
use super::{
    Context, Device, Program,
    binary::{Form, Image},
    code,
    driver::Dialect,
    given,
    metadata::Metadata,
    native::module::{self, Input, Options},
};
use std::{
    ffi::{CStr, CString},
    sync::Arc,
};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Backend, Borrowed, Owned},
};
use ur_sys::*;

/// Joins programs into one.
///
/// # Errors
/// `PROGRAM_LINK_FAILURE`; `INVALID_OPERATION` for such as are not compiled; `INVALID_CONTEXT` for
/// such as are of another context; `INVALID_DEVICE` for a device that one of them has no code for.
pub(super) fn link<D: Dialect>(
    context: Borrowed<'_, Context<D>>,
    devices: Vec<Owned<Device<D>>>,
    programs: &[Borrowed<'_, Program<D>>],
    options: Option<&CStr>,
) -> Result<Owned<Program<D>>> {
    for program in programs {
        program.check_context(context)?;
        if !program.is_made() {
            let why = "a program is not compiled: call urProgramCompile first";
            return Err(Error::new(ErrorCode::InvalidOperation, why));
        }
    }
    let said = options.map_or(String::new(), |o| o.to_string_lossy().into_owned());
    let parsed =
        code::options(&said).map_err(|why| Error::new(ErrorCode::ProgramLinkFailure, why))?;
    let (mut images, mut logs) = (vec![], vec![]);
    for device in &devices {
        let parts: Vec<Arc<Image>> = programs
            .iter()
            .map(|program| program.images[program.place(device)?].clone().ok_or_else(borrowed))
            .collect::<Result<_>>()?;
        let (image, log) = match parts.as_slice() {
            [only] => (Ok(Arc::clone(only)), String::new()),
            parts => {
                let parts: Vec<&Arc<Image>> = parts.iter().collect();
                let (joined, log) = join(device, &parts, true, parsed);
                (joined.map(Arc::new), log)
            }
        };
        images.push(Some(image.map_err(|error| failure(error, &log))?));
        logs.push(log);
    }
    let metadata = Metadata::join(programs.iter().map(|program| program.metadata()));
    let linked = Program::new(context.own()?, devices, images, metadata);
    linked.make(&linked.all(), ur_program_binary_type_t::EXECUTABLE, options).map_err(|error| {
        match error.code() {
            ErrorCode::ProgramBuildFailure => error.with_code(ErrorCode::ProgramLinkFailure),
            _ => error,
        }
    })?;
    linked.builds().iter_mut().zip(logs).for_each(|(build, log)| build.prepend(&log));
    Ok(Owned::new(linked))
}
fn borrowed() -> Error {
    Error::new(
        ErrorCode::InvalidOperation,
        "a program that was made of a native handle has no code that could be linked",
    )
}

/// The first of several binaries that is code for devices of this driver.
///
/// # Errors
/// `INVALID_BINARY` if none is.
pub(super) fn select_binary<D: Dialect>(binaries: &[ur_device_binary_t]) -> Result<u32> {
    let target = target::<D>();
    let fits = |b: &ur_device_binary_t| given::target(b).is_some_and(|name| name == target);
    match binaries.iter().position(fits) {
        Some(at) => Ok(at as u32),
        None => Err(Error::new(
            ErrorCode::InvalidBinary,
            format!(
                "none of the binaries is code for {}: compile for the target {target:?}",
                D::NAME
            ),
        )),
    }
}
/// What compilers call code for devices of this driver.
fn target<D: Dialect>() -> &'static CStr {
    match D::BACKEND {
        Backend::Hip => c"amdgcn",
        _ => c"nvptx64",
    }
}

/// Compiles pieces of code for a device; makes one of them if `complete`, else only looks whether they can be
/// compiled. With the driver's log.
///
/// # Errors
/// The driver's own.
pub(super) fn join<D: Dialect>(
    device: &Device<D>,
    images: &[&Arc<Image>],
    complete: bool,
    options: Options,
) -> (Result<Image>, String) {
    let on = match device.enter() {
        Ok(on) => on,
        Err(error) => return (Err(error), String::new()),
    };
    let input = |(at, image): (usize, &&Arc<Image>)| {
        let name = CString::new(format!("program {at}")).unwrap_or_default();
        match image.form() {
            Form::Ptx => (Input::Ptx, image.terminated().to_owned(), name),
            Form::Cubin => (Input::Cubin, image.given().to_owned(), name),
            Form::Fatbin => (Input::Fatbin, image.given().to_owned(), name),
        }
    };
    let inputs: Vec<_> = images.iter().enumerate().map(input).collect();
    let (joined, log) = module::link(&on, &inputs, complete, options);
    let image = joined.and_then(|bytes| match complete {
        true => Ok(Image::of::<D>(&bytes)?.linked_of(images)),
        false => Ok(Image::clone(images[0])),
    });
    (image, log)
}
/// What C is told of programs that do not link.
fn failure(error: Error, log: &str) -> Error {
    match code::is_about_code(&error) {
        true => Error::new(ErrorCode::ProgramLinkFailure, format!("{error}\n{log}")),
        false => error,
    }
}
