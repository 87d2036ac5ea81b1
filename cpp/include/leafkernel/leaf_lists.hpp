// Builds the list of samples in each leaf from the leaves of each sample. This is a counting sort, run
// in parallel over trees.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#include "leafkernel/for_each_row.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

namespace detail {

// The columns of 16 groups share a cache line of a row, so 16 groups are read in one pass.
constexpr Offset groups_at_once = 16;

// Returns the first entry of a row whose column is in the given group or a later one.
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

// Calls visit(place, entry, column) for all entries of some groups. Samples are visited in the given
// order, or in ascending order if none is given.
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

// Each group is processed by a single thread, so two threads never write to the same column.
template <class PerGroups>
void for_each_groups(Offset n_groups, int n_threads, const Monitor& monitor, PerGroups&& per_groups) {
    const Offset step = even_blocks(n_groups, groups_at_once, n_threads);
    for_each_block(n_groups, step, n_threads, monitor, [&] { return per_groups; });
}

// Stands for missing weights: each weight is one.
struct One {};

// Copies some groups of a table, a block of rows at a time, so that the entries of a group are
// contiguous. Each group can then be counted or listed while its leaves are in cache.
template <class Id, class Weight>
class GroupBlock {
public:
    static constexpr Offset rows_at_once = Offset{1} << 13;

    GroupBlock(const Incidence& rows, const Id* ids, const Weight* weights, Offset first_group,
               Offset last_group)
        : rows_(rows),
          ids_(ids),
          weights_(weights),
          first_group_(first_group),
          n_groups_(last_group - first_group),
          leaf_(static_cast<std::size_t>(n_groups_ * stride)),
          weight_(has_weights ? leaf_.size() : 0) {}

    // Calls visit(group, first place, size, leaves, weights) for each group of each block of rows. Rows
    // are visited in the given order, or in ascending order if none is given. Leaf numbers are relative
    // to the first leaf of the first group. The visitor may overwrite the arrays.
    template <class Visit, class Poll>
    void for_each(std::span<const SampleId> order, const Poll& poll, Visit&& visit) {
        for (Offset begin = 0; begin < rows_.n_rows; begin += rows_at_once) {
            poll();
            const Offset end = std::min(begin + rows_at_once, rows_.n_rows);
            order.empty() ? read(begin, end, [](Offset i) { return i; })
                          : read(begin, end, [&](Offset i) { return Offset{order[i]}; });
            for (Offset g = 0; g < n_groups_; ++g) {
                visit(first_group_ + g, begin, end - begin, leaf_.data() + g * stride,
                      has_weights ? weight_.data() + g * stride : nullptr);
            }
        }
    }

private:
    static constexpr bool has_weights = !std::is_same_v<Weight, One>;
    static constexpr Offset stride = rows_at_once + 64;  // avoids cache conflicts

    template <class RowAt>
    void read(Offset begin, Offset end, const RowAt& row_at) {
        constexpr Offset ahead = 16;
        const Offset width = rows_.n_groups();
        const Offset first_leaf = rows_.first[first_group_];
        for (Offset i = begin; i < end; ++i) {
            if (i + ahead < rows_.n_rows) {
                const Offset next = row_at(i + ahead) * width + first_group_;
                prefetch(ids_ + next);
                prefetch(ids_ + next + n_groups_ - 1);
                if constexpr (has_weights) prefetch(weights_ + next);
            }
            const Offset entry = row_at(i) * width + first_group_;
            for (Offset g = 0; g < n_groups_; ++g) {
                leaf_[g * stride + i - begin] = static_cast<Id>(ids_[entry + g] - first_leaf);
                if constexpr (has_weights) weight_[g * stride + i - begin] = weights_[entry + g];
            }
        }
    }

    const Incidence& rows_;
    const Id* ids_;
    const Weight* weights_;
    Offset first_group_, n_groups_;
    std::vector<Id> leaf_;
    std::vector<Weight> weight_;
};

// Calls call(ids, weights) with typed pointers if each row has one entry per group and at most one of
// flags and weights. Returns false otherwise.
template <class Call>
bool with_table(const WeighedRows& rows, Call&& call) {
    const auto& weights = rows.weights;
    if (!rows.incidence.offsets.empty()) return false;
    if (!rows.present.empty() && !weights.all_one()) return false;
    const auto with_ids = [&](const auto* ids) {
        if (!rows.present.empty()) return call(ids, rows.present.data());
        if (!weights.counts.empty()) return call(ids, weights.counts.data());
        if (!weights.floats.empty()) return call(ids, weights.floats.data());
        if (!weights.doubles.empty()) return call(ids, weights.doubles.data());
        return call(ids, static_cast<const One*>(nullptr));
    };
    const auto& columns = rows.incidence.columns;
    columns.wide.empty() ? with_ids(columns.narrow.data()) : with_ids(columns.wide.data());
    return true;
}

// Moves the entries with a nonzero weight to the front and writes their places. There is no branch,
// because zeros cannot be predicted.
template <class Id, class Weight>
Offset keep_nonzero(Offset first_place, Offset size, Id* leaves, Weight* weights, SampleId* places) {
    Offset kept = 0;
    for (Offset i = 0; i < size; ++i) {
        places[kept] = static_cast<SampleId>(first_place + i);
        if constexpr (std::is_same_v<Weight, One>) {
            ++kept;
        } else {
            const Weight weight = weights[i];
            leaves[kept] = leaves[i];
            weights[kept] = weight;
            kept += weight != 0;
        }
    }
    return kept;
}

}  // namespace detail

