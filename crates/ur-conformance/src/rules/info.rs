//! Information queries, one case for each enumerator: the answer has exactly the size of its type, a string
//! ends with a NUL, a boolean is 0 or 1, an enumerator is known, and a buffer that is too small is refused
//! and left unchanged.
use super::arguments::{Area, Arguments};
use crate::{
    case::{Case, Stop, Verdict},
    ensure, same,
    spec::{Answer, Entry, Spec, Type, Variant},
};
use ur_sys::ur_result_t;

/// Properties that are not marked as optional, although not every adapter has them: a deprecated one, and the
/// default queue on a device, which only devices with such queues have.
const MAY_LACK: [&str; 2] = ["UR_DEVICE_INFO_BFLOAT16", "UR_QUEUE_INFO_DEVICE_DEFAULT"];
const FILL: u64 = 0x5a5a_5a5a_5a5a_5a5a;
/// Its buffer holds addresses, one for each device, to which the adapter writes: null for none.
const POINTERS_GO_IN: &str = "UR_PROGRAM_INFO_BINARIES";

pub fn cases(family: &'static str, entry: &'static Entry) -> Vec<Case> {
    let spec = Spec::get();
    let answer = entry.params.iter().find_map(|param| param.answer.as_ref());
    let Some((name, size)) = answer else { return Vec::new() };
    if !entry.params.iter().any(|param| param.name == "prop_size_ret") {
        return Vec::new(); // an input, and not the answer to a query
    }
    let index = |name: &str| entry.params.iter().position(|param| param.name == name);
    let Some(places) = index(name).zip(index(size)) else { return Vec::new() };
    let Type::Name(query) = &entry.params[places.0].ty else { return Vec::new() };
    let Some(query) = spec.enumeration(query).filter(|one| one.query.is_some()) else {
        return Vec::new();
    };
    let each = query.variants.iter().map(|variant| {
        let rule = format!(
            "{} answers {}; UR_RESULT_ERROR_INVALID_SIZE: the given size is too small to hold the answer",
            variant.c,
            described(variant)
        );
        let name = format!(
            "{} is answered with {}; a buffer too small is INVALID_SIZE and left alone",
            variant.c,
            described(variant)
        );
        Case::new(family, &entry.name, rule, name, move |bench| {
            let mut arguments = Arguments::valid(bench, entry)?;
            arguments.set(places.0, None, u64::from(variant.value));
            if variant.value == 0 {
                arguments.words[places.0] = crate::raw::Word::One(0);
            }
            Query { arguments, variant, places }.judge()
        })
    });
    each.collect()
}
fn described(variant: &Variant) -> String {
    let name = |ty: &Type| match ty {
        Type::Name(name) => name.clone(),
        Type::Pointer(_) => "pointer".into(),
        Type::Array(of, n) => match &**of {
            Type::Name(name) => format!("{name}[{n}]"),
            _ => "array".into(),
        },
    };
    match &variant.answer {
        Some(Answer::One(ty)) => format!("one {}", name(ty)),
        Some(Answer::Many(ty)) if *ty == Type::Name("c_char".into()) => "a string".into(),
        Some(Answer::Many(ty)) => format!("any number of {}", name(ty)),
        None => "nothing that is known".into(),
    }
}

