//! Memory export (experimental). Read by `cargo xtask generate`; never compiled.

#[table(MemoryExportExp, "MemoryExportExp")]
extern "C" {
    /// Allocates device memory that other APIs can be given.
    #[error(UnsupportedAlignment, alignment != 0 && ((alignment & (alignment-1)) != 0))]
    #[error(InvalidValue, "the alignment is larger than the device's biggest data type")]
    #[error(InvalidUsmSize, size == 0)]
    #[error(UnsupportedSize, "the size exceeds the device's largest allowed allocation")]
    #[errors(InvalidContext, InvalidDevice, OutOfHostMemory, OutOfDeviceMemory)]
    fn urMemoryExportAllocExportableMemoryExp(
        context: Context,
        device: Device,
        alignment: usize,
        size: usize,
        handle_type_to_export: ExpExternalMemType,
        #[out] mem: *mut *mut c_void,
    );

    /// Frees memory that was allocated for export.
    #[errors(InvalidContext, InvalidDevice, InvalidValue, OutOfHostMemory, OutOfDeviceMemory)]
    fn urMemoryExportFreeExportableMemoryExp(context: Context, device: Device, #[released] mem: *mut c_void);

    /// Gets an operating-system handle for exportable memory.
    #[error(InvalidNullPointer, null == mem_handle_ret || null == mem)]
    #[errors(InvalidContext, InvalidDevice, OutOfHostMemory, OutOfDeviceMemory)]
    fn urMemoryExportExportMemoryHandleExp(
        context: Context,
        device: Device,
        handle_type_to_export: ExpExternalMemType,
        mem: *mut c_void,
        #[out] mem_handle_ret: *mut c_void,
    );
}
