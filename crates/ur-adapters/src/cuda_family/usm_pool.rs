//! UsmPool.
use super::{Family, driver::Dialect};
use std::marker::PhantomData;
use ur_adapter::api::*;

/// UsmPool.
#[derive(Debug)]
pub struct UsmPool<D: Dialect>(PhantomData<fn() -> D>);
impl<D: Dialect> UsmApi for Family<D> {}
impl<D: Dialect> UsmExpApi for Family<D> {}
