//! The C symbols of `libur_adapter_mock.so.0`, and nothing else: `cargo xtask dist` links it.
mod also;

ur_adapter::leaf!(Mock, "MOCK", ur_mock::MOCK_TABLE);
