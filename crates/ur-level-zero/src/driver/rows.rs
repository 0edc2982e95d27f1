//! The table of the Level Zero functions that this adapter uses: one row each, by the specification's name.
//! Extension functions that the loader does not export by name are in `extensions.rs`.
#![expect(unsafe_code, reason = "calls into the vendor's driver")]
use super::*;
use std::ffi::c_char;

macro_rules! driver_table {
    ($($name:ident: $symbol:literal, fn($($arg:ident: $ty:ty),*);)*) => {
        /// The functions of the driver. A function that the driver does not have is `None`; calling it gives
        /// an [`Outcome`] without a status.
        pub struct Driver {
            library: Option<libloading::Library>,
            $(pub(crate) $name: Option<unsafe extern "C" fn($($ty),*) -> ze_result_t>,)*
        }
        impl Driver {
            pub(super) fn bind(library: Option<libloading::Library>) -> Self {
                Self {
                    // SAFETY: the symbol's prototype is the one of its row below.
                    $($name: library.as_ref().and_then(|l| unsafe { l.get($symbol.as_bytes()) }.ok().map(|s| *s)),)*
                    library,
                }
            }
            /// Whether the library was found.
            pub fn is_there(&self) -> bool {
                self.library.is_some()
            }
            /// Whether the driver has the function of the row with that name.
            pub fn has(&self, row: &str) -> bool {
                match row {
                    $(stringify!($name) => self.$name.is_some(),)*
                    _ => false,
                }
            }
            $(
                #[doc = concat!("`", $symbol, "`")]
                /// # Safety
                /// The conditions that the driver documents for its arguments.
                #[allow(clippy::too_many_arguments, reason = "as many as the driver's function has")]
                pub unsafe fn $name(&self, $($arg: $ty),*) -> Outcome {
                    // SAFETY: the caller upholds the driver's conditions.
                    let status = self.$name.map(|f| unsafe { f($($arg),*) });
                    Outcome::new($symbol, status)
                }
            )*
        }
    };
}
driver_table! {
    init: "zeInit", fn(flags: ze_init_flags_t);
    driver_get: "zeDriverGet", fn(count: *mut u32, drivers: *mut Option<RawDriver>);
    init_drivers: "zeInitDrivers", fn(count: *mut u32, drivers: *mut Option<RawDriver>, desc: *mut ze_init_driver_type_desc_t);
    driver_get_api_version: "zeDriverGetApiVersion", fn(driver: RawDriver, version: *mut ze_api_version_t);
    driver_get_properties: "zeDriverGetProperties", fn(driver: RawDriver, driver_properties: *mut ze_driver_properties_t);
    driver_get_ipc_properties: "zeDriverGetIpcProperties", fn(driver: RawDriver, ipc_properties: *mut ze_driver_ipc_properties_t);
    driver_get_extension_properties: "zeDriverGetExtensionProperties", fn(driver: RawDriver, count: *mut u32, extension_properties: *mut ze_driver_extension_properties_t);
    driver_get_extension_function_address: "zeDriverGetExtensionFunctionAddress", fn(driver: RawDriver, name: *const c_char, function_address: *mut *mut c_void);
    loader_translate_handle: "zelLoaderTranslateHandle", fn(kind: u32, handle: *mut c_void, own: *mut *mut c_void);
    sysman_init: "zesInit", fn(flags: zes_init_flags_t);
    sysman_driver_get: "zesDriverGet", fn(count: *mut u32, drivers: *mut Option<RawSysmanDriver>);
    sysman_driver_get_device_by_uuid_exp: "zesDriverGetDeviceByUuidExp", fn(driver: RawSysmanDriver, uuid: zes_uuid_t, device: *mut Option<RawSysmanDevice>, on_subdevice: *mut ze_bool_t, subdevice_id: *mut u32);
    sysman_device_enum_memory_modules: "zesDeviceEnumMemoryModules", fn(device: RawSysmanDevice, count: *mut u32, memory: *mut Option<RawMemoryModule>);
    sysman_memory_get_properties: "zesMemoryGetProperties", fn(memory: RawMemoryModule, properties: *mut zes_mem_properties_t);
    sysman_memory_get_state: "zesMemoryGetState", fn(memory: RawMemoryModule, state: *mut zes_mem_state_t);
    sysman_device_enum_frequency_domains: "zesDeviceEnumFrequencyDomains", fn(device: RawSysmanDevice, count: *mut u32, frequency: *mut Option<RawFrequency>);
    sysman_frequency_get_properties: "zesFrequencyGetProperties", fn(frequency: RawFrequency, properties: *mut zes_freq_properties_t);
    sysman_frequency_get_state: "zesFrequencyGetState", fn(frequency: RawFrequency, state: *mut zes_freq_state_t);
    device_get: "zeDeviceGet", fn(driver: RawDriver, count: *mut u32, devices: *mut Option<RawDevice>);
    device_get_root_device: "zeDeviceGetRootDevice", fn(device: RawDevice, root_device: *mut Option<RawDevice>);
    device_get_sub_devices: "zeDeviceGetSubDevices", fn(device: RawDevice, count: *mut u32, subdevices: *mut Option<RawDevice>);
    device_get_properties: "zeDeviceGetProperties", fn(device: RawDevice, device_properties: *mut ze_device_properties_t);
    device_get_compute_properties: "zeDeviceGetComputeProperties", fn(device: RawDevice, compute_properties: *mut ze_device_compute_properties_t);
    device_get_module_properties: "zeDeviceGetModuleProperties", fn(device: RawDevice, module_properties: *mut ze_device_module_properties_t);
    device_get_command_queue_group_properties: "zeDeviceGetCommandQueueGroupProperties", fn(device: RawDevice, count: *mut u32, command_queue_group_properties: *mut ze_command_queue_group_properties_t);
    device_get_memory_properties: "zeDeviceGetMemoryProperties", fn(device: RawDevice, count: *mut u32, mem_properties: *mut ze_device_memory_properties_t);
    device_get_memory_access_properties: "zeDeviceGetMemoryAccessProperties", fn(device: RawDevice, mem_access_properties: *mut ze_device_memory_access_properties_t);
    device_get_cache_properties: "zeDeviceGetCacheProperties", fn(device: RawDevice, count: *mut u32, cache_properties: *mut ze_device_cache_properties_t);
    device_get_image_properties: "zeDeviceGetImageProperties", fn(device: RawDevice, image_properties: *mut ze_device_image_properties_t);
    device_get_external_memory_properties: "zeDeviceGetExternalMemoryProperties", fn(device: RawDevice, external_memory_properties: *mut ze_device_external_memory_properties_t);
    device_get_p2p_properties: "zeDeviceGetP2PProperties", fn(device: RawDevice, peer_device: RawDevice, p2p_properties: *mut ze_device_p2p_properties_t);
    device_can_access_peer: "zeDeviceCanAccessPeer", fn(device: RawDevice, peer_device: RawDevice, value: *mut ze_bool_t);
    device_get_global_timestamps: "zeDeviceGetGlobalTimestamps", fn(device: RawDevice, host_timestamp: *mut u64, device_timestamp: *mut u64);
    context_create: "zeContextCreate", fn(driver: RawDriver, desc: *const ze_context_desc_t, context: *mut Option<RawContext>);
    context_create_ex: "zeContextCreateEx", fn(driver: RawDriver, desc: *const ze_context_desc_t, num_devices: u32, devices: *const RawDevice, context: *mut Option<RawContext>);
    context_destroy: "zeContextDestroy", fn(context: RawContext);
    command_list_create: "zeCommandListCreate", fn(context: RawContext, device: RawDevice, desc: *const ze_command_list_desc_t, command_list: *mut Option<RawList>);
    command_list_create_immediate: "zeCommandListCreateImmediate", fn(context: RawContext, device: RawDevice, altdesc: *const ze_command_queue_desc_t, command_list: *mut Option<RawList>);
    command_list_destroy: "zeCommandListDestroy", fn(command_list: RawList);
    command_list_close: "zeCommandListClose", fn(command_list: RawList);
    command_list_reset: "zeCommandListReset", fn(command_list: RawList);
    command_list_host_synchronize: "zeCommandListHostSynchronize", fn(command_list: RawList, timeout: u64);
    command_list_append_barrier: "zeCommandListAppendBarrier", fn(command_list: RawList, signal_event: Option<RawEvent>, num_wait_events: u32, wait_events: *const RawEvent);
    command_list_append_memory_copy: "zeCommandListAppendMemoryCopy", fn(command_list: RawList, dstptr: *mut c_void, srcptr: *const c_void, size: usize, signal_event: Option<RawEvent>, num_wait_events: u32, wait_events: *const RawEvent);
    command_list_append_memory_fill: "zeCommandListAppendMemoryFill", fn(command_list: RawList, ptr: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize, signal_event: Option<RawEvent>, num_wait_events: u32, wait_events: *const RawEvent);
    command_list_append_memory_copy_region: "zeCommandListAppendMemoryCopyRegion", fn(command_list: RawList, dstptr: *mut c_void, dst_region: *const ze_copy_region_t, dst_pitch: u32, dst_slice_pitch: u32, srcptr: *const c_void, src_region: *const ze_copy_region_t, src_pitch: u32, src_slice_pitch: u32, signal_event: Option<RawEvent>, num_wait_events: u32, wait_events: *const RawEvent);
    command_list_append_image_copy_region: "zeCommandListAppendImageCopyRegion", fn(command_list: RawList, dst_image: RawImage, src_image: RawImage, dst_region: *const ze_image_region_t, src_region: *const ze_image_region_t, signal_event: Option<RawEvent>, num_wait_events: u32, wait_events: *const RawEvent);
    command_list_append_image_copy_to_memory: "zeCommandListAppendImageCopyToMemory", fn(command_list: RawList, dstptr: *mut c_void, src_image: RawImage, src_region: *const ze_image_region_t, signal_event: Option<RawEvent>, num_wait_events: u32, wait_events: *const RawEvent);
    command_list_append_image_copy_from_memory: "zeCommandListAppendImageCopyFromMemory", fn(command_list: RawList, dst_image: RawImage, srcptr: *const c_void, dst_region: *const ze_image_region_t, signal_event: Option<RawEvent>, num_wait_events: u32, wait_events: *const RawEvent);
    command_list_append_memory_prefetch: "zeCommandListAppendMemoryPrefetch", fn(command_list: RawList, ptr: *const c_void, size: usize);
    command_list_append_mem_advise: "zeCommandListAppendMemAdvise", fn(command_list: RawList, device: RawDevice, ptr: *const c_void, size: usize, advice: ze_memory_advice_t);
    event_pool_create: "zeEventPoolCreate", fn(context: RawContext, desc: *const ze_event_pool_desc_t, num_devices: u32, devices: *const RawDevice, event_pool: *mut Option<RawEventPool>);
    event_pool_destroy: "zeEventPoolDestroy", fn(event_pool: RawEventPool);
    event_create: "zeEventCreate", fn(event_pool: RawEventPool, desc: *const ze_event_desc_t, event: *mut Option<RawEvent>);
    event_counter_based_create: "zeEventCounterBasedCreate", fn(context: RawContext, device: RawDevice, desc: *const ze_event_counter_based_desc_t, event: *mut Option<RawEvent>);
    event_destroy: "zeEventDestroy", fn(event: RawEvent);
    event_counter_based_get_ipc_handle: "zeEventCounterBasedGetIpcHandle", fn(event: RawEvent, ipc: *mut ze_ipc_event_counter_based_handle_t);
    event_counter_based_open_ipc_handle: "zeEventCounterBasedOpenIpcHandle", fn(context: RawContext, ipc: ze_ipc_event_counter_based_handle_t, event: *mut Option<RawEvent>);
    event_counter_based_close_ipc_handle: "zeEventCounterBasedCloseIpcHandle", fn(event: RawEvent);
    command_list_append_signal_event: "zeCommandListAppendSignalEvent", fn(command_list: RawList, event: RawEvent);
    command_list_append_wait_on_events: "zeCommandListAppendWaitOnEvents", fn(command_list: RawList, num_events: u32, events: *const RawEvent);
    event_host_signal: "zeEventHostSignal", fn(event: RawEvent);
    event_host_synchronize: "zeEventHostSynchronize", fn(event: RawEvent, timeout: u64);
    event_query_status: "zeEventQueryStatus", fn(event: RawEvent);
    event_host_reset: "zeEventHostReset", fn(event: RawEvent);
    event_query_kernel_timestamp: "zeEventQueryKernelTimestamp", fn(event: RawEvent, dstptr: *mut ze_kernel_timestamp_result_t);
    image_create: "zeImageCreate", fn(context: RawContext, device: RawDevice, desc: *const ze_image_desc_t, image: *mut Option<RawImage>);
    image_destroy: "zeImageDestroy", fn(image: RawImage);
    mem_alloc_shared: "zeMemAllocShared", fn(context: RawContext, device_desc: *const ze_device_mem_alloc_desc_t, host_desc: *const ze_host_mem_alloc_desc_t, size: usize, alignment: usize, device: Option<RawDevice>, pptr: *mut *mut c_void);
    mem_alloc_device: "zeMemAllocDevice", fn(context: RawContext, device_desc: *const ze_device_mem_alloc_desc_t, size: usize, alignment: usize, device: RawDevice, pptr: *mut *mut c_void);
    mem_alloc_host: "zeMemAllocHost", fn(context: RawContext, host_desc: *const ze_host_mem_alloc_desc_t, size: usize, alignment: usize, pptr: *mut *mut c_void);
    mem_free: "zeMemFree", fn(context: RawContext, ptr: *mut c_void);
    mem_get_alloc_properties: "zeMemGetAllocProperties", fn(context: RawContext, ptr: *const c_void, mem_alloc_properties: *mut ze_memory_allocation_properties_t, device: *mut Option<RawDevice>);
    mem_get_address_range: "zeMemGetAddressRange", fn(context: RawContext, ptr: *const c_void, base: *mut *mut c_void, size: *mut usize);
    mem_get_ipc_handle: "zeMemGetIpcHandle", fn(context: RawContext, ptr: *const c_void, ipc_handle: *mut ze_ipc_mem_handle_t);
    mem_get_ipc_handle_from_file_descriptor_exp: "zeMemGetIpcHandleFromFileDescriptorExp", fn(context: RawContext, handle: u64, ipc_handle: *mut ze_ipc_mem_handle_t);
    mem_get_file_descriptor_from_ipc_handle_exp: "zeMemGetFileDescriptorFromIpcHandleExp", fn(context: RawContext, ipc_handle: ze_ipc_mem_handle_t, handle: *mut u64);
    mem_put_ipc_handle: "zeMemPutIpcHandle", fn(context: RawContext, handle: ze_ipc_mem_handle_t);
    mem_open_ipc_handle: "zeMemOpenIpcHandle", fn(context: RawContext, device: RawDevice, handle: ze_ipc_mem_handle_t, flags: ze_ipc_memory_flags_t, pptr: *mut *mut c_void);
    mem_close_ipc_handle: "zeMemCloseIpcHandle", fn(context: RawContext, ptr: *const c_void);
    module_create: "zeModuleCreate", fn(context: RawContext, device: RawDevice, desc: *const ze_module_desc_t, module: *mut Option<RawModule>, build_log: *mut Option<RawBuildLog>);
    module_destroy: "zeModuleDestroy", fn(module: RawModule);
    module_dynamic_link: "zeModuleDynamicLink", fn(num_modules: u32, modules: *const RawModule, link_log: *mut Option<RawBuildLog>);
    module_build_log_destroy: "zeModuleBuildLogDestroy", fn(module_build_log: RawBuildLog);
    module_build_log_get_string: "zeModuleBuildLogGetString", fn(module_build_log: RawBuildLog, size: *mut usize, build_log: *mut c_char);
    module_get_native_binary: "zeModuleGetNativeBinary", fn(module: RawModule, size: *mut usize, module_native_binary: *mut u8);
    module_get_global_pointer: "zeModuleGetGlobalPointer", fn(module: RawModule, global_name: *const c_char, size: *mut usize, pptr: *mut *mut c_void);
    module_get_kernel_names: "zeModuleGetKernelNames", fn(module: RawModule, count: *mut u32, names: *mut *const c_char);
    module_get_properties: "zeModuleGetProperties", fn(module: RawModule, module_properties: *mut ze_module_properties_t);
    kernel_create: "zeKernelCreate", fn(module: RawModule, desc: *const ze_kernel_desc_t, kernel: *mut Option<RawKernel>);
    kernel_destroy: "zeKernelDestroy", fn(kernel: RawKernel);
    module_get_function_pointer: "zeModuleGetFunctionPointer", fn(module: RawModule, function_name: *const c_char, function: *mut *mut c_void);
    kernel_set_group_size: "zeKernelSetGroupSize", fn(kernel: RawKernel, group_size_x: u32, group_size_y: u32, group_size_z: u32);
    kernel_suggest_group_size: "zeKernelSuggestGroupSize", fn(kernel: RawKernel, global_size_x: u32, global_size_y: u32, global_size_z: u32, group_size_x: *mut u32, group_size_y: *mut u32, group_size_z: *mut u32);
    kernel_suggest_max_cooperative_group_count: "zeKernelSuggestMaxCooperativeGroupCount", fn(kernel: RawKernel, total_group_count: *mut u32);
    kernel_set_argument_value: "zeKernelSetArgumentValue", fn(kernel: RawKernel, arg_index: u32, arg_size: usize, arg_value: *const c_void);
    kernel_set_indirect_access: "zeKernelSetIndirectAccess", fn(kernel: RawKernel, flags: ze_kernel_indirect_access_flags_t);
    kernel_get_source_attributes: "zeKernelGetSourceAttributes", fn(kernel: RawKernel, size: *mut u32, string: *mut *mut c_char);
    kernel_set_cache_config: "zeKernelSetCacheConfig", fn(kernel: RawKernel, flags: ze_cache_config_flags_t);
    kernel_get_properties: "zeKernelGetProperties", fn(kernel: RawKernel, kernel_properties: *mut ze_kernel_properties_t);
    kernel_get_name: "zeKernelGetName", fn(kernel: RawKernel, size: *mut usize, name: *mut c_char);
    command_list_append_launch_kernel: "zeCommandListAppendLaunchKernel", fn(command_list: RawList, kernel: RawKernel, launch_func_args: *const ze_group_count_t, signal_event: Option<RawEvent>, num_wait_events: u32, wait_events: *const RawEvent);
    command_list_append_launch_kernel_with_arguments: "zeCommandListAppendLaunchKernelWithArguments", fn(command_list: RawList, kernel: RawKernel, group_counts: ze_group_count_t, group_sizes: ze_group_size_t, arguments: *mut *mut c_void, next: *const c_void, signal_event: Option<RawEvent>, num_wait_events: u32, wait_events: *const RawEvent);
    command_list_append_launch_cooperative_kernel: "zeCommandListAppendLaunchCooperativeKernel", fn(command_list: RawList, kernel: RawKernel, launch_func_args: *const ze_group_count_t, signal_event: Option<RawEvent>, num_wait_events: u32, wait_events: *const RawEvent);
    sampler_create: "zeSamplerCreate", fn(context: RawContext, device: RawDevice, desc: *const ze_sampler_desc_t, sampler: *mut Option<RawSampler>);
    sampler_destroy: "zeSamplerDestroy", fn(sampler: RawSampler);
    virtual_mem_reserve: "zeVirtualMemReserve", fn(context: RawContext, start: *const c_void, size: usize, pptr: *mut *mut c_void);
    virtual_mem_free: "zeVirtualMemFree", fn(context: RawContext, ptr: *const c_void, size: usize);
    virtual_mem_query_page_size: "zeVirtualMemQueryPageSize", fn(context: RawContext, device: RawDevice, size: usize, pagesize: *mut usize);
    physical_mem_get_properties: "zePhysicalMemGetProperties", fn(context: RawContext, physical_mem: RawPhysical, mem_properties: *mut ze_physical_mem_properties_t);
    physical_mem_create: "zePhysicalMemCreate", fn(context: RawContext, device: RawDevice, desc: *mut ze_physical_mem_desc_t, physical_memory: *mut Option<RawPhysical>);
    physical_mem_destroy: "zePhysicalMemDestroy", fn(context: RawContext, physical_memory: RawPhysical);
    virtual_mem_map: "zeVirtualMemMap", fn(context: RawContext, ptr: *const c_void, size: usize, physical_memory: RawPhysical, offset: usize, access: ze_memory_access_attribute_t);
    virtual_mem_unmap: "zeVirtualMemUnmap", fn(context: RawContext, ptr: *const c_void, size: usize);
    virtual_mem_set_access_attribute: "zeVirtualMemSetAccessAttribute", fn(context: RawContext, ptr: *const c_void, size: usize, access: ze_memory_access_attribute_t);
    kernel_set_global_offset_exp: "zeKernelSetGlobalOffsetExp", fn(kernel: RawKernel, offset_x: u32, offset_y: u32, offset_z: u32);
    device_pci_get_properties_ext: "zeDevicePciGetPropertiesExt", fn(device: RawDevice, pci_properties: *mut ze_pci_ext_properties_t);
    command_list_immediate_append_command_lists_exp: "zeCommandListImmediateAppendCommandListsExp", fn(command_list_immediate: RawList, num_command_lists: u32, command_lists: *const RawList, signal_event: Option<RawEvent>, num_wait_events: u32, wait_events: *const RawEvent);
    command_list_get_next_command_id_exp: "zeCommandListGetNextCommandIdExp", fn(command_list: RawList, desc: *const ze_mutable_command_id_exp_desc_t, command_id: *mut u64);
    command_list_update_mutable_commands_exp: "zeCommandListUpdateMutableCommandsExp", fn(command_list: RawList, desc: *const ze_mutable_commands_exp_desc_t);
    device_get_vector_width_properties_ext: "zeDeviceGetVectorWidthPropertiesExt", fn(device: RawDevice, count: *mut u32, vector_width_properties: *mut ze_device_vector_width_properties_ext_t);
    command_list_append_host_function: "zeCommandListAppendHostFunction", fn(command_list: RawList, host_function: ze_host_function_callback_t, user_data: *mut c_void, next: *const c_void, signal_event: Option<RawEvent>, num_wait_events: u32, wait_events: *const RawEvent);
    context_make_memory_resident: "zeContextMakeMemoryResident", fn(context: RawContext, device: RawDevice, ptr: *mut c_void, size: usize);
    command_list_append_image_copy_to_memory_ext: "zeCommandListAppendImageCopyToMemoryExt", fn(command_list: RawList, dstptr: *mut c_void, src_image: RawImage, src_region: *const ze_image_region_t, dest_row_pitch: u32, dest_slice_pitch: u32, signal_event: Option<RawEvent>, num_wait_events: u32, wait_events: *const RawEvent);
    command_list_append_image_copy_from_memory_ext: "zeCommandListAppendImageCopyFromMemoryExt", fn(command_list: RawList, dst_image: RawImage, srcptr: *const c_void, dst_region: *const ze_image_region_t, src_row_pitch: u32, src_slice_pitch: u32, signal_event: Option<RawEvent>, num_wait_events: u32, wait_events: *const RawEvent);
}
