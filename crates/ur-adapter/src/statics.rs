//! Values looked up by their type: state that exists once per adapter or object, for generic code, which cannot have
//! statics of its own.
use crate::object::{Body, Slab};
use std::{
    any::{Any, TypeId},
    fmt,
    sync::OnceLock,
};
use ur_mapping::PerProcess;
use ur_sys::ur_dditable_t;

type Value = dyn Any + Send + Sync;
struct Link {
    id: TypeId,
    value: Box<Value>,
    next: OnceLock<Box<Link>>,
}
/// At most one value of each type, made at first use. The search is linear, because there are few types.
#[derive(Default)]
pub struct TypeMap(OnceLock<Box<Link>>);
impl TypeMap {
    /// Makes one without values.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }
    /// The value of this type, if it exists already.
    pub fn known<T: Send + Sync + 'static>(&self) -> Option<&T> {
        let mut at = &self.0;
        while let Some(link) = at.get() {
            if link.id == TypeId::of::<T>() {
                return link.value.downcast_ref();
            }
            at = &link.next;
        }
        None
    }
    /// The value of this type, made at first use.
    pub fn get<T: Default + Send + Sync + 'static>(&self) -> &T {
        let mut at = &self.0;
        loop {
            let link = at.get().unwrap_or_else(|| {
                let (id, value) = (TypeId::of::<T>(), Box::<T>::default());
                let fresh = Box::new(Link { id, value, next: OnceLock::new() });
                at.get_or_init(|| fresh) // a child forked meanwhile would wait for ever: nothing is made in there
            });
            if link.id == TypeId::of::<T>() {
                return link.value.downcast_ref().expect("it is of the type that it says");
            }
            at = &link.next;
        }
    }
}
impl fmt::Debug for TypeMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TypeMap").finish_non_exhaustive()
    }
}

/// The number of object kinds, plus one.
const KINDS: usize = 19;
/// The state of an adapter: the slabs of its objects, and whatever the code above its driver keeps.
#[derive(Debug)]
pub struct Statics {
    table: &'static ur_dditable_t,
    slabs: [OnceLock<&'static Value>; KINDS],
    kept: TypeMap,
}
impl Statics {
    /// The state of the adapter with this table.
    pub const fn new(table: &'static ur_dditable_t) -> Self {
        Self { table, slabs: [const { OnceLock::new() }; KINDS], kept: TypeMap::new() }
    }
    /// The slab of a kind of object.
    ///
    /// # Panics
    /// If an adapter has two types for one kind of object.
    #[inline]
    pub fn slab<T: Body>(&'static self) -> &'static Slab<T> {
        let place = &self.slabs[T::TAG.kind() as usize];
        let made = place.get().unwrap_or_else(|| {
            let fresh = Box::new(Slab::<T>::new(self.table));
            place.get_or_init(|| Box::leak(fresh))
        });
        made.downcast_ref().expect("an adapter has one type for each kind of object")
    }
    /// The adapter's value of this type, which forked children inherit.
    pub fn get<T: Default + Send + Sync + 'static>(&self) -> &T {
        self.kept.get()
    }
    /// The process's value of this type: a forked child gets a fresh one.
    pub fn of_process<T: Default + Send + Sync + 'static>(&self) -> &T {
        self.kept.get::<PerProcess<T>>().get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn each_type_has_one_value() {
        let kept = TypeMap::new();
        assert!(kept.known::<Mutex<u8>>().is_none());
        *kept.get::<Mutex<u8>>().lock().unwrap() = 3;
        *kept.get::<Mutex<u16>>().lock().unwrap() = 4;
        assert_eq!(*kept.get::<Mutex<u8>>().lock().unwrap(), 3);
        assert_eq!(*kept.known::<Mutex<u16>>().unwrap().lock().unwrap(), 4);
    }
    #[test]
    fn threads_that_are_first_at_the_same_time_get_the_same_value() {
        let kept = TypeMap::new();
        let kept = &kept;
        let mut seen = std::thread::scope(|scope| {
            let ask = || std::ptr::from_ref(kept.get::<Mutex<u8>>()).addr();
            let all: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
        });
        seen.dedup();
        assert_eq!(seen.len(), 1);
    }
}
