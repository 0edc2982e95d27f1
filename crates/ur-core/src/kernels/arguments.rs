//! The arguments of a launch as the caller passes them: checks them, and finds the objects that they refer to.
//! `command/launch.rs` turns them into the driver's arguments.
#![expect(unsafe_code, reason = "reads C's arguments")]
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Body, Borrowed, Owned},
    shim,
};
use ur_hal::{LONGEST_ARGUMENT as LONGEST, place_local};
use ur_sys::{ur_exp_kernel_arg_properties_t, ur_exp_kernel_arg_type_t as T, ur_mem_flags_t};

/// The arguments of a launch, in the order in which the caller passes them.
pub trait Given<M: Body, S: Body> {
    /// How many there are.
    fn count(&self) -> usize;
    /// The index, in the kernel's parameters, of the argument at a position.
    fn index(&self, position: usize) -> u32;
    /// Checks the type of the argument at a position.
    ///
    /// # Errors
    /// `INVALID_ENUMERATION` for an unknown type.
    fn check_kind(&self, position: usize) -> Result<()> {
        let _ = position;
        Ok(())
    }
    /// The argument at a position.
    ///
    /// # Errors
    /// As for [`read`].
    fn argument(&self, position: usize) -> Result<Argument<'_, M, S>>;
}
impl<M: Body, S: Body> Given<M, S> for [ur_exp_kernel_arg_properties_t] {
    fn count(&self) -> usize {
        self.len()
    }
    fn index(&self, position: usize) -> u32 {
        self[position].index
    }
    fn check_kind(&self, position: usize) -> Result<()> {
        match self[position].r#type {
            T::VALUE | T::POINTER | T::MEM_OBJ | T::LOCAL | T::SAMPLER => Ok(()),
            other => no_kind(other),
        }
    }
    fn argument(&self, position: usize) -> Result<Argument<'_, M, S>> {
        read(&self[position])
    }
}
/// Checks that the indices are 0 to `count` - 1, each once.
fn check_index(count: usize, position: usize, index: impl Fn(usize) -> u32) -> Result<()> {
    let number = index(position);
    // If the arguments are in order, as is usual, nothing has to be searched.
    let is_new = || !(0..position).any(|before| index(before) == number);
    let in_order = number as usize == position;
    let is_there = || (0..count).any(|one| index(one) as usize == position);
    if (number as usize) < count && (in_order || is_there()) && is_new() {
        return Ok(());
    }
    Error::refuse(
        ErrorCode::InvalidKernelArgs,
        format!("argument {number} is given twice, or leaves a gap before it"),
    )
}
/// The parameters of a kernel, as far as they are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken<'a> {
    /// The number of parameters.
    pub count: Option<usize>,
    /// The size of each, in bytes.
    pub sizes: Option<&'a [u32]>,
    /// The largest size that an argument may have, in bytes.
    pub longest: Option<usize>,
}
/// Checks all arguments of a launch.
///
/// # Errors
/// `INVALID_KERNEL_ARGS` unless there is one argument for each index; `INVALID_KERNEL_ARGUMENT_SIZE`;
/// `INVALID_ENUMERATION`; the errors of invalid handles.
pub fn check_all<M: Body, S: Body>(
    given: &(impl Given<M, S> + ?Sized),
    takes: Taken<'_>,
) -> Result<()> {
    let count = given.count();
    // Check the types first, because the remaining checks depend on them.
    (0..count).try_for_each(|position| given.check_kind(position))?;
    if let Some(takes) = takes.count.filter(|&takes| takes != count) {
        let why = format!("the kernel takes {takes} arguments, and {count} are given");
        return Error::refuse(ErrorCode::InvalidKernelArgs, why);
    }
    (0..count).try_for_each(|position| {
        check_index(count, position, |position| given.index(position))?;
        let index = given.index(position);
        let size = takes.sizes.and_then(|all| all.get(index as usize)).copied();
        check(index, &given.argument(position)?, size, takes.longest)
    })
}
/// Adds the local memory of an argument to what a group already needs, with alignment. Returns the sum in bytes.
///
/// # Errors
/// `OUT_OF_RESOURCES` for more than a launch can have.
pub fn add_local(taken: usize, bytes: usize) -> Result<usize> {
    place_local(taken, bytes).map(|(_, end)| end).ok_or_else(|| {
        let why = "the local memory of the arguments exceeds what a launch can have";
        Error::new(ErrorCode::OutOfResources, why)
    })
}
/// The local memory in bytes that a group needs for arguments that have been checked, placed in the order of their
/// indices.
///
/// # Errors
/// As for [`add_local`].
pub fn local_memory<M: Body, S: Body>(given: &(impl Given<M, S> + ?Sized)) -> Result<usize> {
    let mut all = vec![0; given.count()];
    for position in 0..given.count() {
        if let Argument::Local(bytes) = given.argument(position)? {
            all[given.index(position) as usize] = bytes;
        }
    }
    all.into_iter().filter(|&bytes| bytes > 0).try_fold(0, add_local)
}
fn no_kind<R>(other: T) -> Result<R> {
    let why = format!("{other:?} is not a type of argument");
    Error::refuse(ErrorCode::InvalidEnumeration, why)
}
/// Checks the size of an argument against the kernel's parameter, if that is known.
///
/// # Errors
/// `INVALID_KERNEL_ARGUMENT_SIZE` for another size than the parameter's, and for a value that is too long.
fn check<M: Body, S: Body>(
    index: u32,
    argument: &Argument<'_, M, S>,
    wanted: Option<u32>,
    longest: Option<usize>,
) -> Result<()> {
    // A parameter for local memory or a sampler may have 4 bytes: it gets the lower half of the word that is passed.
    let least = match argument {
        Argument::Value(bytes) => {
            let given = bytes.len();
            return match (wanted, longest) {
                (Some(wanted), _) if wanted as usize != given => {
                    wrong(index, &format!("{given} bytes are given, and the kernel takes {wanted}"))
                }
                (_, Some(most)) if given > most => {
                    wrong(index, &format!("{given} bytes are given: a value has 1 to {most}"))
                }
                _ => Ok(()),
            };
        }
        Argument::Local(_) | Argument::Sampler(_) => 4,
        Argument::Address(_) | Argument::Memory(_) => 8,
    };
    match wanted {
        Some(bytes) if bytes != 8 && bytes != least => {
            wrong(index, &format!("it is given as one word, and the kernel takes {bytes} bytes"))
        }
        _ => Ok(()),
    }
}
fn wrong<T>(index: u32, why: &str) -> Result<T> {
    let why = format!("argument {index}: {why}");
    Error::refuse(ErrorCode::InvalidKernelArgumentSize, why)
}
/// One argument of a launch as the caller passes it.
#[derive(Debug)]
pub enum Argument<'call, M: Body, S: Body> {
    /// A value, in bytes.
    Value(&'call [u8]),
    /// An address, or 0 for null.
    Address(usize),
    /// A memory object, or none for null.
    Memory(MemArgument<'call, M>),
    /// This many bytes of local memory for each group.
    Local(usize),
    /// A sampler.
    Sampler(Borrowed<'call, S>),
}
/// Reads an argument.
///
/// # Errors
/// `INVALID_ENUMERATION` for an unknown type; `INVALID_KERNEL_ARGUMENT_SIZE` for a value that is empty or too long; the
/// errors of invalid handles.
pub fn read<M: Body, S: Body>(one: &ur_exp_kernel_arg_properties_t) -> Result<Argument<'_, M, S>> {
    Ok(match one.r#type {
        T::VALUE => Argument::Value(value_of(one)?),
        T::POINTER => Argument::Address(address_of(one)),
        T::MEM_OBJ => Argument::Memory(mem_of(one)?),
        T::LOCAL => Argument::Local(one.size),
        T::SAMPLER => Argument::Sampler(sampler_of(one)?),
        other => return no_kind(other),
    })
}
/// The bytes of a value.
///
/// # Errors
/// `INVALID_KERNEL_ARGUMENT_SIZE` for an empty value, and for more than [`LONGEST_ARGUMENT`](LONGEST) bytes.
fn value_of(one: &ur_exp_kernel_arg_properties_t) -> Result<&[u8]> {
    // SAFETY: every member of the union is a pointer or begins with one, so the bits are initialised; the type selects
    // this one.
    let at = unsafe { one.value.value }.cast::<u8>();
    if one.size == 0 || one.size > LONGEST || at.is_null() {
        return wrong(one.index, &format!("{} bytes at {at:?} are no value", one.size));
    }
    // SAFETY: UR requires `size` bytes to be readable at this address until the entry returns; it is not null.
    Ok(unsafe { std::slice::from_raw_parts(at, one.size) })
}
/// The address in an argument.
fn address_of(one: &ur_exp_kernel_arg_properties_t) -> usize {
    // SAFETY: as in `value_of`.
    unsafe { one.value.pointer }.expose_provenance()
}
/// The sampler in an argument.
///
/// # Errors
/// `INVALID_SAMPLER`, `INVALID_NULL_HANDLE`.
fn sampler_of<'call, S: Body>(
    one: &'call ur_exp_kernel_arg_properties_t,
) -> Result<Borrowed<'call, S>> {
    // SAFETY: the type of the argument selects this member.
    let raw = unsafe { one.value.sampler };
    // SAFETY: UR requires the caller to pass a sampler handle; the function checks its kind and that it is live.
    unsafe { shim::handle(raw.0) }
}
/// A memory object, or none, and how the kernel accesses it.
pub type MemArgument<'call, M> = Option<(Borrowed<'call, M>, ur_mem_flags_t)>;
/// The memory object in an argument.
///
/// # Errors
/// `INVALID_MEM_OBJECT`.
fn mem_of<M: Body>(one: &ur_exp_kernel_arg_properties_t) -> Result<MemArgument<'_, M>> {
    // SAFETY: the type of the argument selects this member.
    let tuple = unsafe { one.value.memObjTuple };
    // SAFETY: UR requires the caller to pass null or a memory handle; the function checks its kind and that it is live.
    let mem = unsafe { shim::optional_handle(tuple.hMem.0) }?;
    Ok(mem.map(|mem| (mem, tuple.flags)))
}

