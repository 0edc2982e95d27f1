//! `causeway share`: loads a file into device memory and prints a ticket for it, until the user ends it or,
//! with `--once`, a consumer has taken it.
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
    io::{self, Read, Write},
    path::Path,
};

/// Loads the file, prints the ticket, and waits for the end.
pub fn run(args: &args::Share) -> Result<()> {
    let source = Source::open(&args.file)?;
    let context = devices::context_on(args.on)?;
    let (queue, stop) = (Queue::new(&context)?, Stop::new()?);
    let (contents, name) = source.load(&queue, &stop)?;

    let export = contents.share()?;
    let length = contents.len() as u64;
    let card = if args.once { Some(Card::new(&queue, length)?) } else { None };
    let card_export = card.as_ref().map(Card::share).transpose()?;
    let texts = Texts {
        contents: export.ticket().clone(),
        card: card_export.as_ref().map(|export| export.ticket().clone()),
    };
    print(&texts)?;
    let until = if args.once { "until it is taken once, or Ctrl-C" } else { "until Ctrl-C" };
    let (size, device) = (units::bytes(length), context.device().name()?);
    say(&format!("sharing {name} ({size}) in the memory of {} {until}", device.trim()));
    let taken = stop.wait_or(|| match &card {
        Some(card) => card.is_taken(&queue),
        None => Ok(false),
    })?;
    let what = if taken { "was taken" } else { "is withdrawn" };
    say(&format!("{name} {what}: the ticket opens nothing any more"));
    Ok(())
}

/// The data to share.
enum Source {
    /// A file whose length is known.
    File { file: File, length: usize, name: String },
    /// A pipe, a socket, a device or a file of /proc, which is read to its end.
    Stream { from: Box<dyn Read>, name: String },
}
impl Source {
    fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            let (from, name) = (Box::new(io::stdin()), "standard input".to_owned());
            return Ok(Self::Stream { from, name });
        }
        let name = path.display().to_string();
        let file =
            File::open(path).map_err(|error| Failure::system(format!("open {name}"), &error))?;
        let about =
            file.metadata().map_err(|error| Failure::system(format!("look at {name}"), &error))?;
        if about.is_dir() {
            let sentence =
                format!("{name} is a directory: share a file, or `tar` it and share `-`");
            return Err(Failure::said(sentence));
        }
        if !about.is_file() {
            return Ok(Self::Stream { from: Box::new(file), name });
        }
        match usize::try_from(about.len()) {
            // An empty file, or a file of /proc, which reports length 0 although it has contents.
            Ok(0) => Ok(Self::Stream { from: Box::new(file), name }),
            Ok(length) => Ok(Self::File { file, length, name }),
            Err(_) => {
                let size = units::bytes(about.len());
                Err(Failure::said(format!("{name} ({size}) is too large for this machine")))
            }
        }
    }
    /// Copies the data into device memory.
    fn load(self, queue: &Queue, stop: &Stop) -> Result<(Buffer<u8>, String)> {
        let allocate = |length: usize, name: &str| {
            let size = units::bytes(length as u64);
            Buffer::<u8>::new(queue.context(), length)
                .map_err(|error| Failure::said(format!("no room for {name} ({size}): {error}")))
        };
        match self {
            Self::File { file, length, name } => {
                let contents = allocate(length, &name)?;
                transfer::load(queue, file, &contents, &name, stop)?;
                Ok((contents, name))
            }
            Self::Stream { from, name } => {
                // Its length is only known at its end. The data is in memory twice: as it was read, and where
                // it is shared.
                let most = queue.context().device().info()?.max_allocation / 2;
                let all = read_all(from, &name, most, stop)?;
                if all.is_empty() {
                    return Err(nothing(&name));
                }
                let contents = allocate(all.len(), &name)?;
                transfer::load(queue, all.as_slice(), &contents, &name, stop)?;
                Ok((contents, name))
            }
        }
    }
}
fn nothing(name: &str) -> Failure {
    Failure::said(format!("{name} is empty: there is nothing to share"))
}
/// Reads at most `most` bytes, so that an endless source is refused before memory is full.
fn read_all(mut from: impl Read, name: &str, most: u64, stop: &Stop) -> Result<Vec<u8>> {
    let (mut all, mut piece) = (Vec::new(), vec![0; 1 << 20]);
    loop {
        stop.check()?;
        all.try_reserve(piece.len()).map_err(|_| {
            let read = units::bytes(all.len() as u64);
            Failure::said(format!("no room for more than {read} of {name}: memory is short, or the limit on it (`ulimit -v`)"))
        })?;
        if all.len() as u64 > most {
            let most = units::bytes(most);
            return Err(Failure::said(format!(
                "{name} does not end within {most}, half of what the device allocates at once: share a part of it, as `head -c` gives"
            )));
        }
        match from.read(&mut piece) {
            Ok(0) => return Ok(all),
            Ok(read) => all.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::system(format!("read {name}"), &error)),
        }
    }
}

/// Prints the ticket, alone on standard output.
fn print(texts: &Texts) -> Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{texts}")
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::stdout(&error))
}

/// Prints information beside the ticket; a failure to write it is ignored.
fn say(words: &str) {
    let _ = writeln!(anstream::stderr(), "{words}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_at_the_most_that_is_read() {
        let stop = Stop::new().unwrap();
        let refused = read_all(io::repeat(0), "zeros", 3 << 20, &stop);
        let Err(Failure::Said(sentence)) = refused else { panic!("{refused:?}") };
        assert!(sentence.contains("zeros does not end within"), "{sentence}");
        let whole = read_all(io::repeat(7).take(3 << 20), "sevens", 3 << 20, &stop).unwrap();
        assert_eq!(whole.len(), 3 << 20);
    }
}
