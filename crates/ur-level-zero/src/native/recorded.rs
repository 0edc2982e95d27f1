//! Arguments of launches that are kept, since they are launched again: values are copied, objects are
//! owned.
#![expect(unsafe_code, reason = "sends descriptions that point at what they own")]
use super::super::{Mem, Sampler};
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::Owned,
};
use ur_core::kernels::arguments::{Argument, read};
use ur_sys::ur_exp_kernel_arg_properties_t;

/// Arguments as C describes them, with all that they point at.
#[derive(Debug)]
pub struct Kept {
    given: Vec<ur_exp_kernel_arg_properties_t>,
    _values: Vec<Box<[u8]>>,
    _mems: Vec<Owned<Mem>>,
    _samplers: Vec<Owned<Sampler>>,
}
// SAFETY: what the descriptions point at is owned beside them, or C's memory, which is only named.
unsafe impl Send for Kept {}
// SAFETY: as above.
unsafe impl Sync for Kept {}
impl Kept {
    /// Copies what C describes.
    ///
    /// # Errors
    /// As for a launch with them, as far as single arguments go.
    pub fn new(given: &[ur_exp_kernel_arg_properties_t]) -> Result<Self> {
        let mut kept =
            Self { given: given.to_vec(), _values: vec![], _mems: vec![], _samplers: vec![] };
        for one in &mut kept.given {
            one.pNext = std::ptr::null_mut();
            let bytes: Box<[u8]> = match read::<Mem, Sampler>(one)? {
                Argument::Value(bytes) => bytes.into(),
                Argument::Memory(Some((mem, _))) => {
                    kept._mems.push(mem.own()?);
                    continue;
                }
                Argument::Sampler(sampler) => {
                    kept._samplers.push(sampler.own()?);
                    continue;
                }
                Argument::Address(_) | Argument::Local(_) | Argument::Memory(None) => continue,
            };
            one.value.value = bytes.as_ptr().cast();
            kept._values.push(bytes);
        }
        Ok(kept)
    }
    /// With other arguments in the places of those with the same numbers; where there are none, those
    /// are all. Of several with one number the last counts.
    ///
    /// # Errors
    /// `INVALID_KERNEL_ARGUMENT_INDEX` for a number that there is not; as for [`Kept::new`].
    pub fn with(&self, changes: &[ur_exp_kernel_arg_properties_t]) -> Result<Self> {
        let mut given = self.given.clone();
        for change in changes {
            match given.iter_mut().find(|one| one.index == change.index) {
                Some(place) => *place = *change,
                None if self.given.is_empty() => given.push(*change),
                None => {
                    return Err(Error::new(
                        ErrorCode::InvalidKernelArgumentIndex,
                        format!("the launch was recorded without an argument {}", change.index),
                    ));
                }
            }
        }
        Self::new(&given) // copies again what is the same: nothing is shared
    }
    /// As a launch takes them.
    pub fn given(&self) -> &[ur_exp_kernel_arg_properties_t] {
        &self.given
    }
}
