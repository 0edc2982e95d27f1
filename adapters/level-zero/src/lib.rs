//! The C symbols of `libur_adapter_level_zero.so.0`, and nothing else: `cargo xtask dist` links it.
#![doc = ""]
#![doc = include_str!("../README.md")]
ur_adapter::leaf!(LevelZero, "LEVEL_ZERO", ur_level_zero::TABLE_V1);
