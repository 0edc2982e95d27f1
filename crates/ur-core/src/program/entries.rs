//! The entries of programs.
use super::{
    Context, Device, Program, RunsCode,
    build::failed,
    code::no_kernel,
    link::link,
    object::{Origin, text},
};
use crate::{
    kernels::program_inputs,
    over_driver::{OverDriver, own_handle},
};
use std::{ffi::CStr, sync::Arc};
use ur_adapter::{
    api::{ProgramApi, ProgramExpApi},
    error::{Error, ErrorCode, Result},
    info::Answer,
    memory::UsmPtr,
    object::{Borrowed, Owned},
};
use ur_hal::{Adopted, Capability, CodeForm, NativeHandle, NativeKind, NativeObject};
use ur_sys::*;

/// The code for each device's module. A binary that occurs several times is parsed only once.
fn codes<D: RunsCode>(lengths: &[usize], binaries: &[*const u8]) -> Result<Vec<Vec<Arc<D::Code>>>> {
    let mut all: Vec<Vec<Arc<D::Code>>> = vec![];
    for (at, given) in binaries.iter().zip(lengths).enumerate() {
        let earlier = (0..at).find(|&one| (&binaries[one], &lengths[one]) == given);
        all.push(match earlier {
            Some(_) if D::SHARES_MODULES => continue,
            Some(one) => all[one].clone(),
            None => {
                let bytes = program_inputs::bytes(*given.0, *given.1)?;
                vec![Arc::new(D::code(bytes, CodeForm::Binary)?)]
            }
        });
    }
    Ok(if D::SHARES_MODULES { vec![all.concat()] } else { all })
}
impl<D: RunsCode> ProgramApi for OverDriver<D> {
    fn program_create_with_il(
        context: Borrowed<'_, Context<D>>,
        il: UsmPtr,
        length: usize,
        properties: Option<&ur_program_properties_t>,
    ) -> Result<Owned<Program<D>>> {
        let bytes = program_inputs::bytes(il.as_ptr().cast_const().cast(), length)?;
        let code = D::code(bytes, CodeForm::Intermediate).map_err(Error::from);
        let code = code.map_err(|error| match error.code() {
            ErrorCode::UnsupportedFeature => error.with_code(ErrorCode::CompilerNotAvailable),
            _ => error,
        })?;
        let (devices, code) = (context.devices().to_vec(), Arc::new(code));
        let codes = vec![vec![code]; super::object::modules::<D>(devices.len())];
        Program::new(context, devices, Origin::Intermediate, codes, properties)
    }
    fn program_create_with_binary(
        context: Borrowed<'_, Context<D>>,
        devices: &[Borrowed<'_, Device<D>>],
        lengths: &[usize],
        binaries: &[*const u8],
        properties: Option<&ur_program_properties_t>,
    ) -> Result<Owned<Program<D>>> {
        devices.iter().try_for_each(|device| context.check(*device))?;
        let codes = codes::<D>(lengths, binaries)?;
        Program::new(context, Borrowed::own_all(devices)?, Origin::Binaries, codes, properties)
    }
    fn program_build(
        context: Borrowed<'_, Context<D>>,
        program: Borrowed<'_, Program<D>>,
        options: Option<&CStr>,
    ) -> Result<()> {
        program.check_context(context)?;
        let program = program.own()?; // another thread may release it while the driver compiles
        program.build_for(&program.all(), &text(options), false)
    }
    fn program_compile(
        context: Borrowed<'_, Context<D>>,
        program: Borrowed<'_, Program<D>>,
        options: Option<&CStr>,
    ) -> Result<()> {
        program.check_context(context)?;
        let program = program.own()?; // as in `program_build`
        program.compile_for(&program.all(), &text(options))
    }
    fn program_link(
        context: Borrowed<'_, Context<D>>,
        programs: &[Borrowed<'_, Program<D>>],
        options: Option<&CStr>,
    ) -> Result<Owned<Program<D>>> {
        programs.iter().try_for_each(|program| program.check_context(context))?;
        let has_all = |device: &&Owned<Device<D>>| programs.iter().all(|p| p.check(device).is_ok());
        let devices: Vec<_> = context.devices().iter().filter(has_all).cloned().collect();
        if devices.is_empty() {
            return Error::refuse(
                ErrorCode::ProgramLinkFailure,
                "the programs have no device in common: make each with code for the same one",
            );
        }
        link(context, devices, programs, options, false)
    }
    fn program_get_function_pointer(
        device: Borrowed<'_, Device<D>>,
        program: Borrowed<'_, Program<D>>,
        name: &CStr,
    ) -> Result<UsmPtr> {
        let module = program.lend(&device)?;
        if let Some(at) = D::address(&module, name)?.and_then(|at| UsmPtr::from_addr(at.get())) {
            return Ok(at);
        }
        Err(match D::function(&module, name)? {
            Some(_) => Error::new(
                ErrorCode::FunctionAddressNotAvailable,
                format!(
                    "the driver does not report the address of {name:?}: let the program store it in a variable, and read that"
                ),
            ),
            None => no_kernel(name),
        })
    }
    fn program_get_global_variable_pointer(
        device: Borrowed<'_, Device<D>>,
        program: Borrowed<'_, Program<D>>,
        name: &CStr,
    ) -> Result<(usize, UsmPtr)> {
        program.variable(&device, name).map(|(at, bytes)| (bytes, at))
    }
    fn program_get_info(
        program: Borrowed<'_, Program<D>>,
        name: ur_program_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_program_info_t as I;
        match name {
            I::REFERENCE_COUNT => answer.value(&program.api_refs()),
            I::CONTEXT => answer.handle(program.context()),
            I::NUM_DEVICES => answer.value(&(program.devices().len() as u32)),
            I::DEVICES => answer.handles(program.devices().iter().map(|device| &**device)),
            I::IL => answer.slice(program.intermediate()),
            I::BINARY_SIZES => {
                let all = program.binaries()?;
                answer.slice(&all.iter().map(Vec::len).collect::<Vec<_>>())
            }
            I::BINARIES => {
                let all = program.binaries()?;
                answer.copies(&all.iter().map(Vec::as_slice).collect::<Vec<_>>())
            }
            I::NUM_KERNELS => answer.value(&program.names()?.len()),
            I::KERNEL_NAMES => {
                let names = program.names()?;
                let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
                answer.str(&names.join(";"))
            }
            _ => Error::no_answer("a program", name),
        }
    }
    fn program_get_build_info(
        program: Borrowed<'_, Program<D>>,
        device: Borrowed<'_, Device<D>>,
        name: ur_program_build_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        use ur_program_build_info_t as I;
        let at = program.place(&device)?;
        let builds = program.builds()?;
        let build = &builds[at];
        match name {
            I::STATUS => answer.value(&build.status().0),
            I::OPTIONS => answer.str(&build.settings.options),
            I::LOG => answer.str(&build.log),
            I::BINARY_TYPE => answer.value(&build.kind().0),
            _ => Error::no_answer("a build", name),
        }
    }
    /// They apply to later builds and compilations.
    fn program_set_specialization_constants(
        program: Borrowed<'_, Program<D>>,
        constants: &[ur_specialization_constant_info_t],
    ) -> Result<()> {
        let (Origin::Intermediate, Some(facts)) = (program.origin(), program.facts()) else {
            let why = "only SPIR-V has specialization constants: they are fixed in other code";
            return Error::refuse(ErrorCode::UnsupportedFeature, why);
        };
        let known =
            facts.as_ref().map_err(|why| Error::new(ErrorCode::InvalidProgram, why.clone()))?;
        let given = |one| program_inputs::constant(one, &known.constants);
        program.set_constants(constants.iter().map(given).collect::<Result<_>>()?)
    }
    fn program_get_native_handle(program: Borrowed<'_, Program<D>>) -> Result<ur_native_handle_t> {
        program.lend_all()?;
        match D::HAS_HANDLES {
            true => {
                let built = program.built()?;
                Ok(D::native(NativeObject::Module(&*built[0].1))?.0 as ur_native_handle_t)
            }
            false => own_handle::of(&program),
        }
    }
    fn program_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        properties: Option<&ur_program_native_properties_t>,
    ) -> Result<Owned<Program<D>>> {
        if !D::HAS_HANDLES {
            let program: Owned<Program<D>> = own_handle::find(native)?;
            own_handle::check_context(program.context(), &context)?;
            return Ok(program);
        }
        if native == 0 {
            return Error::refuse(ErrorCode::InvalidNullHandle, "the native program is null");
        }
        let handle = (NativeKind::Module, NativeHandle(native as u64));
        let is_owned = properties.is_some_and(|one| one.isNativeHandleOwned);
        let (devices, own) = (context.driver_devices(), Some(&**context.driver()));
        let Adopted::Modules(modules) = D::adopt(devices, own, handle, is_owned)? else {
            return Err(ErrorCode::InvalidValue.into()); // the driver returned another kind of object
        };
        let own = |(device, module)| {
            let mut all = context.devices().iter();
            let found = all.find(|one| *one.driver() == device).cloned();
            Ok((found.ok_or(ErrorCode::InvalidDevice)?, module))
        };
        let modules = modules.into_iter().map(own).collect::<Result<_>>()?;
        Ok(Program::adopted(context.own()?, modules))
    }
}

impl<D: RunsCode> ProgramExpApi for OverDriver<D> {
    fn program_dynamic_link_exp(
        context: Borrowed<'_, Context<D>>,
        programs: &[Borrowed<'_, Program<D>>],
    ) -> Result<()> {
        programs.iter().try_for_each(|program| program.check_context(context))?;
        let programs = Borrowed::own_all(programs)?; // as in `program_build`
        for device in context.devices() {
            D::launches(device)?.0.require(Capability::LoadedLinker)?;
            let has = |program: &&Owned<Program<D>>| program.check(device).is_ok();
            let on = programs.iter().filter(has).map(|program| program.loaded(device));
            let modules: Vec<_> = on.collect::<Result<_>>()?;
            if modules.is_empty() {
                continue;
            }
            let modules: Vec<_> = modules.iter().map(|module| &**module).collect();
            let (linked, log) = D::resolve(&modules);
            linked.map_err(|error| failed(error.into(), &log, ErrorCode::ProgramLinkFailure))?;
        }
        Ok(())
    }
    fn program_build_exp(
        program: Borrowed<'_, Program<D>>,
        devices: &[Borrowed<'_, Device<D>>],
        flags: ur_exp_program_flags_t,
        options: Option<&CStr>,
    ) -> Result<()> {
        let program = program.own()?; // as in `program_build`
        program.build_for(&program.places(devices)?, &text(options), may_be_open(flags))
    }
    fn program_compile_exp(
        program: Borrowed<'_, Program<D>>,
        devices: &[Borrowed<'_, Device<D>>],
        _flags: ur_exp_program_flags_t,
        options: Option<&CStr>,
    ) -> Result<()> {
        let program = program.own()?; // as in `program_build`
        program.compile_for(&program.places(devices)?, &text(options))
    }
    fn program_link_exp(
        context: Borrowed<'_, Context<D>>,
        devices: &[Borrowed<'_, Device<D>>],
        flags: ur_exp_program_flags_t,
        programs: &[Borrowed<'_, Program<D>>],
        options: Option<&CStr>,
    ) -> Result<Owned<Program<D>>> {
        devices.iter().try_for_each(|device| context.check(*device))?;
        link(context, Borrowed::own_all(devices)?, programs, options, may_be_open(flags))
    }
}
fn may_be_open(flags: ur_exp_program_flags_t) -> bool {
    flags.contains(ur_exp_program_flags_t::ALLOW_UNRESOLVED_SYMBOLS)
}
