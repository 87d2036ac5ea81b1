// Sorts the entries of one row by column, with a radix sort of two or three passes.
//
// Rows are in the order of places, which is a random order of columns. A comparison sort mispredicts
// about every second branch on it; a radix sort has no such branches.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "leafkernel/memory.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

template <class Value>
class RowSorter {
public:
    explicit RowSorter(SampleId n_columns) {
        const int bits = std::bit_width(static_cast<std::uint32_t>(std::max(n_columns - 1, 1)));
        n_passes_ = std::max(2, (bits + most_bits - 1) / most_bits);
        digit_bits_ = (bits + n_passes_ - 1) / n_passes_;
        starts_.resize(static_cast<std::size_t>(n_passes_) << digit_bits_);
    }

    template <class Index>
    void operator()(Index* columns, Value* values, Offset size) {
        if (size < smallest_radix) return sort_few(columns, values, size);
        from_.reserve(size);
        if (n_passes_ == 2) return sort_by_digits<2>(columns, values, size);
        to_.reserve(size);
        sort_by_digits<3>(columns, values, size);
    }

private:
    static constexpr int most_bits = 11;
    static constexpr Offset smallest_radix = 48;

    struct Entry {
        std::uint32_t column;
        Value value;
    };

    // Counts the digits of each pass and converts the counts to start positions.
    template <int Passes, class Index>
    std::uint32_t* count_digits(const Index* columns, Offset size) {
        std::fill(starts_.begin(), starts_.end(), 0u);
        std::uint32_t* const starts = starts_.data();
        const int bits = digit_bits_;
        const std::uint32_t mask = (1u << bits) - 1;
        for (Offset i = 0; i < size; ++i) {
            const auto column = static_cast<std::uint32_t>(columns[i]);
            for (int pass = 0; pass < Passes; ++pass) {
                ++starts[(static_cast<std::uint32_t>(pass) << bits) + (column >> (pass * bits) & mask)];
            }
        }
        for (int pass = 0; pass < Passes; ++pass) {
            std::uint32_t total = 0;
            for (std::uint32_t d = 0; d <= mask; ++d) {
                total += std::exchange(starts[(static_cast<std::uint32_t>(pass) << bits) + d], total);
            }
        }
        return starts;
    }

    // Moves entries to the first buffer by the lowest digit, then (with three passes) to the second
    // buffer by the next digit, and back to the row by the highest digit. Local pointers tell the
    // compiler that stores do not change them.
    template <int Passes, class Index>
    void sort_by_digits(Index* columns, Value* values, Offset size) {
        std::uint32_t* const starts = count_digits<Passes>(columns, size);
        const int bits = digit_bits_;
        const std::uint32_t mask = (1u << bits) - 1;
        Entry* const first = from_.data();
        for (Offset i = 0; i < size; ++i) {
            const auto column = static_cast<std::uint32_t>(columns[i]);
            first[starts[column & mask]++] = {column, values[i]};
        }
        Entry* last = first;
        if constexpr (Passes == 3) {
            last = to_.data();
            std::uint32_t* const next = starts + (std::size_t{1} << bits);
            for (Offset i = 0; i < size; ++i) {
                const Entry entry = first[i];
                last[next[entry.column >> bits & mask]++] = entry;
            }
        }
        std::uint32_t* const final = starts + (static_cast<std::size_t>(Passes - 1) << bits);
        for (Offset i = 0; i < size; ++i) {
            const Entry entry = last[i];
            const std::uint32_t at = final[entry.column >> ((Passes - 1) * bits) & mask]++;
            columns[at] = static_cast<Index>(entry.column);
            values[at] = entry.value;
        }
    }

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
    Buffer<Entry> from_, to_;
};

}  // namespace leafkernel
