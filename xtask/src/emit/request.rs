//! Generates `crates/ur-adapter/src/api/request.rs`: the requests to queues and command buffers, with one
//! variant for each command of the specification, whichever entry makes it; and the default methods of the
//! entries, which make the requests.
use super::{
    NOTICE, Output, doc, rustfmt,
    shape::{self, Arg, Shape},
};
use crate::{
    model::{Entry, Spec},
    names,
};
use std::fmt::Write;

/// How an entry describes a command.
struct Said {
    /// The names, and the types in `Request`.
    fields: Vec<(String, String)>,
    /// The expressions that compute the fields from the entry's arguments.
    values: Vec<String>,
}
/// Whether the entry records its command instead of enqueueing it.
fn appends(args: &[Arg<'_>]) -> bool {
    matches!(&args[0].shape, Shape::Handle { kind } if kind == "ExpCommandBuffer")
}
/// Whether an argument says how the command is to be run, and not what it does.
fn is_beside(arg: &Arg<'_>) -> bool {
    let name = &arg.param.name;
    match &arg.shape {
        Shape::Handle { kind } => kind == "Queue" || kind == "ExpCommandBuffer",
        Shape::Bool => name.starts_with("blocking"),
        Shape::Data { .. } => name == "sync_point_wait_list",
        Shape::WaitList { .. } => true,
        _ => false,
    }
}
fn said(spec: &Spec, entry: &Entry) -> Said {
    let args = shape::of(spec, entry);
    let mut said = Said { fields: vec![], values: vec![] };
    for arg in args.iter().filter(|arg| !is_beside(arg)) {
        if matches!(arg.shape, Shape::OutHandle { .. } | Shape::OutValue { .. }) {
            continue;
        }
        let Some((name, ty)) = shape::parameter(spec, entry, arg) else { continue };
        said.values.push(match ty.as_str() {
            "UsmPtr" => format!("{name}.into()"),
            _ => name.clone(),
        });
        let ty = ty.replace("UsmPtr", "Address").replace("'_", "'a").replace("Self::", "A::");
        said.fields.push((name, ty.replace("&", "&'a ")));
    }
    said
}
/// Returns the entries for the command `word`: the one that enqueues it, and the one that records it, if any.
fn pair<'s>(spec: &'s Spec, word: &str) -> Result<(&'s Entry, Option<&'s Entry>), String> {
    let all = spec.entries().filter(|entry| entry.command.as_deref() == Some(word));
    let (append, enqueue): (Vec<_>, Vec<_>) =
        all.partition(|entry| appends(&shape::of(spec, entry)));
    match (enqueue.as_slice(), append.as_slice()) {
        ([enqueue], []) => Ok((enqueue, None)),
        ([enqueue], [append]) => {
            let types = |entry| said(spec, entry).fields.into_iter().map(|(_, ty)| ty);
            match types(enqueue).eq(types(append)) {
                true => Ok((enqueue, Some(append))),
                false => {
                    Err(format!("{} and {} ask for different things", enqueue.name, append.name))
                }
            }
        }
        _ => Err(format!("{word} is not enqueued by one entry and recorded by one at most")),
    }
}

