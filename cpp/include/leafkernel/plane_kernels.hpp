// Sums of many bitmaps, kept as bit planes: bit c of plane p is bit p of the sum in column c.
//
// Adding a bitmap to planes takes a few logical operations for as many columns as a vector register has
// bits. One source (cpp/src/plane_kernels.inc) is compiled for several instruction sets, and the best
// that the processor has is chosen once.
#pragma once

#include <cstdint>

namespace leafkernel {

using Word = std::uint64_t;

struct PlaneKernels {
    const char* name;
    int doubles;  // in a vector

    // planes(p, :) = bit p of Σ over groups g of 2^g Σ over maps of the group. Maps are given by
    // pointers to their first word, group after group; group g ends at ends[g]. n_words is a multiple
    // of eight, and every pointer is aligned to 64 bytes. Planes lie `stride` words apart. The caller
    // makes sure that n_planes bits hold every sum.
    void (*add)(const Word* const* maps, const int* ends, int n_groups, int n_planes,
                std::int64_t n_words, Word* planes, std::int64_t stride);

    // Splits the columns of `equal`: those with the k largest sums go to `larger`, except for ties with
    // the k-th, which stay in `equal`. Returns how many of these belong to the k. Where there are no k
    // columns, all are in one of the two, and the number returned is larger than what `equal` has.
    std::int64_t (*largest)(const Word* planes, std::int64_t stride, int n_planes, std::int64_t n_words,
                            std::int64_t k, Word* equal, Word* larger);

    // Keeps in `columns` those whose sum is at least a number.
    void (*at_least)(const Word* planes, std::int64_t stride, int n_planes, std::int64_t n_words,
                     std::uint64_t number, Word* columns);

    // Writes the sum in each column, n_words · 64 of them. There are at most 16 planes.
    void (*read)(const Word* planes, std::int64_t stride, int n_planes, std::int64_t n_words,
                 std::uint16_t* sums);

    // Adds weights[m] to the sums in the columns of map m, for all m in order: the result is the same
    // to the last bit as that of additions one by one.
    void (*add_weights)(const Word* const* maps, const double* weights, int n_maps,
                        std::int64_t n_words, double* sums);
};

// The kernels for the best instruction set of this processor, or for the one that the environment
// variable LEAFKERNEL_SIMD names ("baseline", "avx2", "avx512", "neon").
const PlaneKernels& plane_kernels();

}  // namespace leafkernel
