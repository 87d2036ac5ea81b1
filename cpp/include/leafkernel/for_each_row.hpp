// THE loop: every result of the engine (matrix, neighbours, sums, counts) is a reducer fed by it.
//
//     row i of Q       leaf lists of W                    row i of P
//     (leaf, q) ...    leaf -> (member, w) ...            (sample, sum of q·w) ...
//         |                   |                                  |
//         +-- for each leaf --+-- for each member: add --> RowAccumulator --> reducer
//
// A row is summed by one thread in the order of its leaves, so a result never depends on the
// number of threads.
#pragma once

#include <algorithm>

#include "leafkernel/parallel.hpp"
#include "leafkernel/row_accumulator.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

namespace detail {

inline void prefetch(const void* address) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(address);
#else
    (void)address;
#endif
}

// The lists of a row's leaves lie far apart in memory and most are short: without asking for them
// ahead, the loop waits on memory most of the time.
constexpr Offset lookahead = 8;

template <class Value, class LeafId>
void accumulate(const Product<Value, LeafId>& product, Offset row, RowAccumulator<double>& sums) {
    const auto& query = product.query;
    const auto& reference = product.reference;
    const Offset end = query.offsets[row + 1];
    for (Offset e = query.offsets[row]; e < end; ++e) {
        if (e + 2 * lookahead < end) {
            prefetch(&reference.offsets[query.leaves[e + 2 * lookahead]]);
        }
        if (e + lookahead < end) {
            const Offset ahead = reference.offsets[query.leaves[e + lookahead]];
            prefetch(reference.members.data() + ahead);
            prefetch(reference.weights.data() + ahead);
        }
        const auto leaf = query.leaves[e];
        const double q = query.weights[e];
        for (Offset m = reference.offsets[leaf]; m < reference.offsets[leaf + 1]; ++m) {
            sums.add(reference.members[m], q * reference.weights[m]);
        }
    }
}

// Blocks of about this many collisions take milliseconds: short enough to share the work evenly, long
// enough that handing them out costs nothing.
constexpr Offset collisions_per_block = 1 << 20;

template <class Value, class LeafId>
Offset choose_block_size(const Product<Value, LeafId>& product) {
    const Offset n_rows = product.query.n_rows();
    const Offset n_probes = std::min<Offset>(n_rows, 64);
    Offset collisions = 0;
    for (Offset i = 0; i < n_probes; ++i) collisions += product.collisions(i * n_rows / n_probes);
    const Offset per_row = std::max<Offset>(1, n_probes > 0 ? collisions / n_probes : 1);
    return std::clamp<Offset>(collisions_per_block / per_row, 1, 4096);
}

}  // namespace detail

// Calls reducer(row, drain) for every row, where drain(visit) calls visit(sample, value) for its
// entries, in no particular order; values arrive in the type of the product. An entry that is zero in
// that type is no entry: it is left out. `make_reducer()` is called once on each thread.
template <class Value, class LeafId, class MakeReducer>
void for_each_row(const Product<Value, LeafId>& product, int n_threads, const Monitor& monitor,
                  MakeReducer&& make_reducer) {
    const bool has_diagonal = !product.diagonal.empty();
    auto make_worker = [&] {
        return
            [&, reducer = make_reducer(), sums = RowAccumulator<double>(product.reference.n_samples())](
                Offset begin, Offset end, const auto& poll) mutable {
                for (Offset i = begin; i < end; ++i) {
                    poll();
                    const Offset row = product.row_order[i];
                    const SampleId fixed = has_diagonal ? product.own[row] : -1;
                    detail::accumulate(product, row, sums);
                    auto drain = [&](auto&& visit) {
                        sums.drain([&](SampleId place, double sum) {
                            const SampleId sample = product.reference.sample_at[place];
                            if (sample == fixed) return;
                            if (product.divides_by_shared_oob()) {
                                const int shared = shared_oob_trees(
                                    product.query_oob.of(row), product.reference_oob.of(sample),
                                    product.reference_oob.words_per_sample);
                                sum = shared > 0 ? sum / shared : 0.0;
                            }
                            const auto value = static_cast<Value>(sum);
                            if (value != Value{0}) visit(sample, value);
                        });
                        if (has_diagonal) {
                            const auto value = static_cast<Value>(product.diagonal[row]);
                            if (value != Value{0}) visit(fixed, value);
                        }
                    };
                    reducer(row, drain);
                }
            };
    };
    for_each_block(product.query.n_rows(), detail::choose_block_size(product), n_threads, monitor,
                   make_worker);
}

}  // namespace leafkernel
