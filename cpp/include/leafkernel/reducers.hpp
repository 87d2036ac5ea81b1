// Reducers: small objects that for_each_row calls with each row of P.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "leafkernel/for_each_row.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

// Writes the k samples of each row with the largest proximities (or magnitudes), largest first, with
// ties ordered by sample. The row's own sample is left out. Samples of proximity zero come before
// negative ones, exactly as in a stable sort of the dense row.
template <class Value>
void top_k(const Product& product, Offset k, Value* similarities, std::int64_t* samples, int n_threads,
           const Monitor& monitor, bool by_magnitude = false, Loop loop = Loop::automatic) {
    using Entry = std::pair<Value, SampleId>;
    const auto rank = [by_magnitude](Value value) { return by_magnitude ? std::abs(value) : value; };
    const auto before = [rank](const Entry& a, const Entry& b) {
        const Value first = rank(a.first), second = rank(b.first);
        return first > second || (first == second && a.second < b.second);
    };
    const auto& sample_at = product.reference.sample_at;
    for_each_row<Value>(product, loop, n_threads, monitor, [&] {
        return [&, best = std::vector<Entry>(), negative = std::vector<Entry>(),
                taken = std::vector<SampleId>()](Offset row, std::span<const SampleId> places,
                                                 std::span<const Value> values) mutable {
            const SampleId own = product.own.empty() ? -1 : product.own[row];
            const auto n_best = static_cast<std::size_t>(k);
            // Most entries are below the current k-th best, so a single comparison rejects them.
            Value enough{0};
            best.clear();
            negative.clear();
            for (std::size_t i = 0; k > 0 && i < places.size(); ++i) {
                const Value ranked = rank(values[i]);
                if (ranked < enough || places[i] == own) {
                    if (ranked < Value{0} && places[i] != own) {
                        negative.emplace_back(values[i], sample_at[places[i]]);
                    }
                    continue;
                }
                best.emplace_back(values[i], sample_at[places[i]]);
                if (best.size() == 4 * n_best + 64) {
                    std::nth_element(best.begin(), best.begin() + k - 1, best.end(), before);
                    best.resize(n_best);
                    enough = rank(best.back().first);
                }
            }
            if (best.size() > n_best) {
                std::nth_element(best.begin(), best.begin() + k, best.end(), before);
                best.resize(n_best);
            } else if (best.size() < n_best) {
                taken.clear();
                if (own >= 0) taken.push_back(sample_at[own]);
                for (const auto& entry : best) taken.push_back(entry.second);
                for (const auto& entry : negative) taken.push_back(entry.second);
                std::sort(taken.begin(), taken.end());
                auto next_taken = taken.begin();
                const auto n_samples = static_cast<SampleId>(sample_at.size());
                for (SampleId s = 0; best.size() < n_best && s < n_samples; ++s) {
                    if (next_taken != taken.end() && *next_taken == s) {
                        ++next_taken;
                    } else {
                        best.emplace_back(Value{0}, s);
                    }
                }
                std::sort(negative.begin(), negative.end(), before);
                for (const auto& entry : negative) {
                    if (best.size() < n_best) best.push_back(entry);
                }
            }
            std::sort(best.begin(), best.end(), before);
            for (Offset i = 0; i < k; ++i) {
                similarities[row * k + i] = best[static_cast<std::size_t>(i)].first;
                samples[row * k + i] = best[static_cast<std::size_t>(i)].second;
            }
        };
    });
}

// Computes P V for a dense V (n_samples, n_columns), without storing P.
template <class Value>
void weighted_sums(const Product& product, std::span<const double> values, Offset n_columns,
                   double* sums, int n_threads, const Monitor& monitor, Loop loop = Loop::automatic) {
    for_each_row<Value>(product, loop, n_threads, monitor, [&] {
        return [&](Offset row, std::span<const SampleId> places, std::span<const Value> found) {
            double* out = sums + row * n_columns;
            std::fill_n(out, n_columns, 0.0);
            for (std::size_t i = 0; i < places.size(); ++i) {
                const Offset sample = product.reference.sample_at[places[i]];
                const double* in = values.data() + sample * n_columns;
                const auto value = static_cast<double>(found[i]);
                for (Offset c = 0; c < n_columns; ++c) out[c] += value * in[c];
            }
        };
    });
}

// Writes P to a dense matrix (n_rows, n_samples), which must be zero.
template <class Value>
void fill_dense(const Product& product, Value* matrix, int n_threads, const Monitor& monitor,
                Loop loop = Loop::automatic) {
    const auto& sample_at = product.reference.sample_at;
    const Offset n_columns = product.reference.n_samples();
    for_each_row<Value>(product, loop, n_threads, monitor, [&] {
        return [&](Offset row, std::span<const SampleId> places, std::span<const Value> values) {
            Value* to = matrix + row * n_columns;
            for (std::size_t i = 0; i < places.size(); ++i) to[sample_at[places[i]]] = values[i];
        };
    });
}

// Writes the number of nonzeros of each row.
template <class Value>
void count_nonzeros(const Product& product, std::int64_t* counts, int n_threads, const Monitor& monitor,
                    Loop loop = Loop::automatic) {
    for_each_row<Value>(product, loop, n_threads, monitor, [&] {
        return [&](Offset row, std::span<const SampleId> places, std::span<const Value>) {
            counts[row] = static_cast<std::int64_t>(places.size());
        };
    });
}

}  // namespace leafkernel
