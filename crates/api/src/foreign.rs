//! Kinds of other operators.