// Writes the order of rows by their first column. Rows without columns come first. Ties are ordered by
// row number.
inline void locality_order(const Incidence& rows, std::span<Offset> order) {
    std::iota(order.begin(), order.end(), Offset{0});
    if (rows.longest == 0) return;
    const auto column = [&](Offset row) {
        return rows.begin(row) < rows.end(row) ? rows.columns[rows.begin(row)] : Offset{-1};
    };
    // A counting sort visits every possible column. For few rows, a comparison sort is cheaper.
    const Offset n_keys = 1 + (rows.offsets.empty() ? rows.first[1] : rows.n_columns());
    if (n_keys / 8 > rows.n_rows) {
        std::stable_sort(order.begin(), order.end(),
                         [&](Offset a, Offset b) { return column(a) < column(b); });
        return;
    }
    // The columns are far apart in memory, so each is read only once.
    std::vector<Offset> keys(static_cast<std::size_t>(rows.n_rows));
    std::vector<Offset> next(static_cast<std::size_t>(n_keys) + 1);
    for (Offset row = 0; row < rows.n_rows; ++row) {
        keys[row] = column(row) + 1;
        ++next[keys[row] + 1];
    }
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (Offset row = 0; row < rows.n_rows; ++row) order[next[keys[row]]++] = row;
}

// Counts the entries of each leaf, including those of weight zero, and sums their weights.
inline void leaf_masses(const WeighedRows& rows, std::int64_t* counts, double* weights, int n_threads,
                        const Monitor& monitor) {
    const auto& incidence = rows.incidence;
    // With fewer rows, a sum of 8-bit counts fits in 32 bits.
    constexpr Offset few_rows = Offset{1} << 24;
    detail::for_each_groups(
        incidence.n_groups(), n_threads, monitor, [&](Offset begin, Offset end, const auto& poll) {
            const Offset first = incidence.first[begin], last = incidence.first[end];
            std::fill(counts + first, counts + last, 0);
            if (weights != nullptr) std::fill(weights + first, weights + last, 0.0);
            if (incidence.offsets.empty() && incidence.n_rows < few_rows && weights != nullptr &&
                !rows.weights.counts.empty()) {
                // Keep both in one word, so that a leaf needs one memory access.
                std::vector<std::uint64_t> both(static_cast<std::size_t>(last - first));
                const auto count = [&](const auto* ids) {
                    detail::GroupBlock block(incidence, ids, rows.weights.counts.data(), begin, end);
                    block.for_each(
                        {}, poll,
                        [&](Offset, Offset, Offset size, const auto* leaf, const std::uint8_t* weight) {
                            for (Offset i = 0; i < size; ++i) {
                                both[leaf[i]] += std::uint64_t{weight[i]} << 32 | 1;
                            }
                        });
                };
                incidence.columns.wide.empty() ? count(incidence.columns.narrow.data())
                                               : count(incidence.columns.wide.data());
                for (Offset leaf = first; leaf < last; ++leaf) {
                    const std::uint64_t found = both[static_cast<std::size_t>(leaf - first)];
                    counts[leaf] = static_cast<std::int64_t>(found & 0xffffffffu);
                    weights[leaf] = static_cast<double>(found >> 32);
                }
                return;
            }
            detail::for_each_entry(incidence, {}, begin, end, poll, [&](Offset, Offset e, Offset leaf) {
                ++counts[leaf];
                if (weights != nullptr) weights[leaf] += rows.weights[e];
            });
        });
}

