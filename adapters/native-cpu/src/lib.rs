//! The C symbols of `libur_adapter_native_cpu.so.0`, and nothing else: `cargo xtask dist` links it.
ur_adapter::leaf!(Cpu, "NATIVE_CPU", ur_cpu::TABLE);
