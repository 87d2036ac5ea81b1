// What can be made of the rows of P: each a small object fed by for_each_row.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "leafkernel/csr_builder.hpp"
#include "leafkernel/for_each_row.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

// The rows themselves. Returns a builder to be joined into arrays.
template <class Value, class LeafId>
std::unique_ptr<CsrBuilder<Value>> build_rows(const Product<Value, LeafId>& product, int n_threads,
                                              const Monitor& monitor) {
    auto builder = std::make_unique<CsrBuilder<Value>>(product.query.n_rows());
    for_each_row(product, n_threads, monitor, [&] {
        return typename CsrBuilder<Value>::Writer(*builder, product.reference.n_samples());
    });
    return builder;
}

// The k most similar samples of each row, most similar first, ties by sample; never the row's own
// sample. Rows with fewer than k nonzeros are filled up with the first samples of proximity zero,
// exactly as a stable sort of the dense row would.
template <class Value, class LeafId>
void top_k(const Product<Value, LeafId>& product, Offset k, Value* similarities, std::int64_t* samples,
           int n_threads, const Monitor& monitor) {
    using Entry = std::pair<Value, SampleId>;
    const auto before = [](const Entry& a, const Entry& b) {
        return a.first > b.first || (a.first == b.first && a.second < b.second);
    };
    for_each_row(product, n_threads, monitor, [&] {
        return [&, entries = std::vector<Entry>(), taken = std::vector<SampleId>()](
                   Offset row, auto&& drain) mutable {
            const SampleId own = product.own.empty() ? -1 : product.own[row];
            entries.clear();
            drain([&](SampleId sample, Value value) {
                if (sample != own) entries.emplace_back(value, sample);
            });
            if (static_cast<Offset>(entries.size()) > k) {
                std::nth_element(entries.begin(), entries.begin() + k, entries.end(), before);
                entries.resize(static_cast<std::size_t>(k));
            } else {
                taken.clear();
                for (const auto& entry : entries) taken.push_back(entry.second);
                std::sort(taken.begin(), taken.end());
                auto next_taken = taken.begin();
                for (SampleId s = 0; static_cast<Offset>(entries.size()) < k; ++s) {
                    if (next_taken != taken.end() && *next_taken == s) {
                        ++next_taken;
                    } else if (s != own) {
                        entries.emplace_back(Value{0}, s);
                    }
                }
            }
            std::sort(entries.begin(), entries.end(), before);
            for (Offset i = 0; i < k; ++i) {
                similarities[row * k + i] = entries[static_cast<std::size_t>(i)].first;
                samples[row * k + i] = entries[static_cast<std::size_t>(i)].second;
            }
        };
    });
}

// P V for a dense V (n_samples, n_columns), without P.
template <class Value, class LeafId>
void weighted_sums(const Product<Value, LeafId>& product, std::span<const double> values,
                   Offset n_columns, double* sums, int n_threads, const Monitor& monitor) {
    for_each_row(product, n_threads, monitor, [&] {
        return [&](Offset row, auto&& drain) {
            double* out = sums + row * n_columns;
            std::fill_n(out, n_columns, 0.0);
            drain([&](SampleId sample, Value value) {
                const double* in = values.data() + sample * n_columns;
                for (Offset c = 0; c < n_columns; ++c) out[c] += static_cast<double>(value) * in[c];
            });
        };
    });
}

// The number of nonzeros of each row.
template <class Value, class LeafId>
void count_nonzeros(const Product<Value, LeafId>& product, std::int64_t* counts, int n_threads,
                    const Monitor& monitor) {
    for_each_row(product, n_threads, monitor, [&] {
        return [&](Offset row, auto&& drain) {
            std::int64_t count = 0;
            drain([&](SampleId, Value) { ++count; });
            counts[row] = count;
        };
    });
}

}  // namespace leafkernel
