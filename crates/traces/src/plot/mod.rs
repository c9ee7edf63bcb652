//! Pictures of traces: rate over time with its spread and its outages, and the
//! distribution of the rate. SVG is drawn with plotters; PNG is that SVG
//! rasterised by resvg with the font that is built in.

mod header;
mod lines;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, register_font};
use resvg::{tiny_skia, usvg};
use thiserror::Error;

use super::stats::{self, Segment, quantile};
use super::{Capacity, LineError, Trace};
use header::header;
pub(crate) use header::title;
pub(crate) use lines::COLOURS;
use lines::{Line, MAX_POINTS, lines, spread_window};

const REGULAR: &[u8] = include_bytes!("../../assets/Roboto-Regular-latin.ttf");
const MEDIUM: &[u8] = include_bytes!("../../assets/Roboto-Medium-latin.ttf");

pub(crate) const INK: RGBColor = RGBColor(0x1f, 0x29, 0x37);
pub(crate) const SOFT: RGBColor = RGBColor(0x5b, 0x65, 0x75);
const GRID: RGBColor = RGBColor(0xe3, 0xe7, 0xec);
const AXIS: RGBColor = RGBColor(0x9a, 0xa3, 0xaf);

/// Content of the picture, and its size.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The line on top.
    pub title: String,
    /// Width in pixels (of the SVG; PNG is `scale` times as large).
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// PNG pixels per SVG pixel.
    pub scale: f32,
    /// Outages, and the window of opportunity traces.
    pub stats: stats::Options,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            title: String::new(),
            width: 1200,
            height: 520,
            scale: 2.0,
            stats: stats::Options::default(),
        }
    }
}

/// Why there is no picture.
#[derive(Debug, Error)]
pub enum PlotError {
    /// The trace cannot be described with these options.
    #[error(transparent)]
    Trace(#[from] LineError),
    /// The size is out of range.
    #[error("cannot draw {0} by {1} pixels: expected 400 by 240 to 8000 by 8000")]
    Size(u32, u32),
    /// Drawing failed.
    #[error("cannot draw the trace: {0}")]
    Draw(String),
}

pub(crate) fn draw_error(e: impl std::fmt::Display) -> PlotError {
    PlotError::Draw(e.to_string())
}

/// Windows over which delivery opportunities that last `span` are drawn as
/// rates: 1, 2 or 5 times a power of ten milliseconds, 10 ms to 1 s, such that
/// there are some hundreds of them.
pub fn window(span: Duration) -> Duration {
    let wanted = span / 300;
    let sizes = [10, 20, 50, 100, 200, 500].map(Duration::from_millis);
    let fitting = sizes.into_iter().find(|s| *s >= wanted);
    fitting.unwrap_or(Duration::from_secs(1))
}

/// Draws the trace as SVG.
///
/// # Errors
/// The size is out of range, or the window is too short for the trace.
pub fn svg(trace: &Trace, options: &Options) -> Result<String, PlotError> {
    let (w, h) = (options.width, options.height);
    check_size(w, h)?;
    register_fonts()?;
    let span = trace.span().as_secs_f64();
    let around = spread_window(trace, &options.stats);
    let lines = lines(trace, &options.stats, around)?;
    let mut out = String::new();
    {
        let root = SVGBackend::with_string(&mut out, (w, h)).into_drawing_area();
        root.fill(&WHITE).map_err(draw_error)?;
        let window = matches!(trace.capacity, Capacity::Opportunities { .. });
        let window = window.then_some(options.stats.window);
        let top = header(&root, &lines, options, around, window)?;
        let (_, body) = root.split_vertically(top);
        let (left, right) = body.split_horizontally(w * 69 / 100);
        let most = lines.iter().filter_map(|l| l.sorted.last()).map(|s| s.mbps);
        let most = most.fold(0.0, f64::max).max(1e-3);
        over_time(&left, &lines, span, most)?;
        distribution(&right, &lines, most)?;
        root.present().map_err(draw_error)?;
    }
    Ok(out)
}

/// Whether a picture of this many pixels is drawn.
pub(crate) fn check_size(w: u32, h: u32) -> Result<(), PlotError> {
    if (400..=8000).contains(&w) && (240..=8000).contains(&h) {
        return Ok(());
    }
    Err(PlotError::Size(w, h))
}

/// Rasterises what [`svg`] drew, `scale` times as large, as PNG.
///
/// # Errors
/// The text is not such a picture, or too large when scaled.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, PlotError> {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(REGULAR.to_vec());
    fonts.load_font_data(MEDIUM.to_vec());
    fonts.set_sans_serif_family("Roboto");
    let options = usvg::Options {
        fontdb: Arc::new(fonts),
        ..usvg::Options::default()
    };
    let tree = usvg::Tree::from_str(svg, &options).map_err(draw_error)?;
    let size = tree.size().to_int_size().scale_by(scale);
    let mut pixels = size
        .filter(|s| s.width() <= 16_000 && s.height() <= 16_000)
        .and_then(|s| tiny_skia::Pixmap::new(s.width(), s.height()))
        .ok_or_else(|| PlotError::Draw(format!("{scale} is no usable scale")))?;
    let transform = tiny_skia::Transform::from_scale(scale, scale);
    resvg::render(&tree, transform, &mut pixels.as_mut());
    pixels.encode_png().map_err(draw_error)
}

