//! Valid arguments of an entry, of which a case can then make one invalid.
use crate::{
    bench::{Bench, Usm, word},
    case::{Stop, Verdict},
    ensure,
    raw::Word,
    same,
    spec::{Entry, Param, Record, Spec, Type},
};
use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};
use ur_sys::{ur_mem_handle_t, ur_result_t};

/// The contents of memory that must not be written.
const UNTOUCHED: u64 = 0x5a5a_5a5a_5a5a_5a5a;
/// The number of 64-bit words behind a pointer.
const LENGTH: usize = 512;

/// The memory behind a pointer argument. The adapter may write it, therefore atomics.
pub struct Area(Vec<AtomicU64>);
impl Area {
    pub fn new(fill: u64) -> Self {
        Self((0..LENGTH).map(|_| AtomicU64::new(fill)).collect())
    }
    pub fn address(&self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }
    pub fn poke(&self, at: usize, bytes: &[u8]) {
        for (index, byte) in bytes.iter().enumerate() {
            let (slot, shift) = (&self.0[(at + index) / 8], 8 * ((at + index) % 8));
            let cleared = slot.load(Relaxed) & !(0xff << shift);
            slot.store(cleared | u64::from(*byte) << shift, Relaxed);
        }
    }
    pub fn peek(&self, at: usize, bytes: usize) -> Vec<u8> {
        let byte = |i: usize| (self.0[i / 8].load(Relaxed) >> (8 * (i % 8))) as u8;
        (at..at + bytes).map(byte).collect()
    }
    pub fn number(&self, at: usize, bytes: usize) -> u64 {
        self.peek(at, bytes.min(8)).iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte))
    }
    /// Whether nothing from offset `at` on was written.
    pub fn is_untouched(&self, at: usize) -> bool {
        self.peek(at, 8 * LENGTH - at).iter().all(|byte| *byte == 0x5a)
    }
}

/// The arguments of a call, which can be changed before it is made.
pub struct Arguments<'a> {
    bench: &'a Bench,
    pub entry: &'static Entry,
    pub words: Vec<Word>,
    pub areas: HashMap<usize, Area>,
    more: Vec<Area>,
}

extern "C" fn nothing() {}

