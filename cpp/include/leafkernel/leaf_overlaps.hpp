// Inner products of the centered kernels of trees, from the overlaps of their leaves. No kernel is
// formed.
//
// The kernel of tree t is K_t(i, j) = 1 if samples i and j are both present in t and share a leaf
// there, and 0 otherwise. With H = I - 11'/n, the centered kernel is H K_t H. Let O(l, l') be the
// number of samples in leaf l of tree s and in leaf l' of tree t, and m(l) the number in leaf l. Then
//
//     <H K_s H, H K_t H> = tr(K_s K_t) - (2/n) 1' K_s K_t 1 + (1/n²) (1' K_s 1)(1' K_t 1)
//                        = Σ O(l, l')² - (2/n) Σ O(l, l') m(l) m(l') + (1/n²) Σ m(l)² Σ m(l')²
//
// The sums over pairs of leaves have at most n nonzero terms, so a pair of trees costs O(n).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "leafkernel/parallel.hpp"
#include "leafkernel/require.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

namespace detail {

// The samples of a tree, grouped by leaf. Leaves are numbered from 0, and empty leaves have no number.
struct LeafGroups {
    std::vector<SampleId> leaf_of;  // by sample; the number of leaves if the sample is not present
    std::vector<SampleId> members;  // the samples that are present, leaf after leaf
    std::vector<SampleId> sizes;    // m(l) of each leaf, then 0 for samples that are not present
    double n_pairs = 0.0;           // Σ m(l)²

    SampleId n_leaves() const { return static_cast<SampleId>(sizes.size()) - 1; }
};

inline LeafGroups group_by_leaf(const WeighedRows& rows, Offset tree) {
    const Incidence& incidence = rows.incidence;
    const auto n_samples = static_cast<SampleId>(rows.n_rows());
    std::vector<std::pair<Offset, SampleId>> present;
    for (SampleId i = 0; i < n_samples; ++i) {
        const Offset entry = incidence.begin(i) + tree;
        if (rows.has(entry)) present.emplace_back(incidence.columns[entry], i);
    }
    std::sort(present.begin(), present.end());
    LeafGroups groups;
    Offset last = -1;
    for (const auto& [column, sample] : present) {
        if (column != last) groups.sizes.push_back(0);
        ++groups.sizes.back();
        groups.members.push_back(sample);
        last = column;
    }
    groups.leaf_of.assign(static_cast<std::size_t>(n_samples),
                          static_cast<SampleId>(groups.sizes.size()));
    auto member = groups.members.begin();
    for (std::size_t leaf = 0; leaf < groups.sizes.size(); ++leaf) {
        const SampleId size = groups.sizes[leaf];
        for (SampleId i = 0; i < size; ++i) groups.leaf_of[*member++] = static_cast<SampleId>(leaf);
        groups.n_pairs += static_cast<double>(size) * static_cast<double>(size);
    }
    groups.sizes.push_back(0);
    return groups;
}

// Returns <H K_s H, H K_t H>. `overlaps` has room for the leaves of t and one more, and contains zeros.
inline double centered_product(const LeafGroups& s, const LeafGroups& t, SampleId* overlaps) {
    const auto n = static_cast<double>(s.leaf_of.size());
    const SampleId absent = t.n_leaves();
    Offset squares = 0;    // Σ O²
    double crossed = 0.0;  // Σ O m m'
    const SampleId* begin = s.members.data();
    for (SampleId leaf = 0; leaf < s.n_leaves(); ++leaf) {
        const SampleId* end = begin + s.sizes[leaf];
        Offset sizes = 0;  // Σ O m' of this leaf
        // No branch, because it is random which samples are present in both trees.
        for (const SampleId* member = begin; member < end; ++member) {
            const SampleId other = t.leaf_of[*member];
            squares += 2 * Offset{overlaps[other]++} + 1;  // (O + 1)² - O²
            sizes += t.sizes[other];
        }
        squares -= Offset{overlaps[absent]} * overlaps[absent];
        crossed += static_cast<double>(s.sizes[leaf]) * static_cast<double>(sizes);
        for (const SampleId* member = begin; member < end; ++member) overlaps[t.leaf_of[*member]] = 0;
        begin = end;
    }
    return static_cast<double>(squares) - 2.0 * crossed / n + s.n_pairs / n * (t.n_pairs / n);
}

}  // namespace detail

// Computes the inner products of all pairs of trees, as a row-major (n_trees, n_trees) array. Rows have
// one leaf for each tree. Samples are left out of the trees in which they are not present.
inline void centered_tree_products(const WeighedRows& rows, double* products, int n_threads,
                                   const Monitor& monitor) {
    require(rows.incidence.offsets.empty(), "rows must have one leaf for each tree");
    require(rows.weights.all_one() && rows.by_row.empty(), "rows must not have weights");
    require(rows.n_rows() > 0, "there are no samples");
    require(rows.n_rows() <= std::numeric_limits<SampleId>::max(), "there are too many samples");
    const Offset n_trees = rows.incidence.n_groups();
    std::vector<detail::LeafGroups> groups(static_cast<std::size_t>(n_trees));
    for_each_block(n_trees, 1, n_threads, monitor, [&] {
        return [&](Offset t, Offset, const auto&) { groups[t] = detail::group_by_leaf(rows, t); };
    });
    std::size_t room = 0;
    for (const auto& tree : groups) room = std::max(room, tree.sizes.size());
    // One tree against all later ones. The first trees have most of the work, so all threads end
    // at about the same time.
    for_each_block(n_trees, 1, n_threads, monitor, [&] {
        return [&, overlaps = std::vector<SampleId>(room)](Offset s, Offset, const auto& poll) mutable {
            for (Offset t = s; t < n_trees; ++t) {
                poll();
                const double product = detail::centered_product(groups[s], groups[t], overlaps.data());
                products[s * n_trees + t] = products[t * n_trees + s] = product;
            }
        };
    });
}

}  // namespace leafkernel
