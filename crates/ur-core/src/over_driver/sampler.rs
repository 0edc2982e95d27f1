//! Samplers: how a kernel reads between the pixels of an image. What one is beyond its choices is the driver's.
use super::{Contexts, OverDriver, own_handle};
use std::fmt;
use ur_adapter::{
    api::{Objects, SamplerApi},
    error::{Error, ErrorCode, Result},
    info::Answer,
    object::{Body, Borrowed, Kind, Object, Owned, Slab, Tag},
};
use ur_sys::{
    ur_native_handle_t, ur_sampler_addressing_mode_t, ur_sampler_desc_t, ur_sampler_filter_mode_t,
    ur_sampler_info_t, ur_sampler_native_properties_t,
};

type Context<D> = <D as Objects>::Context;

/// A driver whose samplers are the core's. Where it has none of its own, a sampler's native handle is its own handle.
pub trait HasSamplers: Contexts + Objects<Sampler = Sampler<Self>> {
    /// What a sampler is to the driver beside its choices.
    type NativeSampler: fmt::Debug + Send + Sync;
    /// Where samplers live.
    fn samplers() -> &'static Slab<Sampler<Self>>;
    /// What the driver has for these choices.
    ///
    /// # Errors
    /// Returns the driver's error.
    fn make_sampler(
        context: &Owned<Context<Self>>,
        choices: Choices,
    ) -> Result<Self::NativeSampler>;
    /// # Errors
    /// Returns the driver's error.
    fn native_sampler(sampler: &Object<Sampler<Self>>) -> Result<ur_native_handle_t> {
        own_handle::of(sampler)
    }
    /// The sampler of a native handle, which goes with it if it `is_owned`.
    ///
    /// # Errors
    /// As `urSamplerCreateWithNativeHandle` documents them.
    fn sampler_of_native(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context<Self>>,
        is_owned: bool,
    ) -> Result<Owned<Sampler<Self>>> {
        let _ = is_owned;
        let sampler: Owned<Sampler<Self>> = own_handle::find(native)?;
        own_handle::check_context(&sampler.context, &context)?;
        Ok(sampler)
    }
}
/// How a sampler reads.
#[derive(Clone, Copy, Debug)]
pub struct Choices {
    /// Whether coordinates are from 0 to 1.
    pub normalized: bool,
    /// What is read outside of the image.
    pub addressing: ur_sampler_addressing_mode_t,
    /// What is read between pixels.
    pub filter: ur_sampler_filter_mode_t,
}
/// What `ur_sampler_handle_t` points at.
#[derive(Debug)]
pub struct Sampler<D: HasSamplers> {
    context: Owned<Context<D>>,
    /// Unknown of one that somebody else made.
    choices: Option<Choices>,
    native: D::NativeSampler,
}
impl<D: HasSamplers> Sampler<D> {
    /// One that the driver has already.
    pub fn of_native(
        context: Owned<Context<D>>,
        choices: Option<Choices>,
        native: D::NativeSampler,
    ) -> Owned<Self> {
        Owned::new(Self { context, choices, native })
    }
    /// The choices as one number, for a kernel: bit 0 says whether coordinates are normalized, bit 1 whether the filter
    /// is linear, bits 2 to 4 hold the addressing mode.
    pub fn word(&self) -> u32 {
        self.choices.map_or(0, |Choices { normalized, addressing, filter }| {
            u32::from(normalized) | filter.0 << 1 | addressing.0 << 2
        })
    }
    /// How it reads, if that is known.
    pub fn choices(&self) -> Option<Choices> {
        self.choices
    }
    /// What it is to the driver.
    pub fn native(&self) -> &D::NativeSampler {
        &self.native
    }
    /// The context it was made in.
    pub fn context(&self) -> &Owned<Context<D>> {
        &self.context
    }
}
impl<D: HasSamplers> Body for Sampler<D> {
    const TAG: Tag = Tag::new(D::BACKEND, Kind::Sampler);
    const INVALID: ErrorCode = ErrorCode::InvalidSampler;
    fn slab() -> &'static Slab<Self> {
        D::samplers()
    }
}

impl<D: HasSamplers> SamplerApi for OverDriver<D> {
    fn sampler_create(
        context: Borrowed<'_, Context<D>>,
        desc: &ur_sampler_desc_t,
    ) -> Result<Owned<Sampler<D>>> {
        let choices = Choices {
            normalized: desc.normalizedCoords,
            addressing: desc.addressingMode,
            filter: desc.filterMode,
        };
        let context = context.own()?;
        let native = D::make_sampler(&context, choices)?;
        Ok(Sampler::of_native(context, Some(choices), native))
    }
    fn sampler_get_info(
        sampler: Borrowed<'_, Sampler<D>>,
        name: ur_sampler_info_t,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        match (name, sampler.choices) {
            (ur_sampler_info_t::REFERENCE_COUNT, _) => answer.value(&sampler.api_refs()),
            (ur_sampler_info_t::CONTEXT, _) => answer.handle(&sampler.context),
            (ur_sampler_info_t::NORMALIZED_COORDS, Some(one)) => answer.bool(one.normalized),
            (ur_sampler_info_t::ADDRESSING_MODE, Some(one)) => answer.value(&one.addressing.0),
            (ur_sampler_info_t::FILTER_MODE, Some(one)) => answer.value(&one.filter.0),
            _ => Err(Error::new(
                ErrorCode::UnsupportedEnumeration,
                format!("this sampler has no answer to {name:?}"),
            )),
        }
    }
    fn sampler_get_native_handle(sampler: Borrowed<'_, Sampler<D>>) -> Result<ur_native_handle_t> {
        D::native_sampler(&sampler)
    }
    fn sampler_create_with_native_handle(
        native: ur_native_handle_t,
        context: Borrowed<'_, Context<D>>,
        properties: Option<&ur_sampler_native_properties_t>,
    ) -> Result<Owned<Sampler<D>>> {
        let is_owned = properties.is_some_and(|one| one.isNativeHandleOwned);
        D::sampler_of_native(native, context, is_owned)
    }
}
