//! Connections of programs over real sessions, between network namespaces.

mod nft;
mod programs;
