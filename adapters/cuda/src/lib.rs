//! The C symbols of `libur_adapter_cuda.so.0`, and nothing else: `cargo xtask dist` links it.
#![doc = ""]
#![doc = include_str!("../README.md")]
ur_adapter::leaf!(Cuda, "CUDA", ur_cuda::CUDA_TABLE);
