//! `--only`: which cases of a scenario are run.

use super::Case;
use super::diagnostic::Problem;

/// Leaves the cases that `only` names: by their names, their variants', or their names in
/// every variant; all of them where it names none.
pub(super) fn keep(only: &[String], cases: &mut Vec<Case>) -> Result<(), Problem> {
    if only.is_empty() {
        return Ok(());
    }
    let matches =
        |c: &Case, o: &str| c.name == o || c.base_name == o || c.variant.as_deref() == Some(o);
    let mut kept: Vec<String> = Vec::new();
    for given in only {
        // Commas separate names, and may be in them: the longest name counts.
        let parts: Vec<&str> = given.split(',').collect();
        let mut at = 0;
        while at < parts.len() {
            let joined = |end: usize| parts[at..end].join(",").trim().to_owned();
            let known = |name: &String| cases.iter().any(|c| matches(c, name));
            let longest = (at + 1..=parts.len())
                .rev()
                .find(|end| known(&joined(*end)));
            let Some(end) = longest else {
                let names: Vec<_> = cases.iter().map(|c| format!("\"{}\"", c.name)).collect();
                return Err(Problem::whole(format!(
                    "--only: no case is called \"{}\"; there are {}",
                    joined(at + 1),
                    names.join(", ")
                )));
            };
            kept.push(joined(end));
            at = end;
        }
    }
    cases.retain(|c| kept.iter().any(|o| matches(c, o)));
    Ok(())
}
