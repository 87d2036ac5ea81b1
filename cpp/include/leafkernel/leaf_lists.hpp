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

// The columns of 16 groups share a cache line of a row: that many groups are read in one pass.
constexpr Offset groups_at_once = 16;

// The first entry of a row whose column is in a group or behind it.
inline Offset first_entry(const Incidence& incidence, Offset row, Offset group) {
    Offset low = incidence.begin(row);
    if (incidence.offsets.empty()) return low + group;
    Offset high = incidence.end(row);
    while (low < high) {
        const Offset middle = low + (high - low) / 2;
        (incidence.columns[middle] < incidence.first[group] ? low = middle + 1 : high = middle);
    }
    return low;
}

// Calls visit(place, entry, column) for all entries of some groups, samples in the order given, or
// ascending where none is.
template <class Visit, class Poll>
void for_each_entry(const Incidence& rows, std::span<const SampleId> order, Offset first_group,
                    Offset last_group, const Poll& poll, Visit&& visit) {
    constexpr Offset ahead = 16;
    for (Offset i = 0; i < rows.n_rows; ++i) {
        if (i % 4096 == 0) poll();
        const Offset sample = order.empty() ? i : order[i];
        if (!order.empty() && i + ahead < rows.n_rows) {
            const Offset known = rows.offsets.empty() ? first_group : 0;
            prefetch(rows.columns.address(rows.begin(order[i + ahead]) + known));
        }
        const Offset end = first_entry(rows, sample, last_group);
        for (Offset e = first_entry(rows, sample, first_group); e < end; ++e) {
            visit(i, e, rows.columns[e]);
        }
    }
}

// Each group belongs to one thread, so no two threads ever write to the same column.
template <class PerGroups>
void for_each_groups(Offset n_groups, int n_threads, const Monitor& monitor, PerGroups&& per_groups) {
    // Fewer at once where there are more threads than there would be blocks.
    const Offset step = std::clamp<Offset>(n_groups / sane_threads(n_threads), 1, groups_at_once);
    for_each_block(n_groups, step, n_threads, monitor, [&] { return per_groups; });
}

}  // namespace detail

// Counts the entries of each leaf, also those of weight zero, and adds up their weights.
inline void leaf_masses(const WeighedRows& rows, std::int64_t* counts, double* weights, int n_threads,
                        const Monitor& monitor) {
    const auto& incidence = rows.incidence;
    detail::for_each_groups(
        incidence.n_groups(), n_threads, monitor, [&](Offset begin, Offset end, const auto& poll) {
            detail::for_each_entry(incidence, {}, begin, end, poll, [&](Offset, Offset e, Offset leaf) {
                ++counts[leaf];
                if (weights != nullptr) weights[leaf] += rows.weights[e];
            });
        });
}

// Where the list of each leaf begins; offsets has an entry more than there are leaves, all zero.
inline void count_members(const WeighedRows& rows, std::span<Offset> offsets, int n_threads,
                          const Monitor& monitor) {
    const auto& incidence = rows.incidence;
    detail::for_each_groups(
        incidence.n_groups(), n_threads, monitor, [&](Offset begin, Offset end, const auto& poll) {
            detail::for_each_entry(incidence, {}, begin, end, poll, [&](Offset, Offset e, Offset leaf) {
                offsets[leaf + 1] += rows.has(e);
            });
        });
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
}

// Fills the lists that count_members made room for: places ascending, and their weights.
template <class Weight>
void list_members(const WeighedRows& rows, std::span<const SampleId> sample_at,
                  std::span<const Offset> offsets, SampleId* members, Weight* weights, int n_threads,
                  const Monitor& monitor) {
    std::vector<Offset> ends(offsets.begin(), offsets.end() - 1);
    const auto& incidence = rows.incidence;
    detail::for_each_groups(
        incidence.n_groups(), n_threads, monitor, [&](Offset begin, Offset end, const auto& poll) {
            detail::for_each_entry(incidence, sample_at, begin, end, poll,
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
