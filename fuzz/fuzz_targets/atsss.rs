//! ATSSS containers, and the rules of a configuration that they make.
#![no_main]

use braid_api::atsss::{Names, import};
use braid_core::atsss::Container;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok((container, form)) = Container::decode(data) else {
        return;
    };
    let octets = container.encode(form).expect("it was read");
    assert_eq!(Container::decode_as(&octets, form), Ok(container.clone()));
    let names = Names {
        threegpp: "nr".to_owned(),
        non_threegpp: "wifi".to_owned(),
    };
    import(&container, &names).toml().expect("text");
});
