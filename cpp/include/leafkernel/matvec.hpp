// Computes P V through the leaves, without forming P: the members of a leaf are summed once and shared.
//
//     u(leaf, :) = g(leaf) Σ over members of  w · b · V(member, :)
//     (P V)(i, :) = scale · a(i) Σ over the leaves of i of  q · u(leaf, :)
//
// If whole paths are compared, u is multiplied by the inner products of the leaves of each tree before
// the second step (weighted_nodes.hpp).
//
// Sums are computed in double. The intermediate u has the type of the kernel: it is read at random, so
// half the bytes take half the time. If few leaves are visited, each u is computed on demand with the
// same operations, which gives the same numbers.
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
#include "leafkernel/weighted_nodes.hpp"

namespace leafkernel {

namespace detail {

// Processes `Width` columns of V at a time. A constant width lets the compiler unroll the loops.
template <class Store, int Width>
class LeafSums {
    using Sums = std::array<double, Width>;

public:
    LeafSums(const Product& product, bool few, int n_threads, const Monitor& monitor)
        : product_(product),
          few_(few),
          n_threads_(n_threads),
          monitor_(monitor),
          at_place_(few ? 0 : Offset{product.reference.n_samples()} * Width),
          of_leaf_(few ? 0 : product.reference.n_leaves() * Width) {}

    // Computes the columns [first, first + Width) of P V, where V has n_columns.
    void apply(std::span<const double> values, Offset n_columns, Offset first, double* out) {
        values_ = values.data() + first;
        n_columns_ = n_columns;
        const auto& weights = product_.reference.weights;
        if (few_) {
            spread([&](Offset leaf) { return sum_members(leaf, weights, fetch()); }, first, out);
            return;
        }
        permute();
        if (!weights.counts.empty()) {
            gather(weights.counts);
        } else if (!weights.floats.empty()) {
            gather(weights.floats);
        } else if (!weights.doubles.empty()) {
            gather(weights.doubles);
        } else {
            gather(AllOne{});
        }
        if (product_.nodes != nullptr) {
            product_.nodes->template multiply<Store, Width>(of_leaf_.data(), n_threads_, monitor_);
        }
        spread([&](Offset leaf) { return of_leaf_.data() + leaf * Width; }, first, out);
    }

private:
    using Stored = std::array<Store, Width>;
    struct AllOne {
        double operator[](Offset) const { return 1.0; }
    };

    // Returns b · V at a place.
    auto fetch() const {
        return [&](Offset place) {
            const auto& index = product_.reference;
            const double b = index.by_place.empty() ? 1.0 : index.by_place[place];
            const double* in = values_ + index.sample_at[place] * n_columns_;
            Stored found;
            for (int c = 0; c < Width; ++c) found[c] = static_cast<Store>(b * in[c]);
            return found;
        };
    }

    // Returns u(leaf, :), given the member weights and a function that reads a member.
    template <class Weights, class Read>
    Stored sum_members(Offset leaf, const Weights& weights, Read read) const {
        const auto& lists = product_.reference;
        Sums sums{};
        for (Offset m = lists.offsets[leaf]; m < lists.offsets[leaf + 1]; ++m) {
            const auto in = read(lists.members[m]);
            const auto w = static_cast<double>(weights[m]);
            for (int c = 0; c < Width; ++c) sums[c] += w * in[c];
        }
        const double g = product_.by_leaf.empty() ? 1.0 : product_.by_leaf[leaf];
        Stored found;
        for (int c = 0; c < Width; ++c) found[c] = static_cast<Store>(g * sums[c]);
        return found;
    }

    // Stores V in the order of places, in which the members of a leaf are close together.
    void permute() {
        for_each_block(product_.reference.n_samples(), 1 << 14, n_threads_, monitor_, [&] {
            return [&, read = fetch()](Offset begin, Offset end, const auto&) {
                for (Offset place = begin; place < end; ++place) {
                    std::ranges::copy(read(place), at_place_.data() + place * Width);
                }
            };
        });
    }

