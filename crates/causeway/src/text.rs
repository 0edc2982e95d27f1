//! Tickets as text, in letters, digits and hyphens that can be typed, read aloud, and used in a shell, a URL or JSON.
//!
//! [`Ticket`](crate::Ticket)s use this by themselves. The functions are for bindings of other languages, whose tickets
//! contain more. The caller gives the bytes their meaning.
use crate::{Error, ErrorKind, Result};

/// The prefix of every ticket's text; the digit is the version of the format.
const PREFIX: &str = "cw1-";
/// 32 digits, without `i`, `l`, `o` and `u`, which are easily misread.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The value of each byte as a digit; capitals have the values of small letters.
const VALUES: [u8; 256] = {
    let (mut values, mut digit) = ([NO_DIGIT; 256], 0);
    while digit < DIGITS.len() {
        values[DIGITS[digit] as usize] = digit as u8;
        values[DIGITS[digit].to_ascii_uppercase() as usize] = digit as u8;
        digit += 1;
    }
    values
};
/// No digit's value, and no values combined with `|` make it.
const NO_DIGIT: u8 = 0xff;

/// The words for the kinds in a ticket's text, and their names in messages.
pub(crate) const KINDS: [(&str, &str); 5] = [
    ("mem", "memory"),
    ("phys", "physical memory"),
    ("event", "an event"),
    ("turns", "a hand-over"),
    ("py", "an object of the Python module"),
];

/// Encodes a ticket as text: prefix, word of the kind, then bytes and checksum in base 32.
pub fn encode(word: &str, bytes: &[u8]) -> String {
    let all = [bytes, &checksum(word, bytes).to_le_bytes()].concat();
    let mut text = Vec::with_capacity(PREFIX.len() + word.len() + 2 + all.len() * 8 / 5);
    for part in [PREFIX, word, "-"] {
        text.extend_from_slice(part.as_bytes());
    }
    for group in all.chunks(5) {
        // Five bytes make eight digits. The last group is padded with zero bits; digits of padding alone are omitted.
        let bits =
            (0..5).fold(0_u64, |bits, at| bits << 8 | u64::from(*group.get(at).unwrap_or(&0)));
        let digits: [u8; 8] =
            std::array::from_fn(|at| DIGITS[(bits >> (35 - 5 * at) & 31) as usize]);
        text.extend_from_slice(&digits[..(group.len() * 8).div_ceil(5)]);
    }
    String::from_utf8(text).expect("word and digits are ASCII")
}

/// Decodes a ticket's text if it is intact and of the kind `word`.
///
/// # Errors
/// [`ErrorKind::Ticket`] if it is not a ticket or damaged, [`ErrorKind::WrongKind`] if it is of another kind.
pub fn decode(word: &str, text: &str) -> Result<Vec<u8>> {
    let text = text.trim();
    let Some(rest) = without_prefix(text, PREFIX) else {
        let newer = without_prefix(text, "cw")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        return refuse(if newer {
            "this ticket is of another version: use the same version on both sides".into()
        } else {
            format!("this is no ticket: tickets begin with `{PREFIX}`")
        });
    };
    let (kind, digits) = rest.split_once('-').unwrap_or((rest, ""));
    let is_it = |(known, _): &&(&str, &str)| known.eq_ignore_ascii_case(kind);
    let Some((kind, is)) = KINDS.iter().find(is_it) else {
        // A word that is too long is no kind: it may be the secret part of a ticket that lost its beginning.
        let kind = if kind.len() > 16 { "that has no name" } else { kind };
        return refuse(format!(
            "this ticket is of a kind unknown here, `{kind}`: copy the whole of it, and use the same version on both sides"
        ));
    };
    if *kind != word {
        let sentence = format!("this ticket is {is}; {} was asked for", noun(word));
        return Err(Error::new(ErrorKind::WrongKind, sentence));
    }
    match unpack(digits).and_then(|bytes| verified(word, bytes)) {
        Some(bytes) => Ok(bytes),
        None => refuse("this ticket is damaged: copy it again, the whole of it".into()),
    }
}

/// What follows a prefix, whose letters may be capitals.
fn without_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (begins, rest) = text.split_at_checked(prefix.len())?;
    begins.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// The name of a kind in messages.
fn noun(word: &str) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == word).map_or("an object", |(_, noun)| noun)
}

fn refuse<T>(sentence: String) -> Result<T> {
    Err(Error::new(ErrorKind::Ticket, sentence))
}

