//! Families that this adapter does not support: every entry returns `UNSUPPORTED_FEATURE`, and the device
//! queries report it.
use super::{Family, driver::Dialect};
use ur_adapter::api::{BindlessImagesExpApi, CommandApi, MemoryExportExpApi};
impl<D: Dialect> BindlessImagesExpApi for Family<D> {}
impl<D: Dialect> CommandApi for Family<D> {}
impl<D: Dialect> MemoryExportExpApi for Family<D> {}
