//! SPIR-V as far as an adapter looks into it before a driver does: whether it is whole, and which
//! specialization constants it has. What it means is the driver's.
use std::collections::BTreeMap;

/// The first word of every module.
const MAGIC: u32 = 0x0723_0203;
/// Words before the first instruction.
const HEADER: usize = 5;
const OP_FUNCTION: u32 = 54;
const OP_FUNCTION_END: u32 = 56;

/// The specialization constants of a module, by their numbers: bytes of each.
pub(crate) type Constants = BTreeMap<u32, usize>;

/// Looks through a module.
///
/// # Errors
/// Why it is none, as a sentence.
pub(crate) fn constants(code: &[u8]) -> Result<Constants, String> {
    let words = words(code)?;
    let (mut numbers, mut bytes, mut found) = (vec![], BTreeMap::new(), Constants::new());
    let (mut at, mut inside) = (HEADER, false);
    while at < words.len() {
        let (length, code) = ((words[at] >> 16) as usize, words[at] & 0xffff);
        let Some(operands) = words.get(at + 1..at + length).filter(|_| length != 0) else {
            return Err(format!("the SPIR-V ends inside an instruction, at word {at}"));
        };
        match (code, operands) {
            (71, [id, 1, number]) => numbers.push((*id, *number)),
            // Types of numbers, by their bits; then constants, by their types.
            (21 | 22, [id, bits, ..]) => drop(bytes.insert(*id, *bits as usize / 8)),
            (48 | 49, [_, id]) => drop(bytes.insert(*id, 1)),
            (50, [kind, id, ..]) => {
                let size = bytes.get(kind).copied().unwrap_or(0);
                bytes.insert(*id, size);
            }
            (OP_FUNCTION, _) if inside => return Err("a function of the SPIR-V has no end".into()),
            (OP_FUNCTION, _) => inside = true,
            (OP_FUNCTION_END, _) => inside = false,
            _ => {}
        }
        at += length;
    }
    if inside {
        return Err("the last function of the SPIR-V has no end".into());
    }
    for (id, number) in numbers {
        found.insert(number, bytes.get(&id).copied().unwrap_or(0));
    }
    Ok(found)
}
/// A module's words, in the byte order of whoever wrote it.
fn words(code: &[u8]) -> Result<Vec<u32>, String> {
    if !code.len().is_multiple_of(4) || code.len() < 4 * HEADER {
        return Err(format!("{} bytes are no SPIR-V", code.len()));
    }
    let one = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let swap = match one(code) {
        MAGIC => false,
        first if first.swap_bytes() == MAGIC => true,
        first => return Err(format!("SPIR-V begins with {MAGIC:#x}, and this with {first:#x}")),
    };
    let each = code.chunks_exact(4).map(one);
    Ok(each.map(|word| if swap { word.swap_bytes() } else { word }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(code: u32, operands: &[u32]) -> Vec<u32> {
        [vec![(operands.len() as u32 + 1) << 16 | code], operands.to_vec()].concat()
    }
    fn module(parts: &[Vec<u32>]) -> Vec<u32> {
        [vec![MAGIC, 0x10000, 0, 99, 0], parts.concat()].concat()
    }
    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
    #[test]
    fn constants_have_the_bytes_of_their_types() {
        let words = module(&[
            op(71, &[5, 1, 7]),
            op(71, &[6, 1, 8]),
            op(71, &[7, 1, 9]),
            op(71, &[8, 22]), // another decoration
            op(21, &[1, 64, 0]),
            op(22, &[2, 16]),
            op(20, &[3]),
            op(50, &[1, 5, 1, 0]),
            op(50, &[2, 6, 1]),
            op(48, &[3, 7]),
        ]);
        let expected = Constants::from([(7, 8), (8, 2), (9, 1)]);
        assert_eq!(constants(&bytes(&words)).unwrap(), expected);
        let swapped: Vec<_> = words.iter().map(|word| word.swap_bytes()).collect();
        assert_eq!(constants(&bytes(&swapped)).unwrap(), expected);
    }
    #[test]
    fn what_is_no_module_or_not_all_of_one_is_told() {
        let whole = module(&[op(54, &[1, 2, 0, 3]), op(248, &[4]), op(253, &[]), op(56, &[])]);
        constants(&bytes(&whole)).unwrap();
        for length in HEADER + 1..whole.len() {
            constants(&bytes(&whole[..length])).unwrap_err();
        }
        constants(&bytes(&whole)[..18]).unwrap_err();
        constants(&[0xa5; 64]).unwrap_err();
        constants(&bytes(&module(&[vec![21]]))).unwrap_err(); // an instruction of no length
        constants(&bytes(&module(&[op(54, &[]), op(54, &[]), op(56, &[])]))).unwrap_err();
    }
}
