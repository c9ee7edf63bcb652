//! The pictures of section 3 of the paper on one page: capacity of the two best
//! cells over time (figure 1), available cells (figure 2), and the distribution
//! of capacity at every level of aggregation.

use plotters::prelude::*;

use super::cells::{by_segment, levels, quantile};
use super::paths::Paths;
use crate::plot::{
    Area, Axes, COLOURS, INK, PlotError, SOFT, check_size, draw_error, font, number, panel,
    register_fonts, title,
};

/// Most points of a line over time; longer recordings are drawn as means.
const MAX_POINTS: usize = 1500;
/// Windows over which capacities are drawn, seconds (figure 1).
const WINDOWS: [usize; 2] = [1, 5];

/// Content of the picture, and its size.
#[derive(Clone, Debug, PartialEq)]
pub struct PictureOptions {
    /// The line on top.
    pub title: String,
    /// Width in pixels of the SVG.
    pub width: u32,
    /// Height in pixels of the SVG.
    pub height: u32,
}

impl Default for PictureOptions {
    fn default() -> Self {
        Self {
            title: String::new(),
            width: 1280,
            height: 760,
        }
    }
}

/// Draws `paths` as SVG; [`crate::plot::png`] makes PNG of it.
///
/// # Errors
/// The size is out of range, or there is not one second.
pub fn svg(paths: &Paths, options: &PictureOptions) -> Result<String, PlotError> {
    check_size(options.width, options.height)?;
    if paths.seconds.is_empty() {
        return Err(PlotError::Draw("there is not one second".to_owned()));
    }
    register_fonts()?;
    let mut out = String::new();
    {
        let size = (options.width, options.height);
        let root = SVGBackend::with_string(&mut out, size).into_drawing_area();
        root.fill(&WHITE).map_err(draw_error)?;
        title(&root, &options.title)?;
        let (_, body) = root.split_vertically(44);
        let (left, right) = body.split_horizontally(options.width * 60 / 100);
        let half = (options.height - 44) / 2;
        let (top, bottom) = left.split_vertically(half);
        for (area, window) in [&top, &bottom].into_iter().zip(WINDOWS) {
            over_time(area, paths, window)?;
        }
        let (top, bottom) = right.split_vertically(half);
        available(&top, paths)?;
        capacities(&bottom, paths)?;
        root.present().map_err(draw_error)?;
    }
    Ok(out)
}

/// Means of `values` over `window` entries each, the last perhaps over fewer.
fn means(values: &[f64], window: usize) -> Vec<f64> {
    let mean = |c: &[f64]| c.iter().sum::<f64>() / c.len() as f64;
    values.chunks(window.max(1)).map(mean).collect()
}

/// A whole number of windows of `least` seconds that gives few enough points.
fn drawn_window(seconds: usize, least: usize) -> usize {
    seconds.div_ceil(MAX_POINTS).div_ceil(least).max(1) * least
}

/// A line of text with squares of the series' colours, on top of a panel.
fn legend(area: &Area<'_>, title: &str, names: &[String]) -> Result<(), PlotError> {
    let (style, soft) = (font(13, INK), font(13, SOFT));
    area.draw_text(title, &style, (22, 2)).map_err(draw_error)?;
    let mut x = 22;
    for (i, name) in names.iter().enumerate() {
        let (w, _) = area.estimate_text_size(name, &soft).map_err(draw_error)?;
        let colour = COLOURS[i % COLOURS.len()].filled();
        area.draw(&Rectangle::new([(x, 23), (x + 12, 33)], colour))
            .map_err(draw_error)?;
        area.draw_text(name, &soft, (x + 17, 21))
            .map_err(draw_error)?;
        x += w as i32 + 34;
    }
    Ok(())
}

const LEGEND: u32 = 38;

fn over_time(area: &Area<'_>, paths: &Paths, least: usize) -> Result<(), PlotError> {
    let seconds = paths.seconds.len();
    let window = drawn_window(seconds, least);
    let rank = |k: usize| {
        let rate = |n: &super::Now| n.paths.get(k).map_or(0.0, |p| p.rate.as_mbps());
        means(&paths.seconds.iter().map(rate).collect::<Vec<_>>(), window)
    };
    let lines = [rank(0), rank(1)];
    let title = format!("Capacity of the two best cells, means over {window} s");
    legend(area, &title, &["best".into(), "second best".into()])?;
    let (_, body) = area.split_vertically(LEGEND);
    let (unit, per) = match seconds {
        s if s > 4 * 3600 => ("Time (hours)", 3600.0),
        s if s > 900 => ("Time (minutes)", 60.0),
        _ => ("Time (seconds)", 1.0),
    };
    let most = lines[0].iter().copied().fold(1e-3, f64::max);
    let axes = Axes {
        x: seconds as f64 / per,
        y: most * 1.04,
        x_label: unit,
        y_label: "Capacity (Mbit/s)",
        ticks: 11,
    };
    let mut chart = panel(&body, &axes)?;
    for (i, line) in lines.iter().enumerate() {
        let steps = line.iter().enumerate().flat_map(|(w, v)| {
            let end = ((w + 1) * window).min(seconds);
            [(w * window, *v), (end, *v)].map(|(t, v)| (t as f64 / per, v))
        });
        let style = COLOURS[i].stroke_width(if line.len() > 400 { 1 } else { 2 });
        chart
            .draw_series(LineSeries::new(steps, style))
            .map_err(draw_error)?;
    }
    Ok(())
}

