//! The terminal table at three widths, against tables that were looked at.
//! `UPDATE_TABLES=1 cargo test -p braid-lab --test report_table` rewrites them:
//! look at the difference before you keep it.

use crate::synthetic;

use std::path::Path;

use braid_lab::report::RunFiles;
use braid_lab::report::table::{Style, render};
use proptest::prelude::*;

fn show(files: &RunFiles, width: usize) -> String {
    let style = Style {
        width,
        colour: false,
    };
    render(&files.summary, style)
}

fn widest(text: &str) -> usize {
    text.lines()
        .map(textwrap::core::display_width)
        .max()
        .unwrap_or(0)
}

fn check(name: &str, files: &RunFiles) {
    for width in [80, 120, 160] {
        let got = show(files, width);
        assert!(widest(&got) <= width, "{name} at {width}:\n{got}");
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/it/tables")
            .join(format!("{name}-{width}.txt"));
        if std::env::var_os("UPDATE_TABLES").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &got).unwrap();
        }
        let want =
            std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(got == want, "{} differs; now:\n{got}", path.display());
    }
}

#[test]
fn bulk() {
    check("bulk", &synthetic::bulk(1));
}

#[test]
fn bulk_repeated() {
    check("bulk-repeated", &synthetic::bulk(5));
}

#[test]
fn requests() {
    check("requests", &synthetic::requests());
}

#[test]
fn interruption() {
    check("interruption", &synthetic::interruption(5));
}

#[test]
fn walk() {
    check("walk", &synthetic::walk());
}

#[test]
fn contention() {
    check("contention", &synthetic::contention());
}

#[test]
fn a_best_single_path_of_some_accesses_says_of_which() {
    let mut f = synthetic::bulk(1);
    assert!(!show(&f, 120).contains("measured alone"));
    f.summary.cases[3].measured_alone = vec!["nr".into(), "lifi".into()];
    let text = show(&f, 120);
    assert!(
        text.contains("[1] best single: of those measured alone: nr, lifi"),
        "{text}"
    );
}

#[test]
fn a_wrong_byte_is_never_dropped_for_room() {
    let mut f = synthetic::bulk(1);
    f.summary.cases[3].intact = Some(false);
    assert!(show(&f, 60).contains(" NO"), "{}", show(&f, 60));
    assert!(!show(&synthetic::bulk(1), 60).contains("intact\n"));
}

#[test]
fn hostile_names_cannot_move_the_cursor() {
    let text = show(&synthetic::hostile(), 120);
    assert!(
        !text.chars().any(|c| c.is_control() && c != '\n'),
        "{text:?}"
    );
}

#[test]
fn colour_only_where_asked() {
    let f = synthetic::bulk(1);
    let coloured = render(
        &f.summary,
        Style {
            width: 120,
            colour: true,
        },
    );
    assert!(coloured.contains("\u{1b}["));
    assert!(!show(&f, 120).contains('\u{1b}'));
}

#[test]
fn a_file_gets_a_line_for_each_case() {
    for f in [
        synthetic::bulk(5),
        synthetic::requests(),
        synthetic::contention(),
    ] {
        let text = render(&f.summary, Style::of(false));
        assert!(!text.contains(['─', '═', '\u{1b}']), "{text}");
        assert!(!text.contains("Not shown"), "{text}");
        let mut names: Vec<&str> = Vec::new();
        for c in &f.summary.cases {
            if !names.contains(&c.name.as_str()) {
                names.push(&c.name);
            }
        }
        let table: Vec<&str> = text.lines().skip(1).take_while(|l| !l.is_empty()).collect();
        assert!(table[0].starts_with("case "), "{text}");
        for (line, name) in table[1..].iter().zip(&names) {
            assert!(line.starts_with(name), "{name}: {line}");
        }
    }
}

#[test]
fn an_empty_run_has_a_table() {
    assert!(show(&RunFiles::default(), 80).contains("case"));
}

proptest! {
    /// From 80 columns up every result of usual names fits.
    #[test]
    fn it_fits(width in 80usize..240, which in 0usize..6) {
        let f = match which {
            0 => synthetic::bulk(1),
            1 => synthetic::bulk(3),
            2 => synthetic::requests(),
            3 => synthetic::interruption(4),
            4 => synthetic::walk(),
            _ => synthetic::contention(),
        };
        let text = show(&f, width);
        prop_assert!(widest(&text) <= width, "{}", text);
    }
}
