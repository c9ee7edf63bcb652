//! Offloads: what the driver of an interface does for the processor (`ethtool -k`), over
//! ethtool's netlink.

use ethtool::{EthtoolAttr, EthtoolFeatureAttr, EthtoolFeatureBit};
use futures_util::TryStreamExt;

use super::facts::Offloads;

/// The offloads of `interface`; `None` where it does not tell.
pub(super) async fn of(interface: &str) -> Option<Offloads> {
    let (connection, mut handle, _) = ethtool::new_connection().ok()?;
    tokio::spawn(connection);
    let mut answers = Box::pin(handle.feature().get(Some(interface)).execute().await.ok()?);
    let answer = answers.try_next().await.ok()??;
    answer.payload.nlas.iter().find_map(|a| match a {
        EthtoolAttr::Feature(EthtoolFeatureAttr::Active(bits)) => Some(of_bits(bits)),
        _ => None,
    })
}

fn of_bits(bits: &[EthtoolFeatureBit]) -> Offloads {
    let on = |name: &str| bits.iter().any(|b| b.value && b.name == name);
    Offloads {
        gro: on("rx-gro"),
        gso: on("tx-generic-segmentation"),
        tso: on("tx-tcp-segmentation"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_go_by_the_names_of_the_kernel() {
        let bit = |name: &str, value| EthtoolFeatureBit {
            index: 0,
            name: name.into(),
            value,
        };
        let bits = [
            bit("rx-gro", true),
            bit("tx-tcp-segmentation", false),
            bit("tx-generic-segmentation", true),
            bit("tx-tcp6-segmentation", true),
        ];
        let o = of_bits(&bits);
        assert!(o.gro && o.gso && !o.tso);
        assert_eq!(of_bits(&[]), Offloads::default());
    }
}
