// Computes rows of P as a CSR matrix whose size is not known in advance.
//
// Rows are computed in chunks of consecutive rows. Within a chunk, they follow the order that is best
// for the caches. Each thread appends to its own slab. After each chunk, the rows are copied to the end
// of the growing matrix, and the slabs are reused. Extra memory is therefore a fraction of the matrix.
// All entries count against a limit, so the computation of a matrix that is too large stops early.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "leafkernel/for_each_row.hpp"
#include "leafkernel/memory.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/row_sort.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

template <class Index, class Value>
struct CsrMatrix {
    Buffer<Offset> offsets;
    Buffer<Index> columns;
    Buffer<Value> values;
};

// Thrown if the matrix would exceed the allowed number of entries.
struct TooManyEntries : std::runtime_error {
    TooManyEntries() : std::runtime_error("the matrix has more entries than are allowed") {}
};

namespace detail {

// The number of entries that a matrix may have. Threads reserve entries before they store a row.
class EntryLimit {
public:
    explicit EntryLimit(Offset most) : most_(most) {}

    Offset most() const { return most_; }
    void take(Offset n_entries) {
        if (taken_.fetch_add(n_entries, std::memory_order_relaxed) > most_ - n_entries) {
            throw TooManyEntries();
        }
    }

private:
    Offset most_;
    std::atomic<Offset> taken_{0};
};

// The rows of a chunk that one thread has computed.
template <class Value>
struct Slab {
    Slab(const Product& product, const RowPlan& plan, bool sorted_, Offset expected_rows_,
         EntryLimit& limit_)
        : computer(make_row_computer<Value>(product, plan)),
          sample_at(product.reference.sample_at),
          ascending(plan.ascending),
          sorted(sorted_),
          expected_rows(expected_rows_),
          limit(limit_),
          sort(product.reference.n_samples()) {}

    void clear() { rows.used = n_rows = 0; }

    // Appends a row to the slab and returns its size.
    Offset append(Offset row) {
        last.used = 0;
        const Offset size = computer->compute(row, last);
        limit.take(size);
        SampleId* columns = last.places.data();
        if (!ascending) {
            for (Offset i = 0; i < size; ++i) columns[i] = sample_at[columns[i]];
            if (sorted) sort(columns, last.values.data(), size);
        }
        ++n_rows;
        make_room(rows.used + size);
        stream_copy(columns, size, rows.places.data() + rows.used);
        stream_copy(last.values.data(), size, rows.values.data() + rows.used);
        rows.used += size;
        return size;
    }

    // Estimates the final size from the rows so far, because growing in few steps moves the data only a
    // few times. Reserved memory that is never written costs little. The factor of 64 keeps one long
    // row from reserving everything.
    void make_room(Offset size) {
        if (size <= rows.places.size()) return;
        const double expected = 1.25 * static_cast<double>(size) * expected_rows / n_rows;
        const Offset likely = std::clamp(static_cast<Offset>(expected), size + size / 4, 64 * size);
        const Offset room = std::min(likely, std::max(size, limit.most()));
        rows.places.resize(room);
        rows.values.resize(room);
    }

    std::unique_ptr<RowComputer<Value>> computer;
    std::span<const SampleId> sample_at;
    bool ascending;  // rows are sorted by sample
    bool sorted;
    Offset expected_rows;  // expected for this thread and chunk
    Offset n_rows = 0;     // rows computed so far
    EntryLimit& limit;
    RowSorter<Value> sort;
    RowBuffer<Value> last;  // the last row, in cache
    RowBuffer<Value> rows;
};

// Large enough to contain rows that share leaves, small enough to be a fraction of the matrix.
inline Offset rows_of_chunk(Offset n_rows) { return std::clamp<Offset>(n_rows / 8, 4096, 32768); }

// Returns the rows chunk by chunk. Rows within a chunk follow the given order.
inline std::vector<Offset> order_in_chunks(std::span<const Offset> row_order, Offset chunk_rows) {
    const auto n_rows = static_cast<Offset>(row_order.size());
    std::vector<Offset> next(static_cast<std::size_t>(n_rows / chunk_rows) + 1);
    for (std::size_t chunk = 0; chunk < next.size(); ++chunk) next[chunk] = chunk * chunk_rows;
    std::vector<Offset> order(row_order.size());
    for (const Offset row : row_order) order[next[row / chunk_rows]++] = row;
    return order;
}

}  // namespace detail

