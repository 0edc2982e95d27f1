//! Values of every type, made by the printer's own tables: anything that the type allows, and some
//! numbers that name nothing.
use ur_loader::print::kind::{Call, Count, Kind, Record};

/// Memory that samples lie in, and the numbers that they are made of.
pub struct Maker {
    memory: Vec<Box<[u64]>>,
    state: u64,
}
/// A value among others: what finds the count of a list.
type Siblings<'s> = &'s dyn Fn(usize) -> Option<(*mut u8, Kind)>;

impl Maker {
    pub fn new(seed: u64) -> Self {
        Self { memory: Vec::new(), state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }
    pub fn number(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }
    fn below(&mut self, end: u64) -> u64 {
        (self.number() >> 11) % end
    }
    fn room(&mut self, bytes: usize) -> *mut u8 {
        self.memory.push(vec![0; bytes.div_ceil(8).max(1)].into());
        self.memory.last_mut().unwrap().as_mut_ptr().cast()
    }
    /// A struct.
    pub fn record(&mut self, record: &'static Record, deep: u32) -> *mut u8 {
        let at = self.room(record.size);
        self.fill_record(record, at, deep);
        at
    }
    fn fill_record(&mut self, record: &'static Record, at: *mut u8, deep: u32) {
        let siblings = |i: usize| {
            let member = record.members.get(i)?;
            Some((at.wrapping_add(member.at), member.kind))
        };
        for pass in 0..2 {
            for m in record.members {
                if is_late(m.kind) == (pass == 1) {
                    self.fill(m.kind, at.wrapping_add(m.at), &siblings, deep);
                }
            }
            if pass == 0 {
                self.counts(record.members.iter().map(|m| m.kind), &siblings);
            }
        }
        // In a chain a wrong number would be another struct's.
        match (record.stype, self.below(8)) {
            (Some(_), 0) => unsafe { at.cast::<u32>().write(0x7777) },
            (Some(stype), 1..) => unsafe { at.cast::<u32>().write(stype) },
            (None, _) => {}
        }
    }
    /// The parameters of a call: a pointer to each.
    pub fn call(&mut self, call: &'static Call) -> *mut *mut u8 {
        let slots = self.room(8 * call.params.len()).cast::<*mut u8>();
        for (i, p) in call.params.iter().enumerate() {
            let at = self.room(size(&p.kind));
            unsafe { slots.add(i).write(at) };
        }
        let siblings = |i: usize| Some((unsafe { slots.add(i).read() }, call.params.get(i)?.kind));
        for pass in 0..2 {
            for (i, p) in call.params.iter().enumerate() {
                if is_late(p.kind) == (pass == 1) {
                    self.fill(p.kind, unsafe { slots.add(i).read() }, &siblings, 0);
                }
            }
            if pass == 0 {
                self.counts(call.params.iter().map(|p| p.kind), &siblings);
            }
        }
        slots
    }
    /// Makes the counts of lists small.
    fn counts(&mut self, kinds: impl Iterator<Item = Kind>, siblings: Siblings<'_>) {
        for kind in kinds {
            if let Kind::List(_, Count::Sibling(index)) = kind {
                let (at, kind) = siblings(index).unwrap();
                self.store(kind, at, u64::MAX, 4);
            }
        }
    }
    /// A number below `end`, if the place is for a number.
    fn store(&mut self, kind: Kind, at: *mut u8, known: u64, end: u64) -> u64 {
        let number = if known == u64::MAX { self.below(end) } else { known };
        unsafe {
            match kind {
                Kind::U32 | Kind::Enum(_) => at.cast::<u32>().write(number as u32),
                _ => at.cast::<u64>().write(number),
            }
        }
        number
    }
    fn fill(&mut self, kind: Kind, at: *mut u8, siblings: Siblings<'_>, deep: u32) {
        let number = match self.below(4) {
            0 => self.number(),
            1 => 0,
            _ => self.below(300),
        };
        unsafe {
            match kind {
                Kind::U8 | Kind::Char => at.write(number as u8),
                Kind::Bool | Kind::Truth => at.write((number & 1) as u8),
                Kind::U32 | Kind::Version => at.cast::<u32>().write(number as u32),
                Kind::I32 => at.cast::<i32>().write(number as i32),
                Kind::U64 | Kind::Usize => at.cast::<u64>().write(number),
                Kind::F32 => at.cast::<f32>().write(number as f32 / 7.0),
                Kind::F64 => at.cast::<f64>().write(number as f64 / 7.0),
                Kind::Enum(names) => {
                    let known = self.below(names.len() as u64) as usize;
                    let value = if self.below(6) == 0 { number as u32 } else { names[known].0 };
                    at.cast::<u32>().write(value);
                }
                Kind::Flags(names) => {
                    let mut bits = if self.below(6) == 0 { number as u32 } else { 0 };
                    for _ in 0..self.below(4) {
                        bits |= names[self.below(names.len() as u64) as usize].0;
                    }
                    at.cast::<u32>().write(bits);
                }
                Kind::Record(of) => self.fill_record(of, at, deep),
                Kind::Array(of, n) => {
                    for i in 0..n {
                        self.fill(*of, at.add(i * size(of)), siblings, deep);
                    }
                }
                Kind::Address | Kind::Bare => at.cast::<u64>().write(number),
                _ => self.point(kind, at, siblings, deep),
            }
        }
    }
    /// Values that have to know others, or need memory of their own.
    fn point(&mut self, kind: Kind, at: *mut u8, siblings: Siblings<'_>, deep: u32) {
        let null = self.below(5) == 0;
        let to = match kind {
            Kind::Union(_, tag, members) => {
                let (tag_at, tag_kind) = siblings(tag).unwrap();
                let member = &members[self.below(members.len() as u64) as usize];
                self.store(tag_kind, tag_at, member.value.into(), 0);
                return self.fill(member.kind, at, siblings, deep);
            }
            Kind::Text if !null => {
                let to = self.room(16);
                unsafe { to.cast::<[u8; 8]>().write(*b"a wo\"rd\0") };
                to
            }
            Kind::Next if !null && deep < 2 => {
                let all = ur_loader::print::records::RECORDS.iter().filter(|r| r.stype.is_some());
                let all: Vec<_> = all.collect();
                let one = all[self.below(all.len() as u64) as usize];
                self.record(one, deep + 1)
            }
            Kind::Pointer(to) if !null => {
                let room = self.room(size(to));
                self.fill(*to, room, siblings, deep);
                room
            }
            Kind::List(of, count) if !null => {
                let count = match count {
                    Count::Fixed(n) => n,
                    Count::Sibling(i) => {
                        let (at, kind) = siblings(i).unwrap();
                        self.known(kind, at)
                    }
                };
                let room = self.room(size(of) * count);
                for i in 0..count {
                    self.fill(*of, room.wrapping_add(i * size(of)), siblings, deep);
                }
                room
            }
            Kind::Answer(query, name, bytes) => self.answer(query, siblings, (name, bytes), null),
            _ => std::ptr::null_mut(),
        };
        unsafe { at.cast::<*mut u8>().write(to) };
    }
    fn known(&self, kind: Kind, at: *mut u8) -> usize {
        unsafe {
            match kind {
                Kind::U32 => at.cast::<u32>().read() as usize,
                _ => at.cast::<usize>().read(),
            }
        }
    }
    fn answer(
        &mut self,
        query: &'static ur_loader::print::kind::Query,
        siblings: Siblings<'_>,
        (name, bytes): (usize, usize),
        null: bool,
    ) -> *mut u8 {
        let one = &query.answers[self.below(query.answers.len() as u64) as usize];
        let (name_at, name_kind) = siblings(name).unwrap();
        self.store(name_kind, name_at, one.of.into(), 0);
        let many = if one.many { 1 + self.below(3) as usize } else { 1 };
        let is_text = one.many && matches!(one.kind, Kind::Char);
        let size_of_it = if is_text { 8 } else { many * one.size };
        let (size_at, size_kind) = siblings(bytes).unwrap();
        let said =
            if self.below(8) == 0 && !one.many { one.size.saturating_sub(1) } else { size_of_it };
        self.store(size_kind, size_at, said as u64, 0);
        if null {
            return std::ptr::null_mut();
        }
        let room = self.room(size_of_it);
        match is_text {
            true => unsafe { room.cast::<[u8; 8]>().write(*b"answer!\0") },
            false => {
                for i in 0..many {
                    self.fill(one.kind, room.wrapping_add(i * one.size), siblings, 1);
                }
            }
        }
        room
    }
}
/// Whether a value needs others to be there first.
fn is_late(kind: Kind) -> bool {
    matches!(kind, Kind::Union(..) | Kind::List(..) | Kind::Answer(..))
}
fn size(kind: &Kind) -> usize {
    match kind {
        Kind::U8 | Kind::Char | Kind::Bool | Kind::Truth => 1,
        Kind::U32 | Kind::I32 | Kind::F32 | Kind::Enum(_) | Kind::Flags(_) | Kind::Version => 4,
        Kind::Record(record) => record.size,
        Kind::Array(of, count) => size(of) * count,
        _ => 8,
    }
}
