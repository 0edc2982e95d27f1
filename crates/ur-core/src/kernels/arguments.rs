//! The arguments of a launch as C describes them, one by one: each is judged, and what it names is
//! found. How an adapter hands them to its driver is its own business.
#![expect(unsafe_code, reason = "reads C's arguments")]
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Body, Borrowed},
    shim,
};
use ur_sys::{ur_exp_kernel_arg_properties_t, ur_exp_kernel_arg_type_t as T, ur_mem_flags_t};

/// Bytes of one argument at most, as drivers have it.
pub const LONGEST: usize = 32764;

/// Indices are those from 0 on, each once.
fn check_index(given: &[ur_exp_kernel_arg_properties_t], position: usize) -> Result<()> {
    let index = given[position].index;
    // In order, as nearly everybody gives them, there is nothing to search.
    let is_new = || !given[..position].iter().any(|before| before.index == index);
    let in_order = index as usize == position;
    let later = |one: &ur_exp_kernel_arg_properties_t| one.index as usize == position;
    if (index as usize) < given.len() && (in_order || given.iter().any(later)) && is_new() {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::InvalidKernelArgs,
        format!("argument {index} is given twice, or leaves a gap before it"),
    ))
}
/// # Errors
/// `INVALID_ENUMERATION` for what is no kind of argument.
pub fn check_kind(one: &ur_exp_kernel_arg_properties_t) -> Result<()> {
    match one.r#type {
        T::VALUE | T::POINTER | T::MEM_OBJ | T::LOCAL | T::SAMPLER => Ok(()),
        other => {
            let why = format!("{other:?} is no kind of argument");
            Err(Error::new(ErrorCode::InvalidEnumeration, why))
        }
    }
}
/// Checks all arguments of a launch; `count` is how many the kernel takes, and `sizes` are their bytes, if either is known.
///
/// # Errors
/// `INVALID_KERNEL_ARGS` unless there is one for each index; `INVALID_KERNEL_ARGUMENT_SIZE`; `INVALID_ENUMERATION`; the
/// codes of handles that are none.
pub fn check_all<M: Body, S: Body>(
    given: &[ur_exp_kernel_arg_properties_t],
    count: Option<usize>,
    sizes: Option<&[u32]>,
) -> Result<()> {
    // What an argument is comes first: the rest depends on it.
    given.iter().try_for_each(check_kind)?;
    if let Some(takes) = count.filter(|&takes| takes != given.len()) {
        let got = given.len();
        return Err(Error::new(
            ErrorCode::InvalidKernelArgs,
            format!("the kernel takes {takes} arguments, and {got} are given"),
        ));
    }
    for (position, one) in given.iter().enumerate() {
        check_index(given, position)?;
        let size = sizes.and_then(|all| all.get(one.index as usize)).copied();
        check::<M, S>(one, size)?;
    }
    Ok(())
}
/// Whether the kernel can take an argument, of which it wants that many bytes where that is known.
///
/// # Errors
/// `INVALID_KERNEL_ARGUMENT_SIZE`; the codes of handles that are none.
pub fn check<M: Body, S: Body>(
    one: &ur_exp_kernel_arg_properties_t,
    wanted: Option<u32>,
) -> Result<()> {
    let wrong = |why: String| {
        let why = format!("argument {}: {why}", one.index);
        Err(Error::new(ErrorCode::InvalidKernelArgumentSize, why))
    };
    match one.r#type {
        T::VALUE => {
            // SAFETY: the member that the type names.
            let at = unsafe { one.value.value };
            if one.size == 0 || one.size > LONGEST || at.is_null() {
                return wrong(format!("{} bytes at {at:?} are no value", one.size));
            }
            match wanted {
                Some(bytes) if bytes as usize != one.size => {
                    wrong(format!("{} bytes are given, and the kernel takes {bytes}", one.size))
                }
                _ => Ok(()),
            }
        }
        _ => {
            if one.r#type == T::SAMPLER {
                sampler_of::<S>(one)?;
            } else if one.r#type == T::MEM_OBJ {
                mem_of::<M>(one)?;
            }
            // An offset or a sampler may have 4 bytes: the lower half of the word that is given.
            let least = if matches!(one.r#type, T::LOCAL | T::SAMPLER) { 4 } else { 8 };
            match wanted {
                Some(bytes) if bytes != 8 && bytes != least => {
                    wrong(format!("it is given as one word, and the kernel takes {bytes} bytes"))
                }
                _ => Ok(()),
            }
        }
    }
}
/// The sampler that an argument is.
///
/// # Errors
/// `INVALID_SAMPLER`, `INVALID_NULL_HANDLE`.
pub fn sampler_of<'call, S: Body>(
    one: &'call ur_exp_kernel_arg_properties_t,
) -> Result<Borrowed<'call, S>> {
    // SAFETY: the member that the type names.
    let raw = unsafe { one.value.sampler };
    // SAFETY: C's handle, judged before it is used.
    unsafe { shim::handle(raw.0) }
}
/// A memory object, if there is one, and how the kernel uses it.
pub type MemArgument<'call, M> = Option<(Borrowed<'call, M>, ur_mem_flags_t)>;
/// The memory object that an argument is.
///
/// # Errors
/// `INVALID_MEM_OBJECT`.
pub fn mem_of<M: Body>(one: &ur_exp_kernel_arg_properties_t) -> Result<MemArgument<'_, M>> {
    // SAFETY: the member that the type names.
    let tuple = unsafe { one.value.memObjTuple };
    // SAFETY: C's handle, judged before it is used.
    let mem = unsafe { shim::optional_handle(tuple.hMem.0) }?;
    Ok(mem.map(|mem| (mem, tuple.flags)))
}
