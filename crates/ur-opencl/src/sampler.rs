//! Samplers: the driver's, which are of a context and the same on all of its devices.
use super::{
    Context, DriverDevice, OpenCl,
    cl::*,
    context::DriverContext,
    driver::RawSampler,
    native::{
        image,
        own::{Own, Tells},
    },
};
use std::sync::Arc;
use ur_adapter::{
    error::{Error, ErrorCode, Result},
    object::{Borrowed, Object, Owned},
};
use ur_core::over_driver::sampler::{self, HasSamplers};
use ur_hal::{Filter, MakesSamplers, Repeat, SamplerDesc};
use ur_sys::ur_native_handle_t;

/// What `ur_sampler_handle_t` points at.
pub type Sampler = sampler::Sampler<OpenCl>;

/// What is read beyond the edge, and OpenCL's names of that.
const MODES: [(Repeat, cl_uint); 5] = [
    (Repeat::Undefined, CL_ADDRESS_NONE),
    (Repeat::Edge, CL_ADDRESS_CLAMP_TO_EDGE),
    (Repeat::Border, CL_ADDRESS_CLAMP),
    (Repeat::Repeat, CL_ADDRESS_REPEAT),
    (Repeat::Mirror, CL_ADDRESS_MIRRORED_REPEAT),
];
impl MakesSamplers for OpenCl {
    fn sampler(
        context: &DriverContext,
        _: &Arc<DriverDevice>,
        desc: &SamplerDesc,
    ) -> ur_hal::Result<Own<RawSampler>> {
        // OpenCL repeats pictures by normalised coordinates alone. What others read beyond the edge is undefined,
        // and some drivers refuse to be told more than that.
        let repeats = matches!(desc.repeat, Repeat::Repeat | Repeat::Mirror);
        let is_known = |repeat| repeat == desc.repeat && (desc.is_normalized || !repeats);
        let mode = MODES.iter().find(|(repeat, _)| is_known(*repeat));
        let filter = match desc.filter {
            Filter::Nearest => CL_FILTER_NEAREST,
            Filter::Linear => CL_FILTER_LINEAR,
        };
        let asked = (desc.is_normalized, mode.map_or(CL_ADDRESS_NONE, |one| one.1), filter);
        Ok(image::sampler(context.raw(), asked)?)
    }
}
impl HasSamplers for OpenCl {
    fn native_sampler(sampler: &Object<Sampler>) -> Result<ur_native_handle_t> {
        let made = sampler.on(&sampler.context().devices()[0])?;
        Ok(made.raw().addr() as ur_native_handle_t)
    }
    fn sampler_of_native(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context>,
        is_owned: bool,
    ) -> Result<Owned<Sampler>> {
        let Some(raw) = RawSampler::from_addr(native) else {
            return Err(Error::new(ErrorCode::InvalidNullHandle, "the native sampler is null"));
        };
        let mode = raw.number(CL_SAMPLER_ADDRESSING_MODE)? as u32;
        let desc = SamplerDesc {
            is_normalized: raw.number(CL_SAMPLER_NORMALIZED_COORDS)? != 0,
            repeat: MODES.iter().find(|one| one.1 == mode).map_or(Repeat::Undefined, |one| one.0),
            filter: match raw.number(CL_SAMPLER_FILTER_MODE)? as u32 {
                CL_FILTER_LINEAR => Filter::Linear,
                _ => Filter::Nearest,
            },
        };
        Ok(Sampler::of_native(context.own()?, Some(desc), Own::adopted(raw, is_owned)?))
    }
}
