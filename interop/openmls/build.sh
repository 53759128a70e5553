# Sourced after ../peer.sh: builds the OpenMLS peer and exports where it is.

wants=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' interop/openmls/Cargo.toml)
command -v cargo >/dev/null || cannot "cargo is not installed: Rust $wants or newer builds the OpenMLS peer (https://rustup.rs)"
has=$(rustc --version | cut -d' ' -f2)
[ "$(printf '%s\n' "$wants" "$has" | sort -V | head -n 1)" = "$wants" ] ||
	cannot "Rust $has is too old: the OpenMLS peer needs $wants or newer (https://rustup.rs)"
cargo build --release --locked --manifest-path interop/openmls/Cargo.toml
COMPAX_OPENMLS_PEER=${CARGO_TARGET_DIR:-$PWD/interop/openmls/target}/release/peer
export COMPAX_OPENMLS_PEER
