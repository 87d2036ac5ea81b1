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
    // `max_nonzeros` bounds the whole matrix, `max_row_nonzeros` any one row.
    CsrBuilder(Offset n_rows, Offset max_nonzeros, Offset max_row_nonzeros)
        : row_sizes_(static_cast<std::size_t>(n_rows)),
          slab_capacity_(std::max(std::min(max_nonzeros, slab_entries), max_row_nonzeros)),
          max_row_nonzeros_(max_row_nonzeros) {}

    // A reducer for for_each_row; one for each thread.
    class Writer {
    public:
        explicit Writer(CsrBuilder& builder) : builder_(&builder) {}

        template <class Drain>
        void operator()(Offset row, Drain&& drain) {
            Slab& slab = slab_for(row);
            const Offset begin = slab.used;
            Offset end = begin;
            drain([&](SampleId sample, Value value) {
                slab.columns[static_cast<std::size_t>(end)] = sample;
                slab.values[static_cast<std::size_t>(end)] = value;
                ++end;
            });
            slab.used = end;
            builder_->row_sizes_[static_cast<std::size_t>(row)] = end - begin;
        }

    private:
        Slab& slab_for(Offset row) {
            if (slab_ == nullptr || slab_->capacity - slab_->used < builder_->max_row_nonzeros_) {
                slab_ = builder_->add_slab();
            }
            auto& runs = slab_->runs;
            if (runs.empty() || runs.back().first_row + runs.back().n_rows != row) {
                runs.push_back({row, 0, slab_->used});
            }
            ++runs.back().n_rows;
            return *slab_;
        }

        CsrBuilder* builder_;
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
    void join(std::span<const Offset> row_offsets, Index* columns, Value* values, int n_threads) {
        for_each_block(static_cast<Offset>(slabs_.size()), 1, n_threads, {}, [&] {
            return [&](Offset begin, Offset) {
                const auto slab = std::move(slabs_[static_cast<std::size_t>(begin)]);
                for (const auto& run : slab->runs) {
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
    static constexpr Offset slab_entries = Offset{1} << 23;

    Slab* add_slab() {
        auto slab = std::make_unique<Slab>(slab_capacity_);
        const std::lock_guard lock(mutex_);
        slabs_.push_back(std::move(slab));
        return slabs_.back().get();
    }

    std::vector<Offset> row_sizes_;
    Offset slab_capacity_;
    Offset max_row_nonzeros_;
    std::vector<std::unique_ptr<Slab>> slabs_;
    std::mutex mutex_;
};

}  // namespace leafkernel
