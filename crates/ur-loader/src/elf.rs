//! What is wrong with a file that calls itself an adapter, said before it is opened: the dynamic
//! linker says of one for another machine that it is not there, and crashes on one that was cut off.
use std::{
    fs::OpenOptions,
    io::ErrorKind,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

/// Where things are in the header of a 64-bit file.
const MACHINE: usize = 18;
const SEGMENTS_AT: usize = 32;
const SEGMENT_SIZE: usize = 54;
const SEGMENT_COUNT: usize = 56;
const HEADER: usize = 64;
/// And in what describes a segment.
const KIND: usize = 0;
const OFFSET: usize = 8;
const FILE_SIZE: usize = 32;
const SEGMENT: usize = 56;
/// The kind of segment that is mapped.
const LOAD: u64 = 1;

/// What is wrong with the file, if it can be told without opening it as a library.
pub(crate) fn diagnose(path: &Path) -> Option<String> {
    match judge(path) {
        Ok(wrong) => wrong,
        Err(error) => Some(format!("it cannot be read: {error}")),
    }
}
fn judge(path: &Path) -> std::io::Result<Option<String>> {
    // A pipe would have this wait for who writes into it.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let kind = file.metadata()?;
    if !kind.is_file() {
        let what = if kind.is_dir() { "a folder" } else { "a pipe or a device" };
        return Ok(Some(format!("it is {what}")));
    }
    let mut header = [0; HEADER];
    if !whole(file.read_exact_at(&mut header, 0))? {
        return Ok(Some("it is too short to be a shared object".to_string()));
    }
    if !header.starts_with(b"\x7fELF") {
        return Ok(Some("it is not a shared object".to_string()));
    }
    let (class, machine) = (header[4], number(&header, MACHINE, 2));
    let Some(ours) = own_machine() else { return Ok(None) };
    if ours != (class, machine) {
        let other = format!("it is for another machine (ELF class {class}, machine {machine})");
        return Ok(Some(other));
    }
    // Segments of another size are another format's, of which the linker says so.
    if number(&header, SEGMENT_SIZE, 2) != SEGMENT as u64 {
        return Ok(None);
    }
    let length = kind.len();
    let mut table = vec![0; number(&header, SEGMENT_COUNT, 2) as usize * SEGMENT];
    let there = whole(file.read_exact_at(&mut table, number(&header, SEGMENTS_AT, 8)))?;
    let fits = |segment: &[u8]| {
        let end = number(segment, OFFSET, 8).checked_add(number(segment, FILE_SIZE, 8));
        number(segment, KIND, 4) != LOAD || end.is_some_and(|end| end <= length)
    };
    if there && table.chunks_exact(SEGMENT).all(fits) {
        return Ok(None);
    }
    Ok(Some("it is cut off: its contents end before they should".to_string()))
}
/// Whether as much could be read as was to be.
fn whole(read: std::io::Result<()>) -> std::io::Result<bool> {
    match read {
        Ok(()) => Ok(true),
        // An offset that no file has is past the end of this one.
        Err(e) if matches!(e.kind(), ErrorKind::UnexpectedEof | ErrorKind::InvalidInput) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
/// So many bytes from there on, least first, as on every machine of `own_machine`.
fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}
/// The ELF class and machine of this program, where they are known.
fn own_machine() -> Option<(u8, u64)> {
    match std::env::consts::ARCH {
        "x86_64" => Some((2, 62)),
        "aarch64" => Some((2, 183)),
        "riscv64" => Some((2, 243)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shared object that is whole, as this test's own program is one.
    fn whole() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }
    /// How much of it is mapped: behind that, only debuggers miss something.
    fn mapped(whole: &[u8]) -> usize {
        let (at, count) = (number(whole, SEGMENTS_AT, 8), number(whole, SEGMENT_COUNT, 2));
        let table = &whole[at as usize..][..count as usize * SEGMENT];
        let loaded = table.chunks_exact(SEGMENT).filter(|one| number(one, KIND, 4) == LOAD);
        let ends = loaded.map(|one| number(one, OFFSET, 8) + number(one, FILE_SIZE, 8));
        ends.max().unwrap() as usize
    }
    fn said(name: &str, bytes: &[u8]) -> Option<String> {
        let path = std::env::temp_dir().join(format!("ur-loader-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let said = diagnose(&path);
        std::fs::remove_file(&path).unwrap();
        said
    }
    #[test]
    fn a_whole_file_of_this_machine_is_not_complained_of() {
        assert_eq!(said("whole", &whole()), None);
    }
    #[test]
    fn a_file_that_was_cut_off_anywhere_is_told_before_the_linker_reads_it() {
        let whole = whole();
        for length in [65, 100, 5000, mapped(&whole) - 1] {
            let cut = said("cut", &whole[..length]);
            assert!(cut.is_some_and(|said| said.contains("cut off")), "at {length}");
        }
        assert!(said("short", &whole[..63]).unwrap().contains("too short"));
        assert!(said("empty", &[]).unwrap().contains("too short"));
    }
    #[test]
    fn a_file_of_another_machine_a_text_and_a_folder_are_each_told_apart() {
        let mut other = whole();
        other[MACHINE] ^= 0xff;
        assert!(said("other", &other).unwrap().contains("another machine"));
        let mut other = whole();
        other[4] = 1;
        assert!(said("narrow", &other).unwrap().contains("ELF class 1"));
        assert!(said("text", &[b'a'; 200]).unwrap().contains("not a shared object"));
        assert!(diagnose(&std::env::temp_dir()).unwrap().contains("folder"));
        assert!(diagnose(Path::new("/dev/zero")).unwrap().contains("device"));
    }
    #[test]
    fn a_pipe_that_nobody_writes_into_is_told_of_and_not_waited_for() {
        let path = std::env::temp_dir().join(format!("ur-loader-pipe-{}", std::process::id()));
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        let said = diagnose(&path);
        std::fs::remove_file(&path).unwrap();
        assert!(said.unwrap().contains("pipe"));
    }
    #[test]
    fn headers_full_of_garbage_are_answered_and_nothing_else() {
        let whole = whole();
        for at in SEGMENTS_AT..HEADER {
            let mut garbage = whole.clone();
            garbage[at] = 0xff;
            said("garbage", &garbage);
        }
    }
}
