//! Event.
use super::{Family, driver::Dialect};
use std::marker::PhantomData;
use ur_adapter::api::*;

/// Event.
#[derive(Debug)]
pub struct Event<D: Dialect>(PhantomData<fn() -> D>);
impl<D: Dialect> EventApi for Family<D> {}
impl<D: Dialect> EventExpApi for Family<D> {}
