//! Reads a SPIR-V binary as a list of instructions. Checks the header, the byte order and the lengths, but
//! not what the instructions mean.

/// An instruction: its opcode and its operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instruction<'a> {
    pub code: u16,
    pub words: &'a [u32],
    /// Its offset in the module in words, for the build log.
    pub at: usize,
}
/// Why a module is refused: a sentence for the build log.
pub(super) type Refusal = String;
pub(super) type Read<T> = Result<T, Refusal>;

impl<'a> Instruction<'a> {
    /// An operand, which must exist.
    pub fn word(&self, index: usize) -> Read<u32> {
        self.words.get(index).copied().ok_or_else(|| {
            format!(
                "instruction {} at word {} ends before its operand {}",
                self.code,
                self.at,
                index + 1
            )
        })
    }
    /// The operands from this index on; empty if there are fewer.
    pub fn rest(&self, from: usize) -> &'a [u32] {
        self.words.get(from..).unwrap_or(&[])
    }
    /// A string, and the index of the operand after it.
    pub fn text(&self, from: usize) -> Read<(String, usize)> {
        let words = self.rest(from);
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let end = bytes.iter().position(|b| *b == 0);
        let end = end.ok_or_else(|| format!("the name at word {} has no end", self.at))?;
        Ok((String::from_utf8_lossy(&bytes[..end]).into_owned(), from + end / 4 + 1))
    }
    /// An error that contains the opcode and the offset.
    pub fn refuse<T>(&self, why: impl std::fmt::Display) -> Read<T> {
        Err(format!("instruction {} at word {}: {why}", self.code, self.at))
    }
}

const MAGIC: u32 = 0x0723_0203;
/// The largest bound of identifiers that the specification requires implementations to support.
const MOST_IDS: u32 = 0x003f_ffff;

/// The words of a module, in the host's byte order.
pub(super) fn words(bytes: &[u8]) -> Read<Vec<u32>> {
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() || words.len() < 5 {
        return Err(format!(
            "{} bytes are no SPIR-V module: too few, or no whole words",
            bytes.len()
        ));
    }
    let mut words: Vec<u32> = words.iter().map(|w| u32::from_le_bytes(*w)).collect();
    if words[0] == MAGIC.swap_bytes() {
        words.iter_mut().for_each(|w| *w = w.swap_bytes());
    }
    if words[0] != MAGIC {
        return Err(format!(
            "the module begins with {:#010x} and not with {MAGIC:#010x}",
            words[0]
        ));
    }
    let (major, minor) = (words[1] >> 16, words[1] >> 8 & 0xff);
    if major != 1 || minor > 6 {
        return Err(format!("SPIR-V {major}.{minor} is not known here: 1.0 to 1.6 are"));
    }
    if words[3] == 0 || words[3] > MOST_IDS {
        return Err(format!("{} identifiers are none, or more than any module may have", words[3]));
    }
    Ok(words)
}
/// The bound of the identifiers.
pub(super) fn bound(words: &[u32]) -> usize {
    words[3] as usize
}
/// The instructions after the header.
pub(super) fn instructions(words: &[u32]) -> Read<Vec<Instruction<'_>>> {
    let (mut at, mut all) = (5, Vec::new());
    while let Some(first) = words.get(at) {
        let (length, code) = ((first >> 16) as usize, (first & 0xffff) as u16);
        let operands = match length {
            0 => None,
            _ => words.get(at + 1..at + length),
        };
        let Some(operands) = operands else {
            return Err(format!(
                "instruction {code} at word {at} says it has {length} words, but {} are left",
                words.len() - at
            ));
        };
        all.push(Instruction { code, words: operands, at });
        at += length;
    }
    Ok(all)
}
