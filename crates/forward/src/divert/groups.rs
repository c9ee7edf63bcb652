//! Control groups of units that rules name (cgroups(7), version 2), by which the kernel knows the
//! sockets of their programs.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use braid_core::rules::{Rule, Unit};

/// Depth to which a unit is looked for: those of users stand at 6 at most
/// (`user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome.slice/app-gnome-x.scope`).
const DEPTH: u32 = 8;

/// Control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// Number, another each time that one of the same name is made.
    pub(super) id: u64,
    /// Depth in the hierarchy: 1 below the uppermost.
    pub(super) level: u32,
}

/// Groups by the unit that rules name; none while a unit does not run.
pub type Groups = BTreeMap<Unit, Vec<Group>>;

/// Finds the groups of the units that rules name, below the uppermost group at `top`.
pub fn find(top: &Path, rules: &[Rule]) -> Groups {
    let units = rules.iter().flat_map(|r| &r.descriptor.unit);
    let mut groups: Groups = units.map(|unit| (unit.clone(), vec![])).collect();
    for (unit, found) in groups.iter_mut().filter(|(unit, _)| unit.is_path()) {
        let level = Path::new(unit.as_str()).components().count();
        let id = id(&top.join(unit.as_str()));
        found.extend(id.map(|id| Group {
            id,
            // A path has fewer than that.
            level: u32::try_from(level).unwrap_or(u32::MAX),
        }));
    }
    if groups.keys().any(|unit| !unit.is_path()) {
        walk(top, 1, &mut groups);
    }
    groups
}

fn id(group: &Path) -> Option<u64> {
    let there = fs::metadata(group).ok().filter(fs::Metadata::is_dir)?;
    Some(there.ino())
}

fn walk(folder: &Path, level: u32, groups: &mut Groups) {
    // One that is just going is no error.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
    for entry in folders {
        let name = entry.file_name();
        let units = groups.iter_mut();
        let named = units.filter(|(unit, _)| !unit.is_path() && name == *unit.as_str());
        for (_, found) in named {
            found.extend(id(&entry.path()).map(|id| Group { id, level }));
        }
        if level < DEPTH {
            walk(&entry.path(), level + 1, groups);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_found_by_name_and_by_path() {
        let top = tempfile::tempdir().unwrap();
        let make = |path: &str| {
            let path = top.path().join(path);
            fs::create_dir_all(&path).unwrap();
            fs::metadata(path).unwrap().ino()
        };
        let service = make("system.slice/a.service");
        let users = make("user.slice/user-1000.slice/a.service");
        fs::write(top.path().join("b.service"), "no folder").unwrap();
        let rule = |unit: &str| {
            let text = format!("{{\"unit\": \"{unit}\", \"block\": true}}");
            serde_json::from_str::<Rule>(&text).unwrap()
        };
        let rules = ["a.service", "b.service", "system.slice/a.service", "x/y"].map(rule);
        let groups = find(top.path(), &rules);
        let of = |unit: &str| {
            let mut found = groups[&unit.parse().unwrap()].clone();
            found.sort();
            found
                .into_iter()
                .map(|g| (g.id, g.level))
                .collect::<Vec<_>>()
        };
        let mut both = vec![(service, 2), (users, 3)];
        both.sort();
        assert_eq!(of("a.service"), both);
        assert_eq!(of("system.slice/a.service"), [(service, 2)]);
        assert_eq!((of("b.service"), of("x/y")), (vec![], vec![]));
        assert_eq!(find(top.path(), &[]), Groups::new());
    }
}
