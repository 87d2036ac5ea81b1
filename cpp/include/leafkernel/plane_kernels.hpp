// Sums of many bitmaps, stored as bit planes: bit c of plane p is bit p of the sum in column c.
//
// Adding a bitmap to the planes takes a few logical operations per vector register of columns. The
// source (cpp/src/plane_kernels.inc) is compiled for several instruction sets. The best one for the
// processor is chosen at run time.
#pragma once

#include <cstdint>

namespace leafkernel {

using Word = std::uint64_t;

struct PlaneKernels {
    const char* name;
    int doubles;  // doubles per vector

    // planes(p, :) = bit p of Σ over groups g of 2^g Σ over maps of the group. `maps` points to the
    // first word of each map, group by group; group g ends at ends[g]. n_words is a multiple of eight,
    // all pointers are aligned to 64 bytes, and planes are `stride` words apart. n_planes bits must be
    // enough for every sum.
    void (*add)(const Word* const* maps, const int* ends, int n_groups, int n_planes,
                std::int64_t n_words, Word* planes, std::int64_t stride);

    // planes += more, where both hold n_planes bits of each sum, `stride` words apart.
    void (*add_planes)(const Word* more, int n_planes, std::int64_t n_words, Word* planes,
                       std::int64_t stride);

    // Finds the k largest sums among the columns of `equal`. Columns larger than the k-th go to
    // `larger`; ties with the k-th stay in `equal`. Returns how many of these ties belong to the k
    // largest. With fewer than k columns, every column is in one of the two, and the result exceeds the
    // number of columns in `equal`.
    std::int64_t (*largest)(const Word* planes, std::int64_t stride, int n_planes, std::int64_t n_words,
                            std::int64_t k, Word* equal, Word* larger);

    // Removes the columns whose sum is less than `number`.
    void (*at_least)(const Word* planes, std::int64_t stride, int n_planes, std::int64_t n_words,
                     std::uint64_t number, Word* columns);

    // Writes the sum of each of the n_words · 64 columns. Supports at most 16 planes.
    void (*read)(const Word* planes, std::int64_t stride, int n_planes, std::int64_t n_words,
                 std::uint16_t* sums);

    // Adds weights[m] to the sums in the columns of map m, for all m in order. The result equals
    // one-by-one addition to the last bit.
    void (*add_weights)(const Word* const* maps, const double* weights, int n_maps,
                        std::int64_t n_words, double* sums);
};

// Returns the kernels for the best instruction set of this processor, or for the one named by the
// environment variable LEAFKERNEL_SIMD ("baseline", "avx2", "avx512", "neon").
const PlaneKernels& plane_kernels();

}  // namespace leafkernel
