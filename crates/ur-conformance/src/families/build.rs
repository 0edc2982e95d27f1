//! Programs that cannot be built or linked, lists that contain a handle of another kind, and specialization
//! constants. The code depends on the backend; cases are skipped where the device takes no such code.
use super::{
    program::{new_program, of_il, rivals},
    spirv,
};
use crate::{
    ask,
    bench::{Bench, word},
    case::{Case, Stop, Verdict},
    cases, ensure, info, must,
    raw::Word,
    same,
};
use std::ptr::{null, null_mut};
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    let mut all = cases! { "program";
        "urProgramLink", "UR_RESULT_ERROR_INVALID_PROGRAM: one of the listed programs is not a real program", "a context among the programs is INVALID_PROGRAM, and nothing is written", stranger_linked;
        "urProgramLinkExp", "UR_RESULT_ERROR_INVALID_PROGRAM: one of the listed programs is not a real program", "a context among the programs is INVALID_PROGRAM, and nothing is written", stranger_linked_exp;
        "urProgramDynamicLinkExp", "UR_RESULT_ERROR_INVALID_PROGRAM: one of the listed programs is not a real program", "a context among the programs is INVALID_PROGRAM", stranger_linked_late;
        "urProgramLink", "UR_RESULT_ERROR_PROGRAM_LINK_FAILURE: linking the programs fails", "two programs that have one name for two kernels do not link, and nothing is written", rivals_linked;
        "urProgramLinkExp", "UR_RESULT_ERROR_PROGRAM_LINK_FAILURE: linking the programs fails", "two programs that have one name for two kernels do not link, and nothing is written", rivals_linked_exp;
        "urProgramDynamicLinkExp", "UR_RESULT_ERROR_PROGRAM_LINK_FAILURE: linking the programs fails", "two programs that have one name for two kernels do not link", rivals_linked_late;
        "urProgramLink", "joins compiled programs", "two compiled programs are linked into one that has the kernels of both", joined;
        "urProgramGetFunctionPointer", "UR_RESULT_ERROR_FUNCTION_ADDRESS_NOT_AVAILABLE: the function is found but its address cannot be obtained; UR_RESULT_ERROR_UNSUPPORTED_FEATURE: the backend cannot look up function pointers", "the address of a function that is there is had, or the reason is one of two and nothing is written", function;
    };
    for (index, (entry, words)) in BUILDERS.into_iter().enumerate() {
        let rule = format!("UR_RESULT_ERROR_PROGRAM_BUILD_FAILURE: {words}");
        let name = "broken code is PROGRAM_BUILD_FAILURE, and the status says that it failed";
        all.push(Case::new("program", entry, rule, name, move |b| broken(b, index)));
    }
    for (entry, is_kernel) in [
        ("urProgramSetSpecializationConstants", false),
        ("urKernelSetSpecializationConstants", true),
    ] {
        for (words, name, spoil) in CONSTANTS {
            let family = if is_kernel { "kernel" } else { "program" };
            all.push(Case::new(family, entry, words, name, move |b| {
                constant(b, entry, is_kernel, spoil)
            }));
        }
    }
    all
}
const BUILDERS: [(&str, &str); 4] = [
    ("urProgramBuild", "building the program fails"),
    ("urProgramCompile", "compiling the program fails"),
    ("urProgramBuildExp", "building the program fails"),
    ("urProgramCompileExp", "compiling the program fails"),
];
fn release(b: &Bench, program: ur_program_handle_t) -> Verdict {
    must!(b, program.release(program));
    Ok(())
}
pub fn backend(b: &Bench) -> Verdict<ur_backend_t> {
    let (_, platform) = (b.device()?, b.platform()?);
    Ok(ur_backend_t(info!(b, platform.get_info(platform, ur_platform_info_t::BACKEND), u32)))
}
/// Creates a program whose code begins correctly and continues incorrectly, so that only building it fails;
/// `None` where the adapter checks binaries so closely that it refuses to create the program.
fn broken_program(b: &Bench) -> Verdict<Option<ur_program_handle_t>> {
    let binary = |head: &[u8]| {
        let mut bytes = head.to_vec();
        bytes.resize(4096, 0);
        let (context, mut devices, mut lengths) = (b.context()?, [b.device()?], [bytes.len()]);
        let (mut binaries, mut made) = ([bytes.as_ptr()], ur_program_handle_t::NULL);
        let (devices, lengths, binaries) =
            (devices.as_mut_ptr(), lengths.as_mut_ptr(), binaries.as_mut_ptr());
        let to = &mut made;
        let code =
            ask!(b, program.create_with_binary(context, 1, devices, lengths, binaries, null(), to));
        if code == ur_result_t::ERROR_INVALID_BINARY {
            same!(made, ur_program_handle_t::NULL, "the program of a binary that is refused");
            return Ok(None);
        }
        b.succeeded("urProgramCreateWithBinary", code)?;
        Ok(Some(made))
    };
    match backend(b)? {
        ur_backend_t::NATIVE_CPU => binary(b"\x7fELF\x02\x01\x01 and then nothing that is code"),
        ur_backend_t::CUDA => binary(b".version 7.0\n.target sm_50\n.address_size 64\nno code\n"),
        ur_backend_t::LEVEL_ZERO | ur_backend_t::OPENCL => {
            let mut words = spirv::special();
            words.truncate(words.len() - 6); // ends in the middle of its function
            of_il(b, b.context()?, &words).map(Some)
        }
        other => Err(Stop::skipped(format!("the suite has no broken code for {other:?}"))),
    }
}
fn broken(b: &Bench, builder: usize) -> Verdict {
    let (context, mut device) = (b.context()?, b.device()?);
    let Some(program) = broken_program(b)? else { return Ok(()) };
    let (devices, none) = (&raw mut device, ur_exp_program_flags_t::default());
    let code = match builder {
        0 => ask!(b, program.build(context, program, null())),
        1 => ask!(b, program.compile(context, program, null())),
        2 => ask!(b, program_exp.build_exp(program, 1, devices, none, null())),
        _ => ask!(b, program_exp.compile_exp(program, 1, devices, none, null())),
    };
    let expected = ur_result_t::ERROR_PROGRAM_BUILD_FAILURE;
    b.was_refused(BUILDERS[builder].0, code, expected)?;
    let name = ur_program_build_info_t::STATUS;
    let status = info!(b, program.get_build_info(program, device, name), u32);
    same!(ur_program_build_status_t(status), ur_program_build_status_t::ERROR, "the status");
    release(b, program)
}

