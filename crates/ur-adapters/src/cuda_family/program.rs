//! Program.
use super::{Family, driver::Dialect};
use std::marker::PhantomData;
use ur_adapter::api::*;

/// Program.
#[derive(Debug)]
pub struct Program<D: Dialect>(PhantomData<fn() -> D>);
impl<D: Dialect> ProgramApi for Family<D> {}
impl<D: Dialect> ProgramExpApi for Family<D> {}
