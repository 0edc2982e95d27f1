//! The shapes that the generated lists are written in.

/// A C enumeration: any `u32`, some of which have names.
macro_rules! enumeration {
    ($(#[$doc:meta])* $n:ident { $($name:ident = $value:expr, $c:literal;)* }) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $n(pub u32);
        #[expect(missing_docs, reason = "each is the enumerator of that name")]
        impl $n {
            $(pub const $name: Self = Self($value);)*
        }
        impl $n {
            /// Every named value, in the specification's order.
            pub const VALUES: &[Self] = &[$(Self::$name),*];
            /// Every named value and C's name of it, in the same order.
            pub const NAMES: &[(u32, &'static str)] = &[$(($value, $c)),*];
            /// C's name of this value, if it has one.
            pub fn name(self) -> Option<&'static str> {
                $(if self == Self::$name {
                    return Some($c);
                })*
                None
            }
        }
        impl core::fmt::Debug for $n {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, concat!(stringify!($n), "({:#x})"), self.0),
                }
            }
        }
    };
}

/// A set of C flags: any `u32`, some of whose bits have names.
macro_rules! flags {
    ($(#[$doc:meta])* $n:ident { $($name:ident = $value:expr, $c:literal;)* }) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $n(pub u32);
        #[expect(missing_docs, reason = "each is the flag of that name")]
        impl $n {
            $(pub const $name: Self = Self($value);)*
        }
        impl $n {
            /// All bits that have a name.
            pub const VALID: Self = Self(0 $(| $value)*);
            /// Every named flag and C's name of it, in the specification's order.
            pub const NAMES: &[(u32, &'static str)] = &[$(($value, $c)),*];
            /// Whether every flag of `other` is set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
            /// Whether some flag of `other` is set.
            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }
            /// The bits without a name.
            pub const fn unknown_bits(self) -> u32 {
                self.0 & !Self::VALID.0
            }
            /// The bits as C has them.
            pub const fn bits(self) -> u32 {
                self.0
            }
        }
        impl core::ops::BitOr for $n {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }
        impl core::ops::BitAnd for $n {
            type Output = Self;
            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }
        impl core::fmt::Debug for $n {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let mut between = "";
                $(if self.contains(Self::$name) {
                    f.write_str(between)?;
                    f.write_str($c)?;
                    between = " | ";
                })*
                match self.unknown_bits() {
                    0 if between.is_empty() => f.write_str("0"),
                    0 => Ok(()),
                    unknown => write!(f, "{between}{unknown:#x}"),
                }
            }
        }
    };
}

/// A handle: a pointer whose first word is the object's table.
macro_rules! handle {
    ($(#[$doc:meta])* $n:ident) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $n(pub *mut core::ffi::c_void);
        impl $n {
            /// No object.
            pub const NULL: Self = Self(core::ptr::null_mut());
            /// Whether this names no object.
            pub const fn is_null(self) -> bool {
                self.0.is_null()
            }
        }
        impl core::fmt::Debug for $n {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{:p}", self.0)
            }
        }
    };
}
