// The k best entries of one row, and the conditions under which upper bounds can find them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "leafkernel/row_plan.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel::detail {

// The k best entries so far, with fast access to the worst of them.
template <class Value>
class BestOfRow {
public:
    struct Entry {
        Value value;
        std::int64_t sample;

        bool is_before(const Entry& other) const {
            return value > other.value || (value == other.value && sample < other.sample);
        }
    };

    void read(const Value* values, const std::int64_t* samples, Offset size, Offset k) {
        entries_.clear();
        k_ = static_cast<std::size_t>(k);
        for (Offset i = 0; i < size; ++i) entries_.push_back({values[i], samples[i]});
        std::make_heap(entries_.begin(), entries_.end(), before);
    }

    bool is_full() const { return entries_.size() == k_; }
    const Entry& worst() const { return entries_.front(); }

    void offer(Value value, std::int64_t sample) {
        const Entry entry{value, sample};
        if (is_full()) {
            if (!entry.is_before(worst())) return;
            std::pop_heap(entries_.begin(), entries_.end(), before);
            entries_.back() = entry;
        } else {
            entries_.push_back(entry);
        }
        std::push_heap(entries_.begin(), entries_.end(), before);
    }

    void write(Value* values, std::int64_t* samples) {
        std::sort(entries_.begin(), entries_.end(), before);
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            values[i] = entries_[i].value;
            samples[i] = entries_[i].sample;
        }
    }

private:
    static bool before(const Entry& a, const Entry& b) { return a.is_before(b); }

    std::vector<Entry> entries_;  // heap with the worst entry on top
    std::size_t k_ = 0;
};

// Whether the samples are available by row as well, with one leaf per tree.
inline bool knows_samples(const Product& product) {
    const auto& rows = product.reference.rows;
    const auto& asked = product.query.incidence;
    return rows.n_rows() == product.reference.n_samples() && rows.incidence.offsets.empty() &&
           asked.offsets.empty() && rows.incidence.longest == asked.longest;
}

// The leaves of one sample, and how often it counts in them. Requires knows_samples().
class SampleLeaves {
public:
    SampleLeaves(const WeighedRows& rows, Offset sample)
        : columns_(rows.incidence.columns),
          first_(rows.incidence.begin(sample)),
          counts_(!rows.weights.counts.empty() ? rows.weights.counts.data() + first_
                  : !rows.present.empty()      ? rows.present.data() + first_
                                               : nullptr) {}

    double count(Offset group, Offset leaf) const {
        const double count = counts_ == nullptr ? 1.0 : counts_[group];
        return columns_[first_ + group] == leaf ? count : 0.0;
    }

private:
    const ColumnIds& columns_;
    Offset first_;
    const std::uint8_t* counts_;
};

// Tolerance for rounding to the result type, and for sums of the same terms in another order. Bounds
// within it are treated as ties.
template <class Value>
constexpr double slack =
    1 - std::max(1e-10, 8 * static_cast<double>(std::numeric_limits<Value>::epsilon()));

// Whether all terms of a sum are nonnegative and no nonzero sum is rounded to zero. A bound on the
// remaining leaves then gives a bound on the value.
template <class Value>
bool bounds_hold(const Product& product) {
    const auto& reference = product.reference;
    if (product.divides_by_shared_oob() || !reference.by_place.empty()) return false;
    if (!reference.weights.floats.empty() || !reference.weights.doubles.empty()) return false;
    if (!product.query.weights.all_one() || !(product.scale > 0)) return false;
    if (product.query.incidence.longest > most_visits) return false;
    double least = product.scale, most = product.scale;
    for (const auto factors : {product.by_leaf, product.query.by_row}) {
        double low = factors.empty() ? 1.0 : std::numeric_limits<double>::max(), high = 1.0;
        for (const double factor : factors) {
            if (!(factor >= 0)) return false;  // also rejects NaN
            if (factor > 0) low = std::min(low, factor);
            high = std::max(high, factor);
        }
        least *= low;
        most *= high;
    }
    return least > 4 * static_cast<double>(std::numeric_limits<Value>::min()) && std::isfinite(most);
}

}  // namespace leafkernel::detail
