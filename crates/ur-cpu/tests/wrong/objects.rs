//! One object of every kind that can be made, and handles that are none: of another kind, released,
//! or of another adapter.
use crate::generated::{
    entries::ENTRIES,
    table::{Entry, Role},
};
use std::{collections::BTreeMap, fs, ptr};
use ur_cpu as cpu;
use ur_null as null;
use ur_sys::*;

/// Calls an entry of a table by its name.
fn call(table: &ur_dditable_t, name: &str, words: &[usize]) -> ur_result_t {
    let entry = ENTRIES.iter().find(|entry| entry.name == name).expect("it is in the table");
    (entry.call)(table, words)
}
/// Calls one whose last argument is where a handle goes.
fn make(table: &ur_dditable_t, name: &str, words: &[usize]) -> Option<usize> {
    let mut made = 0_usize;
    let mut words = words.to_vec();
    words.push((&raw mut made).expose_provenance());
    let code = call(table, name, &words);
    (code == ur_result_t::SUCCESS).then_some(made).filter(|&made| made != 0)
}
fn address<T>(of: &T) -> usize {
    ptr::from_ref(of).expose_provenance()
}

/// The kinds of object, the code for what is none of it, and the entries that release one and tell
/// its count of references, with the number of the property.
type Row = (&'static str, ur_result_t, &'static str, Option<(&'static str, usize)>);
const KINDS: &[Row] = {
    use ur_result_t as R;
    &[
        ("Adapter", R::ERROR_INVALID_VALUE, "", None),
        ("Platform", R::ERROR_INVALID_PLATFORM, "", None),
        ("Device", R::ERROR_INVALID_DEVICE, "", None),
        ("Context", R::ERROR_INVALID_CONTEXT, "urContextRelease", Some(("urContextGetInfo", 2))),
        ("Queue", R::ERROR_INVALID_QUEUE, "urQueueRelease", Some(("urQueueGetInfo", 4))),
        ("Event", R::ERROR_INVALID_EVENT, "urEventRelease", Some(("urEventGetInfo", 4))),
        (
            "PhysicalMem",
            R::ERROR_INVALID_MEM_OBJECT,
            "urPhysicalMemRelease",
            Some(("urPhysicalMemGetInfo", 4)),
        ),
        ("UsmPool", R::ERROR_INVALID_VALUE, "urUSMPoolRelease", Some(("urUSMPoolGetInfo", 0))),
        ("Mem", R::ERROR_INVALID_MEM_OBJECT, "urMemRelease", Some(("urMemGetInfo", 2))),
        ("Sampler", R::ERROR_INVALID_SAMPLER, "urSamplerRelease", Some(("urSamplerGetInfo", 0))),
        ("Program", R::ERROR_INVALID_PROGRAM, "urProgramRelease", Some(("urProgramGetInfo", 0))),
        ("Kernel", R::ERROR_INVALID_KERNEL, "urKernelRelease", Some(("urKernelGetInfo", 2))),
        (
            "ExpCommandBuffer",
            R::ERROR_INVALID_COMMAND_BUFFER_EXP,
            "urCommandBufferReleaseExp",
            Some(("urCommandBufferGetInfoExp", 0)),
        ),
        ("ExpCommandBufferCommand", R::ERROR_INVALID_COMMAND_BUFFER_COMMAND_HANDLE_EXP, "", None),
        ("ExpGraph", R::ERROR_INVALID_GRAPH, "urGraphDestroyExp", None),
        ("ExpExecutableGraph", R::ERROR_INVALID_GRAPH, "urGraphExecutableGraphDestroyExp", None),
        ("ExpExternalMem", R::ERROR_INVALID_VALUE, "", None),
        ("ExpExternalSemaphore", R::ERROR_INVALID_VALUE, "", None),
    ]
};
fn row(kind: &str) -> &'static Row {
    KINDS.iter().find(|row| row.0 == kind).unwrap_or_else(|| panic!("a new kind: {kind}"))
}
/// The code for a handle that is no live object of this kind and adapter.
pub fn invalid(kind: &str) -> ur_result_t {
    row(kind).1
}

type Handles = BTreeMap<&'static str, usize>;

/// Makes one object of each kind that an adapter makes of nothing but what it made before.
fn make_all(table: &ur_dditable_t) -> Handles {
    let mut all = Handles::new();
    let first = |name, words: &[usize]| {
        let mut first = 0_usize;
        let words = [words, &[1, (&raw mut first).expose_provenance(), 0]].concat();
        assert_eq!(call(table, name, &words), ur_result_t::SUCCESS, "{name}");
        first
    };
    let adapter = first("urAdapterGet", &[]);
    let platform = first("urPlatformGet", &[adapter]);
    let device = first("urDeviceGet", &[platform, ur_device_type_t::ALL.0 as usize]);
    all.extend([("Adapter", adapter), ("Platform", platform), ("Device", device)]);
    let names = KINDS.iter().map(|row| row.0).filter(|kind| !all.contains_key(kind));
    for kind in names.collect::<Vec<_>>() {
        all.extend(make_one(table, &all, kind).map(|made| (kind, made)));
    }
    all
}
/// One more object; `None` for a kind that the adapter does not make.
fn make_one(table: &ur_dditable_t, made: &Handles, kind: &str) -> Option<usize> {
    extern "C" fn kernel() {}
    let of = |kind| made.get(kind).copied();
    let (device, context) = (of("Device")?, of("Context").unwrap_or(0));
    match kind {
        "Context" => make(table, "urContextCreate", &[1, address(&device), 0]),
        "Queue" => make(table, "urQueueCreate", &[context, device, 0]),
        "Event" => make(table, "urEnqueueEventsWait", &[of("Queue")?, 0, 0]),
        "PhysicalMem" => make(table, "urPhysicalMemCreate", &[context, device, 1 << 20, 0]),
        "UsmPool" => {
            let desc = [ur_structure_type_t::USM_POOL_DESC.0 as usize, 0, 0];
            make(table, "urUSMPoolCreate", &[context, address(&desc)])
        }
        "Mem" => {
            let flags = ur_mem_flags_t::READ_WRITE.0 as usize;
            make(table, "urMemBufferCreate", &[context, flags, SIZE_OF_MEMORY, 0])
        }
        "Sampler" => {
            let desc = ur_sampler_desc_t {
                stype: ur_structure_type_t::SAMPLER_DESC,
                pNext: ptr::null(),
                normalizedCoords: false,
                addressingMode: ur_sampler_addressing_mode_t::CLAMP,
                filterMode: ur_sampler_filter_mode_t::NEAREST,
            };
            make(table, "urSamplerCreate", &[context, address(&desc)])
        }
        "Program" => {
            // Native code: names and functions, ended by a null function.
            let pairs = [c"main".as_ptr().addr(), kernel as *const () as usize, 0, 0];
            let (length, binary) = (size_of_val(&pairs), address(&pairs));
            let lists = [address(&device), address(&length), address(&binary)];
            let words = [context, 1, lists[0], lists[1], lists[2], 0];
            let program = make(table, "urProgramCreateWithBinary", &words)?;
            // Where there is nothing to build it is ready as it is.
            let _ = call(table, "urProgramBuild", &[context, program, 0]);
            Some(program)
        }
        "Kernel" => make(table, "urKernelCreate", &[of("Program")?, c"main".as_ptr().addr()]),
        "ExpCommandBuffer" => {
            let is_updatable = 1;
            let desc = [ur_structure_type_t::EXP_COMMAND_BUFFER_DESC.0 as usize, 0, is_updatable];
            make(table, "urCommandBufferCreateExp", &[context, device, address(&desc)])
        }
        "ExpCommandBufferCommand" => {
            let (one, buffer, kernel) = (1_usize, of("ExpCommandBuffer")?, of("Kernel")?);
            let (start, range) = ([buffer, kernel, 1, 0, address(&one), 0], [0; 8]);
            make(table, "urCommandBufferAppendKernelLaunchExp", &[&start[..], &range].concat())
        }
        "ExpGraph" => make(table, "urGraphCreateExp", &[context]),
        "ExpExecutableGraph" => {
            let (queue, graph, mut ended) = (of("Queue")?, of("ExpGraph")?, 0_usize);
            // What was captured before, for another one, stays in it.
            let begun = call(table, "urQueueBeginCaptureIntoGraphExp", &[queue, graph]);
            if begun == ur_result_t::SUCCESS {
                let words = [queue, (&raw mut ended).expose_provenance()];
                let code = call(table, "urQueueEndGraphCaptureExp", &words);
                assert_eq!(code, ur_result_t::SUCCESS);
            }
            make(table, "urGraphInstantiateGraphExp", &[graph])
        }
        _ => None,
    }
}

/// An event that is complete and has times: of a queue with profiling.
fn make_timed(table: &ur_dditable_t, made: &Handles) -> Option<usize> {
    let flags = ur_queue_flags_t::PROFILING_ENABLE;
    let properties = ur_queue_properties_t {
        stype: ur_structure_type_t::QUEUE_PROPERTIES,
        pNext: ptr::null_mut(),
        flags,
    };
    let words = [made["Context"], made["Device"], address(&properties)];
    let queue = make(table, "urQueueCreate", &words)?;
    let event = make(table, "urEnqueueEventsWait", &[queue, 0, 0])?;
    assert_eq!(call(table, "urQueueFinish", &[queue]), ur_result_t::SUCCESS);
    assert_eq!(call(table, "urQueueRelease", &[queue]), ur_result_t::SUCCESS);
    Some(event)
}

/// How long memory and buffers are.
pub const SIZE_OF_MEMORY: usize = 4096;

/// What there is, and what there is not.
pub struct Objects {
    live: Handles,
    released: Handles,
    foreign: Handles,
    timed_event: usize,
    memory: usize,
}
impl Objects {
    pub fn new() -> Self {
        let live = make_all(&cpu::TABLE);
        let foreign = make_all(&null::TABLE);
        let mut released = Handles::new();
        for (kind, _, release, _) in KINDS.iter().filter(|row| !row.2.is_empty()) {
            if let Some(made) = make_one(&cpu::TABLE, &live, kind) {
                assert_eq!(call(&cpu::TABLE, release, &[made]), ur_result_t::SUCCESS, "{kind}");
                released.insert(kind, made);
            }
        }
        let timed_event = make_timed(&cpu::TABLE, &live).expect("queues can time");
        let (context, mut memory) = (live["Context"], 0_usize);
        let to = (&raw mut memory).expose_provenance();
        let code = call(&cpu::TABLE, "urUSMHostAlloc", &[context, 0, 0, SIZE_OF_MEMORY, to]);
        assert_eq!(code, ur_result_t::SUCCESS);
        Self { live, released, foreign, timed_event, memory }
    }
    /// A live object of this kind, if there are any.
    pub fn live(&self, kind: &str) -> Option<usize> {
        self.live.get(kind).copied()
    }
    /// A live object of this kind with which nothing is wrong at this entry.
    pub fn good_for(&self, entry: &str, kind: &str) -> Option<usize> {
        match entry {
            "urEventGetProfilingInfo" => Some(self.timed_event),
            _ => self.live(kind),
        }
    }
    /// An object that stands for kinds that cannot be made.
    pub fn stranger(&self) -> usize {
        self.live["Queue"]
    }
    /// Where 4096 bytes of USM are.
    pub fn memory(&self) -> usize {
        self.memory
    }
    /// Handles that are no live objects of this kind.
    pub fn none_of(&self, kind: &str) -> Vec<(&'static str, usize)> {
        let other = if kind == "Queue" { "Event" } else { "Queue" };
        let mut none = vec![("another kind", self.live[other])];
        none.extend(self.released.get(kind).map(|&handle| ("a released one", handle)));
        none.extend(self.foreign.get(kind).map(|&handle| ("another adapter's", handle)));
        none
    }
    /// Whether an entry can be called with objects of all the kinds that it must have.
    pub fn has_all(&self, entry: &Entry) -> bool {
        entry.params.iter().all(|param| match param.role {
            Role::Handle(kind) | Role::Handles(kind, _) => {
                param.optional || self.live.contains_key(kind)
            }
            _ => true,
        })
    }
    /// Whether the device says that it can do something.
    pub fn device_has(&self, support: ur_device_info_t) -> bool {
        let mut answer = 0_u8;
        let words =
            [self.live["Device"], support.0 as usize, 1, (&raw mut answer).expose_provenance(), 0];
        assert_eq!(call(&cpu::TABLE, "urDeviceGetInfo", &words), ur_result_t::SUCCESS);
        answer != 0
    }
    /// The kinds of which there is none.
    pub fn missing(&self) -> Vec<&'static str> {
        let kinds = KINDS.iter().map(|row| row.0);
        kinds.filter(|kind| !self.live.contains_key(kind)).collect()
    }
    /// How many references there are to each object, and how many descriptors to anything.
    pub fn state(&self) -> Vec<(&'static str, usize)> {
        let counted = KINDS.iter().filter_map(|(kind, _, _, info)| {
            let (entry, property) = (*info)?;
            let (handle, mut count) = (self.live(kind)?, 0_u32);
            let to = (&raw mut count).expose_provenance();
            let code = call(&cpu::TABLE, entry, &[handle, property, 4, to, 0]);
            assert_eq!(code, ur_result_t::SUCCESS, "{entry}");
            Some((*kind, count as usize))
        });
        let descriptors = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        counted.chain([("descriptors", descriptors)]).collect()
    }
}
