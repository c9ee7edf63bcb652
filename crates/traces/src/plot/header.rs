//! Title and legend above the panels.

use std::time::Duration;

use braid_core::units::format_duration;
use plotters::prelude::*;
use plotters::style::FontStyle;

use super::super::stats::quantile;
use super::lines::Line;
use super::{Area, INK, Options, PlotError, SOFT, draw_error, font, number, tick};

const LEGEND_ROW: i32 = 22;
/// Begin of the title, in pixels from the left.
const LEFT: i32 = 22;

/// Draws the line on top of a picture, shortened to its width. It may be the name of a file,
/// which may have any character in it, and an SVG may not.
pub(crate) fn title(root: &Area<'_>, text: &str) -> Result<(), PlotError> {
    let style = ("sans-serif", 19).into_font().style(FontStyle::Bold);
    let style = style.color(&INK);
    let width = |text: &str| {
        root.estimate_text_size(text, &style)
            .map(|(width, _)| width)
    };
    let room = root.dim_in_pixel().0.saturating_sub(2 * LEFT as u32);
    let most = room as usize; // No character is narrower than a pixel.
    let plain = |c: char| match c.is_control() || ('\u{fffe}'..='\u{ffff}').contains(&c) {
        true => ' ',
        false => c,
    };
    let mut line: String = text.chars().take(most).map(plain).collect();
    let whole = text.chars().count() <= most && width(&line).map_err(draw_error)? <= room;
    if !whole {
        while !line.is_empty() && width(&format!("{line}...")).map_err(draw_error)? > room {
            line.pop();
        }
        line += "...";
    }
    root.draw_text(&line, &style, (LEFT, 16))
        .map_err(draw_error)
}

/// Draws title and legend and returns the height they take; spreads are over
/// `around` seconds, the rates of opportunities over `window`.
pub(super) fn header(
    root: &Area<'_>,
    lines: &[Line],
    options: &Options,
    around: f64,
    window: Option<Duration>,
) -> Result<i32, PlotError> {
    title(root, &options.title)?;
    let mut entries: Vec<(Option<&Line>, String)> = lines
        .iter()
        .map(|l| {
            let total: f64 = l.sorted.iter().map(|s| s.length_s).sum();
            let mean = l.sorted.iter().map(|s| s.mbps * s.length_s).sum::<f64>() / total;
            let median = number(quantile(&l.sorted, 0.5));
            (
                Some(l),
                format!("{}: mean {}, median {median} Mbit/s", l.name, number(mean)),
            )
        })
        .collect();
    if let Some(window) = window {
        entries.push((None, format!("rates over {}", format_duration(window))));
    }
    if lines.iter().any(|l| l.spread.len() > 1) {
        entries.push((
            None,
            format!(
                "band: 5th to 95th percentile within {} s",
                tick((around * 10.0).round() / 10.0)
            ),
        ));
    }
    if lines.iter().any(|l| !l.outages.is_empty()) {
        entries.push((
            None,
            format!(
                "shaded, with a bar on top: at most {} Mbit/s for {} or more",
                options.stats.outage_mbps,
                format_duration(options.stats.outage_min)
            ),
        ));
    }
    let (mut x, mut y) = (22, 48);
    for (line, text) in &entries {
        let style = font(14, if line.is_some() { INK } else { SOFT });
        let (w, _) = root.estimate_text_size(text, &style).map_err(draw_error)?;
        let swatch = if line.is_some() { 24 } else { 0 };
        let w = w as i32 + swatch;
        if x > 22 && x + w > options.width as i32 - 22 {
            (x, y) = (22, y + LEGEND_ROW);
        }
        if let Some(l) = line {
            let box_ = Rectangle::new([(x, y + 1), (x + 16, y + 13)], l.colour.filled());
            root.draw(&box_).map_err(draw_error)?;
        }
        root.draw_text(text, &style, (x + swatch, y))
            .map_err(draw_error)?;
        x += w + 26;
    }
    Ok(y + LEGEND_ROW + 6)
}