struct Query<'a> {
    arguments: Arguments<'a>,
    variant: &'static Variant,
    /// The indices of the parameters with the property and with the size of the buffer.
    places: (usize, usize),
}
impl Query<'_> {
    fn place(&self, name: &str) -> Verdict<usize> {
        self.arguments.index(name).ok_or_else(|| Stop::failed(format!("no parameter {name}")))
    }
    /// Queries with a buffer of `bytes` bytes, or none; returns the code, the reported size, and the buffer.
    fn ask(&mut self, bytes: Option<usize>) -> Verdict<(ur_result_t, Option<usize>, Area)> {
        let (value, size) = (self.place("prop_value")?, self.place("prop_size_ret")?);
        let (buffer, reported) = (Area::new(FILL), Area::new(FILL));
        if self.variant.c == POINTERS_GO_IN && bytes >= Some(8) {
            buffer.poke(0, &[0; 8]);
        }
        let to = bytes.map_or(0, |_| buffer.address());
        self.arguments.words[value] = crate::raw::Word::One(to);
        self.arguments.words[self.places.1] =
            crate::raw::Word::One(bytes.unwrap_or_default() as u64);
        self.arguments.words[size] = crate::raw::Word::One(reported.address());
        let code = self.arguments.call()?;
        let reported = reported.number(0, 8);
        let reported = (reported != FILL).then_some(reported as usize);
        Ok((code, reported, buffer))
    }
    fn judge(mut self) -> Verdict {
        let name = &self.variant.c;
        let (code, size, _) = self.ask(None)?;
        if name == "UR_QUEUE_INFO_SIZE" {
            // Only queues on the device have a size, and the bench's queue is none.
            same!(code, ur_result_t::ERROR_INVALID_QUEUE, "the size of a queue on the host");
            return Ok(());
        }
        let optional = self.variant.optional || MAY_LACK.contains(&name.as_str());
        match code {
            ur_result_t::SUCCESS => {}
            ur_result_t::ERROR_UNSUPPORTED_ENUMERATION if optional => {
                same!(size, None, "the size of what is not answered");
                return Err(Stop::skipped(format!("{name} is optional, and not answered")));
            }
            ur_result_t::ERROR_UNSUPPORTED_FEATURE => {
                return Err(Stop::skipped(format!("{name} is not supported here")));
            }
            code => {
                let why = format!("asked for its size, {name} is answered with {code:?}");
                return Err(Stop::failed(why));
            }
        }
        let size = size.ok_or_else(|| Stop::failed("the size is not reported"))?;
        self.fits(size)?;
        if size == 0 {
            return Ok(()); // an empty list has no contents to query
        }
        ensure!(size <= 4000, "{name} is {size} bytes long: the suite looks at 4,000 at most");
        let (code, again, buffer) = self.ask(Some(size))?;
        same!(code, ur_result_t::SUCCESS, "{name} with a buffer of its size");
        same!(again, Some(size), "the size with a buffer and without");
        ensure!(buffer.is_untouched(size), "{name} writes behind its {size} bytes");
        self.means(&buffer, size)?;
        let (code, again, larger) = self.ask(Some(size + 64))?;
        same!(code, ur_result_t::SUCCESS, "{name} with a buffer larger than it");
        same!(again, Some(size), "the size with a buffer larger than it");
        ensure!(larger.is_untouched(size), "{name} writes behind its {size} bytes");
        let (code, _, small) = self.ask(Some(size - 1))?;
        // With a size of 0 another rule applies, which has the same code.
        same!(code, ur_result_t::ERROR_INVALID_SIZE, "{name} with a buffer one byte too small");
        ensure!(small.is_untouched(0), "{name} writes into a buffer that is too small");
        Ok(())
    }
    /// Intermediate code consists of characters, too, but is no string.
    fn is_string(&self) -> bool {
        let characters = Answer::Many(Type::Name("c_char".into()));
        self.variant.answer == Some(characters) && self.variant.c != "UR_PROGRAM_INFO_IL"
    }
    fn fits(&self, size: usize) -> Verdict {
        let (spec, name) = (Spec::get(), &self.variant.c);
        match &self.variant.answer {
            Some(Answer::One(ty)) => same!(size, spec.layout(ty).0, "the size of {name}"),
            Some(Answer::Many(ty)) => {
                let of = spec.layout(ty).0;
                ensure!(
                    size.is_multiple_of(of),
                    "{name}: {size} bytes are no whole number of {of}"
                );
                ensure!(!self.is_string() || size > 0, "{name} is a string without its final NUL");
            }
            None => {}
        }
        Ok(())
    }
    /// Checks what follows from the type of the value alone.
    fn means(&self, buffer: &Area, size: usize) -> Verdict {
        let (spec, name) = (Spec::get(), &self.variant.c);
        let (of, many) = match &self.variant.answer {
            Some(Answer::One(ty)) => (ty, false),
            Some(Answer::Many(ty)) => (ty, true),
            None => return Ok(()),
        };
        let Type::Name(of_name) = of else { return Ok(()) };
        if self.is_string() {
            let bytes = buffer.peek(0, size);
            let end = bytes.iter().position(|byte| *byte == 0);
            same!(end, Some(size - 1), "where the string of {name} ends");
            ensure!(std::str::from_utf8(&bytes).is_ok(), "{name} is no UTF-8");
            return Ok(());
        }
        let step = spec.layout(of).0.max(1);
        for at in (0..size).step_by(step) {
            let value = buffer.number(at, step);
            if of_name == "Bool" {
                ensure!(value < 2, "{name} is {value}, and a truth is 0 or 1");
            } else if let Some(one) = spec.enumeration(of_name) {
                let known = one.variants.iter().fold(0, |all, v| all | u64::from(v.value));
                let is_known = match one.flags {
                    true => value & !known == 0,
                    // A partition property of 0 ends the list or means that there are none.
                    false => {
                        one.variants.iter().any(|v| u64::from(v.value) == value)
                            || many && value == 0
                    }
                };
                ensure!(is_known, "{name} is {value:#x}, which {of_name} has not");
            }
        }
        Ok(())
    }
}
