//! To be.
use super::{Family, driver::Dialect};
use ur_adapter::api::*;
impl<D: Dialect> UsmP2pExpApi for Family<D> {}