fn unpack(digits: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(digits.len() * 5 / 8);
    let (groups, rest) = digits.as_bytes().as_chunks::<8>();
    let mut seen = 0;
    for group in groups {
        // Eight digits make five bytes.
        let bits = group.iter().fold(0_u64, |bits, digit| {
            let value = VALUES[usize::from(*digit)];
            seen |= value;
            bits << 5 | u64::from(value)
        });
        bytes.extend_from_slice(&bits.to_be_bytes()[3..]);
    }
    let (mut bits, mut count) = (0_u32, 0);
    for digit in rest {
        let value = VALUES[usize::from(*digit)];
        seen |= value;
        bits = bits << 5 | u32::from(value & 31);
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    // The remaining bits are fewer than a digit and must be zero, so that each ticket has only one text.
    (seen != NO_DIGIT && count < 5 && bits & ((1 << count) - 1) == 0).then_some(bytes)
}

fn verified(word: &str, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let checksum_at = bytes.len().checked_sub(4)?;
    let stated = u32::from_le_bytes(*bytes[checksum_at..].first_chunk()?);
    bytes.truncate(checksum_at);
    (checksum(word, &bytes) == stated).then_some(bytes)
}

/// CRC-32 (reflected 0xEDB88320) of the kind's word and the bytes. It detects mistakes, not forgery.
fn checksum(word: &str, bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| crc >> 8 ^ REMAINDERS[0][usize::from(crc as u8 ^ byte)];
    let begun = word.as_bytes().iter().fold(!0, step);
    let (groups, rest) = bytes.as_chunks::<8>();
    let crc = groups.iter().fold(begun, |crc, group| {
        let word = u64::from_le_bytes(*group) ^ u64::from(crc);
        let bytes = word.to_le_bytes().into_iter().enumerate();
        bytes.fold(0, |sum, (at, byte)| sum ^ REMAINDERS[7 - at][usize::from(byte)])
    });
    !rest.iter().fold(crc, step)
}
/// The CRC tables: `REMAINDERS[n][b]` is the remainder of the byte `b` followed by `n` zero bytes.
static REMAINDERS: [[u32; 256]; 8] = {
    let (mut remainders, mut byte) = ([[0; 256]; 8], 0);
    while byte < 256 {
        let (mut rest, mut behind) = (byte as u32, 0);
        while behind < 8 {
            let mut bit = 0;
            while bit < 8 {
                rest = rest >> 1 ^ (0xedb8_8320 & (rest & 1).wrapping_neg());
                bit += 1;
            }
            remainders[behind][byte] = rest;
            behind += 1;
        }
        byte += 1;
    }
    remainders
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_any_length_comes_back() {
        for length in 0..40_u8 {
            let bytes: Vec<u8> = (0..length).map(|i| i.wrapping_mul(37) ^ length).collect();
            assert_eq!(decode("mem", &encode("mem", &bytes)).unwrap(), bytes);
        }
    }
    #[test]
    fn text_is_letters_digits_and_hyphens() {
        let text = encode("event", &[0xff; 100]);
        assert!(
            text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
            "{text}"
        );
    }
    #[test]
    fn capitals_and_white_space_around_do_no_harm() {
        let text = format!("  {}\n", encode("phys", b"abc").to_ascii_uppercase());
        assert_eq!(decode("phys", &text).unwrap(), b"abc");
    }
    #[test]
    fn every_changed_character_is_noticed() {
        let text = encode("mem", b"some bytes of a ticket");
        for at in PREFIX.len() + 4..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(decode("mem", &changed).is_err(), "{changed}");
        }
        for end in PREFIX.len()..text.len() {
            assert!(decode("mem", &text[..end]).is_err(), "cut at {end}");
        }
    }
    #[test]
    fn what_is_no_digit_is_refused_wherever_it_is() {
        let text = encode("mem", b"some bytes of a ticket");
        for at in PREFIX.len() + 4..text.len() {
            for other in [b'i', b'l', b'o', b'U', b'-', b' ', 0, 0x7f] {
                let mut changed = text.clone().into_bytes();
                changed[at] = other;
                let changed = String::from_utf8(changed).unwrap();
                assert!(unpack(&changed[PREFIX.len() + 4..]).is_none(), "{changed}");
            }
        }
    }
    #[test]
    fn another_kind_is_refused_by_name() {
        let error = decode("mem", &encode("event", b"x")).unwrap_err();
        assert_eq!(error.to_string(), "this ticket is an event; memory was asked for");
    }
    #[test]
    fn what_is_no_ticket_is_called_so() {
        assert!(decode("mem", "hello").unwrap_err().to_string().starts_with("this is no ticket"));
        let secret = decode("mem", "cw1-dsqeybzd5r660800410a0010").unwrap_err().to_string();
        assert!(secret.contains("kind unknown") && !secret.contains("dsqeybzd"), "{secret}");
        assert!(decode("mem", "cw2-mem-00").unwrap_err().to_string().contains("another version"));
        assert!(decode("mem", "cw1-image-00").unwrap_err().to_string().contains("unknown here"));
        assert!(decode("mem", "cw1-mem-").unwrap_err().to_string().contains("damaged"));
    }
    #[test]
    fn the_checksum_is_crc_32() {
        assert_eq!(checksum("", b"123456789"), 0xcbf4_3926);
    }
}
