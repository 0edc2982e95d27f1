//! The arguments of one call, as words, and the memory that they point at.
use super::objects::Objects;
use crate::generated::table::{Entry, Param, Role};
use std::collections::BTreeMap;

/// Words of one buffer: enough for any struct of the ABI.
const WORDS: usize = 512;
/// What no entry ever writes.
const UNTOUCHED: u64 = 0xa5a5_a5a5_a5a5_a5a5;
/// So much memory is behind a plain pointer.
pub const SIZE: usize = 64;

/// What is in it now, and what was.
type Memory = (Box<[u64]>, Box<[u64]>);

/// The arguments of a call.
pub struct Words {
    entry: &'static str,
    words: Vec<usize>,
    /// What the parameters point at and what was in it, by their places.
    memory: BTreeMap<usize, Memory>,
    names: Vec<&'static str>,
    /// Where a handle is that must be null afterwards.
    nulled: Option<usize>,
}
impl Words {
    /// Arguments with which nothing is wrong, as far as one can tell without the entry.
    pub fn good(objects: &Objects, entry: &Entry) -> Self {
        let words = vec![0; entry.params.len()];
        let names = entry.params.iter().map(|param| param.name).collect();
        let memory = BTreeMap::new();
        let mut good = Self { entry: entry.name, words, memory, names, nulled: None };
        for (at, param) in entry.params.iter().enumerate() {
            good.one(objects, at, param);
        }
        good
    }
    fn one(&mut self, objects: &Objects, at: usize, param: &Param) {
        match param.role {
            Role::Handle(_) | Role::Handles(..) | Role::Pointer(_) if param.optional => {}
            Role::Out(None) if param.optional && param.name.ends_with("size_ret") => {
                self.memory(at, UNTOUCHED);
            }
            Role::Out(_) | Role::WaitList(_) | Role::Text | Role::InOut if param.optional => {}
            Role::Handle(kind) => {
                let good = objects.good_for(self.entry, kind);
                self.words[at] = good.unwrap_or_else(|| objects.stranger());
            }
            Role::Handles(kind, Some(count)) => {
                let one = objects.live(kind).unwrap_or_else(|| objects.stranger());
                self.list(at, count, &[one], 1);
            }
            Role::Out(count) => {
                self.memory(at, UNTOUCHED);
                count.into_iter().for_each(|count| self.words[count] = 1);
            }
            Role::OutNull => {
                self.memory(at, UNTOUCHED);
                self.nulled = Some(at);
            }
            Role::InOut => self.memory(at, 0),
            Role::Record(size, ..) if !param.optional => self.record(at, param, size),
            Role::Pointer(count) => {
                let is_of_pointers = ["binaries", "strings"].contains(&param.name);
                if is_of_pointers {
                    self.memory(at, objects.memory() as u64);
                } else if param.name.contains("work") || count.is_some() {
                    self.memory(at, 1);
                } else {
                    self.words[at] = objects.memory();
                }
                count.into_iter().for_each(|count| self.words[count] = 1);
            }
            Role::Value(_) => self.memory(at, 1),
            Role::Text => self.words[at] = c"main".as_ptr().addr(),
            Role::Callback => self.words[at] = nothing as *const () as usize,
            Role::Enumerator(one) => self.words[at] = one as usize,
            Role::Size if param.name.contains("pattern") => self.words[at] = 4,
            // A buffer copied into itself has two parts.
            Role::Size if param.name == "dst_offset" => self.words[at] = 2048,
            Role::Size if param.name.contains("offset") => {}
            Role::Size => self.words[at] = SIZE,
            Role::Number if param.name.contains("dim") => self.words[at] = 1,
            _ => {}
        }
    }
    /// A buffer full of one word.
    fn memory(&mut self, at: usize, word: u64) {
        let memory = vec![word; WORDS].into_boxed_slice();
        self.words[at] = memory.as_ptr().expose_provenance();
        self.memory.insert(at, (memory.clone(), memory));
        self.refresh(at);
    }
    /// A struct of zeros that says what it is.
    pub fn record(&mut self, at: usize, param: &Param, size: usize) {
        assert!(size <= WORDS * 8);
        self.memory(at, 0);
        if let Role::Record(_, stype, _, count) = param.role {
            stype.into_iter().for_each(|stype| self.poke(at, 0, stype));
            count.into_iter().for_each(|count| self.words[count] = 1);
        }
    }
    /// Puts 32 bits into what an argument points at.
    pub fn poke(&mut self, at: usize, offset: usize, bits: u32) {
        let (now, before) = self.memory.get_mut(&at).expect("it points at memory");
        for memory in [now, before] {
            let (word, shift) = (&mut memory[offset / 8], (offset % 8) * 8);
            *word = (*word & !(0xffff_ffff << shift)) | (u64::from(bits) << shift);
        }
        self.refresh(at);
    }
    fn refresh(&mut self, at: usize) {
        self.words[at] = self.memory[&at].0.as_ptr().expose_provenance();
    }
    /// Another word.
    pub fn set(&mut self, at: usize, word: usize) {
        self.words[at] = word;
    }
    /// Two at once.
    pub fn set_both(&mut self, at: usize, word: usize, other: usize, second: usize) {
        (self.words[at], self.words[other]) = (word, second);
    }
    /// A list, and how long it is said to be.
    pub fn list(&mut self, at: usize, count: usize, handles: &[usize], said: usize) {
        self.memory(at, 0);
        let (now, before) = self.memory.get_mut(&at).expect("just made");
        for (i, &handle) in handles.iter().enumerate() {
            (now[i], before[i]) = (handle as u64, handle as u64);
        }
        self.refresh(at);
        self.words[count] = said;
    }
    /// Memory for an answer, and how much of it there is said to be.
    pub fn room(&mut self, at: usize, size: usize, said: usize) {
        self.memory(at, UNTOUCHED);
        self.words[size] = said;
    }
    /// What the entry is called with.
    pub fn words(&self) -> &[usize] {
        &self.words
    }
    /// The parameter whose memory is not as it was, or not null where it has to be.
    pub fn written(&mut self) -> Option<String> {
        if let Some(at) = self.nulled.filter(|&at| self.words[at] != 0) {
            self.memory.get_mut(&at).expect("it points at memory").1[0] = 0;
        }
        let changed = self.memory.iter().find(|(_, (now, before))| {
            // Written behind the compiler's back, through a pointer that C got.
            let now = std::hint::black_box(now);
            now != before
        });
        changed.map(|(&at, _)| format!("{} of {}", self.names[at], self.entry))
    }
}
/// The function that C gives where one is asked for. It takes whatever it is called with.
extern "C" fn nothing() {}
