//! `causeway open`: opens what another process shares, and writes or hashes it.
use crate::{
    args,
    card::{Card, Texts},
    devices,
    failure::{Failure, Result},
    output::Output,
    stop::Stop,
    transfer, units,
};
use causeway::Queue;
use sha2::{Digest, Sha256};
use std::{
    io::{self, BufRead as _, Read as _, Write},
    path::Path,
    time::Instant,
};

/// The largest number of bytes that are read as a ticket: more than any has.
const LONGEST: u64 = 64 << 10;

/// Opens the ticket and copies out the whole contents.
pub fn run(args: &args::Open) -> Result<()> {
    one_thing_on_stdout(args)?;
    let texts = Texts::parse(&ticket(&args.ticket)?)?;
    let context = devices::context_on(args.on)?;
    let (queue, stop) = (Queue::new(&context)?, Stop::new()?);

    let begun = Instant::now();
    let contents = context.open(&texts.contents)?; // verifies the length
    let opened = begun.elapsed();
    let length = contents.len() as u64;
    let card =
        texts.card.map(|ticket| Card::open(&context, &queue, &ticket, length)).transpose()?;

    let mut hash = (args.hash || args.output.is_none()).then(Sha256::new);
    let mut output = args.output.as_deref().map(Output::create).transpose()?;
    let (begun, mut copied) = (Instant::now(), 0);
    transfer::unload(&queue, &contents, &stop, |piece| {
        copied += piece.len() as u64;
        if let Some(hash) = &mut hash {
            hash.update(piece);
        }
        output.as_mut().map_or(Ok(()), |output| output.write(piece))
    })?;
    let took = begun.elapsed();
    if copied != length {
        return Err(Failure::said(format!("only {copied} of {length} bytes were copied")));
    }
    output.map_or(Ok(()), Output::finish)?;
    if let Some(hash) = hash {
        print_hash(&hex::encode(hash.finalize()))?;
    }
    if let Some(card) = card {
        card.take(&queue)?;
    }
    let (size, rate) = (units::bytes(length), units::rate(length, took));
    let (opened, took) = (units::duration(opened), units::duration(took));
    let (name, work) = match (&args.output, args.hash) {
        (None, _) => (String::new(), "copied and hashed"),
        (Some(path), hash) => {
            let name = format!("{}: ", path.display());
            (name, if hash { "copied, hashed and written" } else { "copied and written" })
        }
    };
    // Information beside the result: a failure to write it is ignored.
    let _ =
        writeln!(anstream::stderr(), "{name}{size}, opened in {opened}, {work} in {took} ({rate})");
    Ok(())
}

fn one_thing_on_stdout(args: &args::Open) -> Result<()> {
    if args.hash && args.output.as_deref() == Some(Path::new("-")) {
        return Err(Failure::said(
            "standard output has room for the contents or the hash: leave out one of `-o -` and --hash",
        ));
    }
    Ok(())
}

/// Returns the ticket from the command line, or from the first line of standard input.
fn ticket(given: &str) -> Result<String> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut line = String::new();
    let read = io::stdin().lock().take(LONGEST).read_line(&mut line);
    read.map_err(|error| Failure::system("read a ticket from standard input", &error))?;
    if line.trim().is_empty() {
        return Err(Failure::said(
            "standard input ended before a ticket came: pipe one in, or give it as an argument",
        ));
    }
    Ok(line)
}

fn print_hash(hash: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{hash}")
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::stdout(&error))
}
