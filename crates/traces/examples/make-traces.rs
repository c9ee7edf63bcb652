//! Writes the traces that ship with the scenarios, from their models:
//! `cargo run -p braid-radio --example make-traces [FOLDER]`
//! (`scenarios/traces` unless told otherwise).

use std::io;
use std::path::PathBuf;

use braid_traces::generate::SHIPPED;
use braid_traces::{Capacity, write};

fn main() -> io::Result<()> {
    let folder = PathBuf::from(
        std::env::args_os()
            .nth(1)
            .unwrap_or("scenarios/traces".into()),
    );
    std::fs::create_dir_all(&folder)?;
    for shipped in &SHIPPED {
        let trace = (shipped.make)();
        let mut text = Vec::new();
        match &trace.capacity {
            Capacity::Steps { .. } => write::csv(&trace, &[shipped.about.to_owned()], &mut text)?,
            Capacity::Opportunities { ms, .. } => write::mahimahi(ms, &mut text)?,
        }
        let path = folder.join(shipped.file);
        std::fs::write(&path, text)?;
        println!("{}: {}", path.display(), shipped.about);
    }
    Ok(())
}
