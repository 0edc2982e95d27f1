//! Images and samplers as kernels see them: by address. The launch keeps the objects alive while it runs.
#![expect(unsafe_code, reason = "kernels hold addresses")]
use crate::{image::Image, sampler::Sampler};

fn at<T>(address: u64, what: &str) -> Result<&'static T, String> {
    if address < 4096 || !address.is_multiple_of(align_of::<T>() as u64) {
        return Err(format!("the kernel takes {address:#x} for {what}"));
    }
    // SAFETY: `Launchable::run` makes such values, and keeps the objects alive while the kernel runs.
    Ok(unsafe { &*std::ptr::with_exposed_provenance::<T>(address as usize) })
}
/// The image behind a kernel argument.
///
/// # Errors
/// A sentence, if the value is not a valid address.
pub fn image_at(address: u64) -> Result<&'static Image, String> {
    at(address, "an image")
}
/// The sampler behind a kernel argument.
///
/// # Errors
/// A sentence, if the value is not a valid address.
pub fn sampler_at(address: u64) -> Result<&'static Sampler, String> {
    at(address, "a sampler")
}
