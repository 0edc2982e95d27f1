//! The IPC handles that callers have got and not put. The bytes of each have an address that no other handle gets
//! before the put.
//!
//! Put is optional. Of a handle whose object was freed, its address is kept, so that a put still succeeds and affects
//! no other handle, with 16 bytes here and up to 21 in `ur_ipc`, so that its ticket is answered as freed. Pages without
//! live handles are returned to the system: they may still be read, and then contain zeros.
use crate::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use ur_ipc::{ENVELOPE_LEN, Export, FreedExport, Kind};
use ur_mapping::Pages;

/// The distance between the bytes of two handles, aligned as callers expect of memory.
const STRIDE: usize = ENVELOPE_LEN.next_multiple_of(16);
/// How much is returned to the system at a time: one or several pages.
const PAGE: usize = 4096;
/// Handles per page. None crosses a page boundary.
const ON_PAGE: usize = PAGE / STRIDE;
/// How many pages are allocated at once.
const PAGES: usize = 16;

/// The state of a place for a handle.
pub(super) enum Place {
    Empty,
    Given(Kind, u64, Box<Export>),
    Freed(Kind, #[expect(dead_code, reason = "held to be dropped")] FreedExport),
}

/// A run of pages with places for handles.
struct Block {
    pages: Pages,
    places: Vec<Place>,
    /// Empty places, the longest empty first: a pointer that was put stays recognisable as such for a while.
    empty: VecDeque<u16>,
}
impl Block {
    fn new() -> std::io::Result<Self> {
        let places = std::iter::repeat_with(|| Place::Empty).take(PAGES * ON_PAGE).collect();
        let empty = (0..(PAGES * ON_PAGE) as u16).collect();
        Ok(Self { pages: Pages::new(PAGES * PAGE)?, places, empty })
    }
    fn base(&self) -> usize {
        self.pages.address().expose_provenance()
    }
    /// The index of the place that begins at this offset.
    fn place_at(&self, offset: usize) -> Option<usize> {
        let (page, within) = (offset / PAGE, offset % PAGE);
        let is_one = page < PAGES && within % STRIDE == 0 && within / STRIDE < ON_PAGE;
        is_one.then_some(page * ON_PAGE + within / STRIDE)
    }
    fn offset_of(place: usize) -> usize {
        place / ON_PAGE * PAGE + place % ON_PAGE * STRIDE
    }
    /// Returns the page of this place to the system if all handles on it are those of freed objects.
    fn discard_page_of(&mut self, place: usize) {
        let page = place / ON_PAGE;
        let on_page = &self.places[page * ON_PAGE..(page + 1) * ON_PAGE];
        if on_page.iter().all(|place| matches!(place, Place::Freed(..))) {
            self.pages.discard(page * PAGE, PAGE);
        }
    }
}

/// All IPC handles of a process.
#[derive(Default)]
pub(super) struct Given {
    /// Keyed by the address of their first byte.
    blocks: BTreeMap<usize, Block>,
    /// The blocks with empty places.
    roomy: BTreeSet<usize>,
    /// The handles of each object that was not freed.
    of_object: HashMap<(Kind, u64), BTreeSet<usize>>,
}

impl Given {
    /// Adds an export; returns the address of its bytes.
    ///
    /// # Errors
    /// `OUT_OF_HOST_MEMORY` if no page can be allocated.
    pub fn add(&mut self, kind: Kind, object: u64, export: Box<Export>) -> Result<UsmPtr> {
        let base = match self.roomy.first() {
            Some(base) => *base,
            None => self.grow()?,
        };
        let block = self.blocks.get_mut(&base).expect("it has room");
        let place = usize::from(block.empty.pop_front().expect("it has room"));
        if block.empty.is_empty() {
            self.roomy.remove(&base);
        }
        let offset = Block::offset_of(place);
        block.pages.write(offset, export.bytes());
        block.places[place] = Place::Given(kind, object, export);
        self.of_object.entry((kind, object)).or_default().insert(base + offset);
        Ok(UsmPtr::from_addr(base + offset).expect("no page is at 0"))
    }
    fn grow(&mut self) -> Result<usize> {
        let block = Block::new().map_err(|e| {
            let why = format!("there is no memory for another handle ({e}): put some first");
            Error::new(ErrorCode::OutOfHostMemory, why)
        })?;
        let base = block.base();
        self.blocks.insert(base, block);
        self.roomy.insert(base);
        Ok(base)
    }
    fn find(&mut self, at: usize) -> Option<(usize, &mut Block, usize)> {
        let (&base, block) = self.blocks.range_mut(..=at).next_back()?;
        let place = block.place_at(at - base)?;
        Some((base, block, place))
    }
    /// Removes the handle of this kind at an address. The caller drops it after releasing the lock.
    pub fn take(&mut self, kind: Kind, at: usize) -> Option<Place> {
        let (base, block, place) = self.find(at)?;
        match &block.places[place] {
            Place::Given(of, ..) | Place::Freed(of, _) if *of == kind => {}
            _ => return None,
        }
        let taken = std::mem::replace(&mut block.places[place], Place::Empty);
        block.empty.push_back(place as u16);
        let is_empty = block.empty.len() == block.places.len();
        self.roomy.insert(base);
        if let Place::Given(_, object, _) = &taken
            && let Some(handles) = self.of_object.get_mut(&(kind, *object))
        {
            handles.remove(&at);
            if handles.is_empty() {
                self.of_object.remove(&(kind, *object));
            }
        }
        if is_empty && self.blocks.len() > 1 {
            self.blocks.remove(&base);
            self.roomy.remove(&base);
        }
        Some(taken)
    }
    /// The object was freed, and `ur_ipc` has recorded that: keeps only what is needed of its handles.
    pub fn freed(&mut self, kind: Kind, object: u64) {
        for at in self.of_object.remove(&(kind, object)).unwrap_or_default() {
            let Some((_, block, place)) = self.find(at) else { continue };
            let was = std::mem::replace(&mut block.places[place], Place::Empty);
            block.places[place] = match was {
                Place::Given(kind, _, export) => Place::Freed(kind, export.into_freed()),
                other => other,
            };
            block.discard_page_of(place);
        }
        if self.of_object.len() < self.of_object.capacity() / 8 {
            self.of_object.shrink_to_fit();
        }
    }
}