// Throws TooManyEntries if the matrix would have more than `most_entries` entries.
template <class Index, class Value>
CsrMatrix<Index, Value> csr_rows(const Product& product, bool sorted, Offset most_entries,
                                 int n_threads, const Monitor& monitor, Loop loop = Loop::automatic) {
    using Slab = detail::Slab<Value>;
    struct Piece {  // location of a row of the chunk
        const Slab* slab;
        Offset begin;
    };
    const Offset n_rows = product.query.n_rows();
    const auto plan = RowPlan::of(product, loop, sorted, n_threads, monitor);
    const Offset chunk_rows = detail::rows_of_chunk(n_rows);
    const auto order = detail::order_in_chunks(product.row_order, chunk_rows);
    const Offset block_size = detail::choose_block_size(product);
    const int n_slabs = sane_threads(n_threads);
    const Offset share = std::min(chunk_rows, n_rows) / n_slabs + 1;
    detail::EntryLimit limit(most_entries);
    std::vector<std::unique_ptr<Slab>> slabs(static_cast<std::size_t>(n_slabs));
    std::vector<Piece> pieces(static_cast<std::size_t>(std::min(chunk_rows, n_rows)));

    CsrMatrix<Index, Value> matrix;
    Buffer<Offset>& offsets = matrix.offsets;
    offsets.resize(n_rows + 1);
    offsets[0] = 0;
    for (Offset first = 0; first < n_rows; first += chunk_rows) {
        const Offset last = std::min(first + chunk_rows, n_rows);
        const Monitor from_first = [&](Offset done) {
            if (monitor) monitor(first + done);
        };
        std::atomic<std::size_t> next_slab{0};
        for_each_block(last - first, block_size, n_threads, from_first, [&] {
            auto& slab = slabs[next_slab.fetch_add(1)];
            if (slab == nullptr) slab = std::make_unique<Slab>(product, plan, sorted, share, limit);
            slab->clear();
            return [&, slab = slab.get()](Offset begin, Offset end, const auto& poll) {
                const Offset* rows = order.data() + first;
                for (Offset i = begin; i < end; ++i) {
                    poll();
                    if (i + 1 < end) {
                        slab->computer->prepare(rows[i + 1], rows[std::min(i + 2, end - 1)]);
                    }
                    pieces[rows[i] - first] = {slab, slab->rows.used};
                    offsets[rows[i] + 1] = slab->append(rows[i]);
                }
                finish_streaming();
            };
        });
        for (Offset row = first; row < last; ++row) offsets[row + 1] += offsets[row];
        if (offsets[last] > matrix.columns.size()) {
            // Estimate the final size from the rows so far, and add a small reserve.
            const double expected =
                1.02 * static_cast<double>(offsets[last]) * static_cast<double>(n_rows) / last;
            const Offset likely = std::max(offsets[last], static_cast<Offset>(expected));
            const Offset room = std::min(likely, most_entries);
            matrix.columns.resize(room);
            matrix.values.resize(room);
        }
        for_each_block(last - first, 256, n_threads, {}, [&] {
            return [&](Offset begin, Offset end, const auto&) {
                for (Offset row = first + begin; row < first + end; ++row) {
                    const Piece& piece = pieces[row - first];
                    const Offset size = offsets[row + 1] - offsets[row];
                    const SampleId* columns = piece.slab->rows.places.data() + piece.begin;
                    Index* to = matrix.columns.data() + offsets[row];
                    if constexpr (std::is_same_v<Index, SampleId>) {
                        stream_copy(columns, size, to);
                    } else {
                        std::copy_n(columns, size, to);
                    }
                    stream_copy(piece.slab->rows.values.data() + piece.begin, size,
                                matrix.values.data() + offsets[row]);
                }
                finish_streaming();
            };
        });
    }
    matrix.columns.resize(offsets[n_rows]);
    matrix.values.resize(offsets[n_rows]);
    return matrix;
}

}  // namespace leafkernel
