//! The attributes of a device: one of compute capability 9.0.
use crate::code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use std::sync::OnceLock;

/// The maximal number of threads in a block.
pub const THREADS: i32 = 1024;
/// Registers per block.
pub const REGISTERS: i32 = 65536;
/// The number of multiprocessors.
pub const PROCESSORS: i32 = 4;
/// The maximal number of threads on a multiprocessor.
pub const RESIDENT: i32 = 2048;
/// The maximal number of blocks on a multiprocessor.
pub const BLOCKS: i32 = 32;
/// Shared memory of a block by default, and by opt-in.
pub const SHARED: i32 = 48 << 10;
/// See [`SHARED`].
pub const SHARED_OPT_IN: i32 = 227 << 10;
/// Shared memory of a multiprocessor.
pub const SHARED_RESIDENT: i32 = 228 << 10;
/// The maximal number of blocks in a portable cluster, and in any cluster.
pub const CLUSTER: u32 = 8;
/// See [`CLUSTER`].
pub const CLUSTER_NON_PORTABLE: u32 = 16;

/// The PCI bus number of a device.
pub fn bus(index: u8) -> u8 {
    0x18 + index
}
/// The features that `SOFT_CUDA_LACKS` can name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feature {
    /// IPC handles of linear memory.
    Ipc,
    /// File descriptors of physical memory.
    Descriptors,
    /// Reserved addresses and physical memory.
    VirtualMemory,
    /// Stream operations that write and wait for values.
    StreamWords,
}
/// Whether the driver has the feature; the environment can disable it.
pub fn has(feature: Feature) -> bool {
    static LACKS: OnceLock<Vec<String>> = OnceLock::new();
    let lacks = LACKS.get_or_init(|| {
        let names = std::env::var("SOFT_CUDA_LACKS").unwrap_or_default();
        names.split(',').map(|name| name.trim().to_owned()).collect()
    });
    let lacks = |name| lacks.iter().any(|one| one == name);
    match feature {
        Feature::Ipc => !lacks("ipc"),
        Feature::Descriptors => !lacks("descriptors") && has(Feature::VirtualMemory),
        Feature::VirtualMemory => !lacks("virtual_memory"),
        Feature::StreamWords => !lacks("stream_words"),
    }
}
/// # Errors
/// Returns `NOT_SUPPORTED` if the driver lacks the feature.
pub fn check(feature: Feature) -> Answer {
    if has(feature) { Ok(()) } else { Err(NOT_SUPPORTED) }
}
/// Returns attribute `number` of the device at `index`.
pub fn of(number: i32, index: u8) -> Answer<i32> {
    Ok(match number {
        1..=3 => THREADS,
        4 => 64,
        5 => i32::MAX,
        6 | 7 => 65535,
        8 => SHARED,
        9 => 65536,     // constant memory
        10 => 32,       // warp
        11 => i32::MAX, // pitch
        12 | 82 => REGISTERS,
        13 => 1_980_000, // kHz
        14 => 512,       // textures' alignment
        15 => 1,         // overlap
        16 => PROCESSORS,
        17 | 18 => 0, // timeout, integrated
        19 => 1,      // maps host memory
        20 => 0,      // compute mode
        21 | 22 | 55 => 131_072 / if number == 55 { 4 } else { 1 },
        23 => 65536,
        24..=26 | 58..=60 => 16384,
        27 | 28 => 32768,
        29 => 2048,
        30 => 512,
        31 | 32 => 1, // concurrent kernels, ECC
        33 => i32::from(bus(index)),
        34 | 35 | 50 => 0,
        36 => 2_619_000,
        37 => 5120,
        38 => 52_428_800,
        39 => RESIDENT,
        40 => 3,
        41 => 1,
        42 | 45 | 46 | 52 | 53 | 61 | 63 | 64 | 66 | 67 | 77 => 32768,
        43 | 62 | 65 => 2048,
        44 => 1,
        47..=49 => 16384,
        51 => 32,
        54 | 68 => 2046,
        56 => 131_072,
        57 => 65536,
        69 => 268_435_456,
        70 => 131_072,
        71 => 65000,
        72 => 2_097_120,
        73 | 74 => 32768,
        75 => 9,
        76 => 0,
        78..=80 => 1,
        81 => SHARED_RESIDENT,
        83 => 1,
        84..=86 => 0, // multi-GPU boards; native atomics on host memory
        87 => 2,
        88 => 0, // pageable memory
        89..=91 => 1,
        92..=94 => 0, // the first form of stream memory operations
        95 => 1,
        96 => 0,
        97 => SHARED_OPT_IN,
        98 => 1,
        99 => 1,
        100 | 101 => 0,
        102 => i32::from(has(Feature::VirtualMemory)),
        103 => i32::from(has(Feature::Descriptors)),
        104 | 105 => 0,
        106 => BLOCKS,
        107 => 0,
        108 => 32_768_000,
        109 => 134_217_728,
        110 => 0,
        111 => 1024,
        112 => 0,
        113 => 1,
        114 => 0,
        115 => 1,
        116..=118 => 0,
        119 => 1, // pools as POSIX descriptors
        120 => 1,
        121 => 0,
        122 | 123 => i32::from(has(Feature::StreamWords)), // 64-bit stream memory operations
        124 => 0,
        125 => i32::from(has(Feature::Ipc)), // programs also query this for IPC handles of memory
        126 => 1,
        127 => 0,
        128..=134 => {
            if number == 131 || number == 134 {
                -1
            } else {
                0
            }
        }
        _ => return Err(INVALID_VALUE),
    })
}
