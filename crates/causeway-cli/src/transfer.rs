//! Long copies between the host and device memory: in pieces, where one piece is copied while another is
//! processed.
use crate::{
    failure::{Failure, Result},
    stop::Stop,
};
use causeway::{Buffer, Queue};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{
    collections::VecDeque,
    io::{self, IsTerminal, Read},
};

/// The size of a piece: large enough that the cost per piece is negligible, small enough that several fit in
/// memory.
pub const PIECE: usize = 8 << 20;
/// Copies of at least this size show a progress bar.
const LONG: u64 = 64 << 20;

/// Allocates `length` bytes of host memory, all 0.
pub fn room(length: usize) -> Result<Vec<u8>> {
    let mut room = Vec::new();
    room.try_reserve_exact(length).map_err(|_| {
        Failure::said(format!(
            "the host has no room for {length} bytes: memory is short, or the limit on it (`ulimit -v`)"
        ))
    })?;
    room.resize(length, 0);
    Ok(room)
}

/// Returns a progress bar, which is hidden for short copies and if standard error is no terminal.
pub fn progress(length: u64) -> ProgressBar {
    if length < LONG || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
    let template = "{bar:40} {bytes}/{total_bytes}  {binary_bytes_per_sec}  {eta} left";
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar, // the default look does as well
    }
}

/// Fills `to` with data from `from`; `named` is its name in messages.
pub fn load(
    queue: &Queue,
    mut from: impl Read,
    to: &Buffer<u8>,
    named: &str,
    stop: &Stop,
) -> Result<()> {
    let (bar, mut under_way, mut at) = (progress(to.len() as u64), VecDeque::new(), 0);
    while at < to.len() {
        stop.check()?;
        let mut piece = room(PIECE.min(to.len() - at))?;
        from.read_exact(&mut piece).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Failure::said(format!(
                "{named} became shorter while it was read: share it when nothing writes it"
            )),
            _ => Failure::system(format!("read {named}"), &error),
        })?;
        let end = at + piece.len();
        under_way.push_back(queue.upload(piece, &to.slice(at..end)?)?);
        if under_way.len() > 2
            && let Some(oldest) = under_way.pop_front()
        {
            oldest.wait()?;
        }
        at = end;
        bar.set_position(at as u64);
    }
    queue.finish()?;
    bar.finish_and_clear();
    Ok(())
}

/// Passes the contents of `from` to `work`, piece by piece.
pub fn unload(
    queue: &Queue,
    from: &Buffer<u8>,
    stop: &Stop,
    mut work: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let (bar, mut under_way, mut at) = (progress(from.len() as u64), VecDeque::new(), 0);
    while at < from.len() || !under_way.is_empty() {
        stop.check()?;
        while under_way.len() < 2 && at < from.len() {
            let end = from.len().min(at + PIECE);
            under_way.push_back(queue.download(&from.slice(at..end)?)?);
            at = end;
        }
        if let Some(oldest) = under_way.pop_front() {
            let piece = oldest.wait()?;
            work(&piece)?;
            bar.inc(piece.len() as u64);
        }
    }
    bar.finish_and_clear();
    Ok(())
}
