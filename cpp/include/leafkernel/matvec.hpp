// P V through the leaves, without P: what the samples of a leaf have in common is summed once.
//
//     u(leaf, :) = g(leaf) Σ over members of  w · b · V(member, :)
//     (P V)(i, :) = scale · a(i) Σ over the leaves of i of  q · u(leaf, :)
//
// Sums are formed in double. What lies in memory between the two steps has the type of the kernel:
// the work is reading it at random, so half the bytes are half the time.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>
#include <vector>

#include "leafkernel/for_each_row.hpp"
#include "leafkernel/memory.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

namespace detail {

// Width columns of V at a time, so that the compiler knows how many.
template <class Store, int Width>
class LeafSums {
    using Sums = std::array<double, Width>;

public:
    LeafSums(const Product& product, int n_threads, const Monitor& monitor)
        : product_(product),
          n_threads_(n_threads),
          monitor_(monitor),
          at_place_(product.reference.n_samples() * Width),
          of_leaf_(product.reference.n_leaves() * Width) {}

    // Columns [first, first + Width) of P V, where V has n_columns.
    void apply(std::span<const double> values, Offset n_columns, Offset first, double* out) {
        permute(values, n_columns, first);
        const auto& weights = product_.reference.weights;
        if (!weights.counts.empty()) {
            gather(weights.counts);
        } else if (!weights.floats.empty()) {
            gather(weights.floats);
        } else if (!weights.doubles.empty()) {
            gather(weights.doubles);
        } else {
            gather(std::span<const NoWeights>());
        }
        const auto& leaves = product_.query.incidence.columns;
        leaves.wide.empty() ? spread(leaves.narrow.data(), n_columns, first, out)
                            : spread(leaves.wide.data(), n_columns, first, out);
    }

private:
    // In the order of places, the members of a leaf lie close together.
    void permute(std::span<const double> values, Offset n_columns, Offset first) {
        const auto& lists = product_.reference;
        for_each_block(lists.n_samples(), 1 << 14, n_threads_, monitor_, [&] {
            return [&](Offset begin, Offset end, const auto&) {
                for (Offset place = begin; place < end; ++place) {
                    const double b = lists.by_place.empty() ? 1.0 : lists.by_place[place];
                    const double* in = values.data() + lists.sample_at[place] * n_columns + first;
                    Store* to = at_place_.data() + place * Width;
                    for (int c = 0; c < Width; ++c) to[c] = static_cast<Store>(b * in[c]);
                }
            };
        });
    }

    template <class Weight>
    void gather(std::span<const Weight> weights) {
        const auto& lists = product_.reference;
        for_each_block(lists.n_leaves(), 1 << 12, n_threads_, monitor_, [&] {
            return [&](Offset begin, Offset end, const auto&) {
                for (Offset leaf = begin; leaf < end; ++leaf) {
                    Sums sums{};
                    for (Offset m = lists.offsets[leaf]; m < lists.offsets[leaf + 1]; ++m) {
                        const Store* in = at_place_.data() + Offset{lists.members[m]} * Width;
                        double w = 1.0;
                        if constexpr (!std::is_same_v<Weight, NoWeights>) {
                            w = static_cast<double>(weights[m]);
                        }
                        for (int c = 0; c < Width; ++c) sums[c] += w * in[c];
                    }
                    const double g = product_.by_leaf.empty() ? 1.0 : product_.by_leaf[leaf];
                    Store* to = of_leaf_.data() + leaf * Width;
                    for (int c = 0; c < Width; ++c) to[c] = static_cast<Store>(g * sums[c]);
                }
            };
        });
    }

    template <class LeafId>
    void spread(const LeafId* leaves, Offset n_columns, Offset first, double* out) {
        const auto& query = product_.query;
        const auto& incidence = query.incidence;
        const bool weighs = !query.weights.all_one();
        for_each_block(query.n_rows(), 1 << 9, n_threads_, monitor_, [&] {
            return [&, kept = std::vector<LeafId>(static_cast<std::size_t>(incidence.longest) + 1)](
                       Offset begin, Offset end, const auto&) mutable {
                for (Offset i = begin; i < end; ++i) {
                    const Offset row = product_.row_order[i];
                    prefetch_row(incidence, product_.row_order[std::min(i + 2, end - 1)]);
                    const Offset from = incidence.begin(row), to_entry = incidence.end(row);
                    Sums sums{};
                    if (weighs) {
                        for (Offset e = from; e < to_entry; ++e) add(sums, leaves[e], query.weights[e]);
                    } else if (query.present.empty()) {
                        for (Offset e = from; e < to_entry; ++e) add(sums, leaves[e], 1.0);
                    } else {  // which entries there are is anyone's guess: no branch
                        Offset n_kept = 0;
                        for (Offset e = from; e < to_entry; ++e) {
                            kept[n_kept] = leaves[e];
                            n_kept += query.present[e] != 0;
                        }
                        for (Offset v = 0; v < n_kept; ++v) add(sums, kept[v], 1.0);
                    }
                    const double factor =
                        product_.scale * (query.by_row.empty() ? 1.0 : query.by_row[row]);
                    double* to = out + row * n_columns + first;
                    for (int c = 0; c < Width; ++c) to[c] = factor * sums[c];
                }
            };
        });
    }

    void add(Sums& sums, Offset leaf, double weight) const {
        const Store* in = of_leaf_.data() + leaf * Width;
        for (int c = 0; c < Width; ++c) sums[c] += weight * in[c];
    }

    const Product& product_;
    int n_threads_;
    const Monitor& monitor_;
    Buffer<Store> at_place_;
    Buffer<Store> of_leaf_;
};

// As many columns as fit, Width at a time; returns the first that is left.
template <class Store, int Width>
Offset apply_in_steps(const Product& product, std::span<const double> values, Offset n_columns,
                      Offset first, double* out, int n_threads, const Monitor& monitor) {
    if (n_columns - first < Width) return first;
    LeafSums<Store, Width> sums(product, n_threads, monitor);
    for (; n_columns - first >= Width; first += Width) sums.apply(values, n_columns, first, out);
    return first;
}

}  // namespace detail

// V is (n_samples, n_columns), out (n_rows, n_columns), both row by row.
template <class Store>
void apply(const Product& product, std::span<const double> values, Offset n_columns, double* out,
           int n_threads, const Monitor& monitor) {
    Offset done = 0;
    const auto in_steps = [&]<int Width>(std::integral_constant<int, Width>) {
        done = detail::apply_in_steps<Store, Width>(product, values, n_columns, done, out, n_threads,
                                                    monitor);
    };
    in_steps(std::integral_constant<int, 16>{});
    in_steps(std::integral_constant<int, 4>{});
    in_steps(std::integral_constant<int, 2>{});
    in_steps(std::integral_constant<int, 1>{});
}

}  // namespace leafkernel