// Computes where the list of each leaf begins. `offsets` has one entry more than there are leaves.
inline void count_members(const WeighedRows& rows, std::span<Offset> offsets, int n_threads,
                          const Monitor& monitor) {
    const auto& incidence = rows.incidence;
    const Offset n_groups = incidence.n_groups();
    detail::for_each_groups(
        n_groups, n_threads, monitor, [&](Offset begin, Offset end, const auto& poll) {
            const Offset first = incidence.first[begin], last = incidence.first[end];
            Offset* sizes = offsets.data() + 1;  // sizes[leaf] is offsets[leaf + 1]
            const bool is_table = detail::with_table(rows, [&]<class Id, class Weight>(
                                                               const Id* ids, const Weight* weights) {
                // 32 bits instead of 64, so that twice as many counts stay in cache.
                std::vector<std::uint32_t> found(static_cast<std::size_t>(last - first));
                detail::GroupBlock block(incidence, ids, weights, begin, end);
                block.for_each({}, poll,
                               [&](Offset, Offset, Offset size, const Id* leaf, const Weight* weight) {
                                   for (Offset i = 0; i < size; ++i) {
                                       if constexpr (std::is_same_v<Weight, detail::One>) {
                                           ++found[leaf[i]];
                                       } else {
                                           found[leaf[i]] += weight[i] != 0;
                                       }
                                   }
                               });
                std::copy(found.begin(), found.end(), sizes + first);
            });
            if (!is_table) {
                std::fill(sizes + first, sizes + last, Offset{0});
                detail::for_each_entry(
                    incidence, {}, begin, end, poll,
                    [&](Offset, Offset e, Offset leaf) { sizes[leaf] += rows.has(e); });
            }
            for (Offset g = begin; g < end; ++g) {  // relative to the group; shifted below
                std::partial_sum(sizes + incidence.first[g], sizes + incidence.first[g + 1],
                                 sizes + incidence.first[g]);
            }
        });
    std::vector<Offset> begins(static_cast<std::size_t>(n_groups));
    Offset total = 0;
    for (Offset g = 0; g < n_groups; ++g) {
        begins[g] = total;
        if (incidence.first[g + 1] > incidence.first[g]) total += offsets[incidence.first[g + 1]];
    }
    offsets[0] = 0;
    for_each_block(n_groups, 1, n_threads, monitor, [&] {
        return [&](Offset g, Offset, const auto&) {
            for (Offset leaf = incidence.first[g]; leaf < incidence.first[g + 1]; ++leaf) {
                offsets[leaf + 1] += begins[g];
            }
        };
    });
}

// Fills the lists whose offsets count_members computed: places in ascending order, and their weights.
template <class Weight>
void list_members(const WeighedRows& rows, std::span<const SampleId> sample_at,
                  std::span<const Offset> offsets, SampleId* members, Weight* weights, int n_threads,
                  const Monitor& monitor) {
    const auto& incidence = rows.incidence;
    detail::for_each_groups(
        incidence.n_groups(), n_threads, monitor, [&](Offset begin, Offset end, const auto& poll) {
            const Offset first = incidence.first[begin], last = incidence.first[end];
            const bool is_table = detail::with_table(rows, [&]<class Id, class Found>(
                                                               const Id* ids, const Found* found) {
                // The next free position in the list of each leaf, relative to the start of its group.
                std::vector<std::uint32_t> next(static_cast<std::size_t>(last - first));
                for (Offset g = begin; g < end; ++g) {
                    for (Offset leaf = incidence.first[g]; leaf < incidence.first[g + 1]; ++leaf) {
                        next[leaf - first] =
                            static_cast<std::uint32_t>(offsets[leaf] - offsets[incidence.first[g]]);
                    }
                }
                detail::GroupBlock block(incidence, ids, found, begin, end);
                std::vector<SampleId> places(decltype(block)::rows_at_once);
                block.for_each(sample_at, poll,
                               [&](Offset group, Offset place, Offset size, Id* leaf, Found* weight) {
                                   const Offset kept =
                                       detail::keep_nonzero(place, size, leaf, weight, places.data());
                                   const Offset begins = offsets[incidence.first[group]];
                                   for (Offset i = 0; i < kept; ++i) {
                                       const Offset at = begins + next[leaf[i]]++;
                                       members[at] = places[i];
                                       if constexpr (!std::is_same_v<Found, detail::One>) {
                                           if (weights != nullptr)
                                               weights[at] = static_cast<Weight>(weight[i]);
                                       }
                                   }
                               });
            });
            if (is_table) return;
            std::vector<Offset> next(offsets.begin() + first, offsets.begin() + last);
            detail::for_each_entry(incidence, sample_at, begin, end, poll,
                                   [&](Offset place, Offset e, Offset leaf) {
                                       if (!rows.has(e)) return;
                                       const Offset at = next[leaf - first]++;
                                       members[at] = static_cast<SampleId>(place);
                                       if (weights != nullptr)
                                           weights[at] = static_cast<Weight>(rows.weights[e]);
                                   });
        });
}

}  // namespace leafkernel
