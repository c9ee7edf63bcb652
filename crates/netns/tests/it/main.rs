//! Tests of topologies and of the processes in them. One file a theme.

mod build;
mod process;
