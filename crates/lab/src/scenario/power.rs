//! The key `power` of accesses: the model of the radio whose energy is computed.

use braid_core::energy::Parameters;
use braid_core::energy::sets::Range;
use serde::{Deserialize, Serialize};
use serde_spanned::Spanned;

use super::diagnostic::Problem;
use super::files::Files;

/// Power model of an access's radio at the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Power {
    /// Name of the parameter set.
    pub set: String,
    /// Parameters of its model.
    pub parameters: Parameters,
    /// Throughputs for which the set has data; absent where nobody measured it.
    pub range: Option<Range>,
}

/// Reads the set that an access names: a shipped one, or a file beside the scenario.
///
/// # Errors
/// No such set, or what is wrong in the file, and where.
pub(super) fn power(
    given: Option<&Spanned<String>>,
    files: &Files<'_>,
) -> Result<Option<Power>, Problem> {
    let Some(given) = given else {
        return Ok(None);
    };
    let set = files.power_set(given.get_ref());
    let set = set.map_err(|m| Problem::at(given.span(), m))?;
    Ok(Some(Power {
        set: set.name,
        parameters: set.parameters,
        range: set.range,
    }))
}
