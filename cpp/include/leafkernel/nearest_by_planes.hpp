// Finds the k nearest samples if leaves are large. Rows are sums of leaves, stored in bit planes.
//
// If sums are counts, the planes hold them exactly, and the k largest are read from the planes. If
// leaves have weights, each weight is rounded up to whole units, and the planes hold upper bounds. Only
// samples whose bound reaches the current k-th best value are summed exactly, in the same order as in
// the list loop.
//
// Large leaves are bitmaps, which are added to the planes. The members of small leaves are added up one
// by one, and their sums are then added to the planes.
//
// Samples are processed in ascending order, which breaks ties correctly, and in chunks. Bitmaps and
// short lists exist for one chunk at a time, so their memory does not grow with the number of samples.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "leafkernel/best_of_row.hpp"
#include "leafkernel/for_each_row.hpp"
#include "leafkernel/leaf_chunk.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/plane_kernels.hpp"
#include "leafkernel/plane_plan.hpp"
#include "leafkernel/plane_row.hpp"
#include "leafkernel/row_plan.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

namespace detail {

constexpr Offset rows_per_block = 32;

// Processes one block of rows after another. Holds the scratch memory of one thread.
template <class Value>
class PlaneWorker {
public:
    PlaneWorker(const Product& product, const LeafChunk& chunk, Offset k)
        : product_(product),
          chunk_(chunk),
          kernels_(plane_kernels()),
          k_(k),
          n_words_(chunk.n_words()),
          by_row_(knows_samples(product)),
          rows_(static_cast<std::size_t>(rows_per_block)),
          entries_(product.query.incidence.longest),
          short_sums_(n_words_),
          equal_(n_words_),
          larger_(n_words_) {}

    // Processes the rows [begin, end) of the row order. The outputs already hold the best samples of
    // the previous chunks.
    void work(Offset begin, Offset end, Value* values, std::int64_t* samples) {
        int n_planes = 1, map_planes = 1;
        for (Offset i = begin; i < end; ++i) {
            auto& row = rows_[static_cast<std::size_t>(i - begin)];
            row.prepare(product_, chunk_, entries_, product_.row_order[i]);
            n_planes = std::max(n_planes, row.n_planes);
            map_planes = std::max(map_planes, row.map_planes);
        }
        add_bitmaps(end - begin, map_planes, n_planes);
        for (Offset i = 0; i < end - begin; ++i) {
            const auto& row = rows_[static_cast<std::size_t>(i)];
            Word* planes = planes_.data() + i * n_planes * n_words_;
            add_short_lists(row, planes, map_planes, n_planes);
            Value* to = values + row.row * k_;
            const Offset own = own_sample(row.row);
            const Offset n_before = chunk_.first() - (own >= 0 && own < chunk_.first() ? 1 : 0);
            best_.read(to, samples + row.row * k_, std::min(k_, n_before), k_);
            choose(row, own, planes, n_planes);
            best_.write(to, samples + row.row * k_);
        }
    }

private:
    void add_bitmaps(Offset n_rows, int map_planes, int n_planes) {
        const Offset of_row = n_planes * n_words_;
        if (planes_size_ < n_rows * of_row) {
            planes_size_ = n_rows * of_row;
            planes_ = Words(planes_size_);
        }
        for (Offset tile = 0; tile < n_words_; tile += words_per_tile) {
            const Offset width = std::min(words_per_tile, n_words_ - tile);
            for (Offset i = 0; i < n_rows; ++i) {
                const auto& row = rows_[static_cast<std::size_t>(i)];
                moved_.resize(row.maps.size());
                for (std::size_t m = 0; m < moved_.size(); ++m) moved_[m] = row.maps[m] + tile;
                kernels_.add(moved_.data(), row.ends.data(), static_cast<int>(row.ends.size()),
                             map_planes, width, planes_.data() + i * of_row + tile, n_words_);
            }
        }
    }

    void add_short_lists(const PlaneRow& row, Word* planes, int map_planes, int n_planes) {
        std::fill(planes + map_planes * n_words_, planes + n_planes * n_words_, Word{0});
        for (const auto& visit : row.visits) {
            short_sums_.add(chunk_.members(visit.leaf), visit.units);
        }
        if (short_sums_.empty()) return;
        kernels_.add_planes(short_sums_.drain(n_planes), n_planes, n_words_, planes, n_words_);
    }

    void choose(const PlaneRow& row, Offset own, const Word* planes, int n_planes) {
        offered_.clear();
        const bool counts = product_.counts();
        if (counts || !best_.is_full()) {
            all_columns(own);
            const std::int64_t n_equal = kernels_.largest(planes, n_words_, n_planes, n_words_, k_,
                                                          equal_.data(), larger_.data());
            const auto offer = [&](Offset column) {
                const auto units = in_planes(planes, n_planes, column);
                best_.offer(counts ? to_value(row, static_cast<double>(units)) : summed(row, column),
                            chunk_.first() + column);
                offered_.push_back(column);
            };
            each_bit(larger_.data(), std::numeric_limits<std::int64_t>::max(), offer);
            each_bit(equal_.data(), n_equal, offer);
        }
        if (counts || row.visits.empty() || !best_.is_full()) return;
        all_columns(own);
        kernels_.at_least(planes, n_words_, n_planes, n_words_, enough(row), equal_.data());
        for (const Offset column : offered_) clear(equal_.data(), column);
        each_bit(equal_.data(), std::numeric_limits<std::int64_t>::max(), [&](Offset column) {
            // The k-th best value may have increased in the meantime.
            if (in_planes(planes, n_planes, column) >= enough(row)) {
                best_.offer(summed(row, column), chunk_.first() + column);
            }
        });
    }

