//! What sharing and opening cost in Rust, block by block on request: the other half of
//! `crates/causeway-python/benches/calls.py`.
//!
//!     calls export [BACKEND]             prints a ticket of memory, and keeps it until its input ends
//!     calls measure [BACKEND] TICKET     for each line `share N`, `open N` or `text N` on its input: prints the nanoseconds of one call
use causeway::{Backend, Buffer, Context, Device, Result, Ticket};
use std::{io::stdin, time::Instant};

fn main() -> Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let backend = arguments.get(1).and_then(|name| name.parse::<Backend>().ok());
    if backend.is_some() {
        arguments.remove(1);
    }
    let device = backend.map_or_else(Device::first, Device::first_with)?;
    let context = Context::new(&device)?;
    let buffer = Buffer::<u8>::new(&context, 4096)?;
    let kept = buffer.share()?; // keeps the process reachable, like one that shares more than once
    let Some(text) = arguments.get(1) else {
        println!("{}", kept.ticket());
        stdin().lines().for_each(drop);
        return Ok(());
    };
    let ticket: Ticket<Buffer<u8>> = text.parse()?;
    let opened = context.open(&ticket)?; // so that what is measured is opening something that is already open
    for line in stdin().lines().map_while(std::io::Result::ok) {
        let (what, count) = line.split_once(' ').unwrap_or_default();
        let count: u32 = count.parse().unwrap_or(1);
        let begun = Instant::now();
        for _ in 0..count {
            match what {
                "share" => drop(buffer.share()?),
                "open" => drop(context.open(&ticket)?),
                _ => drop(context.open(&text.parse::<Ticket<Buffer<u8>>>()?)?),
            }
        }
        println!("{}", begun.elapsed().as_nanos() / u128::from(count));
    }
    drop(opened);
    Ok(())
}