pub(crate) fn register_fonts() -> Result<(), PlotError> {
    static DONE: OnceLock<bool> = OnceLock::new();
    let ok = *DONE.get_or_init(|| {
        register_font("sans-serif", FontStyle::Normal, REGULAR).is_ok()
            && register_font("sans-serif", FontStyle::Bold, MEDIUM).is_ok()
    });
    ok.then_some(())
        .ok_or_else(|| PlotError::Draw("the built-in font cannot be read".to_owned()))
}

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

pub(crate) fn font(px: u32, colour: RGBColor) -> TextStyle<'static> {
    ("sans-serif", px).into_font().color(&colour)
}

/// Axes of one panel.
pub(crate) struct Axes<'a> {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) x_label: &'a str,
    pub(crate) y_label: &'a str,
    pub(crate) ticks: usize,
}

pub(crate) type Chart<'a, 'b> =
    ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

pub(crate) fn panel<'a, 'b>(
    area: &'a Area<'b>,
    axes: &Axes<'_>,
) -> Result<Chart<'a, 'b>, PlotError> {
    let mut chart = ChartBuilder::on(area)
        .margin_right(24)
        .margin_left(8)
        .margin_bottom(8)
        .margin_top(8)
        .x_label_area_size(46)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..axes.x, 0.0..axes.y)
        .map_err(draw_error)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(AXIS)
        .label_style(font(13, SOFT))
        .axis_desc_style(font(14, INK))
        .x_labels(axes.ticks)
        .y_labels(7)
        .x_label_formatter(&|v| tick(*v))
        .y_label_formatter(&|v| tick(*v))
        .x_desc(axes.x_label)
        .y_desc(axes.y_label)
        .draw()
        .map_err(draw_error)?;
    Ok(chart)
}

fn over_time(area: &Area<'_>, lines: &[Line], span: f64, most: f64) -> Result<(), PlotError> {
    let (unit, per) = match span {
        s if s > 4.0 * 3600.0 => ("Time (hours)", 3600.0),
        s if s > 900.0 => ("Time (minutes)", 60.0),
        _ => ("Time (seconds)", 1.0),
    };
    let bars = lines.iter().filter(|l| !l.outages.is_empty()).count() as f64;
    let top = most * (1.04 + 0.025 * bars);
    let axes = Axes {
        x: span / per,
        y: top,
        x_label: unit,
        y_label: "Rate (Mbit/s)",
        ticks: 11,
    };
    let mut chart = panel(area, &axes)?;
    let mut bar = top;
    for l in lines.iter().filter(|l| !l.outages.is_empty()) {
        let low = bar - top * 0.016;
        for &(start, length) in &l.outages {
            let (a, b) = (start / per, (start + length) / per);
            let shade = Rectangle::new([(a, 0.0), (b, top)], l.colour.mix(0.10).filled());
            let mark = Rectangle::new([(a, low), (b, bar)], l.colour.filled());
            chart.draw_series([shade, mark]).map_err(draw_error)?;
        }
        bar = low - top * 0.006;
    }
    for l in lines {
        let upper = l.spread.iter().map(|(t, _, hi)| (t / per, *hi));
        let lower = l.spread.iter().rev().map(|(t, lo, _)| (t / per, *lo));
        let band: Vec<(f64, f64)> = upper.chain(lower).collect();
        if l.spread.len() > 1 {
            let band = Polygon::new(band, l.colour.mix(0.16).filled());
            chart.draw_series([band]).map_err(draw_error)?;
        }
    }
    for l in lines {
        let ends = |s: &Segment| {
            let (a, b) = (s.start_s / per, (s.start_s + s.length_s) / per);
            [(a, s.mbps), (b, s.mbps)]
        };
        let width = if l.shown.len() > 600 { 1 } else { 2 };
        let series = LineSeries::new(l.shown.iter().flat_map(ends), l.colour.stroke_width(width));
        chart.draw_series(series).map_err(draw_error)?;
    }
    Ok(())
}

