//! To be.
use super::{Family, driver::Dialect};
use ur_adapter::api::*;
impl<D: Dialect> IpcExpApi for Family<D> {}
