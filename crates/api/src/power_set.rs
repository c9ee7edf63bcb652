//! Parameters of power models: the shipped sets by name, and those in a file: strict TOML, as `python -m braid.energy fit` writes it.
//!
//! One table, named as the model, has the parameters; the keys above it say where they come from.

use std::path::Path;

use braid_core::energy::sets::{self, ParameterSet, Range};
use braid_core::energy::{
    AffineParameters, DrxParameters, Nr38840Parameters, Paper002Parameters, Parameters,
    WifiAirtimeParameters,
};
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Problem, nearest};

/// Content of a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    device: String,
    #[serde(default)]
    access: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    quality: String,
    #[serde(default)]
    assumed: String,
    #[serde(default)]
    rest_mw: f64,
    #[serde(default)]
    range: Option<Range>,
    #[serde(default)]
    affine: Option<AffineParameters>,
    #[serde(default)]
    drx: Option<DrxParameters>,
    #[serde(default)]
    nr38840: Option<Nr38840Parameters>,
    #[serde(default, rename = "wifi-airtime")]
    wifi_airtime: Option<WifiAirtimeParameters>,
    #[serde(default)]
    paper002: Option<Paper002Parameters>,
}

/// Reads the text of a file, and checks every parameter.
///
/// # Errors
/// The place in the text, what is wrong there, and what was expected.
pub fn parse(text: &str) -> Result<ParameterSet, Problem> {
    let file: File = toml::from_str(text)?;
    let given: Vec<Parameters> = [
        file.affine.map(Parameters::Affine),
        file.drx.map(Parameters::Drx),
        file.nr38840.map(Parameters::Nr38840),
        file.wifi_airtime.map(Parameters::WifiAirtime),
        file.paper002.map(Parameters::Paper002),
    ]
    .into_iter()
    .flatten()
    .collect();
    let tables = "[affine], [drx], [nr38840], [wifi-airtime] or [paper002]";
    let parameters = match given[..] {
        [one] => one,
        [] => {
            let message = format!("there are no parameters: expected a table {tables}");
            return Err(Problem::whole(message));
        }
        [_, second, ..] => {
            let message = format!("a second table of parameters: expected one of {tables}");
            return Err(Problem::at_key(&[table(&second)], message));
        }
    };
    parameters.check().map_err(|e| {
        let path = [&[table(&parameters)][..], &e.path[..]].concat();
        Problem::at_key(&path, e.to_string())
    })?;
    if !(0.0..=1e6).contains(&file.rest_mw) {
        let message = format!("rest_mw is {}: expected 0 to 1000000", file.rest_mw);
        return Err(Problem::at_key(&["rest_mw"], message));
    }
    Ok(ParameterSet {
        name: file.name,
        device: file.device,
        access: file.access,
        source: file.source,
        quality: file.quality,
        assumed: file.assumed,
        rest_mw: file.rest_mw,
        range: file.range,
        parameters,
    })
}

/// Returns the set that a setting names: a file below `dir` if it ends in `.toml`, else a shipped one.
///
/// # Errors
/// The file cannot be read, or is wrong at this place; or no set has the name.
pub fn load(name: &str, dir: &Path) -> Result<ParameterSet, String> {
    if !is_file(name) {
        return shipped(name);
    }
    let path = dir.join(name);
    let text = crate::bounded::read_text(&path)
        .map_err(|e| format!("cannot read the parameters in {}: {e}", path.display()))?;
    parse(&text).map_err(|p| p.in_file(path, &text).to_string())
}

/// Returns the text of a file with these parameters, which [`parse`] reads.
pub fn to_text(name: &str, parameters: Parameters) -> String {
    #[derive(Serialize)]
    struct File<'a> {
        name: &'a str,
        #[serde(flatten)]
        parameters: Parameters,
    }
    let text = toml::to_string(&File { name, parameters });
    text.expect("tables of numbers are TOML")
}

/// Whether a setting names a file, and no shipped set.
pub fn is_file(name: &str) -> bool {
    name.ends_with(".toml")
}

/// Returns the shipped set of this name.
///
/// # Errors
/// There is none, and which name is near.
pub fn shipped(name: &str) -> Result<ParameterSet, String> {
    sets::by_name(name).ok_or_else(|| {
        let all = sets::all();
        let near = nearest(name, all.iter().map(|s| s.name.as_str()));
        let near = near.map_or(String::new(), |n| format!("; did you mean \"{n}\"?"));
        format!(
            "no power set is called \"{name}\": expected a file that ends in .toml, or a set that \
             `braid trace energy --list` names{near}"
        )
    })
}

/// Name of the table of these parameters.
fn table(parameters: &Parameters) -> &'static str {
    parameters.model()
}

#[cfg(test)]
mod tests {
    use braid_core::energy::Interval;

    use super::*;

