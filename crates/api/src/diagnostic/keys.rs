//! Places of keys in TOML.

use toml::de::{DeTable, DeValue};

/// Finds where the key stands, or the nearest above it that does; bytes from the start. `None`
/// where the text is no TOML or has not even the first.
pub(super) fn find(text: &str, path: &[String]) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let (first, rest) = path.split_first()?;
    let (key, value) = entry(document.get_ref(), first)?;
    Some(below(value, rest).unwrap_or(key))
}

/// Where the key and its value stand, and the value.
type Entry<'a, 'i> = (usize, &'a toml::Spanned<DeValue<'i>>);

fn entry<'a, 'i>(table: &'a DeTable<'i>, name: &str) -> Option<Entry<'a, 'i>> {
    let (key, value) = table.iter().find(|(k, _)| k.get_ref() == name)?;
    Some((key.span().start, value))
}

fn below(value: &toml::Spanned<DeValue<'_>>, path: &[String]) -> Option<usize> {
    let (first, rest) = path.split_first()?;
    let (at, value) = match value.get_ref() {
        DeValue::Table(table) => entry(table, first)?,
        DeValue::Array(array) => {
            let element = array.get(first.parse::<usize>().ok()?)?;
            (element.span().start, element)
        }
        _ => return None,
    };
    Some(below(value, rest).unwrap_or(at))
}
