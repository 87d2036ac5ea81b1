// Checks of arrays that come from outside. The loops of the core follow every id without looking at
// it, so each id is checked here first. A check throws std::invalid_argument.
//
// Lists and packed trees are checked once, when they are made: they are as large as the training set.
// What belongs to one call (query rows, their order) is checked in that call.
#pragma once

#include <algorithm>
#include <atomic>
#include <limits>
#include <span>
#include <vector>

#include "leafkernel/leaf_lists.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/require.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

// The arrays of query rows have one entry for each row and tree.
inline void require_row_sizes(const QueryRows& rows) {
    const auto n_entries = static_cast<std::size_t>(rows.leaves.size());
    require(
        rows.n_rows >= 0 && rows.n_trees >= 0 &&
            static_cast<std::size_t>(rows.n_rows) * static_cast<std::size_t>(rows.n_trees) == n_entries,
        "leaf does not have one entry for each row and tree");
    require_optional(rows.present, n_entries, "present");
    if (!rows.weights.all_one()) require_size(rows.weights.size(), n_entries, "weights");
    require_optional(rows.by_row, static_cast<std::size_t>(rows.n_rows), "query factors");
}

// Query rows whose leaves exist.
inline void check_rows(const QueryRows& rows, Offset n_leaves, int n_threads, const Monitor& monitor) {
    require_row_sizes(rows);
    std::atomic<bool> all_exist{true};
    const auto look = [&](const auto& ids) {
        for_each_block(static_cast<Offset>(ids.size()), Offset{1} << 18, n_threads, monitor, [&] {
            return [&](Offset begin, Offset end, const auto&) {
                bool missing = false;  // without a branch: several ids at once
                for (Offset e = begin; e < end; ++e) missing |= ids[e] < 0 || ids[e] >= n_leaves;
                if (missing) all_exist.store(false, std::memory_order_relaxed);
            };
        });
    };
    rows.leaves.wide.empty() ? look(rows.leaves.narrow) : look(rows.leaves.wide);
    require(all_exist, "a leaf id is out of range");
}

// Rows to make lists of: the leaves of each tree lie behind those of the tree before. Threads share the
// trees, so two trees must never write to the same leaf.
inline void check_samples(const QueryRows& rows, Offset n_leaves, int n_threads,
                          const Monitor& monitor) {
    require_row_sizes(rows);
    const auto n_trees = static_cast<std::size_t>(rows.n_trees);
    std::vector<Offset> lowest(n_trees), highest(n_trees);
    const auto look = [&]<class Id>(std::span<const Id> ids) {
        detail::for_each_trees(
            rows.n_trees, n_threads, monitor, [&](Offset begin, Offset end, const auto& poll) {
                const auto width = static_cast<std::size_t>(end - begin);
                std::vector<Id> low(width, std::numeric_limits<Id>::max()), high(width, Id{-1});
                for (Offset row = 0; row < rows.n_rows; ++row) {
                    if (row % 4096 == 0) poll();
                    const Id* of_row = ids.data() + row * rows.n_trees + begin;
                    for (std::size_t t = 0; t < width; ++t) {
                        low[t] = std::min(low[t], of_row[t]);
                        high[t] = std::max(high[t], of_row[t]);
                    }
                }
                std::copy(low.begin(), low.end(), lowest.begin() + begin);
                std::copy(high.begin(), high.end(), highest.begin() + begin);
            });
    };
    rows.leaves.wide.empty() ? look(rows.leaves.narrow) : look(rows.leaves.wide);
    Offset next = 0;
    for (std::size_t tree = 0; tree < n_trees && rows.n_rows > 0; ++tree) {
        require(lowest[tree] >= 0 && highest[tree] < n_leaves, "a leaf id is out of range");
        require(lowest[tree] >= next, "leaf ids do not grow from tree to tree");
        next = highest[tree] + 1;
    }
}

// The lists themselves; factors by leaf and by place belong to a product.
inline void check_lists(const LeafLists& lists) {
    require(lists.sample_at.size() <= std::numeric_limits<SampleId>::max(),
            "there are too many samples");
    require_offsets(lists.offsets, lists.members.size(), "reference offsets");
    if (!lists.weights.all_one()) {
        require_size(lists.weights.size(), lists.members.size(), "reference weights");
    }
    require_permutation(lists.sample_at, "sample_at");
    for (Offset leaf = 0; leaf < lists.n_leaves(); ++leaf) {
        SampleId last = -1;
        for (Offset m = lists.offsets[leaf]; m < lists.offsets[leaf + 1]; ++m) {
            require(lists.members[m] > last && lists.members[m] < lists.n_samples(),
                    "the members of a leaf are not ascending places of samples");
            last = lists.members[m];
        }
    }
}

// A product whose lists have been checked already.
inline void check_product(const Product& product, int n_threads, const Monitor& monitor) {
    const auto& lists = product.reference;
    const auto n_rows = static_cast<std::size_t>(product.query.n_rows);
    const auto n_samples = static_cast<std::size_t>(lists.n_samples());
    require_optional(lists.by_place, n_samples, "by_place");
    require_optional(lists.by_leaf, static_cast<std::size_t>(lists.n_leaves()), "by_leaf");
    check_rows(product.query, lists.n_leaves(), n_threads, monitor);
    require_size(product.row_order.size(), n_rows, "row_order");
    require_permutation(product.row_order, "row_order");
    require_optional(product.own, n_rows, "own");
    for (const SampleId place : product.own) {
        require(place >= 0 && place < lists.n_samples(), "own holds a place that does not exist");
    }
    require_optional(product.diagonal, n_rows, "diagonal");
    if (!product.diagonal.empty()) require_size(product.own.size(), n_rows, "own");
    if (product.divides_by_shared_oob()) {
        const auto words = static_cast<std::size_t>(product.reference_oob.words_per_sample);
        require(product.query_oob.words_per_sample == product.reference_oob.words_per_sample,
                "query_oob and reference_oob have different widths");
        require_size(product.query_oob.words.size(), n_rows * words, "query_oob");
        require_size(product.reference_oob.words.size(), n_samples * words, "reference_oob");
    }
}

}  // namespace leafkernel
