//! Images and samplers as kernels hold them: by the addresses that a launch gave, which keeps them while it runs.
#![expect(unsafe_code, reason = "kernels hold addresses")]
use crate::{image::Image, sampler::Sampler};

fn at<T>(address: u64, what: &str) -> Result<&'static T, String> {
    if address < 4096 || !address.is_multiple_of(align_of::<T>() as u64) {
        return Err(format!("the kernel takes {address:#x} for {what}"));
    }
    // SAFETY: such values are made by `kernel::capture` alone, which keeps what they stand for while the kernel runs.
    Ok(unsafe { &*std::ptr::with_exposed_provenance::<T>(address as usize) })
}
/// The image that a kernel's argument stands for.
///
/// # Errors
/// A sentence, if it stands for none.
pub fn image_at(address: u64) -> Result<&'static Image, String> {
    at(address, "an image")
}
/// The sampler that a kernel's argument stands for.
///
/// # Errors
/// A sentence, if it stands for none.
pub fn sampler_at(address: u64) -> Result<&'static Sampler, String> {
    at(address, "a sampler")
}
