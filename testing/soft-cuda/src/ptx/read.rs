//! Parses PTX: the header, variables and kernels.
use super::{
    Entry, Instruction, Operand, Parameter, Special, Text, Type, Variable, arithmetic,
    token::{Token, number, tokens},
};
use std::collections::HashMap;

type Read<T> = Result<T, String>;

struct Reader {
    tokens: Vec<(Token, usize)>,
    next: usize,
    text: Text,
}
/// A declaration: its name, size, alignment and initial value.
struct Declared {
    name: String,
    bytes: u64,
    align: u64,
    value: Vec<u8>,
}
/// Parses a module.
///
/// # Errors
/// Returns what is wrong, with the line number.
pub fn read(text: &str) -> Read<Text> {
    let mut reader = Reader { tokens: tokens(text), next: 0, text: Text::default() };
    let told = reader.module();
    let line = reader
        .tokens
        .get(reader.next.min(reader.tokens.len().saturating_sub(1)))
        .map_or(1, |t| t.1);
    told.map_err(|why| format!("soft-cuda, line {line}: error: {why}"))?;
    if reader.text.version == 0 || reader.text.target == 0 {
        return Err("soft-cuda, line 1: fatal: .version and .target are missing".into());
    }
    Ok(reader.text)
}
impl Reader {
    fn peek(&self) -> &str {
        self.tokens.get(self.next).map_or("", |t| &t.0)
    }
    fn take(&mut self) -> Token {
        let token = self.peek().to_owned();
        self.next += 1;
        token
    }
    fn is(&mut self, sign: &str) -> bool {
        let is = self.peek() == sign;
        self.next += usize::from(is);
        is
    }
    fn must(&mut self, sign: &str) -> Read<()> {
        if self.is(sign) {
            Ok(())
        } else {
            Err(format!("`{sign}` expected, not `{}`", self.peek()))
        }
    }
    fn number(&mut self) -> Read<u64> {
        let negative = self.is("-");
        let word = self.take();
        let value = number(&word).ok_or(format!("a number expected, not `{word}`"))?;
        Ok(if negative { value.wrapping_neg() } else { value })
    }
    fn module(&mut self) -> Read<()> {
        while self.next < self.tokens.len() {
            match self.take().as_str() {
                ".version" => {
                    let version = self.take();
                    let (major, minor) = version.split_once('.').ok_or("a version has a dot")?;
                    let part =
                        |s: &str| s.parse::<u32>().map_err(|_| format!("no version: {version}"));
                    self.text.version = self.text.version.max(part(major)? * 10 + part(minor)?);
                }
                ".target" => {
                    let word = self.take();
                    let digits =
                        word.trim_start_matches("sm_").trim_end_matches(char::is_alphabetic);
                    let target = digits.parse().map_err(|_| format!("no target: {word}"))?;
                    self.text.target = self.text.target.max(target);
                    while self.is(",") {
                        self.take();
                    }
                }
                ".address_size" => {
                    if self.number()? != 64 {
                        return Err("addresses have 64 bits".into());
                    }
                }
                ".visible" | ".weak" | ";" | ".common" => {}
                ".extern" => self.external()?,
                ".entry" => {
                    let entry = self.code(&self.text.entries.clone())?;
                    self.text.entries.extend(entry);
                }
                ".func" => {
                    let function = self.code(&self.text.functions.clone())?;
                    self.text.functions.extend(function);
                }
                ".global" | ".const" => self.variable(false)?,
                ".shared" => self.shared(None)?,
                ".file" | ".loc" => {
                    while !matches!(self.peek(), "" | ".entry" | ".visible" | ".global" | ".file") {
                        self.next += 1;
                    }
                }
                word => return Err(format!("`{word}` is not known here")),
            }
        }
        Ok(())
    }
    fn external(&mut self) -> Read<()> {
        match self.take().as_str() {
            ".shared" => {
                let declared = self.declared()?;
                self.must(";")?;
                self.text.dynamic.push(declared.name);
                Ok(())
            }
            ".global" | ".const" => self.variable(true),
            ".func" => self.code(&[]).map(drop),
            word => Err(format!("extern `{word}` is not known")),
        }
    }
    fn variable(&mut self, is_extern: bool) -> Read<()> {
        let Declared { name, bytes, value, .. } = self.declared()?;
        self.must(";")?;
        if !is_extern
            && (bytes == 0 || self.text.variables.iter().any(|v| v.name == name && !v.is_extern))
        {
            return Err(format!("`{name}` has no size, or is defined twice"));
        }
        self.text.variables.push(Variable { name, bytes, value, is_extern });
        Ok(())
    }
    /// Parses a declaration of shared memory, of the module or of a kernel.
    fn shared(&mut self, entry: Option<&mut Entry>) -> Read<()> {
        let Declared { name, bytes, align, .. } = self.declared()?;
        self.must(";")?;
        let (map, sum) = match entry {
            Some(entry) => (&mut entry.shared, &mut entry.shared_bytes),
            None => (&mut self.text.shared, &mut self.text.shared_bytes),
        };
        *sum = sum.next_multiple_of(align);
        map.insert(name, *sum);
        *sum += bytes;
        Ok(())
    }
    /// Parses a declaration after its state space, for example `.align 4 .u32 name[3] = {1, 2}`.
    fn declared(&mut self) -> Read<Declared> {
        let (mut align, mut of) = (0, None);
        let name = loop {
            let word = self.take();
            match word.strip_prefix('.') {
                Some("align") => align = self.number()?,
                Some("ptr" | "global" | "shared" | "const" | "local" | "attribute") => {}
                Some(name) => of = Some(Type::of(name).ok_or(format!("`{word}` is no type"))?),
                None if word.is_empty() || number(&word).is_some() => {
                    return Err("a name expected".into());
                }
                None => break word,
            }
        };
        let of = of.ok_or(format!("`{name}` has no type"))?;
        let (mut count, mut is_array) = (1, false);
        while self.is("[") {
            count *= if self.peek() == "]" { 0 } else { self.number()? };
            is_array = true;
            self.must("]")?;
        }
        let mut value = Vec::new();
        if self.is("=") {
            let braces = is_array && self.is("{");
            loop {
                value.extend_from_slice(&self.number()?.to_le_bytes()[..of.bytes]);
                if !braces || !self.is(",") {
                    break;
                }
            }
            if braces {
                self.must("}")?;
            }
        }
        let align = align.max(of.bytes as u64);
        Ok(Declared { name, bytes: count * of.bytes as u64, align, value })
    }
    fn parameters(&mut self) -> Read<Vec<Parameter>> {
        let mut found: Vec<Parameter> = Vec::new();
        while !self.is(")") {
            self.must(".param")?;
            let Declared { name, bytes, align, .. } = self.declared()?;
            let end = found.last().map_or(0, |p| p.offset + p.bytes);
            let offset = end.next_multiple_of(align as usize);
            found.push(Parameter { name, offset, bytes: bytes as usize });
            self.is(",");
        }
        Ok(found)
    }
    /// Parses a kernel or a function; `None` if it is only declared.
    fn code(&mut self, others: &[Entry]) -> Read<Option<Entry>> {
        let results = if self.is("(") { self.parameters()? } else { Vec::new() };
        let mut entry = Entry { name: self.take(), results, ..Entry::default() };
        if others.iter().any(|e| e.name == entry.name) {
            return Err(format!("`{}` is defined twice", entry.name));
        }
        if self.is("(") {
            entry.parameters = self.parameters()?;
        }
        if self.is(";") {
            self.text.declared.push(entry.name);
            return Ok(None);
        }
        while !self.is("{") {
            let word = self.take();
            let known = matches!(
                word.as_str(),
                ".maxntid" | ".reqntid" | ".minnctapersm" | ".maxnreg" | ".maxclusterrank"
            );
            if !known {
                return Err(format!("`{word}` is not known before a body"));
            }
            let mut sizes = vec![self.number()?];
            while self.is(",") {
                sizes.push(self.number()?);
            }
            if word == ".maxntid" || word == ".reqntid" {
                entry.most_items = sizes.iter().product();
            }
            if word == ".reqntid" {
                sizes.resize(3, 1);
                entry.required = Some([sizes[0] as u32, sizes[1] as u32, sizes[2] as u32]);
            }
        }
        let mut registers = HashMap::new();
        let mut depth = 1;
        while depth != 0 {
            match self.peek() {
                "" => return Err("the body does not end".into()),
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {
                    self.statement(&mut entry, &mut registers)?;
                    continue;
                }
            }
            self.next += 1;
        }
        entry.registers = registers.len();
        Ok(Some(entry))
    }
    fn statement(&mut self, entry: &mut Entry, registers: &mut HashMap<String, usize>) -> Read<()> {
        match self.take().as_str() {
            ".reg" => {
                self.take();
                loop {
                    let name = self.take();
                    if self.is("<") {
                        let count = self.number()?;
                        self.must(">")?;
                        (0..count).for_each(|i| add(registers, format!("{name}{i}")));
                    } else {
                        add(registers, name);
                    }
                    if !self.is(",") {
                        return self.must(";");
                    }
                }
            }
            ".shared" => self.shared(Some(entry)),
            ".local" => {
                let Declared { name, bytes, align, .. } = self.declared()?;
                entry.local_bytes = entry.local_bytes.next_multiple_of(align);
                entry.local.insert(name, entry.local_bytes);
                entry.local_bytes += bytes;
                self.must(";")
            }
            ".param" => {
                let Declared { name, bytes, .. } = self.declared()?;
                entry.buffers.push((name, bytes as usize));
                self.must(";")
            }
            ".loc" => {
                let line = self.tokens[self.next - 1].1;
                while self.tokens.get(self.next).is_some_and(|t| t.1 == line) {
                    self.next += 1;
                }
                Ok(())
            }
            ".pragma" => {
                self.take();
                self.must(";")
            }
            "@" => {
                let unless = self.is("!");
                let name = self.take();
                let register = *registers.get(&name).ok_or(format!("no register `{name}`"))?;
                let word = self.take();
                self.instruction(word, Some((register, unless)), entry, registers)
            }
            word if self.peek() == ":" => {
                self.next += 1;
                entry.labels.insert(word.to_owned(), entry.code.len());
                Ok(())
            }
            word => self.instruction(word.to_owned(), None, entry, registers),
        }
    }
    fn instruction(
        &mut self,
        word: Token,
        guard: Option<(usize, bool)>,
        entry: &mut Entry,
        registers: &HashMap<String, usize>,
    ) -> Read<()> {
        let parts: Vec<String> = word.split('.').map(str::to_owned).collect();
        if !arithmetic::is_known(&parts[0]) {
            return Err(format!("`{word}` is no instruction that this driver knows"));
        }
        let mut operands = Vec::new();
        while !self.is(";") {
            operands.push(self.operand(registers)?);
            if !self.is(",") && !self.is("|") {
                self.must(";")?;
                break;
            }
        }
        let of = parts.iter().rev().find_map(|p| Type::of(p));
        entry.code.push(Instruction { guard, parts, operands, of });
        Ok(())
    }
    fn operand(&mut self, registers: &HashMap<String, usize>) -> Read<Operand> {
        if self.is("[") {
            let base = self.operand(registers)?;
            let mut offset = 0;
            // A minus sign belongs to the number.
            if self.is("+") || self.peek() == "-" {
                offset = self.number()? as i64;
            }
            self.must("]")?;
            return Ok(Operand::At(Box::new(base), offset));
        }
        if self.is("{") {
            let mut several = vec![self.operand(registers)?];
            while self.is(",") {
                several.push(self.operand(registers)?);
            }
            self.must("}")?;
            return Ok(Operand::Several(several));
        }
        if self.is("(") {
            let mut several = Vec::new();
            while !self.is(")") {
                several.push(self.operand(registers)?);
                self.is(",");
            }
            return Ok(Operand::Several(several));
        }
        if self.peek() == "-" || number(self.peek()).is_some() {
            return self.number().map(Operand::Number);
        }
        let word = self.take();
        if let Some(register) = registers.get(&word) {
            return Ok(Operand::Register(*register));
        }
        match word.strip_prefix('%') {
            Some(name) => special(name).ok_or(format!("no register `{word}`")),
            None if word.starts_with(|c: char| c.is_ascii_alphabetic() || "_$".contains(c)) => {
                Ok(Operand::Symbol(word))
            }
            None => Err(format!("`{word}` is no operand")),
        }
    }
}
fn add(registers: &mut HashMap<String, usize>, name: String) {
    let next = registers.len();
    registers.entry(name).or_insert(next);
}
fn special(name: &str) -> Option<Operand> {
    let (name, axis) = name.split_once('.').unwrap_or((name, "x"));
    let axis = ["x", "y", "z"].iter().position(|a| *a == axis)?;
    let which = match name {
        "tid" => Special::Item,
        "ntid" => Special::Items,
        "ctaid" => Special::Group,
        "nctaid" => Special::Groups,
        "laneid" => Special::Lane,
        "warpid" => Special::Warp,
        _ => return None,
    };
    Some(Operand::Special(which, axis))
}