/// Part of the time with at most so many available cells: all, and segments.
fn available(area: &Area<'_>, paths: &Paths) -> Result<(), PlotError> {
    let parts = by_segment(paths);
    let names: Vec<String> = parts
        .iter()
        .map(|p| format!("{}: {:.2}", p.part, p.available_mean))
        .collect();
    legend(
        area,
        "Available cells, at most one per carrier; means",
        &names,
    )?;
    let (_, body) = area.split_vertically(LEGEND);
    let most = parts.iter().map(|p| p.available.len()).max().unwrap_or(1);
    let axes = Axes {
        x: most as f64,
        y: 100.0,
        x_label: "Available cells",
        y_label: "Time with so many or fewer (%)",
        ticks: most + 1,
    };
    let mut chart = panel(&body, &axes)?;
    for (i, part) in parts.iter().enumerate() {
        let (mut sum, mut points) = (0.0, vec![(0.0, 0.0)]);
        for (n, share) in part.available.iter().enumerate() {
            points.push((n as f64, sum));
            sum += share * 100.0;
            points.push((n as f64, sum));
        }
        points.push((most as f64, 100.0));
        let style = COLOURS[i % COLOURS.len()].stroke_width(2);
        chart
            .draw_series(LineSeries::new(points, style))
            .map_err(draw_error)?;
    }
    Ok(())
}

fn capacities(area: &Area<'_>, paths: &Paths) -> Result<(), PlotError> {
    let levels: Vec<(String, Vec<f64>)> = levels(paths)
        .into_iter()
        .map(|(name, mut v)| {
            v.sort_by(f64::total_cmp);
            (name, v)
        })
        .collect();
    let names: Vec<String> = levels
        .iter()
        .map(|(name, v)| {
            let mean = v.iter().sum::<f64>() / v.len() as f64;
            format!("{name}: {}", number(mean))
        })
        .collect();
    legend(area, "Capacity; means in Mbit/s", &names)?;
    let (_, body) = area.split_vertically(LEGEND);
    let most = levels.iter().filter_map(|(_, v)| v.last().copied());
    let most = most.fold(1e-3, f64::max) * 1.04;
    let axes = Axes {
        x: most,
        y: 100.0,
        x_label: "Capacity (Mbit/s)",
        y_label: "Time at or below (%)",
        ticks: 7,
    };
    let mut chart = panel(&body, &axes)?;
    for (i, (_, sorted)) in levels.iter().enumerate() {
        let n = 400.min(sorted.len());
        let point = |k: usize| {
            let q = k as f64 / n as f64;
            (quantile(sorted, q), q * 100.0)
        };
        let points = (0..=n).map(point).chain([(most, 100.0)]);
        let style = COLOURS[i % COLOURS.len()].stroke_width(2);
        chart
            .draw_series(LineSeries::new(points, style))
            .map_err(draw_error)?;
        let dot = Circle::new(point(n / 5), 4, COLOURS[i % COLOURS.len()].filled());
        chart.draw_series([dot]).map_err(draw_error)?;
    }
    let style = font(12, SOFT);
    let (w, _) = area
        .estimate_text_size("dots: 20th percentile", &style)
        .map_err(draw_error)?;
    let (width, height) = body.dim_in_pixel();
    let at = (width as i32 - w as i32 - 36, height as i32 - 76);
    body.draw_text("dots: 20th percentile", &style, at)
        .map_err(draw_error)
}

#[cfg(test)]
mod tests {
    use super::super::CapacityModel;
    use super::super::drive::{DriveSpec, drive};
    use super::*;

    #[test]
    fn shows_all_four_panels() {
        let m = drive(&DriveSpec::shipped(), 1, 3600).unwrap();
        let paths = m.paths(&CapacityModel::default());
        let options = PictureOptions {
            title: "drive <1>".to_owned(),
            ..PictureOptions::default()
        };
        let s = svg(&paths, &options).unwrap();
        for text in [
            "drive &lt;1&gt;",
            "means over 3 s",
            "means over 5 s",
            "Available cells",
            "residential: ",
            "best single path: ",
            "op2 SP: ",
            "Time (minutes)",
            "20th percentile",
        ] {
            assert!(s.contains(text), "no {text:?}");
        }
        assert!(svg(&Paths::default(), &options).is_err());
        let tiny = PictureOptions {
            width: 10,
            ..options
        };
        assert!(matches!(svg(&paths, &tiny), Err(PlotError::Size(..))));
    }

    #[test]
    fn windows_are_whole_multiples() {
        assert_eq!((drawn_window(100, 5), drawn_window(8000, 1)), (5, 6));
        assert_eq!(drawn_window(8000, 5), 10);
        assert_eq!(means(&[1.0, 3.0, 5.0], 2), [2.0, 5.0]);
    }
}
