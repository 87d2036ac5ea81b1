// Checks of arrays that come from the caller. The loops of the core use ids without checking them, so
// every id is checked here first. A failed check throws std::invalid_argument.
//
// Incidences, lists and packed trees are as large as the training set, so they are checked once, when
// they are created. The arrays of a single product (weights, row order) are checked with each product.
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
#include "leafkernel/weighted_nodes.hpp"

namespace leafkernel {

// Checks the columns of each row: one column per group, or, if there are offsets, any number of columns
// in ascending order. Returns the length of the longest row.
inline Offset check_incidence(const Incidence& incidence, int n_threads, const Monitor& monitor) {
    require(incidence.n_rows >= 0, "the number of rows is negative");
    require(!incidence.first.empty() && incidence.first.front() == 0 &&
                std::is_sorted(incidence.first.begin(), incidence.first.end()),
            "the groups of columns are not in order");
    const Offset n_rows = incidence.n_rows, n_groups = incidence.n_groups();
    const Offset* first = incidence.first.data();
    std::atomic<bool> all_exist{true};
    const auto look = [&](const auto& is_wrong) {
        for_each_block(n_rows, Offset{1} << 12, n_threads, monitor, [&] {
            return [&](Offset begin, Offset end, const auto&) {
                bool wrong = false;
                for (Offset row = begin; row < end; ++row) wrong |= is_wrong(row);
                if (wrong) all_exist.store(false, std::memory_order_relaxed);
            };
        });
        require(all_exist, "a leaf id is out of range, or not in its group");
    };
    if (incidence.offsets.empty()) {
        // Divide instead of multiplying: the product of corrupt sizes may overflow.
        const Offset n_entries = incidence.columns.size();
        require(n_groups == 0 ? n_entries == 0
                              : n_entries % n_groups == 0 && n_entries / n_groups == n_rows,
                "columns does not have one entry for each row and group");
        const auto each = [&](const auto& ids) {
            look([&](Offset row) {  // no branch, so that the compiler can vectorize
                bool wrong = false;
                const auto* of_row = ids.data() + row * n_groups;
                for (Offset g = 0; g < n_groups; ++g) {
                    wrong |= of_row[g] < first[g] || of_row[g] >= first[g + 1];
                }
                return wrong;
            });
        };
        incidence.columns.wide.empty() ? each(incidence.columns.narrow) : each(incidence.columns.wide);
        return n_groups;
    }
    require_size(incidence.offsets.size(), static_cast<std::size_t>(n_rows) + 1, "row offsets");
    require_offsets(incidence.offsets, static_cast<std::size_t>(incidence.columns.size()),
                    "row offsets");
    look([&](Offset row) {
        Offset last = -1;
        for (Offset e = incidence.begin(row); e < incidence.end(row); ++e) {
            if (incidence.columns[e] <= last) return true;
            last = incidence.columns[e];
        }
        return last >= incidence.n_columns();
    });
    Offset longest = 0;
    for (Offset row = 0; row < n_rows; ++row) {
        longest = std::max(longest, incidence.end(row) - incidence.begin(row));
    }
    return longest;
}

// Checks the weights of rows whose columns were checked before.
inline void check_weights(const WeighedRows& rows) {
    const auto n_entries = static_cast<std::size_t>(rows.incidence.columns.size());
    require_optional(rows.present, n_entries, "present");
    if (!rows.weights.all_one()) require_size(rows.weights.size(), n_entries, "weights");
    require_optional(rows.by_row, static_cast<std::size_t>(rows.n_rows()), "query factors");
}

// Checks lists of members.
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

// Checks a product whose incidence and lists were checked before.
inline void check_product(const Product& product) {
    const auto& lists = product.reference;
    const auto n_rows = static_cast<std::size_t>(product.query.n_rows());
    const auto n_samples = static_cast<std::size_t>(lists.n_samples());
    require_optional(lists.by_place, n_samples, "by_place");
    require_optional(product.by_leaf, static_cast<std::size_t>(lists.n_leaves()), "by_leaf");
    require(product.query.incidence.n_columns() == lists.n_leaves(),
            "the rows and the lists have different numbers of leaves");
    check_weights(product.query);
    require_size(product.row_order.size(), n_rows, "row_order");
    require_permutation(product.row_order, "row_order");
    require_optional(product.own, n_rows, "own");
    for (const SampleId place : product.own) {
        require(place >= -1 && place < lists.n_samples(), "own holds a place that does not exist");
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

// Checks that the leaves of a product are those of its nodes.
inline void check_nodes(const Product& product) {
    const auto leaves = product.nodes->first_leaves();
    for (const auto* rows : {&product.query, &product.reference.rows}) {
        const auto& incidence = rows->incidence;
        if (rows == &product.reference.rows && incidence.first.empty()) continue;  // not available
        require(incidence.offsets.empty() && std::ranges::equal(incidence.first, leaves),
                "the nodes and the rows have different leaves");
    }
    require(product.reference.n_leaves() == product.nodes->n_leaves(),
            "the nodes and the lists have different leaves");
    require(!product.divides_by_shared_oob(), "paths are not divided by shared counts");
}

// Checks a number of neighbors.
inline void check_neighbors(const Product& product, Offset k) {
    const bool has_own = std::ranges::any_of(product.own, [](SampleId place) { return place >= 0; });
    const Offset available = product.reference.n_samples() - (has_own ? 1 : 0);
    require(k >= 0 && k <= available, "k must be between 0 and the number of other samples");
}

}  // namespace leafkernel
