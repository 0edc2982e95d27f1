//! What a module states about its identifiers before it declares them: names, decorations, entry points and
//! execution modes.
use super::read::{Instruction, Read};
use std::collections::HashMap;

/// What is stated about one identifier.
#[derive(Clone, Debug, Default)]
pub(super) struct Note {
    pub name: Option<String>,
    pub builtin: Option<u32>,
    pub spec: Option<u32>,
    pub packed: bool,
    pub by_value: bool,
    pub saturates: bool,
    pub rounding: Option<u32>,
    pub align: u64,
    /// The name for linking, and the linkage type: 0 export, 1 import, 2 link-once.
    pub linkage: Option<(String, u32)>,
    /// The name for host access.
    pub host: Option<String>,
}
/// A kernel's entry point and its execution modes.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub function: u32,
    pub name: String,
    pub required: Option<[u32; 3]>,
    pub required_ids: Option<[u32; 3]>,
    pub subgroup: Option<u32>,
}
#[derive(Debug, Default)]
pub(super) struct Notes {
    all: HashMap<u32, Note>,
    pub entries: Vec<Entry>,
    /// The imported sets of extended instructions: whether a set is OpenCL's.
    pub sets: HashMap<u32, bool>,
    groups: HashMap<u32, Vec<u32>>,
    pub memory_model: bool,
}
impl Notes {
    /// Collects the statements of a module.
    pub fn read(instructions: &[Instruction<'_>]) -> Read<Notes> {
        let mut notes = Notes::default();
        for i in instructions {
            notes.take(i)?;
        }
        for (group, members) in std::mem::take(&mut notes.groups) {
            let said = notes.of(group);
            for member in members {
                let name = notes.of(member).name;
                notes.all.insert(member, Note { name, ..said.clone() });
            }
        }
        Ok(notes)
    }
    /// What is stated about an identifier; the default if nothing is.
    pub fn of(&self, id: u32) -> Note {
        self.all.get(&id).cloned().unwrap_or_default()
    }
    fn take(&mut self, i: &Instruction<'_>) -> Read<()> {
        match i.code {
            5 => self.note(i)?.name = Some(i.text(1)?.0),
            11 => {
                let name = i.text(1)?.0;
                self.sets.insert(i.word(0)?, name == "OpenCL.std");
            }
            14 => self.memory(i)?,
            15 => self.entry(i)?,
            16 | 331 => self.mode(i)?,
            71 | 5632 => self.decorate(i)?,
            74 => {
                let members = i.rest(1).to_vec();
                self.groups.entry(i.word(0)?).or_default().extend(members);
            }
            _ => {}
        }
        Ok(())
    }
    fn note(&mut self, i: &Instruction<'_>) -> Read<&mut Note> {
        Ok(self.all.entry(i.word(0)?).or_default())
    }
    fn memory(&mut self, i: &Instruction<'_>) -> Read<()> {
        self.memory_model = true;
        match (i.word(0)?, i.word(1)?) {
            (2, 2) => Ok(()),
            (addresses, model) => i.refuse(format!(
                "addressing model {addresses} with memory model {model}: only kernels with addresses of 64 bits run here"
            )),
        }
    }
    fn entry(&mut self, i: &Instruction<'_>) -> Read<()> {
        if i.word(0)? != 6 {
            return i.refuse("an entry point that is no kernel");
        }
        let (function, name) = (i.word(1)?, i.text(2)?.0);
        let new = Entry { function, name, required: None, required_ids: None, subgroup: None };
        if self.entries.iter().any(|e| e.name == new.name) {
            return i.refuse(format!("there are two kernels of the name {}", new.name));
        }
        self.entries.push(new);
        Ok(())
    }
    fn mode(&mut self, i: &Instruction<'_>) -> Read<()> {
        let (function, mode) = (i.word(0)?, i.word(1)?);
        let sizes = || Read::Ok([i.word(2)?, i.word(3)?, i.word(4)?]);
        for entry in self.entries.iter_mut().filter(|e| e.function == function) {
            match mode {
                17 => entry.required = Some(sizes()?),
                38 => entry.required_ids = Some(sizes()?),
                35 => entry.subgroup = Some(i.word(2)?),
                _ => {}
            }
        }
        Ok(())
    }
    fn decorate(&mut self, i: &Instruction<'_>) -> Read<()> {
        let (what, extra) = (i.word(1)?, i.word(2));
        let linkage = || -> Read<(String, u32)> {
            let (name, next) = i.text(2)?;
            Ok((name, i.word(next)?))
        };
        let note = self.note(i)?;
        match what {
            1 => note.spec = Some(extra?),
            10 => note.packed = true,
            11 => note.builtin = Some(extra?),
            28 => note.saturates = true,
            38 if extra == Ok(2) => note.by_value = true,
            39 => note.rounding = Some(extra?),
            41 => note.linkage = Some(linkage()?),
            44 => note.align = u64::from(extra?),
            // HostAccessINTEL, under its current and its former number; the access mode precedes the name.
            6147 | 6188 => note.host = Some(i.text(3)?.0),
            _ => {}
        }
        Ok(())
    }
}