/// Generates the file.
pub fn file(spec: &Spec) -> Result<Output, String> {
    let mut words: Vec<&str> = vec![];
    for word in spec.entries().filter_map(|entry| entry.command.as_deref()) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    let (mut variants, mut entries) = (String::new(), String::new());
    for word in words {
        let (enqueue, append) = pair(spec, word)?;
        let fields = said(spec, enqueue).fields;
        let fields: Vec<_> = fields.iter().map(|(name, ty)| format!("{name}: {ty},")).collect();
        let (body, rest) = match fields.as_slice() {
            [] => (String::new(), ""),
            _ => (format!(" {{ {} }}", fields.concat()), " { .. }"),
        };
        let _ = writeln!(variants, "{}    {word}{body},", doc(&enqueue.doc, "    "));
        let append = append.unwrap_or(enqueue);
        let _ = writeln!(entries, "Self::{word}{rest} => ({:?}, {:?}),", enqueue.name, append.name);
    }
    let mut uses = String::new();
    for (word, path) in [
        ("Address", "ur_hal::Address"),
        ("A::", "super::Objects"),
        ("Borrowed<", "crate::object::Borrowed"),
        ("CStr", "std::ffi::CStr"),
        ("HostFunction", "crate::callback::HostFunction"),
        ("HostBytes<", "crate::memory::HostBytes"),
        ("ur_", "ur_sys::*"),
    ] {
        if variants.contains(word) {
            let _ = writeln!(uses, "use {path};");
        }
    }
    let text = format!(
        "{NOTICE}//! The requests to queues and command buffers.\n{uses}\n\
         /// A command as an entry requests it, whether it is enqueued or recorded.\n\
         #[derive(Debug)]\n\
         #[expect(missing_docs, reason = \"fields are called as the parameters are\")]\n\
         pub enum Request<'a, A: Objects> {{\n{variants}}}\n\
         impl<A: Objects> Clone for Request<'_, A> {{\n    fn clone(&self) -> Self {{\n        *self\n    }}\n}}\n\
         impl<A: Objects> Copy for Request<'_, A> {{}}\n\
         impl<A: Objects> Request<'_, A> {{\n    /// The entry that enqueues it, and the one that records it, if there is one.\n    \
         pub const fn entries(&self) -> (&'static str, &'static str) {{ match self {{\n{entries}}} }}\n}}\n"
    );
    let path = "crates/ur-adapter/src/api/request.rs".into();
    Ok(Output { path, text: rustfmt(&text)? })
}

/// Returns the body of an entry's method that makes a request from its arguments; `None` if the entry has no
/// command.
pub fn asked(spec: &Spec, entry: &Entry) -> Option<String> {
    let word = entry.command.as_deref()?;
    let (enqueue, _) = pair(spec, word).ok()?;
    let args = shape::of(spec, entry);
    let names = said(spec, enqueue).fields.into_iter().map(|(name, _)| name);
    let values: Vec<_> = names
        .zip(said(spec, entry).values)
        .map(
            |(name, value)| {
                if name == value { format!("{name},") } else { format!("{name}: {value},") }
            },
        )
        .collect();
    let request = match values.as_slice() {
        [] => format!("Request::{word}"),
        _ => format!("Request::{word} {{ {} }}", values.concat()),
    };
    let name = |is: &dyn Fn(&Arg<'_>) -> bool| {
        args.iter().find(|arg| is(arg)).map(|arg| names::escape(&arg.param.name))
    };
    let target = names::escape(&args[0].param.name);
    let events = name(&|arg| matches!(arg.shape, Shape::WaitList { .. })).unwrap_or("&[]".into());
    if appends(&args) {
        return Some(format!(
            "        let asked = Asked {{ points: sync_point_wait_list, events: {events}, event: want_event, \
             command: want_command }};\n        Self::append({target}, {request}, asked)\n"
        ));
    }
    let is_out = |arg: &Arg<'_>| matches!(arg.shape, Shape::OutHandle { .. });
    let is_free = args.iter().any(|arg| is_out(arg) && arg.param.optional);
    let want = if is_free { "want_event" } else { "true" };
    let report = match name(&|arg| is_beside(arg) && matches!(arg.shape, Shape::Bool)) {
        Some(blocking) => format!("CompletionRequest::of({blocking}, {want})"),
        None => format!("CompletionRequest::event({want})"),
    };
    let call = format!("Self::enqueue({target}, {request}, {events}, {report})");
    Some(match is_free {
        true => format!("        {call}\n"),
        false => format!("        Ok({call}?.expect(\"an event that is asked for is made\"))\n"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse, root};

    #[test]
    fn what_is_enqueued_and_what_is_recorded_are_one_request_or_none() {
        let mut spec = parse::spec(&root().join("spec")).unwrap();
        let (enqueue, append) = pair(&spec, "UsmCopy").unwrap();
        assert_eq!(enqueue.name, "urEnqueueUSMMemcpy");
        let append = append.unwrap().name.clone();
        assert_eq!(append, "urCommandBufferAppendUSMMemcpyExp");
        assert!(file(&spec).unwrap().text.contains("UsmCopy { dst: Address"));
        let entries = spec.tables.iter_mut().flat_map(|table| &mut table.entries);
        let entry = entries.into_iter().find(|entry| entry.name == append).unwrap();
        entry.params.retain(|param| param.name != "size");
        assert!(file(&spec).is_err_and(|why| why.contains("different things")));
    }
}