/// A list of a program and a handle of another kind.
fn with_stranger(b: &Bench) -> Verdict<[ur_program_handle_t; 2]> {
    Ok([new_program(b)?, ur_program_handle_t(b.context()?.0)])
}
/// The entry that links a list.
#[derive(Clone, Copy)]
enum Linker {
    Plain,
    ForDevices,
    Late,
}
fn link(
    b: &Bench,
    how: Linker,
    list: &[ur_program_handle_t],
) -> Verdict<(ur_result_t, ur_program_handle_t)> {
    let (context, mut device, mut made) = (b.context()?, b.device()?, ur_program_handle_t::NULL);
    let (n, list, flags) = (list.len() as u32, list.as_ptr(), ur_exp_program_flags_t::default());
    let (devices, to) = (&raw mut device, &raw mut made);
    let code = match how {
        Linker::Plain => ask!(b, program.link(context, n, list, null(), to)),
        Linker::ForDevices => {
            ask!(b, program_exp.link_exp(context, 1, devices, flags, n, list, null(), to))
        }
        Linker::Late => ask!(b, program_exp.dynamic_link_exp(context, n, list)),
    };
    Ok((code, made))
}
fn not_linked(
    b: &Bench,
    how: Linker,
    list: &[ur_program_handle_t],
    expected: ur_result_t,
) -> Verdict {
    let (code, made) = link(b, how, list)?;
    b.was_refused("linking", code, expected)?;
    ensure!(made.is_null(), "the result is written to");
    Ok(())
}
fn stranger(b: &Bench, how: Linker) -> Verdict {
    let list = with_stranger(b)?;
    not_linked(b, how, &list, ur_result_t::ERROR_INVALID_PROGRAM)?;
    release(b, list[0])
}
fn stranger_linked(b: &Bench) -> Verdict {
    stranger(b, Linker::Plain)
}
fn stranger_linked_exp(b: &Bench) -> Verdict {
    stranger(b, Linker::ForDevices)
}
fn stranger_linked_late(b: &Bench) -> Verdict {
    stranger(b, Linker::Late)
}
fn apart(b: &Bench, how: Linker) -> Verdict {
    let (context, list) = (b.context()?, rivals(b)?);
    for program in list {
        must!(b, program.compile(context, program, null()));
    }
    not_linked(b, how, &list, ur_result_t::ERROR_PROGRAM_LINK_FAILURE)?;
    list.into_iter().try_for_each(|program| release(b, program))
}
fn rivals_linked(b: &Bench) -> Verdict {
    apart(b, Linker::Plain)
}
fn rivals_linked_exp(b: &Bench) -> Verdict {
    apart(b, Linker::ForDevices)
}
fn rivals_linked_late(b: &Bench) -> Verdict {
    apart(b, Linker::Late)
}
fn joined(b: &Bench) -> Verdict {
    let [one, other] = rivals(b)?;
    release(b, other)?;
    let context = b.context()?;
    must!(b, program.compile(context, one, null()));
    let (code, made) = link(b, Linker::Plain, &[one])?;
    b.succeeded("urProgramLink", code)?;
    crate::bench::exists(made.0)?;
    release(b, one)?;
    for name in [c"add", c"x"] {
        let mut kernel = ur_kernel_handle_t::NULL;
        must!(b, kernel.create(made, name.as_ptr(), &mut kernel));
        must!(b, kernel.release(kernel));
    }
    release(b, made)
}
fn function(b: &Bench) -> Verdict {
    let (program, device, mut at) = (new_program(b)?, b.device()?, null_mut());
    let code = ask!(b, program.get_function_pointer(device, program, c"add".as_ptr(), &mut at));
    let reasons =
        [ur_result_t::ERROR_FUNCTION_ADDRESS_NOT_AVAILABLE, ur_result_t::ERROR_UNSUPPORTED_FEATURE];
    match code {
        ur_result_t::SUCCESS => ensure!(!at.is_null(), "the address is null"),
        _ => ensure!(reasons.contains(&code) && at.is_null(), "{code:?}, and it is {at:p}"),
    }
    release(b, program)
}

