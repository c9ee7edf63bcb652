//! Pages of many small objects, downlink.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_spanned::Spanned;

use super::{Given, TrafficKind};
use crate::scenario::diagnostic::Problem;
use crate::scenario::text::{Size, Text};

/// Pages of many small objects, one page after another, downlink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Web {
    /// Bytes of a page's document.
    pub document_bytes: u64,
    /// Objects of a page beside the document.
    pub objects: u32,
    /// Median bytes of an object.
    pub object_bytes: u64,
    /// Time between two pages.
    pub pause: Duration,
}

impl TrafficKind for Web {
    const NAME: &'static str = "web";
    const KEYS: &'static [&'static str] = &["document", "objects", "object", "pause"];

    fn parse(given: &Given<'_>) -> Result<Self, Problem> {
        let size = |raw: &Option<Spanned<Text<Size>>>, default: u64| match raw {
            None => Ok(default),
            Some(v) if v.get_ref().0.0 > 0 => Ok(v.get_ref().0.0),
            Some(v) => Err(Problem::at(v.span(), "expected at least 1 B")),
        };
        let objects = match &given.table.objects {
            None => 60,
            Some(n) if *n.get_ref() <= 1000 => *n.get_ref(),
            Some(n) => return Err(Problem::at(n.span(), "expected at most 1000 objects")),
        };
        let pause = given.table.pause.as_ref();
        Ok(Self {
            document_bytes: size(&given.table.document, 40_000)?,
            objects,
            object_bytes: size(&given.table.object, 12_000)?,
            pause: pause.map_or(Duration::from_secs(1), |p| p.0),
        })
    }

    fn ours(&self) -> Option<braid_traffic::Kind> {
        let own = braid_traffic::Web {
            document_bytes: self.document_bytes,
            objects: self.objects,
            object_bytes: self.object_bytes,
            pause: self.pause,
        };
        Some(braid_traffic::Kind::Web(own))
    }
}
