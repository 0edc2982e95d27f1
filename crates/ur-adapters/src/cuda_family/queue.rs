//! Queue.
use super::{Family, driver::Dialect};
use std::marker::PhantomData;
use ur_adapter::api::*;

/// Queue.
#[derive(Debug)]
pub struct Queue<D: Dialect>(PhantomData<fn() -> D>);
impl<D: Dialect> QueueApi for Family<D> {}
impl<D: Dialect> QueueExpApi for Family<D> {}
