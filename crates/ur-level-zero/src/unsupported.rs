//! Families that this adapter has not, or that are the core's: every entry of the first answers `UNSUPPORTED_FEATURE`, and
//! the device queries say so.
use super::LevelZero;
use ur_adapter::api::{
    BindlessImagesExpApi, CommandApi, GraphExpApi, MemoryExportExpApi, QueueExpApi,
};
impl BindlessImagesExpApi for LevelZero {}
impl CommandApi for LevelZero {}
impl GraphExpApi for LevelZero {}
impl MemoryExportExpApi for LevelZero {}
impl QueueExpApi for LevelZero {}
