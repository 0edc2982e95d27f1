//! PhysicalMem.
use super::{Family, driver::Dialect};
use std::marker::PhantomData;
use ur_adapter::api::*;

/// PhysicalMem.
#[derive(Debug)]
pub struct PhysicalMem<D: Dialect>(PhantomData<fn() -> D>);
impl<D: Dialect> PhysicalMemApi for Family<D> {}
