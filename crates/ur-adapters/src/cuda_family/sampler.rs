//! Sampler.
use super::{Family, driver::Dialect};
use std::marker::PhantomData;
use ur_adapter::api::*;

/// Sampler.
#[derive(Debug)]
pub struct Sampler<D: Dialect>(PhantomData<fn() -> D>);
impl<D: Dialect> SamplerApi for Family<D> {}