    template <class Weights>
    void gather(const Weights& weights) {
        const auto read = [&](Offset place) { return at_place_.data() + place * Width; };
        for_each_block(product_.reference.n_leaves(), 1 << 12, n_threads_, monitor_, [&] {
            return [&](Offset begin, Offset end, const auto&) {
                for (Offset leaf = begin; leaf < end; ++leaf) {
                    std::ranges::copy(sum_members(leaf, weights, read), of_leaf_.data() + leaf * Width);
                }
            };
        });
    }

    template <class SumsOf>
    void spread(SumsOf sums_of, Offset first, double* out) {
        const auto& leaves = product_.query.incidence.columns;
        leaves.wide.empty() ? spread(leaves.narrow.data(), sums_of, first, out)
                            : spread(leaves.wide.data(), sums_of, first, out);
    }

    template <class LeafId, class SumsOf>
    void spread(const LeafId* leaves, SumsOf sums_of, Offset first, double* out) {
        const auto add = [&](Sums& sums, Offset leaf, double weight) {
            const auto in = sums_of(leaf);
            for (int c = 0; c < Width; ++c) sums[c] += weight * in[c];
        };
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
                    } else {  // existing entries cannot be predicted: no branch
                        Offset n_kept = 0;
                        for (Offset e = from; e < to_entry; ++e) {
                            kept[n_kept] = leaves[e];
                            n_kept += query.present[e] != 0;
                        }
                        for (Offset v = 0; v < n_kept; ++v) add(sums, kept[v], 1.0);
                    }
                    const double factor =
                        product_.scale * (query.by_row.empty() ? 1.0 : query.by_row[row]);
                    double* to = out + row * n_columns_ + first;
                    for (int c = 0; c < Width; ++c) to[c] = factor * sums[c];
                }
            };
        });
    }

    const Product& product_;
    bool few_;
    int n_threads_;
    const Monitor& monitor_;
    const double* values_ = nullptr;  // the first column of V to process
    Offset n_columns_ = 0;
    Buffer<Store> at_place_;
    Buffer<Store> of_leaf_;
};

// Whether the rows visit so few leaf members that summing every leaf would cost more. Reading a member
// at random costs about four sequential reads.
inline bool visits_few(const Product& product) {
    const auto limit = static_cast<Offset>(product.reference.members.size() / 4);
    Offset visited = 0;
    for (Offset row = 0; row < product.query.n_rows(); ++row) {
        visited += product.collisions(row);
        if (visited > limit) return false;
    }
    return true;
}

// Processes columns, `Width` at a time, and returns the first column left.
template <class Store, int Width>
Offset apply_in_steps(const Product& product, std::span<const double> values, Offset n_columns,
                      Offset first, double* out, bool few, int n_threads, const Monitor& monitor) {
    if (n_columns - first < Width) return first;
    LeafSums<Store, Width> sums(product, few, n_threads, monitor);
    for (; n_columns - first >= Width; first += Width) sums.apply(values, n_columns, first, out);
    return first;
}

}  // namespace detail

// Computes P V. V is (n_samples, n_columns) and out is (n_rows, n_columns), both row-major.
template <class Store>
void apply(const Product& product, std::span<const double> values, Offset n_columns, double* out,
           int n_threads, const Monitor& monitor) {
    // Leaves without a visit matter if whole paths are compared.
    const bool few = product.nodes == nullptr && detail::visits_few(product);
    Offset done = 0;
    const auto in_steps = [&]<int Width>(std::integral_constant<int, Width>) {
        done = detail::apply_in_steps<Store, Width>(product, values, n_columns, done, out, few,
                                                    n_threads, monitor);
    };
    in_steps(std::integral_constant<int, 16>{});
    in_steps(std::integral_constant<int, 4>{});
    in_steps(std::integral_constant<int, 2>{});
    in_steps(std::integral_constant<int, 1>{});
}

}  // namespace leafkernel
