//! Finds out what is wrong with an adapter's file before it is opened, because the dynamic linker's behaviour
//! does not tell: for a file of another architecture it reports that the file does not exist, and it crashes
//! on a truncated file.
use object::{
    NativeEndian,
    elf::{
        ELFCLASS64, ELFMAG, EM_AARCH64, EM_RISCV, EM_X86_64, FileHeader64, PT_LOAD, ProgramHeader64,
    },
    pod::{Pod, bytes_of_slice_mut, slice_from_bytes},
};
use std::{
    fs::{File, OpenOptions},
    io::ErrorKind,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

/// The ELF header and the segment header of this machine's format.
type Header = FileHeader64<NativeEndian>;
type Segment = ProgramHeader64<NativeEndian>;

/// Returns what is wrong with the file, if that can be told without loading it as a library.
pub(crate) fn diagnose(path: &Path) -> Option<String> {
    match judge(path) {
        Ok(wrong) => wrong,
        Err(error) => Some(format!("it cannot be read: {error}")),
    }
}
fn judge(path: &Path) -> std::io::Result<Option<String>> {
    // `O_NONBLOCK`: opening a pipe would otherwise block until another process opens it for writing.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let kind = file.metadata()?;
    if !kind.is_file() {
        let what = if kind.is_dir() { "a folder" } else { "a pipe or a device" };
        return Ok(Some(format!("it is {what}")));
    }
    let Some(header) = read::<Header>(&file, 0, 1)? else {
        return Ok(Some("it is too short to be a shared object".to_string()));
    };
    let header = header[0];
    if header.e_ident.magic != ELFMAG {
        return Ok(Some("it is not a shared object".to_string()));
    }
    let (class, machine) = (header.e_ident.class, header.e_machine.get(NativeEndian));
    let Some(ours) = own_machine() else { return Ok(None) };
    if ours != (class, machine) {
        let other = format!("it is for another machine (ELF class {class}, machine {machine})");
        return Ok(Some(other));
    }
    // Segment headers of another size belong to another format, which the dynamic linker reports itself.
    if usize::from(header.e_phentsize.get(NativeEndian)) != size_of::<Segment>() {
        return Ok(None);
    }
    let length = kind.len();
    let fits = |segment: &Segment| {
        let [offset, size] = [segment.p_offset, segment.p_filesz].map(|of| of.get(NativeEndian));
        let is_mapped = segment.p_type.get(NativeEndian) == PT_LOAD;
        !is_mapped || offset.checked_add(size).is_some_and(|end| end <= length)
    };
    let (at, count) = (header.e_phoff.get(NativeEndian), header.e_phnum.get(NativeEndian));
    let segments = read::<Segment>(&file, at, count.into())?;
    if segments.is_some_and(|all| all.iter().all(fits)) {
        return Ok(None);
    }
    Ok(Some("it is cut off: its contents end before they should".to_string()))
}
/// Reads `count` values from offset `at`; `None` if the file is too short.
fn read<T: Pod>(file: &File, at: u64, count: usize) -> std::io::Result<Option<Vec<T>>> {
    let mut words = vec![0_u64; (count * size_of::<T>()).div_ceil(8)]; // aligned, as `T` has to be
    let bytes = bytes_of_slice_mut(&mut words);
    match file.read_exact_at(bytes, at) {
        Ok(()) => Ok(slice_from_bytes(bytes, count).ok().map(|(all, _)| all.to_vec())),
        // `InvalidInput`: an offset that no file can have is past the end of this one too.
        Err(e) if matches!(e.kind(), ErrorKind::UnexpectedEof | ErrorKind::InvalidInput) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
/// Returns the ELF class and machine number of this program, for the architectures that are listed here.
fn own_machine() -> Option<(u8, u16)> {
    match std::env::consts::ARCH {
        "x86_64" => Some((ELFCLASS64, EM_X86_64)),
        "aarch64" => Some((ELFCLASS64, EM_AARCH64)),
        "riscv64" => Some((ELFCLASS64, EM_RISCV)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// Returns a complete shared object: the file of this test program.
    fn whole() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }
    /// Returns the length of the part of it that is mapped. What follows is only for debuggers.
    fn mapped() -> usize {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let header = read::<Header>(&file, 0, 1).unwrap().unwrap()[0];
        let (at, count) = (header.e_phoff.get(NativeEndian), header.e_phnum.get(NativeEndian));
        let segments = read::<Segment>(&file, at, count.into()).unwrap().unwrap();
        let loaded = segments.iter().filter(|one| one.p_type.get(NativeEndian) == PT_LOAD);
        let ends =
            loaded.map(|one| one.p_offset.get(NativeEndian) + one.p_filesz.get(NativeEndian));
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
        for length in [65, 100, 5000, mapped() - 1] {
            let cut = said("cut", &whole[..length]);
            assert!(cut.is_some_and(|said| said.contains("cut off")), "at {length}");
        }
        assert!(said("short", &whole[..63]).unwrap().contains("too short"));
        assert!(said("empty", &[]).unwrap().contains("too short"));
    }
    #[test]
    fn a_file_of_another_machine_a_text_and_a_folder_are_each_told_apart() {
        let mut other = whole();
        other[offset_of!(Header, e_machine)] ^= 0xff;
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
        for at in offset_of!(Header, e_phoff)..size_of::<Header>() {
            let mut garbage = whole.clone();
            garbage[at] = 0xff;
            said("garbage", &garbage);
        }
    }
}
