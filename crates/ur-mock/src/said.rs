//! The mock's answers to queries that neither the specification nor the object's creation determines.

/// The size of the memory that the device reports.
pub const MEMORY: u64 = 1 << 32;

/// The number that answers the query of this name, where the default of 1 would be implausible.
pub fn number(title: &str) -> Option<u64> {
    Some(match title {
        "UR_DEVICE_INFO_TYPE" => ur_sys::ur_device_type_t::GPU.0.into(),
        "UR_DEVICE_INFO_MAX_WORK_ITEM_DIMENSIONS" => 3,
        "UR_DEVICE_INFO_MAX_WORK_GROUP_SIZE" | "UR_KERNEL_GROUP_INFO_WORK_GROUP_SIZE" => {
            SIDE as u64
        }
        "UR_DEVICE_INFO_ADDRESS_BITS" => 64,
        "UR_DEVICE_INFO_GLOBAL_MEM_SIZE"
        | "UR_DEVICE_INFO_GLOBAL_MEM_FREE"
        | "UR_DEVICE_INFO_MAX_MEM_ALLOC_SIZE" => MEMORY,
        "UR_VIRTUAL_MEM_GRANULARITY_INFO_MINIMUM"
        | "UR_VIRTUAL_MEM_GRANULARITY_INFO_RECOMMENDED" => 4096,
        // IPC handles of the mock can only be opened in the same process.
        title if title.starts_with("UR_DEVICE_INFO_IPC_") => 0,
        _ => return None,
    })
}

/// The string that answers the query of this name.
pub fn text(title: &str) -> &'static str {
    match title {
        "UR_PLATFORM_INFO_PROFILE" => "FULL_PROFILE",
        "UR_PLATFORM_INFO_VERSION" | "UR_DEVICE_INFO_VERSION" | "UR_DEVICE_INFO_DRIVER_VERSION" => {
            env!("CARGO_PKG_VERSION")
        }
        title if title.ends_with("EXTENSIONS") => "",
        _ => "Causeway mock",
    }
}

/// The largest work-group size in one dimension.
const SIDE: usize = 1024;

/// The list that answers the query of this name.
pub fn list(title: &str) -> &'static [usize] {
    match title {
        "UR_DEVICE_INFO_MAX_WORK_ITEM_SIZES" => &[SIDE; 3],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_a_size_in_as_many_dimensions_as_there_are() {
        let sizes = list("UR_DEVICE_INFO_MAX_WORK_ITEM_SIZES");
        let dimensions = number("UR_DEVICE_INFO_MAX_WORK_ITEM_DIMENSIONS").unwrap();
        assert_eq!(size_of_val(sizes) as u64, dimensions * size_of::<usize>() as u64);
    }
}
