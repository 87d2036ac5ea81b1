// P V through the leaves, without P: what the samples of a leaf have in common is summed once.
//
//     u(leaf, :) = g(leaf) Σ over members of  w · b · V(member, :)
//     (P V)(i, :) = scale · a(i) Σ over the leaves of i of  q · u(leaf, :)
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "leafkernel/for_each_row.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

namespace detail {

// Columns taken at a time: two cache lines of sums a leaf.
constexpr Offset columns_at_once = 16;

template <class Width>
void add_scaled(double* out, const double* in, double weight, Width width) {
    for (Offset c = 0; c < width; ++c) out[c] += weight * in[c];
}

template <class Width>
void apply_columns(const Product& product, std::span<const double> values, Offset n_columns,
                   Offset first, Width width, double* out, int n_threads, const Monitor& monitor) {
    const auto& query = product.query;
    const auto& lists = product.reference;
    // In the order of places, members lie close together.
    std::vector<double> at_place(static_cast<std::size_t>(lists.n_samples() * width));
    for_each_block(lists.n_samples(), 1 << 14, n_threads, monitor, [&] {
        return [&](Offset begin, Offset end, const auto&) {
            for (Offset place = begin; place < end; ++place) {
                const double b = lists.by_place.empty() ? 1.0 : lists.by_place[place];
                const double* in = values.data() + lists.sample_at[place] * n_columns + first;
                for (Offset c = 0; c < width; ++c) at_place[place * width + c] = b * in[c];
            }
        };
    });
    std::vector<double> of_leaf(static_cast<std::size_t>(lists.n_leaves() * width));
    for_each_block(lists.n_leaves(), 1 << 12, n_threads, monitor, [&] {
        return [&](Offset begin, Offset end, const auto& poll) {
            for (Offset leaf = begin; leaf < end; ++leaf) {
                if (leaf % 256 == 0) poll();
                double* sums = of_leaf.data() + leaf * width;
                for (Offset m = lists.offsets[leaf]; m < lists.offsets[leaf + 1]; ++m) {
                    add_scaled(sums, at_place.data() + lists.members[m] * width, lists.weights[m],
                               width);
                }
                if (!lists.by_leaf.empty()) {
                    for (Offset c = 0; c < width; ++c) sums[c] *= lists.by_leaf[leaf];
                }
            }
        };
    });
    for_each_block(query.n_rows, 1 << 10, n_threads, monitor, [&] {
        return [&, sums = std::vector<double>(static_cast<std::size_t>(width))](
                   Offset begin, Offset end, const auto& poll) mutable {
            for (Offset i = begin; i < end; ++i) {
                poll();
                const Offset row = product.row_order[i];
                std::fill(sums.begin(), sums.end(), 0.0);
                for (Offset e = row * query.n_trees; e < (row + 1) * query.n_trees; ++e) {
                    if (!query.has(e)) continue;
                    add_scaled(sums.data(), of_leaf.data() + query.leaves[e] * width, query.weights[e],
                               width);
                }
                const double factor = product.scale * (query.by_row.empty() ? 1.0 : query.by_row[row]);
                double* to = out + row * n_columns + first;
                for (Offset c = 0; c < width; ++c) to[c] = factor * sums[c];
            }
        };
    });
}

}  // namespace detail

// V is (n_samples, n_columns), out (n_rows, n_columns), both row by row.
inline void apply(const Product& product, std::span<const double> values, Offset n_columns, double* out,
                  int n_threads, const Monitor& monitor) {
    for (Offset first = 0; first < n_columns; first += detail::columns_at_once) {
        const Offset width = std::min(detail::columns_at_once, n_columns - first);
        if (width == 1) {  // known to the compiler, one column needs no inner loop
            detail::apply_columns(product, values, n_columns, first,
                                  std::integral_constant<Offset, 1>{}, out, n_threads, monitor);
        } else {
            detail::apply_columns(product, values, n_columns, first, width, out, n_threads, monitor);
        }
    }
}

}  // namespace leafkernel
