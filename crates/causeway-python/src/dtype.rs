//! Types of elements: DLPack's code and width, the name that people use, and NumPy's type string.

/// A type of elements. Each is a whole number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DType {
    /// DLPack's `DLDataTypeCode`.
    pub code: u8,
    pub bits: u8,
}

/// Name, DLPack's code, bits, and NumPy's type string where NumPy has the type.
const TYPES: [(&str, u8, u8, Option<&str>); 23] = [
    ("bool", 6, 8, Some("|b1")),
    ("int8", 0, 8, Some("|i1")),
    ("int16", 0, 16, Some("<i2")),
    ("int32", 0, 32, Some("<i4")),
    ("int64", 0, 64, Some("<i8")),
    ("uint8", 1, 8, Some("|u1")),
    ("uint16", 1, 16, Some("<u2")),
    ("uint32", 1, 32, Some("<u4")),
    ("uint64", 1, 64, Some("<u8")),
    ("float16", 2, 16, Some("<f2")),
    ("float32", 2, 32, Some("<f4")),
    ("float64", 2, 64, Some("<f8")),
    ("complex64", 5, 64, Some("<c8")),
    ("complex128", 5, 128, Some("<c16")),
    ("bfloat16", 4, 16, None),
    ("float8_e3m4", 7, 8, None),
    ("float8_e4m3", 8, 8, None),
    ("float8_e4m3b11fnuz", 9, 8, None),
    ("float8_e4m3fn", 10, 8, None),
    ("float8_e4m3fnuz", 11, 8, None),
    ("float8_e5m2", 12, 8, None),
    ("float8_e5m2fnuz", 13, 8, None),
    ("float8_e8m0fnu", 14, 8, None),
];

/// Says of a type that is not known here what to do: `typestr` is NumPy's type string, and `name` what its library calls it.
pub fn unknown(typestr: &str, name: &str) -> String {
    let what = match name {
        "" => typestr.to_owned(),
        name => format!("{name} ({typestr})"),
    };
    let advice = match (typestr.starts_with('>'), typestr.get(1..2)) {
        (true, Some("i" | "u" | "f" | "c")) => {
            "they are not in this machine's byte order: share array.astype(array.dtype.newbyteorder('='))"
        }
        (_, Some("f")) => "share array.astype('float64'), as far as that is exact enough",
        (_, Some("c")) => "share array.astype('complex128'), as far as that is exact enough",
        (_, Some("M" | "m")) => {
            "share array.view('int64'), and view what is opened as this type again"
        }
        (_, Some("S" | "V")) => {
            "share numpy.ascontiguousarray(array).view('uint8'), its bytes, and view what is opened as this type again"
        }
        (_, Some("U")) => {
            "share numpy.ascontiguousarray(array).view('uint32'), its characters, and view what is opened as this type again"
        }
        (_, Some("O")) => {
            "they are objects of this process: make an array of numbers of them, or pickle them"
        }
        _ => "convert them to a type of numbers that NumPy has",
    };
    format!("elements of type {what} cannot be shared: {advice}")
}
/// Says of a name that is no type's which there are.
pub fn no_type(name: &str) -> String {
    let names = TYPES.map(|(name, ..)| name).join(", ");
    format!("there are no shared arrays of {name:?}: take one of {names}")
}

impl DType {
    /// The type with this name, of which NumPy, PyTorch and ml_dtypes have the same.
    pub fn named(name: &str) -> Option<Self> {
        let (_, code, bits, _) = TYPES.iter().find(|(known, ..)| *known == name)?;
        Some(Self { code: *code, bits: *bits })
    }
    /// The type with this type string of NumPy's, in this machine's byte order.
    pub fn with_typestr(typestr: &str) -> Option<Self> {
        let (_, code, bits, _) = TYPES.iter().find(|(.., known)| *known == Some(typestr))?;
        Some(Self { code: *code, bits: *bits })
    }
    /// DLPack's type, if it is one of those here: with one lane, and of whole bytes.
    pub fn of_dlpack(code: u8, bits: u8, lanes: u16) -> Option<Self> {
        let known = TYPES.iter().any(|(_, c, b, _)| (*c, *b) == (code, bits));
        (known && lanes == 1).then_some(Self { code, bits })
    }
    fn row(self) -> &'static (&'static str, u8, u8, Option<&'static str>) {
        let row = TYPES.iter().find(|(_, code, bits, _)| (*code, *bits) == (self.code, self.bits));
        row.unwrap_or(&TYPES[5]) // every constructor looks the type up
    }
    pub fn name(self) -> &'static str {
        self.row().0
    }
    /// NumPy's type string, if NumPy has the type.
    pub fn typestr(self) -> Option<&'static str> {
        self.row().3
    }
    /// Bytes of an element.
    pub fn size(self) -> usize {
        usize::from(self.bits / 8)
    }
}
