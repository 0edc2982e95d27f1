//! Test data: a different pattern for each seed, written and read in pieces, and hashed.
use crate::{failure::Result, stop::Stop, transfer};
use causeway::{Buffer, Queue};
use sha2::{Digest, Sha256};
use std::{
    hash::{BuildHasher, RandomState},
    time::{Duration, Instant},
};

/// Mixes the bits of `value` so that neighbouring values have nothing in common (splitmix64).
pub fn stir(value: u64) -> u64 {
    let value = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// Returns a random seed.
pub fn seed() -> u64 {
    // The standard library draws the keys of hash maps from the system's random numbers.
    RandomState::new().hash_one(0)
}

/// Returns the hash of the first `length` bytes of the pattern of `seed`.
pub fn hash(length: usize, seed: u64) -> Result<String> {
    let mut hash = Sha256::new();
    for at in (0..length).step_by(transfer::PIECE) {
        hash.update(piece(at, length.min(at + transfer::PIECE), seed)?);
    }
    Ok(hex::encode(hash.finalize()))
}
/// The bytes of the pattern of `seed` from `at` to `end`.
fn piece(at: usize, end: usize, seed: u64) -> Result<Vec<u8>> {
    let mut piece = transfer::room(end - at)?;
    for (word, at) in piece.chunks_mut(8).zip((at..).step_by(8)) {
        word.copy_from_slice(&stir(seed ^ at as u64).to_le_bytes()[..word.len()]);
    }
    Ok(piece)
}

/// Fills `to` with the pattern of `seed`; returns the hash of what was written.
pub fn write(queue: &Queue, to: &Buffer<u8>, seed: u64) -> Result<String> {
    let (mut hash, mut at) = (Sha256::new(), 0);
    while at < to.len() {
        let end = to.len().min(at + transfer::PIECE);
        let piece = piece(at, end, seed)?;
        hash.update(&piece);
        queue.upload(piece, &to.slice(at..end)?)?;
        at = end;
    }
    queue.finish()?;
    Ok(hex::encode(hash.finalize()))
}

/// Reads all of `from`; returns its hash, and how long the copies alone took.
pub fn read(queue: &Queue, from: &Buffer<u8>, stop: &Stop) -> Result<(String, Duration)> {
    let (mut hash, mut copying, mut at) = (Sha256::new(), Duration::ZERO, 0);
    let mut piece = transfer::room(transfer::PIECE.min(from.len()))?;
    while at < from.len() {
        stop.check()?;
        let end = from.len().min(at + transfer::PIECE);
        let (source, piece) = (from.slice(at..end)?, &mut piece[..end - at]);
        let begun = Instant::now();
        source.copy_to_slice(queue, piece)?;
        copying += begun.elapsed();
        hash.update(piece);
        at = end;
    }
    Ok((hex::encode(hash.finalize()), copying))
}
