//! The C symbols of `libur_adapter_opencl.so.0`, and nothing else: `cargo xtask dist` links it.
ur_adapter::leaf!(OpenCl, "OPENCL", ur_opencl::TABLE);
