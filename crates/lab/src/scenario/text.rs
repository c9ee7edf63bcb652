//! Values written as text with a unit, and values with a short and a long form.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use braid_core::Rate;
use braid_core::units::{parse_bytes, parse_duration};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A type read from one TOML string.
pub(crate) trait FromText: Sized {
    const EXPECTED: &'static str;
    fn from_text(s: &str) -> Result<Self, String>;
}

/// A string in the file, read by [`FromText`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Text<T>(pub(crate) T);

impl<'de, T: FromText> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V<T>(PhantomData<T>);
        impl<T: FromText> Visitor<'_> for V<T> {
            type Value = Text<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::EXPECTED)
            }
            fn visit_str<E: de::Error>(self, s: &str) -> Result<Text<T>, E> {
                T::from_text(s).map(Text).map_err(E::custom)
            }
        }
        d.deserialize_any(V(PhantomData))
    }
}

impl FromText for Duration {
    const EXPECTED: &'static str = "a duration in quotes, such as \"10 ms\"";
    fn from_text(s: &str) -> Result<Self, String> {
        parse_duration(s).map_err(|e| e.to_string())
    }
}

impl FromText for Rate {
    const EXPECTED: &'static str = "a rate in quotes, such as \"342 Mbit/s\"";
    fn from_text(s: &str) -> Result<Self, String> {
        s.parse()
            .map_err(|e: braid_core::units::ParseError| e.to_string())
    }
}

/// A size in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Size(pub(crate) u64);

impl FromText for Size {
    const EXPECTED: &'static str = "a size in quotes, such as \"64 MB\"";
    fn from_text(s: &str) -> Result<Self, String> {
        parse_bytes(s).map(Size).map_err(|e| e.to_string())
    }
}

/// A probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fraction(pub(super) f64);

impl<'de> Deserialize<'de> for Fraction {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match Number::deserialize(d)?.0 {
            v if (0.0..=1.0).contains(&v) => Ok(Self(v)),
            v => Err(de::Error::custom(format!(
                "{v} is not valid: expected a probability from 0 to 1"
            ))),
        }
    }
}

/// A TOML integer or float.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number(pub(super) f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number")
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Number, E> {
                Ok(Number(v as f64))
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Number, E> {
                Ok(Number(v as f64))
            }
            fn visit_f64<E: de::Error>(self, v: f64) -> Result<Number, E> {
                Ok(Number(v))
            }
        }
        d.deserialize_any(V)
    }
}

/// Either a value in its short form (string or number) or a list or table that
/// says more.
#[derive(Clone, Debug)]
pub(crate) enum Either<S, L> {
    Short(S),
    Long(L),
}

impl<'de, S: Deserialize<'de>, L: Deserialize<'de>> Deserialize<'de> for Either<S, L> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V<S, L>(PhantomData<(S, L)>);
        impl<'de, S: Deserialize<'de>, L: Deserialize<'de>> Visitor<'de> for V<S, L> {
            type Value = Either<S, L>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string, a number, a list or a table")
            }
            fn visit_str<E: de::Error>(self, s: &str) -> Result<Self::Value, E> {
                S::deserialize(de::value::StrDeserializer::new(s)).map(Either::Short)
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Self::Value, E> {
                S::deserialize(de::value::I64Deserializer::new(v)).map(Either::Short)
            }
            fn visit_f64<E: de::Error>(self, v: f64) -> Result<Self::Value, E> {
                S::deserialize(de::value::F64Deserializer::new(v)).map(Either::Short)
            }
            fn visit_map<A: MapAccess<'de>>(self, m: A) -> Result<Self::Value, A::Error> {
                L::deserialize(de::value::MapAccessDeserializer::new(m)).map(Either::Long)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, s: A) -> Result<Self::Value, A::Error> {
                L::deserialize(de::value::SeqAccessDeserializer::new(s)).map(Either::Long)
            }
        }
        d.deserialize_any(V(PhantomData))
    }
}
