//! Kernel.
use super::{Family, driver::Dialect};
use std::marker::PhantomData;
use ur_adapter::api::*;

/// Kernel.
#[derive(Debug)]
pub struct Kernel<D: Dialect>(PhantomData<fn() -> D>);
impl<D: Dialect> KernelApi for Family<D> {}
