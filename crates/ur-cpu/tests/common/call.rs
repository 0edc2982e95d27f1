//! Entries of a table, called with their arguments as one: what the tests' `call!` stands on.
#![expect(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "plays the C caller")]
use ur_sys::ur_result_t;

/// An entry with its arguments as one: what the macro calls without being unsafe in every place that it is used.
pub trait Call<Arguments> {
    fn call(self, arguments: Arguments) -> ur_result_t;
}
macro_rules! entries { ($($($type:ident)*;)*) => { $(
    impl<$($type),*> Call<($($type,)*)> for unsafe extern "C" fn($($type),*) -> ur_result_t {
        #[expect(non_snake_case, reason = "each is called like its type")]
        fn call(self, ($($type,)*): ($($type,)*)) -> ur_result_t {
            unsafe { self($($type),*) }
        }
    }
)* } }
entries! {
    A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H;
    A B C D E F G H I; A B C D E F G H I J; A B C D E F G H I J K; A B C D E F G H I J K L;
    A B C D E F G H I J K L M; A B C D E F G H I J K L M N; A B C D E F G H I J K L M N O;
    A B C D E F G H I J K L M N O P; A B C D E F G H I J K L M N O P Q;
}
