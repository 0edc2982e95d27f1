//! What the allocations of this backend consist of. `ur-core` keeps and frees them; memory is allocated in `backing.rs`
//! and exported in `share.rs`.
use super::LevelZero;

/// What an allocation consists of.
pub type Memory = ur_core::over_driver::memory::Memory<LevelZero>;