impl<'a> Arguments<'a> {
    /// # Errors
    /// Fails if an object that the entry needs cannot be created.
    pub fn valid(bench: &'a Bench, entry: &'static Entry) -> Verdict<Self> {
        // Also skips entries that need no object if the adapter has no device, because they need a driver all
        // the same.
        bench.handle()?;
        if !entry.name.starts_with("urAdapter") && !entry.name.starts_with("urPlatform") {
            bench.device()?;
        }
        let (areas, more) = (HashMap::new(), Vec::new());
        let mut all = Self { bench, entry, words: Vec::new(), areas, more };
        for (index, param) in entry.params.iter().enumerate() {
            let word = all.word(index, param)?;
            all.words.push(word);
        }
        Ok(all)
    }
    pub fn index(&self, name: &str) -> Option<usize> {
        self.entry.params.iter().position(|param| param.name == name)
    }
    fn word(&mut self, index: usize, param: &'static Param) -> Verdict<Word> {
        let spec = Spec::get();
        match &param.ty {
            Type::Pointer(to) => self.pointer(index, param, to),
            Type::Array(..) => Err(Stop::failed("no parameter is an array")),
            ty if spec.is_handle(ty) => self.handle(param, ty),
            Type::Name(name) if name == "RectOffset" => Ok(Word::Three([0; 3])),
            Type::Name(name) if name == "RectRegion" => Ok(Word::Three([1; 3])),
            Type::Name(name) if spec.callbacks.contains(name) => {
                Ok(Word::One((nothing as *const ()).expose_provenance() as u64))
            }
            Type::Name(name) => Ok(Word::One(self.number(param, name)?)),
        }
    }
    fn handle(&self, param: &Param, ty: &Type) -> Verdict<Word> {
        let Type::Name(kind) = ty else { return Ok(Word::One(0)) };
        if param.optional {
            return Ok(Word::One(0));
        }
        let image = self.entry.name.contains("Image") && kind == "Mem";
        let kind = match kind.as_str() {
            "Mem" if image && param.name.contains("dst") => "OtherImage",
            "Mem" if param.name.contains("dst") => "OtherMem",
            "Mem" if image => "Image",
            "Event" if self.entry.name == "urEventGetProfilingInfo" => "ProfiledEvent",
            "Kernel" if self.entry.name.contains("Launch") => "IdleKernel",
            "ExpCommandBuffer" if self.entry.name == "urEnqueueCommandBufferExp" => {
                "FinalizedCommandBuffer"
            }
            "ExpCommandBuffer" if self.entry.name.contains("Update") => "UpdatableCommandBuffer",
            kind => kind,
        };
        // A reference that the entry releases must be one that is not released otherwise.
        let at = match param.released && !matches!(kind, "Adapter" | "Device") {
            true => self.bench.make(kind)?,
            false => self.bench.object(kind)?,
        };
        Ok(word(at))
    }
    fn pointer(&mut self, index: usize, param: &'static Param, to: &Type) -> Verdict<Word> {
        if param.out || param.inout {
            // An input that is also an output starts as null: a barrier then creates an event.
            let area = Area::new(if param.inout { 0 } else { UNTOUCHED });
            return Ok(self.keep(index, area));
        }
        let area = self.filled(param, to)?;
        let usm = self.usm(param)?;
        let kept = self.keep(index, area);
        let is_list = param.optional || param.wait_list.is_some();
        Ok(usm.unwrap_or(if is_list { Word::One(0) } else { kept }))
    }
    fn keep(&mut self, index: usize, area: Area) -> Word {
        let word = Word::One(area.address());
        self.areas.insert(index, area);
        word
    }
    /// Input memory: a record, handles, numbers, a string.
    fn filled(&mut self, param: &Param, to: &Type) -> Verdict<Area> {
        let (spec, area) = (Spec::get(), Area::new(0));
        match to {
            Type::Name(name) if spec.is_handle(to) => {
                let kind = if name == "Mem" { "Mem" } else { name.as_str() };
                // An optional list is empty by default; only cases that fill it need the handle.
                match self.bench.object(kind) {
                    Ok(at) => area.poke(0, &(at.expose_provenance() as u64).to_ne_bytes()),
                    Err(_) if param.optional => {}
                    Err(e) => return Err(e),
                }
            }
            Type::Name(name) if name == "c_char" => area.poke(0, b"x"),
            Type::Name(name) if name == "usize" => {
                let one = if param.name == "lengths" { 64_u64 } else { 1 };
                [0, 8, 16].iter().for_each(|at| area.poke(*at, &one.to_ne_bytes()));
            }
            Type::Name(name) => {
                if let Some(record) = spec.records.get(name) {
                    self.record(&area, name, record);
                }
            }
            Type::Pointer(_) => {
                let pointee = Area::new(0);
                area.poke(0, &pointee.address().to_ne_bytes());
                self.more.push(pointee);
            }
            Type::Array(..) => {}
        }
        Ok(area)
    }
    fn record(&mut self, area: &Area, name: &str, record: &Record) {
        let spec = Spec::get();
        let set = |member: &str, value: u64| {
            if let Some((at, bytes)) = spec.member(name, member) {
                area.poke(at, &value.to_ne_bytes()[..bytes]);
            }
        };
        if let Some(stype) = record.stype.as_ref().and_then(|c| spec.constants.get(c)) {
            set("stype", *stype);
        }
        let constant = |c: &str| spec.constants.get(c).copied().unwrap_or_default();
        match name {
            "ImageDesc" => {
                set("type", constant("UR_MEM_TYPE_IMAGE2D"));
                ["width", "height"].iter().for_each(|member| set(member, 16));
                ["depth", "arraySize"].iter().for_each(|member| set(member, 1));
            }
            "ImageFormat" => {
                set("channelOrder", constant("UR_IMAGE_CHANNEL_ORDER_RGBA"));
                set("channelType", constant("UR_IMAGE_CHANNEL_TYPE_UNSIGNED_INT8"));
            }
            "BufferRegion" => set("size", 64),
            "DevicePartitionProperties" => {
                let properties = Area::new(0);
                let equally = constant("UR_DEVICE_PARTITION_EQUALLY");
                properties.poke(0, &equally.to_ne_bytes()[..4]);
                properties.poke(4, &[1]);
                set("pProperties", properties.address());
                set("PropCount", 1);
                self.more.push(properties);
            }
            _ => {}
        }
        // Pointers in records point to memory.
        for (member, ty) in &record.fields {
            let is_set = spec.member(name, member).is_none_or(|(at, n)| area.number(at, n) != 0);
            if matches!(ty, Type::Pointer(_)) && member == "pDeviceTargetSpec" && !is_set {
                let pointee = Area::new(0);
                set(member, pointee.address());
                self.more.push(pointee);
            }
        }
    }
    /// Returns USM where the entry requires it; `None` where host memory suffices.
    fn usm(&self, param: &Param) -> Verdict<Option<Word>> {
        let name = &self.entry.name;
        let is_data = matches!(param.name.as_str(), "mem" | "memory" | "dst" | "src");
        if name == "urEnqueueMemUnmap" && param.name == "mapped_ptr" {
            let buffer = ur_mem_handle_t(self.bench.object("Mem")?);
            return Ok(Some(word(crate::families::memory::mapped(self.bench, buffer)?)));
        }
        if name == "urUSMFree" || name == "urIPCGetMemHandleExp" && is_data {
            return Ok(Some(word(self.bench.alloc(Usm::Device, 4096)?)));
        }
        let takes_usm =
            name.contains("USM") && !name.contains("Import") && !name.contains("Release");
        if takes_usm && is_data && matches!(param.ty, Type::Pointer(_)) {
            let at = self.bench.alloc(Usm::Host, 4096);
            return Ok(Some(word(at.or_else(|_| self.bench.alloc(Usm::Device, 4096))?)));
        }
        if name.starts_with("urVirtualMem")
            && param.name == "start"
            && name != "urVirtualMemReserve"
        {
            let range = match name.as_str() {
                "urVirtualMemGetInfo" | "urVirtualMemSetAccess" | "urVirtualMemUnmap" => {
                    let bytes = self.bench.granularity()?;
                    self.bench.map(self.bench.object("PhysicalMem")?, bytes)?
                }
                _ => crate::families::virtual_mem::reserved(self.bench)?,
            };
            return Ok(Some(word(range)));
        }
        Ok(None)
    }
    fn number(&self, param: &Param, ty: &str) -> Verdict<u64> {
        let spec = Spec::get();
        if let Some(one) = spec.enumeration(ty) {
            let first = one.variants.first().map_or(0, |v| u64::from(v.value));
            return Ok(match ty {
                "DeviceType" => u64::from(ur_sys::ur_device_type_t::ALL.0),
                "MemFlags" | "MapFlags" => 1,
                "VirtualMemAccessFlags" => 2,
                _ if one.flags => 0,
                _ => first,
            });
        }
        let lists = |p: &Param| p.list.as_deref() == Some(&param.name) && !p.optional;
        if self.entry.params.iter().any(lists) {
            return Ok(1);
        }
        let in_pages =
            self.entry.name.contains("VirtualMem") || self.entry.name.contains("PhysicalMem");
        Ok(match param.name.as_str() {
            "size" if in_pages => self.bench.granularity()? as u64,
            "prop_size" => 64,
            "size" | "width" | "length" | "width_in_bytes" | "allocation_size" => 64,
            "pitch" | "src_pitch" | "dst_pitch" => 64,
            "pattern_size" | "element_size_bytes" | "count" => 4,
            "height" | "work_dim" | "num_work_dim" | "num_entries" => 1,
            "ipc_mem_handle_data_size" => 64,
            name if name.starts_with("blocking") => 1,
            _ => 0,
        })
    }
    /// Returns the current value of a parameter, or of a member in it or behind it.
    pub fn value(&self, index: usize, member: Option<&str>) -> Option<u64> {
        let param = &self.entry.params[index];
        match (&self.words[index], member) {
            (Word::One(word), None) => Some(*word),
            (Word::Three(three), Some(member)) => Some(three[axis(member)?]),
            (Word::One(0), Some(_)) => None,
            (Word::One(_), Some(member)) => {
                let (at, bytes) = place(param, member)?;
                Some(self.areas.get(&index)?.number(at, bytes))
            }
            (Word::Three(_), None) => None,
        }
    }
    /// Sets a parameter, or a member in it or behind it. Setting a pointer to any value but 0 makes it point
    /// to its memory.
    pub fn set(&mut self, index: usize, member: Option<&str>, value: u64) -> Option<()> {
        let param = &self.entry.params[index];
        match (&mut self.words[index], member) {
            (Word::Three(three), Some(member)) => three[axis(member)?] = value,
            (Word::One(word), None) => match self.areas.get(&index) {
                Some(area) if value != 0 && *word == 0 => *word = area.address(),
                Some(_) if value != 0 => {}
                _ => *word = value,
            },
            (Word::One(_), Some(member)) => {
                let (at, bytes) = place(param, member)?;
                self.areas.get(&index)?.poke(at, &value.to_ne_bytes()[..bytes.min(8)]);
                // The contents of a list matter only if the list is not empty.
                let count = param.list.as_ref().and_then(|count| self.index(count));
                if let Some(Word::One(count @ 0)) = count.map(|count| &mut self.words[count]) {
                    *count = 1;
                }
            }
            (Word::Three(_), None) => return None,
        }
        Some(())
    }
    /// Makes the call.
    pub fn call(&self) -> Verdict<ur_result_t> {
        let name = &self.entry.name;
        let answer = self.bench.adapter.call(name, &self.words);
        answer.ok_or_else(|| Stop::skipped(format!("{name} is null in its table")))
    }
    /// Checks that a successful call wrote its outputs.
    pub fn written(&self) -> Verdict {
        for (index, param) in self.entry.params.iter().enumerate() {
            let Some(area) = self.areas.get(&index).filter(|_| param.out) else { continue };
            let name = &self.entry.name;
            ensure!(!area.is_untouched(0), "{name} succeeds and leaves *{} as it was", param.name);
        }
        Ok(())
    }
    /// Makes a call that must be refused and must not write anything except documented nulls.
    pub fn refused(&self, codes: &[u32]) -> Verdict {
        let found = self.call()?;
        let name = &self.entry.name;
        if !codes.contains(&found.0) {
            let expected = ur_result_t(*codes.first().unwrap_or(&0));
            return self.bench.was_refused(name, found, expected);
        }
        for (index, param) in self.entry.params.iter().enumerate() {
            let is_event = param.inout && param.name == "event";
            let is_result = param.out || is_event;
            let Some(area) = self.areas.get(&index).filter(|_| is_result) else { continue };
            // Where null is documented, it is written unless the pointer is null.
            let nulled = param.nulled && !matches!(self.words[index], Word::One(0));
            let fill = if is_event || nulled { 0 } else { UNTOUCHED };
            same!(area.number(0, 8), fill, "{name} failed, and what was in *{}", param.name);
        }
        Ok(())
    }
}
fn axis(member: &str) -> Option<usize> {
    ["width", "height", "depth", "x", "y", "z"].iter().position(|m| *m == member).map(|n| n % 3)
}
fn place(param: &Param, member: &str) -> Option<(usize, usize)> {
    let Type::Pointer(to) = &param.ty else { return None };
    if let Ok(element) = member.parse::<usize>() {
        let (bytes, _) = Spec::get().layout(to);
        return Some((element * bytes, bytes));
    }
    let Type::Name(record) = &**to else { return None };
    Spec::get().member(record, member)
}
