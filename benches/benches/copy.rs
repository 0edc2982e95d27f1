//! Measures a queue beside plain memcpy: a small copy that is enqueued and waited for, and the bandwidth of a
//! large one.
use causeway::{Buffer, Context, Device, Queue};
use causeway_benches::*;
use std::{
    hint::black_box,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

const SMALL: usize = 1 << 10;
const LARGE: usize = 1 << 30;
/// Small copies in one block.
const MANY: u32 = 1_000;

fn main() -> Result<()> {
    let context = Context::new(&Device::first()?)?;
    let queue = Queue::new(&context)?;
    small(&context, &queue)?;
    large(&context, &queue)
}

fn small(context: &Context, queue: &Queue) -> Result<()> {
    let (from, to) = (Buffer::<u8>::new(context, SMALL)?, Buffer::<u8>::new(context, SMALL)?);
    from.fill(queue, 7)?;
    let ours = || -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..MANY {
            queue.copy(&from, &to)?.wait()?;
        }
        Ok(start.elapsed())
    };
    let (source, mut target) = (vec![7u8; SMALL], vec![0u8; SMALL]);
    let bare = || -> Result<Duration> {
        let start = Instant::now();
        for _ in 0..MANY {
            black_box(&mut target[..]).copy_from_slice(black_box(&source));
        }
        Ok(start.elapsed())
    };
    let c = Comparison::of("1 KiB copy, enqueued and waited for", BLOCKS, ours, bare)?;
    let hand_over = thread_hand_over()?;
    println!(
        "{}: {:.3?}; bare memcpy {:.3?}; a bare hand-over to a thread and back {:.3?}; control {:.2}",
        c.what,
        c.ours / MANY,
        c.bare / MANY,
        hand_over / MANY,
        c.control
    );
    Ok(())
}
/// Times a hand-over to a thread and back, which is the least that any asynchronous queue costs.
fn thread_hand_over() -> Result<Duration> {
    let (give, given) = mpsc::sync_channel::<()>(1);
    let (say, said) = mpsc::sync_channel::<()>(1);
    let worker = thread::spawn(move || while given.recv().is_ok() && say.send(()).is_ok() {});
    let mut times = Vec::new();
    for _ in 0..BLOCKS {
        let start = Instant::now();
        for _ in 0..MANY {
            give.send(())?;
            said.recv()?;
        }
        times.push(start.elapsed());
    }
    drop(give);
    worker.join().map_err(|_| "the worker panicked")?;
    Ok(median(&mut times))
}

fn large(context: &Context, queue: &Queue) -> Result<()> {
    let (from, to) = (Buffer::<u8>::new(context, LARGE)?, Buffer::<u8>::new(context, LARGE)?);
    from.fill(queue, 7)?;
    to.fill(queue, 1)?;
    let (source, mut target) = (vec![7u8; LARGE], vec![1u8; LARGE]);
    let threads = best_threads(&source, &mut target);
    let c = Comparison::of(
        "1 GiB copy",
        11,
        || {
            let start = Instant::now();
            queue.copy(&from, &to)?.wait()?;
            Ok(start.elapsed())
        },
        || Ok(memcpy(&source, &mut target, threads)),
    )?;
    let rate = |t: Duration| LARGE as f64 / t.as_secs_f64() / 1e9;
    println!(
        "{}: {:.2} GB/s; memcpy on {threads} threads {:.2} GB/s; share {:.2} (at least 0.9), control {:.2}",
        c.what,
        rate(c.ours),
        rate(c.bare),
        1.0 / c.ratio(),
        c.control
    );
    Ok(())
}
fn memcpy(source: &[u8], target: &mut [u8], threads: usize) -> Duration {
    let piece = source.len().div_ceil(threads);
    let start = Instant::now();
    thread::scope(|scope| {
        for (to, from) in target.chunks_mut(piece).zip(source.chunks(piece)) {
            scope.spawn(move || to.copy_from_slice(from));
        }
    });
    start.elapsed()
}
/// Returns the number of threads that copies fastest here.
fn best_threads(source: &[u8], target: &mut [u8]) -> usize {
    let median_of = |n, target: &mut [u8]| {
        let mut times: Vec<_> = (0..3).map(|_| memcpy(source, target, n)).collect();
        median(&mut times)
    };
    (1..=processors()).min_by_key(|&n| median_of(n, target)).unwrap_or(1)
}
