//! The arguments of a launch in the driver's form: all in one call by their addresses, or one call each. The
//! driver copies them.
use super::{super::LevelZero, kernel::ArgumentLock, mutable::Value};
use std::{ffi::c_void, ptr::null_mut};
use ur_hal::{Address, Argument, Result};

type Given<'a> = Argument<'a, LevelZero>;

/// The largest number of arguments that are passed in one call.
const MANY: usize = 32;
/// Storage for addresses and handles while the driver reads them.
pub type Words = [usize; MANY];

/// The size in bytes of an argument; addresses and handles are words.
fn bytes_of(one: &Given<'_>) -> usize {
    if let Argument::Value(bytes) = one { bytes.len() } else { size_of::<usize>() }
}
/// The word of an address or a handle; 0 for others.
fn word(one: &Given<'_>) -> usize {
    match one {
        Argument::Address(at) => at.map_or(0, Address::get),
        Argument::Image(image, _) => image.raw().addr(),
        Argument::Sampler(sampler) => sampler.raw().addr(),
        Argument::Value(_) | Argument::Local(_) => 0,
    }
}
/// The address of each argument, for addresses and handles in `words`. `None` unless the driver accepted
/// arguments of these sizes before.
pub fn places(
    given: &[Given<'_>],
    accepted: &[usize],
    words: &mut Words,
) -> Option<[*mut c_void; MANY]> {
    if given.is_empty() || given.len() != accepted.len() {
        return None;
    }
    let mut all = [null_mut(); MANY];
    for (index, (one, size)) in given.iter().zip(accepted).enumerate() {
        let place = all.get_mut(index)?;
        *place = match one {
            Argument::Value(bytes) => bytes.as_ptr().cast_mut().cast(),
            _ => {
                words[index] = word(one);
                (&raw mut words[index]).cast()
            }
        };
        if *size != bytes_of(one) {
            return None;
        }
    }
    Some(all)
}
/// The size in bytes of each argument. Empty if there are too many for [`places`], or if one is local memory,
/// which has no address.
pub fn sizes(given: &[Given<'_>]) -> Vec<usize> {
    let is_local = |one: &Given<'_>| matches!(one, Argument::Local(_));
    match given.len() > MANY || given.iter().any(is_local) {
        true => vec![],
        false => given.iter().map(bytes_of).collect(),
    }
}
/// The arguments with their indexes.
pub fn one_by_one<'a>(given: &[Given<'a>]) -> Vec<(u32, Value<'a>)> {
    let value = |one: &Given<'a>| match *one {
        Argument::Value(bytes) => Value::Bytes(bytes),
        Argument::Local(bytes) => Value::Local(bytes),
        _ => Value::word(word(one)),
    };
    (0..).zip(given.iter().map(value)).collect()
}
/// Passes the arguments to the driver one by one.
///
/// # Errors
/// Returns the driver's error.
pub fn set(given: &[Given<'_>], turn: &mut ArgumentLock<'_>) -> Result<()> {
    for (index, one) in (0..).zip(given) {
        match one {
            Argument::Value(bytes) => turn.value(index, bytes)?,
            Argument::Local(bytes) => turn.local(index, *bytes)?,
            _ => turn.word(index, word(one))?,
        }
    }
    Ok(())
}
