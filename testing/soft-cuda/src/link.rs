//! The linker: concatenates PTX into an image with the header of a device binary.
#![expect(unsafe_code, reason = "exports symbols of the driver")]
use crate::{
    code::{Answer, INVALID_HANDLE, INVALID_IMAGE, INVALID_VALUE},
    context,
    module::{Options, compile},
    raw::{list, put, put_maybe},
    state::handle,
};
use std::{
    collections::HashMap,
    ffi::{c_char, c_void},
    sync::{LazyLock, Mutex, MutexGuard},
};
use ur_lock::locked;

#[derive(Default)]
struct Link {
    text: String,
    /// The image, which exists until the link is destroyed.
    image: Option<Box<[u8]>>,
    options: Option<Options>,
}
// SAFETY: the options' pointers are the caller's, which must keep them valid until the link is destroyed.
unsafe impl Send for Link {}
static LINKS: LazyLock<Mutex<HashMap<u64, Link>>> = LazyLock::new(Mutex::default);
fn links() -> MutexGuard<'static, HashMap<u64, Link>> {
    locked(&LINKS)
}
const HEAD: usize = 64;
/// The offset of the image's length in the header, where ELF has the entry address, which modules do not use.
const END: usize = 24;
/// Makes an ELF header for machine 190 without sections, followed by the text.
fn image(text: &str) -> Box<[u8]> {
    let mut image = vec![0_u8; HEAD];
    image[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\x33");
    image[16..24].copy_from_slice(&[2, 0, 190, 0, 1, 0, 0, 0]);
    let end = (HEAD + text.len() + 1) as u64;
    image[END..END + 8].copy_from_slice(&end.to_le_bytes());
    image[52] = HEAD as u8;
    image.extend_from_slice(text.as_bytes());
    image.push(0);
    image.into()
}
/// Returns the text behind such a header.
pub fn source(from: *const c_void) -> Answer<String> {
    let head = list(from.cast::<u8>(), HEAD)?;
    let (long, mut rest) = (&head[END..END + 8], head.clone());
    let end = u64::from_le_bytes(long.try_into().map_err(|_| INVALID_IMAGE)?) as usize;
    rest[END..END + 8].copy_from_slice(&image("")[END..END + 8]);
    if rest != image("")[..HEAD] || !(HEAD + 1..1 << 30).contains(&end) {
        return Err(INVALID_IMAGE);
    }
    let bytes = list(from.cast::<u8>().wrapping_add(HEAD), end - HEAD - 1)?;
    String::from_utf8(bytes).map_err(|_| INVALID_IMAGE)
}

entries! {
    fn cuLinkCreate_v2(count: u32, options: *mut i32, values: *mut *mut c_void, to: *mut u64) {
        context::current()?;
        let options = Some(Options::of(count, options, values)?);
        let id = handle(0x06);
        put(to, id)?;
        links().insert(id, Link { options, ..Link::default() });
        Ok(())
    }
    fn cuLinkAddData_v2(
        link: u64, kind: i32, data: *mut c_void, bytes: usize, name: *const c_char,
        count: u32, options: *mut i32, values: *mut *mut c_void,
    ) {
        context::current()?;
        let _unused = (Options::of(count, options, values)?, name);
        let mut links = links();
        let link = links.get_mut(&link).ok_or(INVALID_HANDLE)?;
        if data.is_null() || bytes == 0 || link.image.is_some() {
            return Err(INVALID_VALUE);
        }
        let text = match kind {
            0 => source(data)?,
            1 => {
                let bytes = list(data.cast::<u8>(), bytes)?;
                let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
                String::from_utf8_lossy(&bytes[..end]).into_owned()
            }
            2..=5 => return Err(INVALID_IMAGE), // fat binaries, objects, libraries
            _ => return Err(INVALID_VALUE),
        };
        let none = Options::of(0, std::ptr::null_mut(), std::ptr::null_mut())?;
        compile(&text, link.options.as_ref().unwrap_or(&none))?;
        link.text += &text;
        link.text += "\n";
        Ok(())
    }
    fn cuLinkComplete(link: u64, to: *mut *mut c_void, bytes: *mut usize) {
        context::current()?;
        let mut links = links();
        let link = links.get_mut(&link).ok_or(INVALID_HANDLE)?;
        if to.is_null() || link.text.is_empty() {
            return Err(INVALID_VALUE);
        }
        let none = Options::of(0, std::ptr::null_mut(), std::ptr::null_mut())?;
        if !compile(&link.text, link.options.as_ref().unwrap_or(&none))?.is_whole() {
            return Err(INVALID_IMAGE); // an undefined function is called
        }
        let made = link.image.insert(image(&link.text));
        put(to, made.as_mut_ptr().cast())?;
        put_maybe(bytes, made.len());
        Ok(())
    }
    fn cuLinkDestroy(link: u64) {
        context::current()?;
        links().remove(&link).map(drop).ok_or(INVALID_HANDLE)
    }
}
