// The arrays a proximity is computed from, as read-only views. Nothing here owns memory.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace leafkernel {

using Offset = std::int64_t;    // positions in long arrays, and counts
using SampleId = std::int32_t;  // a row of the reference set

// The query map Q in CSR form: row i holds (leaf, weight) pairs.
template <class Value, class LeafId>
struct QueryMap {
    std::span<const Offset> offsets;  // n_rows + 1
    std::span<const LeafId> leaves;
    std::span<const Value> weights;

    Offset n_rows() const { return static_cast<Offset>(offsets.size()) - 1; }
};

// The reference map W by leaf (its CSC form): the members of a leaf, ascending, and their weights.
// Members are places in an order of the samples that puts those which share leaves side by side;
// `sample_at` says which sample is at a place.
template <class Value>
struct LeafIndex {
    std::span<const Offset> offsets;  // n_leaves + 1
    std::span<const SampleId> members;
    std::span<const Value> weights;
    std::span<const SampleId> sample_at;  // n_samples

    SampleId n_samples() const { return static_cast<SampleId>(sample_at.size()); }

    Offset leaf_size(Offset leaf) const { return offsets[leaf + 1] - offsets[leaf]; }
};

// Out-of-bag flags packed 64 trees to a word, a fixed number of words for each sample.
struct OobBits {
    std::span<const std::uint64_t> words;
    Offset words_per_sample = 0;

    const std::uint64_t* of(Offset sample) const { return words.data() + sample * words_per_sample; }
};

// S(x, x'): the number of trees for which both samples are out of bag.
inline int shared_oob_trees(const std::uint64_t* a, const std::uint64_t* b, Offset n_words) {
    int count = 0;
    for (Offset w = 0; w < n_words; ++w) count += std::popcount(a[w] & b[w]);
    return count;
}

// Everything that defines the rows P = Q Wᵀ asked for.
template <class Value_, class LeafId_>
struct Product {
    using Value = Value_;
    using LeafId = LeafId_;

    QueryMap<Value, LeafId> query;
    LeafIndex<Value> reference;

    // The order to compute the rows in: rows that share leaves in sequence find them in cache.
    std::span<const Offset> row_order;  // a permutation of the rows
    // The reference sample that each query row is, where the queries are such; else empty.
    std::span<const SampleId> own;
    // What to put at (row, own[row]) instead of the scheme's own value; empty to leave it.
    std::span<const double> diagonal;
    // Present for the exact out-of-bag kernel: each entry is divided by the shared count.
    OobBits query_oob;
    OobBits reference_oob;

    bool divides_by_shared_oob() const { return !reference_oob.words.empty(); }

    // Leaf collisions of one row: the work that it takes, and a bound on its nonzeros.
    Offset collisions(Offset row) const {
        Offset total = 0;
        for (Offset e = query.offsets[row]; e < query.offsets[row + 1]; ++e) {
            total += reference.leaf_size(query.leaves[e]);
        }
        return total;
    }
};

}  // namespace leafkernel