fn distribution(area: &Area<'_>, lines: &[Line], most: f64) -> Result<(), PlotError> {
    let axes = Axes {
        x: most * 1.04,
        y: 100.0,
        x_label: "Rate (Mbit/s)",
        y_label: "Time at or below (%)",
        ticks: 5,
    };
    let mut chart = panel(area, &axes)?;
    for l in lines {
        let total: f64 = l.sorted.iter().map(|s| s.length_s).sum();
        let (mut seen, mut points) = (0.0, vec![(0.0, 0.0)]);
        // As many points as the picture can show, and always the last.
        let every = l.sorted.len().div_ceil(MAX_POINTS);
        for (i, s) in l.sorted.iter().enumerate() {
            let before = seen;
            seen += s.length_s * 100.0 / total;
            if i % every == 0 || i + 1 == l.sorted.len() {
                points.extend([(s.mbps, before), (s.mbps, seen)]);
            }
        }
        points.push((axes.x, 100.0));
        let series = LineSeries::new(points, l.colour.stroke_width(2));
        chart.draw_series(series).map_err(draw_error)?;
        let dots = [0.05, 0.5, 0.95].map(|q| {
            let at = (quantile(&l.sorted, q), q * 100.0);
            Circle::new(at, 4, l.colour.filled())
        });
        chart.draw_series(dots).map_err(draw_error)?;
    }
    let style = font(12, SOFT).pos(Pos::new(HPos::Right, VPos::Bottom));
    let note = Text::new(
        "dots: 5th, 50th, 95th percentile",
        (axes.x * 0.985, 1.5),
        style,
    );
    chart.draw_series([note]).map_err(draw_error)?;
    Ok(())
}

/// A number with three digits or so.
pub(crate) fn number(v: f64) -> String {
    match v.abs() {
        a if a >= 100.0 => format!("{v:.0}"),
        a if a >= 10.0 => format!("{v:.1}"),
        _ => format!("{v:.2}"),
    }
}

/// A number on an axis, without trailing zeros.
fn tick(v: f64) -> String {
    let s = format!("{v:.4}");
    s.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage_trace() -> Trace {
        let rows = (0..120).map(|t| format!("{t},{},{}\n", if t == 60 { 0 } else { t }, 50));
        let text = format!("t_s,nr_mbps,wifi_mbps\n{}", rows.collect::<String>());
        Trace::parse(text.as_bytes(), None).unwrap()
    }

    #[test]
    fn svg_says_what_it_shows() {
        let options = Options {
            title: "drive <1>".to_owned(),
            ..Options::default()
        };
        let s = svg(&outage_trace(), &options).unwrap();
        for text in [
            "drive &lt;1&gt;",
            "nr: mean",
            "wifi: mean 50.0, median 50.0 Mbit/s",
            "Time (seconds)",
            "Rate (Mbit/s)",
            "Time at or below (%)",
            "95th percentile",
            "shaded",
        ] {
            assert!(s.contains(text), "no {text:?}");
        }
    }

    #[test]
    fn a_title_is_one_line_that_fits_and_an_svg_can_have() {
        let drawn = |title: &str| {
            let title = title.to_owned();
            let options = Options {
                title,
                ..Options::default()
            };
            let s = svg(&outage_trace(), &options).unwrap();
            assert!(png(&s, 1.0).is_ok());
            s
        };
        assert!(drawn("a\u{1b}[31m\nb\u{0}\u{ffff}.csv").contains("a [31m b  .csv"));
        let long = drawn(&"wide ".repeat(20_000));
        assert!(long.contains("wide ...") || long.contains("e..."), "cut");
        assert!(!long.contains(&"wide ".repeat(40)));
        assert!(drawn("As wide as it is").contains("As wide as it is"));
    }

    #[test]
    fn png_has_the_colours_of_both_columns_and_dark_text() {
        let options = Options {
            width: 600,
            height: 300,
            ..Options::default()
        };
        let picture = png(&svg(&outage_trace(), &options).unwrap(), 1.0).unwrap();
        let pixels = tiny_skia::Pixmap::decode_png(&picture).unwrap();
        assert_eq!((pixels.width(), pixels.height()), (600, 300));
        let count = |c: RGBColor| {
            let same = |p: &&tiny_skia::PremultipliedColorU8| {
                (p.red(), p.green(), p.blue()) == (c.0, c.1, c.2)
            };
            pixels.pixels().iter().filter(same).count()
        };
        assert!(count(COLOURS[0]) > 100 && count(COLOURS[1]) > 100);
        assert!(count(INK) > 50, "no text");
    }

    #[test]
    fn windows_suit_the_span() {
        for (s, ms) in [(1, 10), (30, 100), (120, 500), (240, 1000), (100_000, 1000)] {
            assert_eq!(window(Duration::from_secs(s)), Duration::from_millis(ms));
        }
        let trace = Trace::parse(b"5\n40000\n", None).unwrap();
        assert!(
            svg(&trace, &Options::default())
                .unwrap()
                .contains("rates over 1 s")
        );
    }

    #[test]
    fn sizes_are_bounded() {
        let options = Options {
            width: 100_000,
            ..Options::default()
        };
        assert!(matches!(
            svg(&outage_trace(), &options),
            Err(PlotError::Size(..))
        ));
        let s = svg(&outage_trace(), &Options::default()).unwrap();
        assert!(png(&s, 1e6).is_err() && png(&s, -1.0).is_err() && png("<no", 1.0).is_err());
    }
}
