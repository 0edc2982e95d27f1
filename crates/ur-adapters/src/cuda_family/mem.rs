//! Mem.
use super::{Family, driver::Dialect};
use std::marker::PhantomData;
use ur_adapter::api::*;

/// Mem.
#[derive(Debug)]
pub struct Mem<D: Dialect>(PhantomData<fn() -> D>);
impl<D: Dialect> MemApi for Family<D> {}