/// Arguments that are stored because their launch is repeated: values are copied, objects are retained.
#[derive(Debug)]
pub struct RecordedArguments<M: Body, S: Body>(Arc<[(u32, RecordedArgument<M, S>)]>);
impl<M: Body, S: Body> Clone for RecordedArguments<M, S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}
impl<M: Body, S: Body> Default for RecordedArguments<M, S> {
    fn default() -> Self {
        Self(Arc::new([]))
    }
}
#[derive(Debug)]
enum RecordedArgument<M: Body, S: Body> {
    Value(Arc<[u8]>),
    Address(usize),
    Memory(Option<(Owned<M>, ur_mem_flags_t)>),
    Local(usize),
    Sampler(Owned<S>),
}
impl<M: Body, S: Body> Clone for RecordedArgument<M, S> {
    fn clone(&self) -> Self {
        match self {
            Self::Value(bytes) => Self::Value(Arc::clone(bytes)),
            Self::Address(at) => Self::Address(*at),
            Self::Memory(memory) => Self::Memory(memory.clone()),
            Self::Local(bytes) => Self::Local(*bytes),
            Self::Sampler(sampler) => Self::Sampler(sampler.clone()),
        }
    }
}
fn keep<M: Body, S: Body>(
    one: &ur_exp_kernel_arg_properties_t,
) -> Result<(u32, RecordedArgument<M, S>)> {
    let argument = match read::<M, S>(one)? {
        Argument::Value(bytes) => RecordedArgument::Value(bytes.into()),
        Argument::Address(at) => RecordedArgument::Address(at),
        Argument::Memory(None) => RecordedArgument::Memory(None),
        Argument::Memory(Some((mem, flags))) => RecordedArgument::Memory(Some((mem.own()?, flags))),
        Argument::Local(bytes) => RecordedArgument::Local(bytes),
        Argument::Sampler(sampler) => RecordedArgument::Sampler(sampler.own()?),
    };
    Ok((one.index, argument))
}
impl<M: Body, S: Body> RecordedArguments<M, S> {
    /// Copies arguments that the caller passes.
    ///
    /// # Errors
    /// As for [`read`].
    pub fn new(given: &[ur_exp_kernel_arg_properties_t]) -> Result<Self> {
        given.iter().map(keep).collect::<Result<_>>().map(Self)
    }
    /// A copy in which these arguments replace those with the same indices. If there were no arguments, these become
    /// all of them. Of several changes with one index, the last one counts.
    ///
    /// # Errors
    /// `INVALID_KERNEL_ARGUMENT_INDEX` for an index that does not exist; as for [`read`].
    pub fn with(&self, changes: &[ur_exp_kernel_arg_properties_t]) -> Result<Self> {
        let mut all = self.0.to_vec();
        for change in changes {
            let new = keep(change)?;
            match all.iter_mut().find(|(index, _)| *index == change.index) {
                Some(place) => *place = new,
                None if self.0.is_empty() => all.push(new),
                None => {
                    return Error::refuse(
                        ErrorCode::InvalidKernelArgumentIndex,
                        format!("the launch was recorded without an argument {}", change.index),
                    );
                }
            }
        }
        Ok(Self(all.into()))
    }
}
impl<M: Body, S: Body> Given<M, S> for RecordedArguments<M, S> {
    fn count(&self) -> usize {
        self.0.len()
    }
    fn index(&self, position: usize) -> u32 {
        self.0[position].0
    }
    fn argument(&self, position: usize) -> Result<Argument<'_, M, S>> {
        Ok(match &self.0[position].1 {
            RecordedArgument::Value(bytes) => Argument::Value(bytes),
            RecordedArgument::Address(at) => Argument::Address(*at),
            RecordedArgument::Memory(None) => Argument::Memory(None),
            RecordedArgument::Memory(Some((mem, flags))) => {
                Argument::Memory(Some((mem.borrow(), *flags)))
            }
            RecordedArgument::Local(bytes) => Argument::Local(*bytes),
            RecordedArgument::Sampler(sampler) => Argument::Sampler(sampler.borrow()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;
    use ur_adapter::object::{Kind, Never};
    use ur_sys::{ur_exp_kernel_arg_value_t as V, ur_structure_type_t};

    type Mem = Never<{ Kind::Mem as u16 }>;
    type Sampler = Never<{ Kind::Sampler as u16 }>;

    fn argument(index: u32, r#type: T, size: usize, value: V) -> ur_exp_kernel_arg_properties_t {
        let stype = ur_structure_type_t::EXP_KERNEL_ARG_PROPERTIES;
        ur_exp_kernel_arg_properties_t { stype, pNext: null_mut(), r#type, index, size, value }
    }
    static SEVEN: u32 = 7;
    fn value(index: u32, size: usize) -> ur_exp_kernel_arg_properties_t {
        argument(index, T::VALUE, size, V { value: (&raw const SEVEN).cast() })
    }
    fn local(index: u32, size: usize) -> ur_exp_kernel_arg_properties_t {
        argument(index, T::LOCAL, size, V { value: null_mut() })
    }
    fn judge(given: &[ur_exp_kernel_arg_properties_t], sizes: Option<&[u32]>) -> Result<usize> {
        let takes = Taken { count: sizes.map(<[u32]>::len), sizes, longest: None };
        check_all::<Mem, Sampler>(given, takes)?;
        local_memory::<Mem, Sampler>(given)
    }
    fn code(given: &[ur_exp_kernel_arg_properties_t], sizes: Option<&[u32]>) -> ErrorCode {
        judge(given, sizes).unwrap_err().code()
    }
    #[test]
    fn each_index_is_there_once_in_any_order() {
        judge(&[value(0, 4), value(1, 4), value(2, 4)], None).unwrap();
        judge(&[value(2, 4), value(0, 4), value(1, 4)], None).unwrap();
        for indices in [[0, 0], [0, 2], [1, 1], [1, 2], [u32::MAX, 0]] {
            let given = indices.map(|index| value(index, 4));
            assert_eq!(code(&given, None), ErrorCode::InvalidKernelArgs, "{indices:?}");
        }
    }
    #[test]
    fn arguments_have_the_sizes_that_the_kernel_has() {
        let pointer = argument(1, T::POINTER, 8, V { pointer: null_mut() });
        let given = [value(0, 4), pointer, local(2, 64)];
        assert_eq!(judge(&given, Some(&[4, 8, 4])).unwrap(), 64);
        assert_eq!(judge(&given, Some(&[4, 8, 8])).unwrap(), 64);
        for sizes in [[8, 8, 4], [2, 8, 4], [4, 4, 4], [4, 8, 12]] {
            assert_eq!(code(&given, Some(&sizes)), ErrorCode::InvalidKernelArgumentSize);
        }
        assert_eq!(code(&given, Some(&[4, 8])), ErrorCode::InvalidKernelArgs);
        assert_eq!(code(&[], Some(&[4])), ErrorCode::InvalidKernelArgs);
        let null = argument(0, T::VALUE, 4, V { value: null_mut() });
        for wrong in [value(0, 0), value(0, LONGEST + 1), null] {
            assert_eq!(code(&[wrong], None), ErrorCode::InvalidKernelArgumentSize);
        }
        let strange = argument(0, T(9), 4, V { value: null_mut() });
        assert_eq!(code(&[strange], None), ErrorCode::InvalidEnumeration);
        assert_eq!(code(&[strange], Some(&[4, 4])), ErrorCode::InvalidEnumeration);
    }
    #[test]
    fn no_value_is_longer_than_a_kernel_takes() {
        let takes = |longest| Taken { longest, ..Taken::default() };
        let given = [value(0, 4)];
        check_all::<Mem, Sampler>(&given[..], takes(Some(4))).unwrap();
        let refused = check_all::<Mem, Sampler>(&given[..], takes(Some(3))).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidKernelArgumentSize);
    }
    #[test]
    fn local_memory_is_counted_in_the_order_of_the_numbers() {
        assert_eq!(judge(&[local(0, 4), local(1, 12), local(2, 4096)], None).unwrap(), 4224);
        assert_eq!(judge(&[local(2, 4096), local(1, 12), local(0, 4)], None).unwrap(), 4224);
        assert_eq!(judge(&[local(0, 4096), local(1, 4)], None).unwrap(), 4100);
        assert_eq!(code(&[local(0, 1 << 30), local(1, 1 << 30)], None), ErrorCode::OutOfResources);
    }
    #[test]
    fn kept_arguments_are_copies_of_which_some_are_replaced() {
        type RecordedArguments = super::RecordedArguments<Mem, Sampler>;
        let mut word = 1_u32;
        let of = |at: *const u32| argument(0, T::VALUE, 4, V { value: at.cast() });
        let kept = RecordedArguments::new(&[of(&raw const word), local(1, 8)]).unwrap();
        word += 1;
        let first = |kept: &RecordedArguments| match kept.argument(0).unwrap() {
            Argument::Value(bytes) => u32::from_ne_bytes(bytes.try_into().unwrap()),
            other => panic!("{other:?}"),
        };
        assert_eq!(first(&kept), 1);
        let changed = kept.with(&[of(&raw const word)]).unwrap();
        assert_eq!((first(&changed), first(&kept), changed.count()), (2, 1, 2));
        let refused = kept.with(&[value(2, 4)]).unwrap_err().code();
        assert_eq!(refused, ErrorCode::InvalidKernelArgumentIndex);
        assert_eq!(RecordedArguments::default().with(&[value(2, 4)]).unwrap().count(), 1);
    }
}
