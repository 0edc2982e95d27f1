//! Families that this adapter has not: every entry answers `UNSUPPORTED_FEATURE`, and the device
//! queries say so.
use super::{Family, driver::Dialect};
use ur_adapter::api::{
    BindlessImagesExpApi, CommandApi, GraphExpApi, MemoryExportExpApi, QueueExpApi,
};
impl<D: Dialect> BindlessImagesExpApi for Family<D> {}
impl<D: Dialect> CommandApi for Family<D> {}
impl<D: Dialect> GraphExpApi for Family<D> {}
impl<D: Dialect> MemoryExportExpApi for Family<D> {}
impl<D: Dialect> QueueExpApi for Family<D> {}
