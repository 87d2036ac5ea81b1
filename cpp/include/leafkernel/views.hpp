// Read-only views of the arrays that define a proximity matrix. Nothing here owns memory.
//
// Weights are split into factors. Most schemes use only a few of them, and a missing factor costs
// nothing:
//
//     P(i, j) = scale · a(i) · b(j) · Σ over shared leaves of  q(i, t) · g(leaf) · w(j, t)
//
// Without g, q and w, the sum is a count, which fits in a small integer.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace leafkernel {

using Offset = std::int64_t;    // position in a long array, or a count
using SampleId = std::int32_t;  // a reference sample, or its place in the index order

// Column ids, stored as 32-bit or 64-bit integers. One of the two is empty.
struct ColumnIds {
    std::span<const std::int32_t> narrow;
    std::span<const std::int64_t> wide;

    Offset size() const { return static_cast<Offset>(wide.empty() ? narrow.size() : wide.size()); }
    Offset operator[](Offset i) const { return wide.empty() ? narrow[i] : wide[i]; }
    const void* address(Offset i) const {
        return wide.empty() ? static_cast<const void*>(narrow.data() + i) : wide.data() + i;
    }
};

// One weight per entry, in the type given by the caller. At most one span is not empty. If all are
// empty, every weight is one.
struct EntryWeights {
    std::span<const std::uint8_t> counts;
    std::span<const float> floats;
    std::span<const double> doubles;

    bool all_one() const { return counts.empty() && floats.empty() && doubles.empty(); }
    std::size_t size() const { return counts.size() + floats.size() + doubles.size(); }
    double operator[](Offset i) const {
        if (!counts.empty()) return counts[i];
        if (!floats.empty()) return floats[i];
        return doubles.empty() ? 1.0 : doubles[i];
    }
};

// The leaves of each row, stored as column ids. Columns are grouped by tree (two groups per tree for a
// symmetrized kernel), and groups follow one another.
struct Incidence {
    ColumnIds columns;                // row by row, ascending within a row
    std::span<const Offset> first;    // first column of each group, then the number of columns
    std::span<const Offset> offsets;  // start of each row; empty if each row has one entry per group
    Offset n_rows = 0;
    Offset longest = 0;  // number of entries in the longest row

    Offset n_groups() const { return static_cast<Offset>(first.size()) - 1; }
    Offset n_columns() const { return first.back(); }
    Offset begin(Offset row) const { return offsets.empty() ? row * longest : offsets[row]; }
    Offset end(Offset row) const { return begin(row + 1); }
};

// Rows and their weights.
struct WeighedRows {
    Incidence incidence;
    std::span<const std::uint8_t> present;  // nonzero for the entries that exist; empty if all do
    EntryWeights weights;                   // q
    std::span<const double> by_row;         // a; empty if all are one

    Offset n_rows() const { return incidence.n_rows; }

    // An entry of weight zero counts as missing.
    bool has(Offset entry) const {
        return (present.empty() || present[entry] != 0) && (weights.all_one() || weights[entry] != 0.0);
    }
};

// The members of each leaf and their weights. Members are stored in ascending order as places. A place
// is a position in an order of the samples that puts samples with shared leaves next to each other.
// `sample_at` maps a place to its sample.
struct LeafLists {
    std::span<const Offset> offsets;  // n_leaves + 1
    std::span<const SampleId> members;
    EntryWeights weights;                 // w
    std::span<const SampleId> sample_at;  // n_samples

    SampleId n_samples() const { return static_cast<SampleId>(sample_at.size()); }
    Offset n_leaves() const { return static_cast<Offset>(offsets.size()) - 1; }
    Offset leaf_size(Offset leaf) const { return offsets[leaf + 1] - offsets[leaf]; }
};

// The reference samples, grouped by leaf.
struct LeafIndex : LeafLists {
    std::span<const double> by_place;  // b; empty if all are one
    WeighedRows rows;                  // the same samples by row; empty if not available
};

// Out-of-bag flags, packed 64 trees to a word. Each sample has the same number of words.
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

class WeightedNodes;

// Everything that defines the requested rows of P.
struct Product {
    WeighedRows query;
    LeafIndex reference;
    std::span<const double> by_leaf;  // g; empty if all are one
    double scale = 1.0;

    // The order in which rows are computed. Consecutive rows that share leaves find them in cache.
    std::span<const Offset> row_order;  // all rows, or those that one loop leaves to another
    // For each query row, the place of the reference sample that it is, or -1 if it is none of them.
    // Empty if no query is a reference sample.
    std::span<const SampleId> own;
    // Values for the entries (row, own[row]), replacing those of the scheme. Empty to keep them.
    std::span<const double> diagonal;
    // Set for the exact out-of-bag kernel only: each entry is divided by the shared count.
    OobBits query_oob;      // by row
    OobBits reference_oob;  // by place
    // The nodes of the trees if whole paths are compared, else null. Only apply() and
    // nearest_by_paths() compute such products.
    const WeightedNodes* nodes = nullptr;

    bool divides_by_shared_oob() const { return !reference_oob.words.empty(); }
    bool counts() const {
        return query.weights.all_one() && reference.weights.all_one() && by_leaf.empty();
    }

    // The number of leaf collisions of one row. It measures the work and bounds the number of nonzeros.
    Offset collisions(Offset row) const {
        Offset total = 0;
        const auto& incidence = query.incidence;
        for (Offset e = incidence.begin(row); e < incidence.end(row); ++e) {
            if (query.has(e)) total += reference.leaf_size(incidence.columns[e]);
        }
        return total;
    }
};

}  // namespace leafkernel
