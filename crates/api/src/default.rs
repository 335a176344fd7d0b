//! Defaults that several kinds have.

pub(crate) fn yes() -> bool {
    true
}

pub(crate) fn one() -> i32 {
    1
}
