//! Linking: programs become one, for each device by itself; and which of several binaries a device
//! takes.
use super::{
    Context, Device, Program,
    code::{self, Build, Source},
    program::make,
};
use crate::kernels::{given, metadata::Metadata};
use std::{ffi::CStr, sync::Arc};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_sys::*;

/// Joins programs into one.
///
/// # Errors
/// `PROGRAM_LINK_FAILURE`; `INVALID_OPERATION` for such as are not compiled; `INVALID_CONTEXT` for
/// such as are of another context; `INVALID_DEVICE` for a device that one of them is not for.
pub(super) fn link(
    context: Borrowed<'_, Context>,
    devices: Vec<Owned<Device>>,
    programs: &[Borrowed<'_, Program>],
    options: Option<&CStr>,
    unresolved: bool,
) -> Result<Owned<Program>> {
    let said = options.map_or(String::new(), |o| o.to_string_lossy().into_owned());
    let (mut builds, mut pieces) = (vec![], vec![]);
    for device in &devices {
        pieces.clear();
        for program in programs {
            program.check_context(context)?;
            let at = program.place(device)?;
            let compiled = compiled(program, at)?;
            pieces.extend(program.piece(at, &format!("{compiled} {said}"))?);
        }
        // The driver compiles: no lock is held.
        let (made, log) = make(&context, device, &pieces, unresolved);
        let module =
            made.map_err(|error| code::failed(error, &log, ErrorCode::ProgramLinkFailure))?;
        builds.push(Build { options: said.clone(), log, ..Build::done(Arc::new(module)) });
    }
    let metadata = Metadata::join(programs.iter().map(|program| program.metadata()));
    Ok(Program::new(context.own()?, devices, Source::Linked(pieces), metadata, builds))
}
/// The options that a program was compiled with for the device at this place.
fn compiled(program: &Program, place: usize) -> Result<String> {
    let builds = program.builds();
    match builds[place].status {
        ur_program_build_status_t::SUCCESS => Ok(builds[place].options.clone()),
        _ => Err(Error::new(
            ErrorCode::InvalidOperation,
            "a program is not compiled: call urProgramCompile first",
        )),
    }
}

/// What compilers call machine code for GPUs of Level Zero, and SPIR-V; better ones first.
const TARGETS: [&CStr; 2] = [c"spir64_gen", c"spir64"];

/// The binary that suits the device best: machine code before SPIR-V.
///
/// # Errors
/// `INVALID_BINARY` if none is for it.
pub(super) fn select_binary(_device: &Device, binaries: &[ur_device_binary_t]) -> Result<u32> {
    let of = |target: &&CStr| {
        binaries.iter().position(|one| given::target(one).is_some_and(|name| name == *target))
    };
    match TARGETS.iter().find_map(of) {
        Some(at) => Ok(at as u32),
        None => Err(Error::new(
            ErrorCode::InvalidBinary,
            "none of the binaries is for Level Zero: compile for the target spir64 or spir64_gen",
        )),
    }
}
