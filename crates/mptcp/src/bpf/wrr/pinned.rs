//! A weighted round robin that outlives the process that registered it, and how
//! the next one takes it over.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};

use super::{Key, NOTE_MAX, OPS, WEIGHTS_MAX, Weight, Wrr};
use crate::bpf::pinned::{self, look, pinned_map};
use crate::bpf::{Algorithm, Pins, require};
use crate::error::{Error, Result};
use crate::weights::ACCESSES;

/// `struct settings`.
const SETTINGS_LEN: u32 = 8;

impl Wrr {
    /// Pins it, so that it outlives this process if that is killed, with `note` for the next
    /// one; dropped, it takes all with it.
    ///
    /// # Errors
    /// The kernel's; nothing is pinned then. [`Wrr::set_note`]'s.
    pub fn pin(&mut self, pins: Pins, note: &[u8]) -> Result<()> {
        self.set_note(note)?;
        let directory = pins.of(Algorithm::Wrr.object());
        let maps = &mut [
            (OPS, &mut self.ops),
            ("weights", &mut self.weights),
            ("settings", &mut self.settings),
            ("note", &mut self.note),
        ];
        pinned::pin(&directory, maps, &mut self.registered)?;
        self.pins = Some(pins);
        Ok(())
    }

    /// Whether it outlives this process if that is killed.
    pub fn is_pinned(&self) -> bool {
        self.pins.is_some()
    }

    /// Changes what the next process is told.
    ///
    /// # Errors
    /// It is longer than [`NOTE_MAX`]; or the kernel's.
    pub fn set_note(&mut self, note: &[u8]) -> Result<()> {
        let attempted = || format!("leave a note with {}", self.registered.name());
        if note.len() > NOTE_MAX {
            let what = format!("{} bytes are more than {NOTE_MAX}", note.len());
            return Err(Error::left(attempted(), what));
        }
        let mut value = vec![0; 4 + NOTE_MAX];
        value[..4].copy_from_slice(&(note.len() as u32).to_ne_bytes());
        value[4..4 + note.len()].copy_from_slice(note);
        self.note
            .update(&0u32.to_ne_bytes(), &value, MapFlags::ANY)
            .map_err(|e| Error::left(attempted(), e))
    }

    /// Goes on with what another process has left there, as it is: it carries the
    /// connections' weights, and they change with it again. Returns the note, too.
    ///
    /// # Errors
    /// It is not what this version of Braid would have left, in form or in content,
    /// or the process may not have it. What was there is taken away then.
    pub fn adopt(pins: Pins) -> Result<(Self, Vec<u8>)> {
        require()?;
        let directory = pins.of(Algorithm::Wrr.object());
        let attempted = || format!("go on with {}", pins.directory().display());
        if !directory.is_dir() {
            let what = "it was left by another version of braid, or before it was complete";
            return Err(Error::left(attempted(), what));
        }
        read(&directory, pins.directory()).map(|(mut wrr, note)| {
            wrr.pins = Some(pins);
            (wrr, note)
        })
    }
}

/// The notes in all versions there, those that can be read.
pub fn notes(pins: &Pins) -> Vec<Vec<u8>> {
    let of = |version: &Path| {
        let map = open(version, "note", note_form()).ok()?;
        note(&map).ok()
    };
    let all = pins.versions();
    all.iter().filter_map(|v| of(v)).collect()
}

/// Type, sizes of key and value, most entries.
type Form = (MapType, u32, u32, u32);

const fn note_form() -> Form {
    (MapType::Array, 4, 4 + NOTE_MAX as u32, 1)
}

