//! `causeway share`: a file in device memory, and a ticket for it, until somebody has had enough.
use crate::{
    args,
    card::{Card, Texts},
    devices,
    failure::{Failure, Result},
    stop::Stop,
    transfer, units,
};
use causeway::{Buffer, Queue};
use std::{
    fs::File,
    io::{self, Write},
};

/// Loads the file, prints the ticket, and waits.
pub fn run(args: &args::Share) -> Result<()> {
    let (file, length) = open_file(args)?;
    let name = args.file.display().to_string();
    let context = devices::context_on(args.on)?;
    let (queue, stop) = (Queue::new(&context)?, Stop::new()?);
    let contents = Buffer::<u8>::new(&context, length)?;
    transfer::load(&queue, file, &contents, &name, &stop)?;

    let export = contents.share()?;
    let card = if args.once { Some(Card::new(&queue, length as u64)?) } else { None };
    let card_export = card.as_ref().map(Card::share).transpose()?;
    let texts = Texts {
        contents: export.ticket().clone(),
        card: card_export.as_ref().map(|export| export.ticket().clone()),
    };
    print(&texts)?;
    let until = if args.once { "until it is taken once, or Ctrl-C" } else { "until Ctrl-C" };
    let (size, device) = (units::bytes(length as u64), context.device().name()?);
    say(&format!("sharing {name} ({size}) in the memory of {} {until}", device.trim()));
    let taken = stop.wait_or(|| match &card {
        Some(card) => card.is_taken(&queue),
        None => Ok(false),
    })?;
    say(if taken {
        "it was taken; the ticket opens nothing any more"
    } else {
        "the ticket opens nothing any more"
    });
    Ok(())
}

fn open_file(args: &args::Share) -> Result<(File, usize)> {
    let name = args.file.display();
    let file =
        File::open(&args.file).map_err(|error| Failure::system(format!("open {name}"), &error))?;
    let about =
        file.metadata().map_err(|error| Failure::system(format!("look at {name}"), &error))?;
    if !about.is_file() {
        return Err(Failure::said(format!(
            "{name} is not a regular file: copy what it gives into one, so that its length is known"
        )));
    }
    match usize::try_from(about.len()) {
        Ok(0) => Err(Failure::said(format!("{name} is empty: there is nothing to share"))),
        Ok(length) => Ok((file, length)),
        Err(_) => Err(Failure::said(format!("{name} is too large for the memory of this machine"))),
    }
}

/// The ticket, alone on standard output.
fn print(texts: &Texts) -> Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{texts}")
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::stdout(&error))
}

/// Words beside the ticket. Nobody may be listening, which is no failure.
fn say(words: &str) {
    let _ = writeln!(anstream::stderr(), "{words}");
}
