//! Linking of programs, for each device separately, and the choice among several binaries.
use super::{
    Context, Device, Program, RunsCode,
    build::{Build, failed},
    object::{Part, modules, text},
};
use crate::kernels::{metadata::Metadata, program_inputs};
use std::ffi::CStr;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Owned},
};
use ur_sys::*;

/// Links programs into one.
///
/// # Errors
/// `PROGRAM_LINK_FAILURE`; `INVALID_OPERATION` for a program that is not compiled; `INVALID_CONTEXT` for a program of
/// another context; `INVALID_DEVICE` for a device that a program was not made for. Returns the driver's error, mapped
/// as in `error.rs`.
pub(super) fn link<D: RunsCode>(
    context: Borrowed<'_, Context<D>>,
    devices: Vec<Owned<Device<D>>>,
    programs: &[Borrowed<'_, Program<D>>],
    options: Option<&CStr>,
    may_be_open: bool,
) -> Result<Owned<Program<D>>> {
    for program in programs {
        program.check_context(context)?;
        devices.iter().try_for_each(|device| program.check(device))?;
    }
    // Other threads may release them while the driver compiles.
    let programs = Borrowed::own_all(programs)?;
    let flags = text(options);
    let (mut builds, mut all) = (vec![], vec![]);
    for device in &devices[..modules::<D>(devices.len())] {
        let each = programs.iter().map(|program| compiled(program, program.place(device)?, &flags));
        let parts = each.collect::<Result<Vec<_>>>()?.concat();
        let pieces: Vec<_> = parts.iter().map(Part::piece).collect();
        // No lock is held while the driver compiles.
        let (made, log) =
            D::build(&D::target(context.driver(), device.driver())?, &pieces, may_be_open);
        let module =
            made.map_err(|error| failed(error.into(), &log, ErrorCode::ProgramLinkFailure))?;
        builds.push(Build::done(module, &flags, log));
        all.push(parts);
    }
    let metadata = Metadata::join(programs.iter().map(|program| program.metadata()));
    Ok(Program::linked(context.own()?, devices, all, metadata, builds))
}
/// The parts that a program contributes to a link, with the settings of its compilation, and the flags of the link behind its own.
fn compiled<D: RunsCode>(program: &Program<D>, place: usize, flags: &str) -> Result<Vec<Part<D>>> {
    let (status, mut settings) = {
        let builds = program.builds()?;
        (builds[place].status(), builds[place].settings.clone())
    };
    let refused = |why: &'static str| Error::refuse(ErrorCode::InvalidOperation, why);
    if status != ur_program_build_status_t::SUCCESS {
        return refused("a program is not compiled: call urProgramCompile first");
    }
    settings.options = format!("{} {flags}", settings.options).trim().to_owned();
    let parts = program.parts(place, &settings);
    match parts.is_empty() {
        true => refused("a program of a native handle has no code that could be linked"),
        false => Ok(parts),
    }
}

/// The index of the binary that suits the driver best.
///
/// # Errors
/// `INVALID_BINARY` if none is for this driver.
pub fn select_binary<D: RunsCode>(binaries: &[ur_device_binary_t]) -> Result<u32> {
    let of = |target: &&CStr| {
        binaries
            .iter()
            .position(|one| program_inputs::target(one).is_some_and(|name| name == *target))
    };
    match D::TARGETS.iter().find_map(of) {
        Some(at) => Ok(at as u32),
        None => Error::refuse(
            ErrorCode::InvalidBinary,
            format!("none of the binaries is for {}: compile for one of {:?}", D::NAME, D::TARGETS),
        ),
    }
}
