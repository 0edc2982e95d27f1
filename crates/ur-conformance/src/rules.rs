//! Rules that apply to all entries: cases that are generated from the specification, one for each rule.
mod arguments;
mod counts;
mod getters;
mod info;
mod lacks;
mod parameters;
mod parents;
mod solve;
pub mod together;
pub mod uncovered;
mod waits;
mod words;

use crate::{
    case::Case,
    spec::{Spec, snake},
};

pub fn cases() -> Vec<Case> {
    let mut cases = getters::cases();
    for table in &Spec::get().tables {
        for entry in &table.entries {
            cases.extend(parameters::cases(family(&table.name), entry));
            cases.extend(info::cases(family(&table.name), entry));
            cases.extend(words::cases(family(&table.name), entry));
            cases.extend(waits::cases(family(&table.name), entry));
            cases.extend(lacks::cases(family(&table.name), entry));
            cases.extend(together::cases(family(&table.name), entry));
        }
    }
    cases.extend(counts::cases());
    cases.extend(parents::cases());
    cases
}

/// Returns the family in which a table's entries are reported.
pub fn family(table: &str) -> &'static str {
    match table {
        "Adapter" => "adapter",
        "Platform" => "platform",
        "Device" | "DeviceExp" => "device",
        "Context" => "context",
        "Queue" => "queue",
        "QueueExp" | "GraphExp" => "graph",
        "Event" => "event",
        "EventExp" => "reusable_events",
        "Program" | "ProgramExp" => "program",
        "Kernel" => "kernel",
        "Sampler" => "sampler",
        "Mem" => "memory",
        "PhysicalMem" => "physical_mem",
        "Enqueue" | "EnqueueExp" => "enqueue",
        "Usm" | "UsmP2pExp" => "usm",
        "UsmExp" => "usm_pool",
        "BindlessImagesExp" => "bindless_images",
        "CommandBufferExp" => "command_buffer",
        "IpcExp" => "ipc",
        "MemoryExportExp" => "memory_export",
        "VirtualMem" => "virtual_mem",
        _ => "other",
    }
}
/// Returns the C name and the number of a code: `InvalidSize` → `UR_RESULT_ERROR_INVALID_SIZE`.
pub fn code(name: &str) -> (String, u32) {
    let c = format!("UR_RESULT_ERROR_{}", snake(name).to_ascii_uppercase());
    let number = Spec::get().constants.get(&c).and_then(|n| u32::try_from(*n).ok());
    (c, number.unwrap_or(u32::MAX))
}
