//! Usm (experimental). Read by `cargo xtask generate`; never compiled.

/// Holds options for registering existing host memory.
#[flags]
enum ExpUsmHostAllocRegisterFlag {
    ReadOnly = 1 << 0,
}

/// Options for making existing host memory known as USM.
#[stype = "UR_STRUCTURE_TYPE_EXP_USM_HOST_ALLOC_REGISTER_PROPERTIES"]
struct ExpUsmHostAllocRegisterProperties {
    stype: StructureType,
    #[optional] pNext: *mut c_void,
    flags: ExpUsmHostAllocRegisterFlags,
}
