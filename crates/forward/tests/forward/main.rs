//! Connections of programs and LANs over real sessions, between network namespaces.

mod divert;
mod ends;
mod nft;
mod own;
mod programs;
mod rules;
mod tunnel;