    // The smallest sum of rounded weights that can still be among the best.
    std::uint64_t enough(const PlaneRow& row) const {
        const double value = static_cast<double>(best_.worst().value) / (row.factor * row.unit);
        return static_cast<std::uint64_t>(std::max(1.0, std::floor(value * slack<Value>)));
    }

    Offset own_sample(Offset row) const {
        const bool has_own = !product_.own.empty() && product_.own[row] >= 0;
        return has_own ? product_.reference.sample_at[product_.own[row]] : Offset{-1};
    }

    // Selects all samples of the chunk except the row's own sample.
    void all_columns(Offset own) {
        const Offset n = chunk_.last() - chunk_.first();
        std::fill_n(equal_.data(), n_words_, Word{0});
        std::fill_n(equal_.data(), n / bits_per_word, ~Word{0});
        if (n % bits_per_word != 0) {
            equal_.data()[n / bits_per_word] = (Word{1} << n % bits_per_word) - 1;
        }
        if (own >= chunk_.first() && own < chunk_.last()) clear(equal_.data(), own - chunk_.first());
    }

    static void clear(Word* words, Offset column) {
        words[column / bits_per_word] &= ~(Word{1} << column % bits_per_word);
    }

    template <class Do>
    void each_bit(const Word* words, std::int64_t at_most, const Do& run) const {
        for (Offset w = 0; w < n_words_ && at_most > 0; ++w) {
            for (Word left = words[w]; left != 0 && at_most > 0; left &= left - 1, --at_most) {
                run(w * bits_per_word + std::countr_zero(left));
            }
        }
    }

    std::uint64_t in_planes(const Word* planes, int n_planes, Offset column) const {
        std::uint64_t units = 0;
        for (int p = 0; p < n_planes; ++p) {
            units |= std::uint64_t{has_bit(planes + p * n_words_, column)} << p;
        }
        return units;
    }

    // The exact sum, added in the same order as in the list loop.
    Value summed(const PlaneRow& row, Offset column) const {
        double sum = 0.0;
        if (by_row_) {
            const SampleLeaves leaves(product_.reference.rows, chunk_.first() + column);
            for (const auto& visit : row.visits) {
                sum += visit.weight * leaves.count(visit.group, visit.leaf);
            }
        } else {
            for (const auto& visit : row.visits) {
                sum += visit.weight * chunk_.count(visit.leaf, column);
            }
        }
        return to_value(row, sum);
    }

    static Value to_value(const PlaneRow& row, double sum) {
        const auto value = static_cast<Value>(row.factor * sum);
        require_finite<Value>(std::abs(value) <= std::numeric_limits<Value>::max());
        return value;
    }

    const Product& product_;
    const LeafChunk& chunk_;
    const PlaneKernels& kernels_;
    Offset k_;
    Offset n_words_;
    bool by_row_;  // whether the leaves of a sample can be read from its row
    std::vector<PlaneRow> rows_;
    RowEntries entries_;
    std::vector<const Word*> moved_;
    std::vector<Offset> offered_;
    BestOfRow<Value> best_;
    ShortListSums short_sums_;
    Words planes_;
    Offset planes_size_ = 0;
    Words equal_, larger_;
};

}  // namespace detail

// Writes the k largest entries of each row, as top_k does. Requires bounds_hold().
template <class Value>
void nearest_by_planes(const Product& product, const detail::PlanePlan& plan, Offset k, Value* values,
                       std::int64_t* samples, int n_threads, const Monitor& monitor) {
    const auto& lists = product.reference;
    const Offset n = lists.n_samples(), n_chunks = (n + plan.chunk - 1) / plan.chunk;
    const auto n_rows = static_cast<Offset>(product.row_order.size());
    for (Offset at = 0; at < n_chunks; ++at) {
        const Offset first = at * plan.chunk, last = std::min(first + plan.chunk, n);
        // Report progress over all chunks.
        const Monitor watch = [&](Offset done) {
            if (monitor) monitor((at * n_rows + done) / n_chunks);
        };
        const Monitor quiet = [&](Offset) { watch(0); };
        const detail::LeafChunk chunk(lists, first, last, plan.depth, plan.least_size, n_threads,
                                      quiet);
        for_each_block(n_rows, detail::rows_per_block, n_threads, watch, [&] {
            return [&, worker = detail::PlaneWorker<Value>(product, chunk, k)](Offset begin, Offset end,
                                                                               const auto&) mutable {
                worker.work(begin, end, values, samples);
            };
        });
    }
}

}  // namespace leafkernel
