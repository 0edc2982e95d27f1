//! Samplers: the driver's, which are of a context and the same on all of its devices.
use super::{
    DriverDevice, OpenCl,
    cl::*,
    context::DriverContext,
    driver::RawSampler,
    native::{
        image,
        own::{Own, Tells},
    },
};
use std::sync::Arc;
use ur_hal::{ErrorKind, Filter, MakesSamplers, NativeHandle, Repeat, Result, SamplerDesc};

/// What is read beyond the edge, and OpenCL's names of that.
const MODES: [(Repeat, cl_uint); 5] = [
    (Repeat::Undefined, CL_ADDRESS_NONE),
    (Repeat::Edge, CL_ADDRESS_CLAMP_TO_EDGE),
    (Repeat::Border, CL_ADDRESS_CLAMP),
    (Repeat::Repeat, CL_ADDRESS_REPEAT),
    (Repeat::Mirror, CL_ADDRESS_MIRRORED_REPEAT),
];
impl MakesSamplers for OpenCl {
    const HAS_SAMPLERS: bool = true;
    fn sampler(
        context: &DriverContext,
        _: &Arc<DriverDevice>,
        desc: &SamplerDesc,
    ) -> Result<Own<RawSampler>> {
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
        image::sampler(context.raw(), asked)
    }
}
/// Wraps a sampler of the application, which belongs to the result if it `is_owned`; and its description.
///
/// # Errors
/// Returns the driver's error.
pub(super) fn adopt(
    handle: NativeHandle,
    is_owned: bool,
) -> Result<(Own<RawSampler>, SamplerDesc)> {
    let raw = RawSampler::from_addr(handle.0 as usize).ok_or(ErrorKind::InvalidSampler)?;
    let mode = raw.number(CL_SAMPLER_ADDRESSING_MODE)? as u32;
    let desc = SamplerDesc {
        is_normalized: raw.number(CL_SAMPLER_NORMALIZED_COORDS)? != 0,
        repeat: MODES.iter().find(|one| one.1 == mode).map_or(Repeat::Undefined, |one| one.0),
        filter: match raw.number(CL_SAMPLER_FILTER_MODE)? as u32 {
            CL_FILTER_LINEAR => Filter::Linear,
            _ => Filter::Nearest,
        },
    };
    Ok((Own::adopted(raw, is_owned)?, desc))
}
