//! A SPIR-V binary as a list of instructions: the header, the order of the bytes and the lengths are checked here; what
//! the instructions mean is for the others to find out.

/// One instruction: its number and its operands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instruction<'a> {
    pub code: u16,
    pub words: &'a [u32],
    /// Where it stands in the module, in words: for the build log.
    pub at: usize,
}
/// Why a module is refused: a sentence for the build log.
pub(super) type Refusal = String;
pub(super) type Read<T> = Result<T, Refusal>;

impl<'a> Instruction<'a> {
    /// An operand that has to be there.
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
    /// The operands from here on, none at all if there are fewer.
    pub fn rest(&self, from: usize) -> &'a [u32] {
        self.words.get(from..).unwrap_or(&[])
    }
    /// A name and the number of the operand that follows it.
    pub fn text(&self, from: usize) -> Read<(String, usize)> {
        let words = self.rest(from);
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let end = bytes.iter().position(|b| *b == 0);
        let end = end.ok_or_else(|| format!("the name at word {} has no end", self.at))?;
        Ok((String::from_utf8_lossy(&bytes[..end]).into_owned(), from + end / 4 + 1))
    }
    /// A refusal that says where.
    pub fn refuse<T>(&self, why: impl std::fmt::Display) -> Read<T> {
        Err(format!("instruction {} at word {}: {why}", self.code, self.at))
    }
}

const MAGIC: u32 = 0x0723_0203;
/// The most identifiers that the specification asks anyone to take.
const MOST_IDS: u32 = 0x003f_ffff;

/// The words of a module, in this machine's order.
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
/// How many identifiers there may be.
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
