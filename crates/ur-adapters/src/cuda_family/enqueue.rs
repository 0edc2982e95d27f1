//! What queues are asked to do.
use super::{Family, driver::Dialect};
use ur_adapter::api::*;
impl<D: Dialect> EnqueueApi for Family<D> {}
impl<D: Dialect> EnqueueExpApi for Family<D> {}
