// The arrays a proximity is computed from, as read-only views. Nothing here owns memory.
//
// Weights come in factors, because most schemes need few of them and a factor that is not there is
// not read:
//
//     P(i, j) = scale · a(i) · b(j) · Σ over shared leaves of  q(i, t) · g(leaf) · w(j, t)
//
// With neither g nor weights on either side the sum is a count, and counts are small integers.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace leafkernel {

using Offset = std::int64_t;    // positions in long arrays, and counts
using SampleId = std::int32_t;  // a row of the reference set, or its place in the order of the index

// Ids of columns in the integer type that holds them; one of the two is empty.
struct ColumnIds {
    std::span<const std::int32_t> narrow;
    std::span<const std::int64_t> wide;

    Offset size() const { return static_cast<Offset>(wide.empty() ? narrow.size() : wide.size()); }
    Offset operator[](Offset i) const { return wide.empty() ? narrow[i] : wide[i]; }
    const void* address(Offset i) const {
        return wide.empty() ? static_cast<const void*>(narrow.data() + i) : wide.data() + i;
    }
};

// A weight for each entry in the type that it was given in; at most one is not empty, and where all
// are, every weight is one.
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

// Which columns of the maps each row has: its leaves. Columns come in groups, one for each tree (two
// where a kernel is symmetrized), and the columns of a group lie behind those of the group before.
struct Incidence {
    ColumnIds columns;                // row after row, ascending within each
    std::span<const Offset> first;    // the first column of each group, and the number of columns
    std::span<const Offset> offsets;  // where each row begins; empty where a row has one of each group
    Offset n_rows = 0;
    Offset longest = 0;  // entries of the longest row

    Offset n_groups() const { return static_cast<Offset>(first.size()) - 1; }
    Offset n_columns() const { return first.back(); }
    Offset begin(Offset row) const { return offsets.empty() ? row * longest : offsets[row]; }
    Offset end(Offset row) const { return begin(row + 1); }
};

// Rows and their weights.
struct WeighedRows {
    Incidence incidence;
    std::span<const std::uint8_t> present;  // which entries there are; empty where all are
    EntryWeights weights;                   // q
    std::span<const double> by_row;         // a; empty where it is one

    Offset n_rows() const { return incidence.n_rows; }

    // An entry of weight zero is as good as none.
    bool has(Offset entry) const {
        return (present.empty() || present[entry] != 0) && (weights.all_one() || weights[entry] != 0.0);
    }
};

// The members of each leaf, ascending, and their weights. Members are places in an order of the samples
// that puts those which share leaves side by side; `sample_at` says which sample is at a place.
struct LeafLists {
    std::span<const Offset> offsets;  // n_leaves + 1
    std::span<const SampleId> members;
    EntryWeights weights;                 // w
    std::span<const SampleId> sample_at;  // n_samples

    SampleId n_samples() const { return static_cast<SampleId>(sample_at.size()); }
    Offset n_leaves() const { return static_cast<Offset>(offsets.size()) - 1; }
    Offset leaf_size(Offset leaf) const { return offsets[leaf + 1] - offsets[leaf]; }
};

// The reference samples by leaf.
struct LeafIndex : LeafLists {
    std::span<const double> by_place;  // b; empty where it is one
    WeighedRows rows;                  // the same samples by row; none where they are not at hand
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

// Everything that defines the rows of P asked for.
struct Product {
    WeighedRows query;
    LeafIndex reference;
    std::span<const double> by_leaf;  // g; empty where it is one
    double scale = 1.0;

    // The order to compute the rows in: rows that share leaves in sequence find them in cache.
    std::span<const Offset> row_order;  // a permutation of the rows
    // The place of the reference sample that each query row is, where the queries are such; -1 for a
    // row that is none of them.
    std::span<const SampleId> own;
    // What to put at (row, own[row]) instead of the scheme's own value; empty to leave it.
    std::span<const double> diagonal;
    // Present for the exact out-of-bag kernel: each entry is divided by the shared count.
    OobBits query_oob;      // by row
    OobBits reference_oob;  // by place

    bool divides_by_shared_oob() const { return !reference_oob.words.empty(); }
    bool counts() const {
        return query.weights.all_one() && reference.weights.all_one() && by_leaf.empty();
    }

    // Leaf collisions of one row: the work that it takes, and a bound on its nonzeros.
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
