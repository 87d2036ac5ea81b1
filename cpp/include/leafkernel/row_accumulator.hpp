// Accumulates one row of P in a dense array of slots. A list of the used slots is kept unless most are
// in use.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "leafkernel/plane_kernels.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

// Sums of counts use 16-bit slots, so that a row stays in the L1 or L2 cache. All other sums use
// double, whatever the type of the weights: a row adds one term per tree, and hundreds of float
// additions would lose digits of a float result.
//
// A place is listed when its slot changes from zero. It is always written to the end of the list, and
// the end advances only for new places. This avoids a branch that would be mispredicted often.
template <class Slot>
class RowAccumulator {
public:
    explicit RowAccumulator(SampleId n_samples) : slots_(static_cast<std::size_t>(n_samples)) {}

    // Adds value_at(m) to the slot of members[m] for all m in [begin, end). Members must be distinct.
    template <class ValueAt>
    void add(const SampleId* members, Offset begin, Offset end, ValueAt&& value_at) {
        make_room(end - begin);
        Slot* slots = slots_.data();
        SampleId* used = used_.data();
        Offset n_used = n_used_;
        for (Offset m = begin; m < end; ++m) {
            const SampleId place = members[m];
            const Slot sum = slots[place];
            used[n_used] = place;
            n_used += sum == Slot{0};
            slots[place] = static_cast<Slot>(sum + value_at(m));
        }
        n_used_ = n_used;
    }

    // An upper bound on the number of used slots.
    Offset n_used() const { return n_used_; }

    // Calls visit(place, sum) for the used slots, in the order of their first use.
    template <class Visit>
    void look(Visit&& visit) const {
        for (Offset i = 0; i < n_used_; ++i) visit(used_[i], slots_[used_[i]]);
    }

    // Does the same and clears the row. A place to which only zeros were added may occur several times,
    // with a sum of zero.
    template <class Visit>
    void drain(Visit&& visit) {
        for (Offset i = 0; i < n_used_; ++i) {
            const SampleId place = used_[i];
            const Slot sum = slots_[place];
            slots_[place] = Slot{0};
            visit(place, sum);
        }
        n_used_ = 0;
    }

    // Calls visit(place, sample, sum) in ascending order of samples and clears the row. If more than a
    // few percent of the slots are in use, a bitmap of the samples is faster than sorting.
    template <class Visit>
    void drain_in_order(std::span<const SampleId> sample_at, std::span<const SampleId> place_of,
                        Visit&& visit) {
        constexpr Offset bits = 64;
        samples_.resize((slots_.size() + bits - 1) / bits);
        for (Offset i = 0; i < n_used_; ++i) {
            const SampleId sample = sample_at[used_[i]];
            samples_[sample / bits] |= Word{1} << sample % bits;
        }
        for (std::size_t w = 0; w < samples_.size(); ++w) {
            for (Word left = samples_[w]; left != 0; left &= left - 1) {
                const auto sample = static_cast<SampleId>(w * bits + std::countr_zero(left));
                const SampleId place = place_of[sample];
                const Slot sum = slots_[place];
                slots_[place] = Slot{0};
                visit(place, sample, sum);
            }
            samples_[w] = 0;
        }
        n_used_ = 0;
    }

    void clear() {
        for (Offset i = 0; i < n_used_; ++i) slots_[used_[i]] = Slot{0};
        n_used_ = 0;
    }

private:
    void make_room(Offset n_more) {
        const auto needed = static_cast<std::size_t>(n_used_ + n_more) + 1;
        if (needed > used_.size()) used_.resize(2 * needed);
    }

    std::vector<Slot> slots_;  // all zero between rows
    std::vector<SampleId> used_;
    std::vector<Word> samples_;  // all zero between rows
    Offset n_used_ = 0;
};

// An accumulator for rows that are nearly full. Adding takes half the time, but every slot is visited,
// in the order of places.
template <class Slot>
class FullRowAccumulator {
public:
    // The number of slots is rounded up to whole vectors of bits, as add_weights requires.
    explicit FullRowAccumulator(SampleId n_samples)
        : n_samples_(n_samples), slots_((static_cast<std::size_t>(n_samples) + 511) / 512 * 512) {}

    template <class ValueAt>
    void add(const SampleId* members, Offset begin, Offset end, ValueAt&& value_at) {
        Slot* slots = slots_.data();
        for (Offset m = begin; m < end; ++m) {
            slots[members[m]] = static_cast<Slot>(slots[members[m]] + value_at(m));
        }
    }

    // Adds weights[m] to the slots of bitmap m, for all m in order.
    void add(const std::vector<const Word*>& maps, const std::vector<double>& weights) {
        plane_kernels().add_weights(maps.data(), weights.data(), static_cast<int>(maps.size()),
                                    static_cast<std::int64_t>(slots_.size() / 64), slots_.data());
    }

    Offset n_used() const { return n_samples_; }

    template <class Visit>
    void drain(Visit&& visit) {
        for (SampleId place = 0; place < n_samples_; ++place) visit(place, slots_[place]);
        std::fill(slots_.begin(), slots_.end(), Slot{0});
    }

    // For writing all sums at once.
    Slot* slots() { return slots_.data(); }

private:
    SampleId n_samples_;
    std::vector<Slot> slots_;  // all zero between rows
};

}  // namespace leafkernel
