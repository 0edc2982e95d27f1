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
fn check_kind(one: &ur_exp_kernel_arg_properties_t) -> Result<()> {
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
/// As for [`read`]; `INVALID_KERNEL_ARGUMENT_SIZE` for other bytes than the kernel wants.
fn check<M: Body, S: Body>(
    one: &ur_exp_kernel_arg_properties_t,
    wanted: Option<u32>,
) -> Result<()> {
    // An offset or a sampler may have 4 bytes: the lower half of the word that is given.
    let least = match read::<M, S>(one)? {
        Argument::Value(bytes) => {
            return match wanted {
                Some(wanted) if wanted as usize != bytes.len() => wrong(
                    one,
                    &format!("{} bytes are given, and the kernel takes {wanted}", bytes.len()),
                ),
                _ => Ok(()),
            };
        }
        Argument::Local(_) | Argument::Sampler(_) => 4,
        Argument::Address(_) | Argument::Memory(_) => 8,
    };
    match wanted {
        Some(bytes) if bytes != 8 && bytes != least => {
            wrong(one, &format!("it is given as one word, and the kernel takes {bytes} bytes"))
        }
        _ => Ok(()),
    }
}
fn wrong<T>(one: &ur_exp_kernel_arg_properties_t, why: &str) -> Result<T> {
    let why = format!("argument {}: {why}", one.index);
    Err(Error::new(ErrorCode::InvalidKernelArgumentSize, why))
}
/// One argument of a launch as the caller describes it.
#[derive(Debug)]
pub enum Argument<'call, M: Body, S: Body> {
    /// These bytes.
    Value(&'call [u8]),
    /// An address, or 0.
    Address(usize),
    /// A memory object, if there is one.
    Memory(MemArgument<'call, M>),
    /// So many bytes of local memory for each group.
    Local(usize),
    /// A sampler.
    Sampler(Borrowed<'call, S>),
}
/// Reads an argument.
///
/// # Errors
/// `INVALID_ENUMERATION` for what is no kind of argument; `INVALID_KERNEL_ARGUMENT_SIZE` for a value without bytes, and for
/// more than there can be; the codes of handles that are none.
pub fn read<M: Body, S: Body>(one: &ur_exp_kernel_arg_properties_t) -> Result<Argument<'_, M, S>> {
    check_kind(one)?;
    Ok(match one.r#type {
        T::VALUE => Argument::Value(value_of(one)?),
        T::MEM_OBJ => Argument::Memory(mem_of(one)?),
        T::LOCAL => Argument::Local(one.size),
        T::SAMPLER => Argument::Sampler(sampler_of(one)?),
        _ => Argument::Address(address_of(one)),
    })
}
/// The bytes of a value.
///
/// # Errors
/// `INVALID_KERNEL_ARGUMENT_SIZE` for none, and for more than there can be.
pub fn value_of(one: &ur_exp_kernel_arg_properties_t) -> Result<&[u8]> {
    // SAFETY: all members are pointers or begin with one; the type of the argument names this one.
    let at = unsafe { one.value.value }.cast::<u8>();
    if one.size == 0 || one.size > LONGEST || at.is_null() {
        return wrong(one, &format!("{} bytes at {at:?} are no value", one.size));
    }
    // SAFETY: C says that so many bytes are there, until its call returns.
    Ok(unsafe { std::slice::from_raw_parts(at, one.size) })
}
/// The address that an argument is.
pub fn address_of(one: &ur_exp_kernel_arg_properties_t) -> usize {
    // SAFETY: as above.
    unsafe { one.value.pointer }.expose_provenance()
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
