//! Drawing of a column over time.

use serde::Serialize;

use super::{TimelineRow, mean};

/// A column as the report draws it.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Measure {
    /// Place among the measures, from 1.
    #[serde(skip)]
    pub(crate) place: u8,
    /// Name in the data of the page.
    pub(crate) key: &'static str,
    /// Heading.
    pub(crate) title: &'static str,
    /// Unit of what is drawn, which may be another than that of the column.
    pub(crate) unit: &'static str,
    pub(crate) explanation: &'static str,
    pub(crate) shape: Shape,
    /// Value of an interval of an access that has rows.
    #[serde(skip)]
    pub(crate) value: fn(&Interval<'_>) -> Option<f64>,
}

/// Form of a measure's chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shape {
    /// A line for each access.
    Lines,
    /// A line for each access that keeps its value until it has another.
    Steps,
    /// Areas on top of each other, so that their sum shows.
    Stacked,
}

/// Rows of an access that are drawn as one.
pub(crate) struct Interval<'a> {
    pub(crate) rows: &'a [&'a TimelineRow],
    /// Length, ms, at least 1.
    pub(crate) ms: i64,
}

impl Interval<'_> {
    /// Mean over the rows that have the value.
    pub(crate) fn mean(&self, of: impl Fn(&TimelineRow) -> Option<f64>) -> Option<f64> {
        mean(self.rows.iter().filter_map(|r| of(r)))
    }
}
