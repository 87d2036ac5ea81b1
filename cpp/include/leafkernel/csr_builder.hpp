// Collects rows of unknown length from many threads, and joins them into one CSR matrix.
//
// Threads append to slabs of their own. Joining copies slab after slab and frees each as it goes;
// a slab is large enough for the allocator to hand it back to the system at once, and pages that
// were never written take no memory, so the peak stays near one copy of the matrix, not two.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "leafkernel/parallel.hpp"
#include "leafkernel/row_accumulator.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

template <class Value>
class CsrBuilder {
    struct Slab {
        Slab(Offset capacity_)
            : capacity(capacity_),
              columns(std::make_unique_for_overwrite<SampleId[]>(static_cast<std::size_t>(capacity_))),
              values(std::make_unique_for_overwrite<Value[]>(static_cast<std::size_t>(capacity_))) {}

        Offset capacity;
        Offset used = 0;
        std::unique_ptr<SampleId[]> columns;
        std::unique_ptr<Value[]> values;
        struct Run {  // consecutive rows that lie in this slab one behind the other
            Offset first_row;
            Offset n_rows;
            Offset begin;
        };
        std::vector<Run> runs;
    };

public:
    explicit CsrBuilder(Offset n_rows) : row_sizes_(static_cast<std::size_t>(n_rows)) {}

    // A reducer for for_each_row; one for each thread. Rows come in any order of their entries and
    // are written in ascending order of the column.
    class Writer {
    public:
        Writer(CsrBuilder& builder, SampleId n_columns) : builder_(&builder), sorted_(n_columns) {}

        template <class Drain>
        void operator()(Offset row, Drain&& drain) {
            Offset size = 0;
            drain([&](SampleId sample, Value value) {
                sorted_.add(sample, value);
                ++size;
            });
            Slab& slab = slab_for(row, size);
            const Offset begin = slab.used;
            Offset end = begin;
            sorted_.drain([&](SampleId sample, Value value) {
                slab.columns[static_cast<std::size_t>(end)] = sample;
                slab.values[static_cast<std::size_t>(end)] = value;
                ++end;
            });
            slab.used = end;
            builder_->row_sizes_[static_cast<std::size_t>(row)] = end - begin;
        }

    private:
        Slab& slab_for(Offset row, Offset size) {
            if (slab_ == nullptr || slab_->capacity - slab_->used < size) {
                // Small work takes little memory, and large work few slabs.
                const Offset twice = slab_ == nullptr ? first_entries : 2 * slab_->capacity;
                slab_ = builder_->add_slab(std::max(std::min(twice, most_entries), size));
            }
            auto& runs = slab_->runs;
            if (runs.empty() || runs.back().first_row + runs.back().n_rows != row) {
                runs.push_back({row, 0, slab_->used});
            }
            ++runs.back().n_rows;
            return *slab_;
        }

        CsrBuilder* builder_;
        RowAccumulator<Value> sorted_;
        Slab* slab_ = nullptr;
    };

    // Where each row begins in the joined matrix: n_rows + 1 offsets, the last its nonzeros.
    std::vector<Offset> row_offsets() const {
        std::vector<Offset> offsets(row_sizes_.size() + 1);
        for (std::size_t i = 0; i < row_sizes_.size(); ++i) offsets[i + 1] = offsets[i] + row_sizes_[i];
        return offsets;
    }

    // Moves everything into arrays of the right size, and leaves the builder empty.
    template <class Index>
    void join(std::span<const Offset> row_offsets, Index* columns, Value* values, int n_threads,
              const Monitor& monitor) {
        for_each_block(static_cast<Offset>(slabs_.size()), 1, n_threads, monitor, [&] {
            return [&](Offset begin, Offset, const auto& poll) {
                const auto slab = std::move(slabs_[static_cast<std::size_t>(begin)]);
                for (const auto& run : slab->runs) {
                    poll();
                    const Offset to = row_offsets[run.first_row];
                    const Offset size = row_offsets[run.first_row + run.n_rows] - to;
                    std::copy_n(slab->columns.get() + run.begin, size, columns + to);
                    std::copy_n(slab->values.get() + run.begin, size, values + to);
                }
            };
        });
        slabs_.clear();
    }

private:
    static constexpr Offset first_entries = Offset{1} << 16;
    static constexpr Offset most_entries = Offset{1} << 23;

    Slab* add_slab(Offset capacity) {
        auto slab = std::make_unique<Slab>(capacity);
        const std::lock_guard lock(mutex_);
        slabs_.push_back(std::move(slab));
        return slabs_.back().get();
    }

    std::vector<Offset> row_sizes_;
    std::vector<std::unique_ptr<Slab>> slabs_;
    std::mutex mutex_;
};

}  // namespace leafkernel
