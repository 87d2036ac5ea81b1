// Finds rows with the same leaves and weights. Their rows of P are equal and are computed once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "leafkernel/memory.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

namespace detail {

// Compares rows of a table. Entries may be missing but have no weights.
template <class ColumnId>
class RowComparer {
public:
    RowComparer(const WeighedRows& rows, const ColumnId* columns) : rows_(rows), columns_(columns) {}

    std::uint64_t hash(Offset row) const {
        constexpr std::uint64_t odd = 0x9E3779B97F4A7C15;
        const Offset begin = rows_.incidence.begin(row), end = rows_.incidence.end(row);
        std::uint64_t hash = 0;
        for (Offset e = begin; e < end; ++e) {
            const auto id = static_cast<std::uint64_t>(columns_[e]);
            const std::uint64_t present = rows_.present.empty() ? 1 : rows_.present[e];
            hash = (hash ^ (2 * id + present)) * odd;
            hash ^= hash >> 32;
        }
        return hash;
    }

    bool are_equal(Offset a, Offset b) const {
        const Offset first = rows_.incidence.begin(a), other = rows_.incidence.begin(b);
        const auto n = static_cast<std::size_t>(rows_.incidence.longest);
        const auto same = [&](const auto* of_all) {
            return std::memcmp(of_all + first, of_all + other, n * sizeof(*of_all)) == 0;
        };
        return same(columns_) && (rows_.present.empty() || same(rows_.present.data())) &&
               (rows_.by_row.empty() || rows_.by_row[a] == rows_.by_row[b]);
    }

private:
    const WeighedRows& rows_;
    const ColumnId* columns_;
};

}  // namespace detail

// Writes, for each row, the first row that it equals, or itself if there is none before it. The rows
// must form a table without entry weights. A hash collision may hide a twin, which only costs time.
inline void find_twins(const WeighedRows& rows, Offset* twin_of, int n_threads,
                       const Monitor& monitor) {
    const auto find = [&]<class ColumnId>(const ColumnId* columns) {
        const detail::RowComparer<ColumnId> comparer(rows, columns);
        std::vector<std::pair<std::uint64_t, Offset>> hashes(static_cast<std::size_t>(rows.n_rows()));
        for_each_block(rows.n_rows(), 4096, n_threads, monitor, [&] {
            return [&](Offset begin, Offset end, const auto&) {
                for (Offset row = begin; row < end; ++row) hashes[row] = {comparer.hash(row), row};
            };
        });
        std::sort(hashes.begin(), hashes.end());
        const auto n_rows = rows.n_rows();
        for (Offset i = 0, first = 0; i < n_rows; ++i) {
            if (hashes[i].first != hashes[first].first) first = i;
            const Offset row = hashes[i].second, one = hashes[first].second;
            twin_of[row] = comparer.are_equal(row, one) ? one : row;
        }
    };
    const auto& columns = rows.incidence.columns;
    columns.wide.empty() ? find(columns.narrow.data()) : find(columns.wide.data());
}

// Copies the requested rows of a CSR matrix; rows may repeat. `offsets` are the row offsets of the
// copy.
template <class Index, class Value>
void repeat_rows(const Index* from_offsets, const Index* from_columns, const Value* from_values,
                 std::span<const Offset> asked, std::span<const Index> offsets, Index* columns,
                 Value* values, int n_threads, const Monitor& monitor) {
    for_each_block(static_cast<Offset>(asked.size()), 256, n_threads, monitor, [&] {
        return [&](Offset begin, Offset end, const auto&) {
            for (Offset row = begin; row < end; ++row) {
                const auto from = static_cast<Offset>(from_offsets[asked[row]]);
                const auto size = static_cast<Offset>(offsets[row + 1] - offsets[row]);
                stream_copy(from_columns + from, size, columns + offsets[row]);
                stream_copy(from_values + from, size, values + offsets[row]);
            }
            finish_streaming();
        };
    });
}

}  // namespace leafkernel
