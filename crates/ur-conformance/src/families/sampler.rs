//! Samplers.
use crate::{
    bench::Bench,
    case::{Case, Verdict},
    cases, info, must, same,
};
use std::ptr::null;
use ur_sys::*;

pub fn cases() -> Vec<Case> {
    cases! { "sampler";
        "urSamplerCreate, urSamplerGetInfo", "a sampler has what its descriptor says", "every addressing and filter mode is answered as it was given, with normalised coordinates and without", modes;
        "urSamplerRelease", "a sampler keeps its context", "a sampler answers after its context was released", outlives;
        "urSamplerGetNativeHandle, urSamplerCreateWithNativeHandle", "a native handle leads back", "a sampler made of a native handle answers", native;
    }
}
fn create(
    b: &Bench,
    context: ur_context_handle_t,
    modes: (bool, ur_sampler_addressing_mode_t, ur_sampler_filter_mode_t),
) -> Verdict<ur_sampler_handle_t> {
    b.needs_images()?;
    let desc = ur_sampler_desc_t {
        stype: ur_structure_type_t::SAMPLER_DESC,
        pNext: null(),
        normalizedCoords: modes.0,
        addressingMode: modes.1,
        filterMode: modes.2,
    };
    let mut sampler = ur_sampler_handle_t::NULL;
    must!(b, sampler.create(context, &desc, &mut sampler));
    Ok(sampler)
}
fn modes(b: &Bench) -> Verdict {
    use ur_sampler_info_t as Info;
    for addressing in ur_sampler_addressing_mode_t::VALUES {
        for filter in ur_sampler_filter_mode_t::VALUES {
            for normal in [false, true] {
                let sampler = create(b, b.context()?, (normal, *addressing, *filter))?;
                let found = info!(b, sampler.get_info(sampler, Info::ADDRESSING_MODE), u32);
                same!(found, addressing.0, "the addressing mode");
                let found = info!(b, sampler.get_info(sampler, Info::FILTER_MODE), u32);
                same!(found, filter.0, "the filter mode");
                let found = info!(b, sampler.get_info(sampler, Info::NORMALIZED_COORDS), u8);
                same!(found != 0, normal, "whether coordinates are normalised");
                let found = info!(b, sampler.get_info(sampler, Info::CONTEXT), usize);
                same!(found, b.context()?.0.addr(), "the context");
                must!(b, sampler.release(sampler));
            }
        }
    }
    Ok(())
}
fn outlives(b: &Bench) -> Verdict {
    let context = b.new_context()?;
    let (repeat, nearest) =
        (ur_sampler_addressing_mode_t::REPEAT, ur_sampler_filter_mode_t::NEAREST);
    let sampler = create(b, context, (true, repeat, nearest))?;
    must!(b, context.release(context));
    let found = info!(b, sampler.get_info(sampler, ur_sampler_info_t::FILTER_MODE), u32);
    same!(found, nearest.0, "the filter mode");
    must!(b, sampler.release(sampler));
    Ok(())
}
fn native(b: &Bench) -> Verdict {
    let (context, sampler) = (b.context()?, ur_sampler_handle_t(b.object("Sampler")?));
    let (mut native, mut again) = (0, ur_sampler_handle_t::NULL);
    must!(b, sampler.get_native_handle(sampler, &mut native));
    must!(b, sampler.create_with_native_handle(native, context, null(), &mut again));
    crate::bench::exists(again.0)?;
    let mode = |of| -> Verdict<u32> {
        Ok(info!(b, sampler.get_info(of, ur_sampler_info_t::FILTER_MODE), u32))
    };
    same!(mode(again)?, mode(sampler)?, "the filter mode");
    must!(b, sampler.release(again));
    Ok(())
}
