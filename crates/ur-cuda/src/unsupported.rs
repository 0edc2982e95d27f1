//! Families that this adapter has not: every entry answers `UNSUPPORTED_FEATURE`, and the device
//! queries say so.
use super::{Family, driver::Dialect};
use ur_adapter::api::{BindlessImagesExpApi, CommandApi, MemoryExportExpApi};
impl<D: Dialect> BindlessImagesExpApi for Family<D> {}
impl<D: Dialect> CommandApi for Family<D> {}
impl<D: Dialect> MemoryExportExpApi for Family<D> {}
