// Sorts the entries of one row by column: a radix sort in two or three passes.
//
// Rows come out in the order of places, a permutation of the columns that nothing is known about. A
// comparison sort guesses wrong at every other step; counting digits never guesses.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "leafkernel/views.hpp"

namespace leafkernel {

template <class Value>
class RowSorter {
public:
    explicit RowSorter(SampleId n_columns) {
        const int bits = std::bit_width(static_cast<std::uint32_t>(std::max(n_columns, 1)));
        n_passes_ = std::max(2, (bits + most_bits - 1) / most_bits);  // in, perhaps within, and out
        digit_bits_ = (bits + n_passes_ - 1) / n_passes_;
        starts_.resize(static_cast<std::size_t>(n_passes_) << digit_bits_);
    }

    template <class Index>
    void operator()(Index* columns, Value* values, Offset size) {
        if (size < smallest_radix) return sort_few(columns, values, size);
        if (static_cast<Offset>(from_.size()) < size) {
            from_.resize(static_cast<std::size_t>(size));
            to_.resize(static_cast<std::size_t>(size));
        }
        const std::uint32_t mask = (1u << digit_bits_) - 1;
        std::fill(starts_.begin(), starts_.end(), 0u);
        for (Offset i = 0; i < size; ++i) {
            auto digits = static_cast<std::uint32_t>(columns[i]);
            for (int pass = 0; pass < n_passes_; ++pass, digits >>= digit_bits_) {
                ++starts_[(static_cast<std::uint32_t>(pass) << digit_bits_) + (digits & mask)];
            }
        }
        for (int pass = 0; pass < n_passes_; ++pass) {
            std::uint32_t* starts = starts_.data() + (static_cast<std::size_t>(pass) << digit_bits_);
            std::uint32_t total = 0;
            for (std::uint32_t d = 0; d <= mask; ++d) total += std::exchange(starts[d], total);
            const auto place_of = [&, shift = pass * digit_bits_](std::uint32_t column) {
                return starts[(column >> shift) & mask]++;
            };
            if (pass == 0) {
                for (Offset i = 0; i < size; ++i) {
                    const auto column = static_cast<std::uint32_t>(columns[i]);
                    from_[place_of(column)] = {column, values[i]};
                }
            } else if (pass < n_passes_ - 1) {
                for (Offset i = 0; i < size; ++i) to_[place_of(from_[i].column)] = from_[i];
                std::swap(from_, to_);
            } else {
                for (Offset i = 0; i < size; ++i) {
                    const auto at = place_of(from_[i].column);
                    columns[at] = static_cast<Index>(from_[i].column);
                    values[at] = from_[i].value;
                }
            }
        }
    }

private:
    static constexpr int most_bits = 11;
    static constexpr Offset smallest_radix = 48;

    struct Entry {
        std::uint32_t column;
        Value value;
    };

    template <class Index>
    static void sort_few(Index* columns, Value* values, Offset size) {
        for (Offset i = 1; i < size; ++i) {
            const Index column = columns[i];
            const Value value = values[i];
            Offset at = i;
            for (; at > 0 && columns[at - 1] > column; --at) {
                columns[at] = columns[at - 1];
                values[at] = values[at - 1];
            }
            columns[at] = column;
            values[at] = value;
        }
    }

    int n_passes_ = 2;
    int digit_bits_ = 1;
    std::vector<std::uint32_t> starts_;
    std::vector<Entry> from_, to_;
};

}  // namespace leafkernel
