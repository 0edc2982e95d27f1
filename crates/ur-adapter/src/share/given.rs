//! The handles that C has got and not put: their bytes, each at an address that no other handle gets before the put.
//!
//! Put is optional. Of a handle whose object was freed there stay its address, so that a put still succeeds and meets no
//! other handle, and 16 bytes; and up to 21 in `ur_ipc`, so that its ticket is answered as freed. Pages on which no
//! handle stands any more go back to the system: they may still be read, and read as zeros.
use crate::{
    error::{Error, ErrorCode, Result},
    memory::UsmPtr,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use ur_ipc::{ENVELOPE_LEN, Export, FreedExport, Kind};
use ur_mapping::Pages;

/// From one handle's bytes to the next's, aligned as memory of C's is.
const STRIDE: usize = ENVELOPE_LEN.next_multiple_of(16);
/// What is given back at once: a page, or several.
const PAGE: usize = 4096;
/// Handles on a page. None lies on two.
const ON_PAGE: usize = PAGE / STRIDE;
/// Pages that are asked of the system at once.
const PAGES: usize = 16;

/// What one place for a handle has.
pub(super) enum Place {
    Empty,
    Given(Kind, u64, Box<Export>),
    Freed(Kind, #[expect(dead_code, reason = "held to be dropped")] FreedExport),
}

/// Places for handles, on some pages.
struct Block {
    pages: Pages,
    places: Vec<Place>,
    /// The longest empty first: a pointer that was put is known as such for a while.
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
    /// Which place begins there.
    fn place_at(&self, offset: usize) -> Option<usize> {
        let (page, within) = (offset / PAGE, offset % PAGE);
        let is_one = page < PAGES && within % STRIDE == 0 && within / STRIDE < ON_PAGE;
        is_one.then_some(page * ON_PAGE + within / STRIDE)
    }
    fn offset_of(place: usize) -> usize {
        place / ON_PAGE * PAGE + place % ON_PAGE * STRIDE
    }
    /// Gives the page of this place back if no handle on it is good any more.
    fn discard_page_of(&mut self, place: usize) {
        let page = place / ON_PAGE;
        let on_page = &self.places[page * ON_PAGE..(page + 1) * ON_PAGE];
        if on_page.iter().all(|place| matches!(place, Place::Freed(..))) {
            self.pages.discard(page * PAGE, PAGE);
        }
    }
}

/// All handles of a process.
#[derive(Default)]
pub(super) struct Given {
    /// By the addresses of their first bytes.
    blocks: BTreeMap<usize, Block>,
    /// Those with empty places.
    roomy: BTreeSet<usize>,
    /// The handles of each object that was not freed.
    of_object: HashMap<(Kind, u64), Vec<usize>>,
}

impl Given {
    /// Takes an export in; where its bytes are.
    ///
    /// # Errors
    /// `OUT_OF_HOST_MEMORY`
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
        self.of_object.entry((kind, object)).or_default().push(base + offset);
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
    /// Takes out the handle of that kind at an address, to be dropped under no lock.
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
            handles.retain(|handle| *handle != at);
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
    /// The object was freed, and whoever tells importers knows of it: little stays of its handles.
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
