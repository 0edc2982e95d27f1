//! To be.
use super::{Family, driver::Dialect};
use ur_adapter::api::*;
impl<D: Dialect> VirtualMemApi for Family<D> {}
