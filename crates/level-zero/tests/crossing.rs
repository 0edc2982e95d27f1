//! Bytes get from one device to another, be there a link or not. On whatever driver of Level Zero there is; with fewer
//! than two devices the tests say so and are skipped.
mod c;
#[path = "../../cuda/tests/c/crossing.rs"]
mod crossing;
