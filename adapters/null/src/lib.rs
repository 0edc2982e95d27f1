//! The C symbols of `libur_adapter_null.so.0`, and nothing else: `cargo xtask dist` links it.
ur_adapter::leaf!(Null, "NULL", ur_null::TABLE);
