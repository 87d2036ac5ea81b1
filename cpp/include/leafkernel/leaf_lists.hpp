// From the leaves of samples to the samples of leaves: a counting sort, tree by tree in parallel.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "leafkernel/for_each_row.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

namespace detail {

// Leaf ids of 16 trees share a cache line of a row: that many trees are read in one pass.
constexpr Offset trees_at_once = 16;

// Calls visit(place, entry, leaf) for all entries of some trees, samples in the order given, or
// ascending where none is.
template <class Visit, class Poll>
void for_each_entry(const QueryRows& rows, std::span<const SampleId> order, Offset first_tree,
                    Offset last_tree, const Poll& poll, Visit&& visit) {
    constexpr Offset ahead = 16;
    for (Offset i = 0; i < rows.n_rows; ++i) {
        if (i % 4096 == 0) poll();
        const Offset sample = order.empty() ? i : order[i];
        if (!order.empty() && i + ahead < rows.n_rows) {
            prefetch(rows.leaves.address(order[i + ahead] * rows.n_trees + first_tree));
        }
        const Offset row = sample * rows.n_trees;
        for (Offset e = row + first_tree; e < row + last_tree; ++e) {
            visit(i, e, rows.leaves[e]);
        }
    }
}

template <class PerTrees>
void for_each_trees(Offset n_trees, int n_threads, const Monitor& monitor, PerTrees&& per_trees) {
    // Fewer at once where there are more threads than there would be groups.
    const Offset step = std::clamp<Offset>(n_trees / sane_threads(n_threads), 1, trees_at_once);
    for_each_block(n_trees, step, n_threads, monitor, [&] { return per_trees; });
}

}  // namespace detail

// Adds up, for each leaf, its entries, of whatever weight, and their weights. Here and below leaves
// of different trees must differ: each tree belongs to one thread.
inline void leaf_masses(const QueryRows& rows, std::int64_t* counts, double* weights, int n_threads,
                        const Monitor& monitor) {
    detail::for_each_trees(
        rows.n_trees, n_threads, monitor, [&](Offset begin, Offset end, const auto& poll) {
            detail::for_each_entry(rows, {}, begin, end, poll, [&](Offset, Offset e, Offset leaf) {
                ++counts[leaf];
                if (weights != nullptr) weights[leaf] += rows.weights[e];
            });
        });
}

// Where the list of each leaf begins; offsets has an entry more than there are leaves, all zero.
inline void count_members(const QueryRows& rows, std::span<Offset> offsets, int n_threads,
                          const Monitor& monitor) {
    detail::for_each_trees(
        rows.n_trees, n_threads, monitor, [&](Offset begin, Offset end, const auto& poll) {
            detail::for_each_entry(rows, {}, begin, end, poll, [&](Offset, Offset e, Offset leaf) {
                offsets[leaf + 1] += rows.has(e);
            });
        });
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
}

// Fills the lists that count_members made room for: places ascending, and their weights.
template <class Weight>
void list_members(const QueryRows& rows, std::span<const SampleId> sample_at,
                  std::span<const Offset> offsets, SampleId* members, Weight* weights, int n_threads,
                  const Monitor& monitor) {
    std::vector<Offset> ends(offsets.begin(), offsets.end() - 1);
    detail::for_each_trees(
        rows.n_trees, n_threads, monitor, [&](Offset begin, Offset end, const auto& poll) {
            detail::for_each_entry(rows, sample_at, begin, end, poll,
                                   [&](Offset place, Offset e, Offset leaf) {
                                       if (!rows.has(e)) return;
                                       const Offset at = ends[leaf]++;
                                       members[at] = static_cast<SampleId>(place);
                                       if (weights != nullptr)
                                           weights[at] = static_cast<Weight>(rows.weights[e]);
                                   });
        });
}

}  // namespace leafkernel
