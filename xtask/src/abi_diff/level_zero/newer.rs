//! What the adapter uses of Level Zero that is newer than the headers of the system's package: what a C compiler makes of the declarations
//! in `include/ze_api.h` of <https://github.com/oneapi-src/level-zero> (specification 1.12) where pointers have 64 bits.
//! A structure's first members are its type (at 0, of 4 bytes) and the next one's address (at 8, of 8 bytes).

/// A structure: its name, its bytes, and of its members behind the first two the name, the offset and the bytes.
pub type Layout = (&'static str, usize, &'static [(&'static str, usize, usize)]);
pub const STRUCTURES: &[Layout] = &[
    ("ze_device_ip_version_ext_t", 24, &[("ipVersion", 16, 4)]),
    ("ze_kernel_max_group_size_properties_ext_t", 24, &[("maxGroupSize", 16, 4)]),
    ("ze_mutable_command_id_exp_desc_t", 24, &[("flags", 16, 4)]),
    (
        "ze_mutable_command_list_exp_properties_t",
        24,
        &[("mutableCommandListFlags", 16, 4), ("mutableCommandFlags", 20, 4)],
    ),
    ("ze_mutable_command_list_exp_desc_t", 24, &[("flags", 16, 4)]),
    ("ze_mutable_commands_exp_desc_t", 24, &[("flags", 16, 4)]),
    (
        "ze_mutable_kernel_argument_exp_desc_t",
        48,
        &[("commandId", 16, 8), ("argIndex", 24, 4), ("argSize", 32, 8), ("pArgValue", 40, 8)],
    ),
    ("ze_mutable_group_count_exp_desc_t", 32, &[("commandId", 16, 8), ("pGroupCount", 24, 8)]),
    (
        "ze_mutable_group_size_exp_desc_t",
        40,
        &[
            ("commandId", 16, 8),
            ("groupSizeX", 24, 4),
            ("groupSizeY", 28, 4),
            ("groupSizeZ", 32, 4),
        ],
    ),
    (
        "ze_mutable_global_offset_exp_desc_t",
        40,
        &[("commandId", 16, 8), ("offsetX", 24, 4), ("offsetY", 28, 4), ("offsetZ", 32, 4)],
    ),
    (
        "ze_mutable_graph_argument_exp_desc_t",
        40,
        &[("commandId", 16, 8), ("argIndex", 24, 4), ("pArgValue", 32, 8)],
    ),
];
pub const VALUES: &[(&str, i64)] = &[
    ("ZE_STRUCTURE_TYPE_COUNTER_BASED_EVENT_POOL_EXP_DESC", 0x0002_0014),
    ("ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_PROPERTIES", 0x0002_0015),
    ("ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_LIST_EXP_DESC", 0x0002_0016),
    ("ZE_STRUCTURE_TYPE_MUTABLE_COMMAND_ID_EXP_DESC", 0x0002_0017),
    ("ZE_STRUCTURE_TYPE_MUTABLE_COMMANDS_EXP_DESC", 0x0002_0018),
    ("ZE_STRUCTURE_TYPE_MUTABLE_KERNEL_ARGUMENT_EXP_DESC", 0x0002_0019),
    ("ZE_STRUCTURE_TYPE_MUTABLE_GROUP_COUNT_EXP_DESC", 0x0002_001a),
    ("ZE_STRUCTURE_TYPE_MUTABLE_GROUP_SIZE_EXP_DESC", 0x0002_001b),
    ("ZE_STRUCTURE_TYPE_MUTABLE_GLOBAL_OFFSET_EXP_DESC", 0x0002_001c),
    ("ZE_STRUCTURE_TYPE_MUTABLE_GRAPH_ARGUMENT_EXP_DESC", 0x0002_0020),
    ("ZE_STRUCTURE_TYPE_INIT_DRIVER_TYPE_DESC", 0x0002_0021),
    ("ZE_STRUCTURE_TYPE_DRIVER_DDI_HANDLES_EXT_PROPERTIES", 0x0002_0027),
    ("ZE_STRUCTURE_TYPE_DEVICE_CACHELINE_SIZE_EXT", 0x0002_0028),
    ("ZE_STRUCTURE_TYPE_DEVICE_VECTOR_WIDTH_PROPERTIES_EXT", 0x0002_0029),
    ("ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_ARGUMENTS", 1),
    ("ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_COUNT", 2),
    ("ZE_MUTABLE_COMMAND_EXP_FLAG_GROUP_SIZE", 4),
    ("ZE_MUTABLE_COMMAND_EXP_FLAG_GLOBAL_OFFSET", 8),
    ("ZE_MUTABLE_COMMAND_EXP_FLAG_SIGNAL_EVENT", 16),
    ("ZE_MUTABLE_COMMAND_EXP_FLAG_WAIT_EVENTS", 32),
    ("ZE_MUTABLE_COMMAND_EXP_FLAG_KERNEL_INSTRUCTION", 64),
    ("ZE_MUTABLE_COMMAND_EXP_FLAG_GRAPH_ARGUMENTS", 128),
];
