//! Families that this adapter has not: every entry answers `UNSUPPORTED_FEATURE`, and the device
//! queries say so.
use super::LevelZero;
use ur_adapter::api::{BindlessImagesExpApi, GraphExpApi};
impl BindlessImagesExpApi for LevelZero {}
impl GraphExpApi for LevelZero {}
