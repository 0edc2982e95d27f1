//! The arguments of a launch: what C describes is judged, and given to the driver, which copies it.
use super::{
    super::{Device, Mem, Sampler, mem::kernel_argument, sampler::raw},
    kernel::Turn,
};
use std::{ffi::c_void, ptr::null_mut};
use ur_adapter::{error::Result, object::Owned};
use ur_core::kernels::arguments::{address_of, check_all, mem_of, sampler_of, value_of};
use ur_sys::{ur_exp_kernel_arg_properties_t, ur_exp_kernel_arg_type_t as T};

/// Arguments that are told at once at most.
const MANY: usize = 32;
/// Addresses and handles are words, whatever C says.
fn bytes_of(one: &ur_exp_kernel_arg_properties_t) -> usize {
    if one.r#type == T::VALUE { one.size } else { size_of::<usize>() }
}

/// The arguments of a launch, judged. They are where C has them, and there only until its call
/// returns.
#[derive(Debug)]
pub struct Arguments<'call> {
    given: &'call [ur_exp_kernel_arg_properties_t],
    /// What memory objects and samplers among them are on the device, in their order.
    words: Vec<usize>,
}
impl<'call> Arguments<'call> {
    /// Judges what C describes for a kernel that takes `count` arguments.
    ///
    /// # Errors
    /// `INVALID_KERNEL_ARGS` unless there is one for each index; `INVALID_KERNEL_ARGUMENT_SIZE`,
    /// `INVALID_ENUMERATION`, `INVALID_MEM_OBJECT`, `INVALID_SAMPLER`.
    pub fn new(given: &'call [ur_exp_kernel_arg_properties_t], count: Option<u32>) -> Result<Self> {
        check_all::<Mem, Sampler>(given, count.map(|n| n as usize), None)?;
        Ok(Self { given, words: vec![] })
    }
    /// Finds what memory objects and samplers are on a device. Memory may move there.
    ///
    /// # Errors
    /// What they answer.
    pub fn resolve(&mut self, device: &Owned<Device>) -> Result<()> {
        for one in self.given {
            self.words.push(match one.r#type {
                T::SAMPLER => raw(&*sampler_of::<Sampler>(one)?, device)?.addr(),
                T::MEM_OBJ => match mem_of::<Mem>(one)? {
                    Some((mem, _)) => kernel_argument(&mem, device)?,
                    None => 0,
                },
                _ => continue,
            });
        }
        Ok(())
    }
    /// Where each of them is, if the driver took each in this size before; they have been resolved.
    pub fn places(&self, accepted: &[usize]) -> Option<[*mut c_void; MANY]> {
        if self.given.is_empty() || self.given.len() != accepted.len() {
            return None;
        }
        let (mut all, mut words) = ([null_mut(); MANY], self.words.iter());
        for one in self.given {
            let at = match one.r#type {
                T::VALUE => value_of(one).ok()?.as_ptr().cast_mut().cast(),
                // The word that C has there is the argument.
                T::POINTER => (&raw const one.value).cast_mut().cast(),
                _ => std::ptr::from_ref(words.next()?).cast_mut().cast(),
            };
            let place = all.get_mut(one.index as usize)?;
            let is_known = accepted.get(one.index as usize) == Some(&bytes_of(one));
            *place = Some(at).filter(|_| is_known)?;
        }
        Some(all)
    }
    /// Bytes of each of them; none where there are too many for `places`, or local memory is among
    /// them, which is nowhere.
    pub fn sizes(&self) -> Vec<usize> {
        let is_local = |one: &ur_exp_kernel_arg_properties_t| one.r#type == T::LOCAL;
        if self.given.len() > MANY || self.given.iter().any(is_local) {
            return vec![];
        }
        let mut all = vec![0; self.given.len()];
        self.given.iter().for_each(|one| all[one.index as usize] = bytes_of(one));
        all
    }
    /// Gives them to the driver. They have been resolved.
    ///
    /// # Errors
    /// The driver's own.
    pub fn set(&self, turn: &mut Turn<'_>) -> Result<()> {
        let mut words = self.words.iter();
        for one in self.given {
            match one.r#type {
                T::VALUE => turn.value(one.index, value_of(one)?)?,
                T::POINTER => turn.word(one.index, address_of(one))?,
                T::LOCAL => turn.local(one.index, one.size)?,
                _ => turn.word(one.index, words.next().copied().unwrap_or_default())?,
            }
        }
        Ok(())
    }
}
