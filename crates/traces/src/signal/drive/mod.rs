//! A drive test without a drive: what a device in a bus hears of two or more
//! operators along a road that is drawn from a seed.
//!
//! The scenario ([`DriveSpec`]) names operators with their carriers, kinds of
//! areas with the density of every operator's sites, and the stretches of the
//! road. Path loss, line of sight, shadowing and their correlation over distance
//! are those of TR 38.901; what counts as heard follows TS 36.133.

mod layout;
mod path_loss;
mod radio;
mod spec;

pub use path_loss::Propagation;
pub use spec::{Area, CarrierSpec, DriveSpec, Grid, OperatorSpec, Receiver, Stretch};

use layout::Layout;
use radio::Device;

use super::measurement::{Carrier, Cell, Measurements, Second};

/// Longest drive, seconds.
pub const MAX_SECONDS: u32 = 7 * 86_400;

/// Most sectors of a site, and what they are called.
const MAX_SECTORS: usize = 6;
const LETTERS: [&str; MAX_SECTORS] = ["a", "b", "c", "d", "e", "f"];

/// Simulates what the device hears in `seconds` of the drive, one second after the other.
/// The same seed gives the same measurement.
///
/// # Errors
/// The scenario does not hold together ([`DriveSpec::check`]), or the drive is
/// too long.
pub fn drive(spec: &DriveSpec, seed: u64, seconds: u32) -> Result<Measurements, String> {
    spec.check().map_err(|p| p.message)?;
    if !(1..=MAX_SECONDS).contains(&seconds) {
        return Err(format!(
            "a drive of {seconds} s: expected 1 to {MAX_SECONDS} s"
        ));
    }
    let layout = Layout::draw(spec, seed, seconds);
    let mut out = Measurements::default();
    for (o, operator) in spec.operator.iter().enumerate() {
        out.operators.push(operator.name.clone());
        out.carriers
            .extend(operator.carrier.iter().map(|c| Carrier {
                operator: o,
                name: c.name.clone(),
                bandwidth_mhz: Some(c.bandwidth_mhz),
            }));
    }
    out.segments = spec.area.keys().cloned().collect();
    let mut device = Device::new(spec, &layout, seed);
    let mut known = Known::default();
    for t in 0..seconds {
        let (x, area) = layout.position(t);
        let mut heard = Vec::new();
        for (mut h, carrier) in device.hear(x) {
            h.cell = known.index(&mut out.cells, carrier, h.cell);
            heard.push(h);
        }
        heard.sort_by_key(|h| h.cell);
        out.seconds.push(Second {
            heard,
            segment: Some(area),
        });
    }
    Ok(out)
}

/// Cells get their number when they are heard first.
#[derive(Default)]
struct Known(std::collections::HashMap<(usize, usize), usize>);

impl Known {
    fn index(&mut self, cells: &mut Vec<Cell>, carrier: usize, sector: usize) -> usize {
        *self.0.entry((carrier, sector)).or_insert_with(|| {
            cells.push(Cell {
                carrier,
                name: format!(
                    "{}{}",
                    sector / MAX_SECTORS + 1,
                    LETTERS[sector % MAX_SECTORS]
                ),
            });
            cells.len() - 1
        })
    }
}

#[cfg(test)]
mod tests;