type Spoil = fn(&mut ur_specialization_constant_info_t) -> ur_result_t;
/// The rule, the case's sentence, and how the constant is made wrong.
const CONSTANTS: [(&str, &str, Spoil); 3] = [
    (
        "UR_RESULT_ERROR_INVALID_VALUE: a specialization constant's size differs from the size the module declares",
        "a constant of eight bytes for one of four is INVALID_VALUE",
        |info| {
            info.size = 8;
            ur_result_t::ERROR_INVALID_VALUE
        },
    ),
    (
        "UR_RESULT_ERROR_INVALID_VALUE: a specialization constant is given without a value",
        "a constant without a value is INVALID_VALUE",
        |info| {
            info.pValue = null();
            ur_result_t::ERROR_INVALID_VALUE
        },
    ),
    (
        "UR_RESULT_ERROR_INVALID_SPEC_ID: an identifier names no specialization constant of the module",
        "a constant that the module has not is INVALID_SPEC_ID",
        |info| {
            info.id = 4_000_000;
            ur_result_t::ERROR_INVALID_SPEC_ID
        },
    ),
];
fn constant(b: &Bench, entry: &str, is_kernel: bool, spoil: Spoil) -> Verdict {
    let device = b.device()?;
    let query = match is_kernel {
        true => ur_device_info_t::KERNEL_SET_SPECIALIZATION_CONSTANTS,
        false => ur_device_info_t::PROGRAM_SET_SPECIALIZATION_CONSTANTS,
    };
    if info!(b, device.get_info(device, query), u8) == 0 {
        return Err(Stop::skipped(format!("the device answers no to {query:?}")));
    }
    let (value, program) = (5_u64, of_il(b, b.context()?, &spirv::special())?);
    let at = (&raw const value).cast();
    let mut info = ur_specialization_constant_info_t { id: 7, size: 4, pValue: at };
    let expected = spoil(&mut info);
    let mut kernel = ur_kernel_handle_t::NULL;
    let of = if is_kernel {
        must!(b, program.build(b.context()?, program, null()));
        must!(b, kernel.create(program, c"k".as_ptr(), &mut kernel));
        kernel.0
    } else {
        program.0
    };
    let words = [word(of), Word::One(1), word((&raw const info).cast())];
    let code = b.adapter.call(entry, &words);
    let code = code.ok_or_else(|| Stop::skipped(format!("{entry} is null")))?;
    b.promise();
    b.was_refused(entry, code, expected)?;
    if is_kernel {
        must!(b, kernel.release(kernel));
    }
    release(b, program)
}
