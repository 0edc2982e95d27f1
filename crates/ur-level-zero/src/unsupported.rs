//! Families that this backend does not implement. Either the core's entries are used instead, or every entry
//! returns `UNSUPPORTED_FEATURE` and the device queries report it.
use super::LevelZero;
use ur_adapter::api::{BindlessImagesExpApi, CommandApi, MemoryExportExpApi};
impl BindlessImagesExpApi for LevelZero {}
impl CommandApi for LevelZero {}
impl MemoryExportExpApi for LevelZero {}
