//! Weights of accesses: what a configuration, a request and a scenario may give.

/// Greatest weight of an access.
pub const MAX: f64 = 1e6;

/// Checks the weight of access `name`.
///
/// # Errors
/// It is no number from 0 to [`MAX`]: the access, the weight, and the range.
pub fn check(name: &str, weight: f64) -> Result<(), String> {
    match (0.0..=MAX).contains(&weight) {
        true => Ok(()),
        false => Err(format!(
            "access \"{name}\": weight {weight}: expected a number from 0 to {MAX}"
        )),
    }
}

/// Checks that somebody carries, of accesses with these weights.
///
/// # Errors
/// There are accesses, and the weight of each is 0.
pub fn check_all(weights: impl IntoIterator<Item = f64>) -> Result<(), String> {
    let mut weights = weights.into_iter().peekable();
    if weights.peek().is_none() || weights.any(|w| w > 0.0) {
        return Ok(());
    }
    Err(format!(
        "no access would have a weight above 0: give one of them more, up to {MAX}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_have_a_range() {
        for good in [0.0, 0.001, 1.0, MAX] {
            assert_eq!(check("nr", good), Ok(()));
        }
        for bad in [-1.0, 1_000_001.0, 99_999_999_999.0, f64::NAN, f64::INFINITY] {
            let e = check("nr", bad).unwrap_err();
            assert!(e.contains("\"nr\"") && e.contains("0 to 1000000"), "{e}");
        }
    }

    #[test]
    fn somebody_has_to_carry() {
        assert_eq!(check_all([0.0, 0.5]), Ok(()));
        assert_eq!(check_all([]), Ok(()));
        let e = check_all([0.0, 0.0]).unwrap_err();
        assert!(e.contains("above 0"), "{e}");
    }
}
