// One row of P while it is being summed: a dense array of sums, and which of them are in use.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "leafkernel/views.hpp"

namespace leafkernel {

// Sums of a row are kept in double whatever the type of the weights: a row adds up one term for each
// tree, and hundreds of float additions would lose the last digits that a float result still has.
// Entries in use are marked in a bitmap with a second bitmap over its words, so that they come out
// in ascending order without a sort, and resetting costs only what was used.
template <class Sum>
class RowAccumulator {
public:
    explicit RowAccumulator(SampleId n_samples)
        : sums_(static_cast<std::size_t>(n_samples)),
          used_((static_cast<std::size_t>(n_samples) + 63) / 64),
          used_words_((used_.size() + 63) / 64) {}

    void add(SampleId sample, Sum value) {
        sums_[static_cast<std::size_t>(sample)] += value;
        mark(sample);
    }

    // Calls visit(sample, sum) for every entry in use, ascending, and empties the row.
    template <class Visit>
    void drain(Visit&& visit) {
        for (std::size_t group = 0; group < used_words_.size(); ++group) {
            std::uint64_t words = used_words_[group];
            used_words_[group] = 0;
            while (words != 0) {
                const std::size_t word = group * 64 + static_cast<std::size_t>(std::countr_zero(words));
                words &= words - 1;
                std::uint64_t entries = used_[word];
                used_[word] = 0;
                while (entries != 0) {
                    const std::size_t sample =
                        word * 64 + static_cast<std::size_t>(std::countr_zero(entries));
                    entries &= entries - 1;
                    const Sum sum = sums_[sample];
                    sums_[sample] = Sum{0};
                    visit(static_cast<SampleId>(sample), sum);
                }
            }
        }
    }

private:
    void mark(SampleId sample) {
        const auto bit = static_cast<std::uint32_t>(sample);
        used_[bit >> 6] |= std::uint64_t{1} << (bit & 63);
        used_words_[bit >> 12] |= std::uint64_t{1} << ((bit >> 6) & 63);
    }

    std::vector<Sum> sums_;
    std::vector<std::uint64_t> used_;        // a bit for each sample
    std::vector<std::uint64_t> used_words_;  // a bit for each word of used_
};

}  // namespace leafkernel
