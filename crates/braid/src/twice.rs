//! Search for a value that a command line gives twice.

/// Returns the first of `values` that is there twice.
pub(crate) fn twice<T: PartialEq>(values: &[T]) -> Option<&T> {
    let mut all = values.iter().enumerate();
    all.find_map(|(i, v)| values[..i].contains(v).then_some(v))
}