fn read(directory: &Path, pins: &Path) -> Result<(Wrr, Vec<u8>)> {
    let attempted = format!("go on with {}", pins.display());
    let wrong = |what: &str| Error::left(&attempted, what);
    let weights = open(
        directory,
        "weights",
        (MapType::LpmTrie, size_of::<Key>() as u32, 4, WEIGHTS_MAX),
    )?;
    let settings = open(directory, "settings", (MapType::Array, 4, SETTINGS_LEN, 1))?;
    let note_map = open(directory, "note", note_form())?;
    let (ops, registered) = pinned::registered(directory, &attempted, OPS)?;
    let (strict, version) = settings_in(&look(&settings)?)
        .ok_or_else(|| wrong("its settings are not what Braid writes"))?;
    let mut set = BTreeMap::new();
    for key in weights.keys() {
        let value = weights
            .lookup(&key, MapFlags::ANY)
            .map_err(|e| wrong(&e.to_string()))?;
        let entry = value.and_then(|v| weight_in(&key, &v));
        let (key, weight) = entry.ok_or_else(|| wrong("its weights are not what Braid writes"))?;
        set.insert(key, weight);
    }
    let note = note(&note_map)?;
    let wrr = Wrr {
        pins: None,
        registered,
        ops,
        weights,
        settings,
        note: note_map,
        set,
        strict,
        version,
    };
    Ok((wrr, note))
}

/// A map there, if it has the name and the form that it is to have.
fn open(directory: &Path, name: &str, form: Form) -> Result<MapHandle> {
    let path = directory.join(name);
    let map = pinned_map(&path)?;
    let is = (
        map.map_type(),
        map.key_size(),
        map.value_size(),
        map.max_entries(),
    );
    if map.name() != OsStr::new(name) || is != form {
        let what = format!(
            "the map there is \"{}\", {is:?} (type, bytes of key and value, entries), and not \
             \"{name}\", {form:?}",
            map.name().to_string_lossy(),
        );
        return Err(Error::left(format!("use {}", path.display()), what));
    }
    Ok(map)
}

fn note(map: &MapHandle) -> Result<Vec<u8>> {
    let value = look(map)?;
    let length = value.first_chunk().map(|l| u32::from_ne_bytes(*l) as usize);
    length
        .and_then(|l| value.get(4..4 + l))
        .map(<[u8]>::to_vec)
        .ok_or_else(|| Error::left("read the note", "it is longer than its room"))
}

fn settings_in(value: &[u8]) -> Option<(bool, u32)> {
    let (strict, version) = value.split_at_checked(4)?;
    let number = |b: &[u8]| Some(u32::from_ne_bytes(b.try_into().ok()?));
    match number(strict)? {
        n @ (0 | 1) => Some((n == 1, number(version)?)),
        _ => None,
    }
}

fn weight_in(key: &[u8], value: &[u8]) -> Option<(Key, Weight)> {
    let (weight, access) = value.split_at_checked(2)?;
    let number = |b: &[u8]| Some(u16::from_ne_bytes(b.try_into().ok()?));
    let weight = [number(weight)?, number(access)?];
    let key: Key = key.try_into().ok()?;
    let bits = u32::from_ne_bytes(*key.first_chunk()?);
    let fits = weight[1] <= ACCESSES.into() && (32..=160).contains(&bits);
    fits.then_some((key, weight))
}

#[cfg(test)]
mod tests {
    use super::super::bytes;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn contents_are_ours_or_refused(strict: u32, version: u32, weight: [u16; 2], key: [u8; 24]) {
            let value = [strict.to_ne_bytes(), version.to_ne_bytes()].concat();
            let read = settings_in(&value);
            prop_assert_eq!(read, (strict < 2).then_some((strict == 1, version)));
            prop_assert_eq!(settings_in(&value[..7]), None);
            let bits = u32::from_ne_bytes(*key.first_chunk().unwrap());
            let weight = [weight[0], weight[1] % 32];
            let fits = weight[1] < 16 && (32..=160).contains(&bits);
            let read = weight_in(&key, &bytes(weight));
            prop_assert_eq!(read, fits.then_some((key, weight)));
            prop_assert_eq!(weight_in(&key[1..], &bytes(weight)), None);
            prop_assert_eq!(weight_in(&key, &bytes(weight)[1..]), None);
        }
    }
}
