//! Splits PTX into words and symbols.

/// One word (letters, digits, `_ $ % .`), quoted text, or one symbol.
pub type Token = String;

/// Returns the tokens of a text without its comments, each with its line number.
pub fn tokens(text: &str) -> Vec<(Token, usize)> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let (mut i, mut line) = (0, 1);
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b"_$%.".contains(&b);
    while let Some(&byte) = bytes.get(i) {
        let begin = i;
        if byte == b'\n' {
            line += 1;
            i += 1;
        } else if text[i..].starts_with("//") {
            i += text[i..].find('\n').unwrap_or(text.len() - i);
        } else if text[i..].starts_with("/*") {
            let long = text[i..].find("*/").map_or(text.len() - i, |n| n + 2);
            line += text[i..i + long].matches('\n').count();
            i += long;
        } else if byte == b'"' {
            i += 1 + text[i + 1..].find('"').map_or(text.len() - i - 1, |n| n + 1);
            found.push((text[begin..i].to_owned(), line));
        } else if is_word(byte) {
            while bytes.get(i).is_some_and(|b| is_word(*b)) {
                i += 1;
            }
            found.push((text[begin..i].to_owned(), line));
        } else {
            i += 1;
            if !byte.is_ascii_whitespace() && byte.is_ascii() {
                found.push(((byte as char).to_string(), line));
            }
            while !text.is_char_boundary(i) {
                i += 1;
            }
        }
    }
    found
}
/// Parses a number in PTX's syntax.
pub fn number(word: &str) -> Option<u64> {
    let word = word.strip_suffix('U').unwrap_or(word);
    if let Some(hex) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).ok();
    }
    if let Some(bits) = word.strip_prefix("0f").or_else(|| word.strip_prefix("0F")) {
        return u32::from_str_radix(bits, 16).ok().map(u64::from);
    }
    if let Some(bits) = word.strip_prefix("0d").or_else(|| word.strip_prefix("0D")) {
        return u64::from_str_radix(bits, 16).ok();
    }
    word.parse().ok()
}