    const GOOD: &str = "name = \"mine\"\nrest_mw = 500\n[affine]\nbase_mw = 1000\n\
                        down_mw_per_mbps = 10.5\nup_mw_per_mbps = 70\ntail_ms = 5000\n\
                        rsrp = { mw_per_db = -20, reference = -85, min = -120, max = -60 }\n";

    #[test]
    fn text_of_parameters_reads_as_they_were() {
        for set in sets::all() {
            let read = parse(&to_text(&set.name, set.parameters)).unwrap();
            assert_eq!((read.name, read.parameters), (set.name, set.parameters));
        }
    }

    fn message(text: &str) -> String {
        let problem = parse(text).unwrap_err();
        problem.in_file("p.toml".into(), text).to_string()
    }

    #[test]
    fn reads_what_it_must() {
        let set = parse(GOOD).unwrap();
        let Parameters::Affine(p) = set.parameters else {
            panic!("{set:?}")
        };
        assert_eq!(
            (p.base_mw, p.up_mw_per_mbps, p.idle_mw),
            (1000.0, 70.0, 0.0)
        );
        assert_eq!((set.name.as_str(), set.rest_mw), ("mine", 500.0));
        assert_eq!(p.rsrp.unwrap().mw_per_db, -20.0);
    }

    #[test]
    fn points_at_what_is_wrong() {
        let e = message(&GOOD.replace("tail_ms", "tial_ms"));
        assert!(e.starts_with("p.toml:7:1: unknown key `tial_ms`"), "{e}");
        assert!(e.contains("did you mean `tail_ms`?"), "{e}");
        let e = message(&GOOD.replace("5000", "-5"));
        assert!(
            e.starts_with("p.toml:7:1: tail_ms is -5: expected 0 to"),
            "{e}"
        );
        let e = message(&GOOD.replace("-120", "-50"));
        assert!(
            e.starts_with("p.toml:8:10: rsrp.min is -50") || e.contains("p.toml:8:"),
            "{e}"
        );
        let e = message("name = \"x\"\n");
        assert!(
            e.contains("no parameters: expected a table [affine]"),
            "{e}"
        );
        let two = format!("{GOOD}[paper002]\njoules_per_mb = 1\nin_use_mw = 1\n");
        assert!(message(&two).starts_with("p.toml:9:"), "{}", message(&two));
        assert!(
            message("name = 3\n").starts_with("p.toml:1:8: "),
            "{}",
            message("name = 3\n")
        );
    }
    /// A log that the model made, fitted by the tool, and its file read: the parameters again.
    #[test]
    fn the_fit_finds_parameters_again() {
        let python = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python");
        let ready = std::process::Command::new("python3")
            .args(["-c", "import numpy"])
            .output();
        match ready {
            Ok(out) if out.status.success() => {}
            Ok(_) => return println!("skipped: python3 has no numpy"),
            Err(e) => return println!("skipped: python3 cannot be started: {e}"),
        }
        let p = AffineParameters {
            base_mw: 820.0,
            down_mw_per_mbps: 13.5,
            up_mw_per_mbps: 71.0,
            promotion_ms: 300.0,
            promotion_mw: 500.0,
            tail_ms: 10_000.0,
            tail_mw: 400.0,
            ..AffineParameters::default()
        };
        let (mut model, rest_mw) = (Parameters::Affine(p).make(), 1900.0);
        let mut log = "t_s,down_mbps,up_mbps,power_mw\n".to_owned();
        for t in 0..900u32 {
            // Bursts of 30 s and as much silence; rates that repeat late.
            let on = if t % 60 < 30 { 1.0 } else { 0.0 };
            let down = f64::from(t * 37 % 91 + 1) * on;
            let up = f64::from(t * 53 % 23) * 0.7 * on;
            let second = std::time::Duration::from_secs(1);
            let energy = model.advance(&Interval::at_rates(second, down, up));
            let mw = energy.mean_mw(second) + rest_mw;
            log += &format!("{t},{down},{up},{mw}\n");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name);
        std::fs::write(file("log.csv"), log).unwrap();
        let out = std::process::Command::new("python3")
            .args(["-B", "-m", "braid.energy", "fit"])
            .arg(file("log.csv"))
            .arg("--out")
            .arg(file("set.toml"))
            .current_dir(python)
            .output()
            .unwrap();
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
        let set = parse(&std::fs::read_to_string(file("set.toml")).unwrap()).unwrap();
        let Parameters::Affine(got) = set.parameters else {
            panic!("{set:?}")
        };
        for (got, want) in [
            (got.base_mw, p.base_mw),
            (got.down_mw_per_mbps, p.down_mw_per_mbps),
            (got.up_mw_per_mbps, p.up_mw_per_mbps),
            (got.tail_ms, p.tail_ms),
            (got.tail_mw, p.tail_mw),
            (set.rest_mw, rest_mw),
        ] {
            assert!(
                (got / want - 1.0).abs() < 0.02,
                "{got}, not {want}: {set:?}"
            );
        }
    }
}
