#!/usr/bin/env bash
# Runs the C++ tests of bit planes for aarch64 in an emulator. Needs a cross compiler and qemu-user
# (Debian: g++-aarch64-linux-gnu qemu-user). Prints a message and exits if they are missing.
set -euo pipefail
cd "$(dirname "$0")/../.."
compiler=aarch64-linux-gnu-g++
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static || true)
if ! command -v "$compiler" >/dev/null || [ -z "$emulator" ]; then
    echo "skipped: $compiler and qemu-aarch64 are needed"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sources=(cpp/src/plane_kernels.cpp cpp/src/plane_kernels_baseline.cpp cpp/src/plane_kernels_neon.cpp)
"$compiler" -std=c++20 -O2 -ffp-contract=off -static -pthread -DLEAFKERNEL_ARM -Icpp/include "${sources[@]}" \
    cpp/tests/test_planes.cpp -o "$work/test_planes"
for simd in neon baseline; do
    LEAFKERNEL_SIMD=$simd "$emulator" "$work/test_planes"
done
