// Finds the k nearest samples if leaves are large. Leaves are bitmaps, and rows are sums of bitmaps in
// bit planes.
//
// If sums are counts, the planes hold them exactly, and the k largest are read from the planes. If
// leaves have weights, each weight is rounded up to a few bits, and the planes hold upper bounds. Only
// samples whose bound reaches the current k-th best value are summed exactly, in the same order as in
// the list loop.
//
// Samples are processed in ascending order, which breaks ties correctly, and in chunks. Bitmaps exist
// for one chunk at a time, so their memory does not grow with the number of samples.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "leafkernel/best_of_row.hpp"
#include "leafkernel/for_each_row.hpp"
#include "leafkernel/leaf_bitmaps.hpp"
#include "leafkernel/memory.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/plane_kernels.hpp"
#include "leafkernel/row_plan.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

namespace detail {

constexpr Offset rows_per_block = 32;
// The mean weight of a leaf, in units. More units give tighter bounds and take longer.
constexpr double mean_units = 12;

// Processes one block of rows after another. Holds the scratch memory of one thread.
template <class Value>
class PlaneWorker {
public:
    PlaneWorker(const Product& product, const LeafBitmaps& bitmaps, Offset first, Offset last, Offset k,
                const PlaneKernels& kernels)
        : product_(product),
          bitmaps_(bitmaps),
          kernels_(kernels),
          first_(first),
          last_(last),
          k_(k),
          n_words_(bitmaps.n_words()),
          rows_(static_cast<std::size_t>(rows_per_block)),
          entries_(product.query.incidence.longest),
          equal_(n_words_),
          larger_(n_words_) {
        for (auto& row : rows_) row.reserve(product.query.incidence.longest * bitmaps.depth());
    }

    // Processes the rows [begin, end) of the row order. The outputs already hold the best samples of
    // the previous chunks.
    void work(Offset begin, Offset end, Value* values, std::int64_t* samples) {
        int n_planes = 1;
        for (Offset i = begin; i < end; ++i) {
            prepare(rows_[static_cast<std::size_t>(i - begin)], product_.row_order[i]);
            n_planes = std::max(n_planes, rows_[static_cast<std::size_t>(i - begin)].n_planes);
        }
        const Offset of_row = n_planes * n_words_;
        if (planes_size_ < (end - begin) * of_row) {
            planes_size_ = (end - begin) * of_row;
            planes_ = Words(planes_size_);
        }
        for (Offset tile = 0; tile < n_words_; tile += words_per_tile) {
            const Offset width = std::min(words_per_tile, n_words_ - tile);
            for (Offset i = 0; i < end - begin; ++i) {
                auto& row = rows_[static_cast<std::size_t>(i)];
                moved_.resize(row.maps.size());
                for (std::size_t m = 0; m < moved_.size(); ++m) moved_[m] = row.maps[m] + tile;
                kernels_.add(moved_.data(), row.ends.data(), static_cast<int>(row.ends.size()),
                             n_planes, width, planes_.data() + i * of_row + tile, n_words_);
            }
        }
        for (Offset i = 0; i < end - begin; ++i) {
            const auto& row = rows_[static_cast<std::size_t>(i)];
            Value* to = values + row.row * k_;
            const Offset own = own_sample(row.row);
            const Offset n_before = first_ - (own >= 0 && own < first_ ? 1 : 0);
            best_.read(to, samples + row.row * k_, std::min(k_, n_before), k_);
            choose(row, own, planes_.data() + i * of_row, n_planes);
            best_.write(to, samples + row.row * k_);
        }
    }

private:
    struct Visit {
        Offset leaf;
        double weight;  // q · g
    };
    struct Row {
        Offset row = 0;
        double factor = 0.0;  // scale · a
        double unit = 1.0;    // the weight that one unit stands for
        int n_planes = 1;
        std::vector<Visit> visits;
        std::vector<const Word*> maps;  // group by group
        std::vector<int> ends;

        void reserve(Offset n) {
            visits.reserve(static_cast<std::size_t>(n));
            maps.reserve(static_cast<std::size_t>(n));
        }
    };

    void prepare(Row& to, Offset row) {
        to.row = row;
        to.factor = product_.scale * (product_.query.by_row.empty() ? 1.0 : product_.query.by_row[row]);
        to.visits.clear();
        to.maps.clear();
        to.ends.clear();
        entries_.find(product_.query, row);
        const bool has_weights = !product_.query.weights.all_one();
        double total = 0.0;
        if (to.factor != 0.0) {
            for (std::size_t v = 0; v < entries_.size; ++v) {
                const Offset leaf = entries_.leaves[v];
                const double q = has_weights ? entries_.weights[v] : 1.0;
                const double weight = q * (product_.by_leaf.empty() ? 1.0 : product_.by_leaf[leaf]);
                if (weight == 0.0) continue;
                to.visits.push_back({leaf, weight});
                total += weight;
            }
        }
        product_.counts() ? group_counts(to) : group_weights(to, total);
    }

    // Counts need one group: every map has weight one.
    void group_counts(Row& to) {
        for (const auto& visit : to.visits) to.maps.push_back(bitmaps_.of(visit.leaf, 0));
        to.ends.push_back(static_cast<int>(to.maps.size()));
        to.n_planes = std::max(1, static_cast<int>(std::bit_width(to.maps.size())));
        to.unit = 1.0;
    }

    // Rounds each weight up to whole units. Its bits say which planes its maps are added to.
    void group_weights(Row& to, double total) {
        const double n_units = mean_units * static_cast<double>(to.visits.size());
        to.unit = total > 0.0 ? total / n_units : 1.0;
        units_.clear();
        std::uint64_t sum = 0, any = 0;
        for (const auto& visit : to.visits) {
            units_.push_back(
                static_cast<std::uint64_t>(std::ceil(visit.weight / to.unit * (1 + 1e-12))));
            sum += units_.back();
            any |= units_.back();
        }
        const int n_groups = static_cast<int>(std::bit_width(any)) + bitmaps_.depth() - 1;
        for (int g = 0; g < n_groups; ++g) {
            for (std::size_t v = 0; v < to.visits.size(); ++v) {
                for (int bit = 0; bit < bitmaps_.depth(); ++bit) {
                    if (g >= bit && (units_[v] >> (g - bit) & 1u) != 0) {
                        to.maps.push_back(bitmaps_.of(to.visits[v].leaf, bit));
                    }
                }
            }
            to.ends.push_back(static_cast<int>(to.maps.size()));
        }
        to.n_planes = std::max(1, static_cast<int>(std::bit_width(sum << bitmaps_.depth())));
    }

    void choose(const Row& row, Offset own, const Word* planes, int n_planes) {
        offered_.clear();
        const bool counts = product_.counts();
        if (counts || !best_.is_full()) {
            all_columns(own);
            const std::int64_t n_equal = kernels_.largest(planes, n_words_, n_planes, n_words_, k_,
                                                          equal_.data(), larger_.data());
            const auto offer = [&](Offset column) {
                const auto units = in_planes(planes, n_planes, column);
                best_.offer(counts ? to_value(row, static_cast<double>(units)) : summed(row, column),
                            first_ + column);
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
                best_.offer(summed(row, column), first_ + column);
            }
        });
    }

    // The smallest sum of rounded weights that can still be among the best.
    std::uint64_t enough(const Row& row) const {
        const double value = static_cast<double>(best_.worst().value) / (row.factor * row.unit);
        return static_cast<std::uint64_t>(std::max(1.0, std::floor(value * slack<Value>)));
    }

    Offset own_sample(Offset row) const {
        const bool has_own = !product_.own.empty() && product_.own[row] >= 0;
        return has_own ? product_.reference.sample_at[product_.own[row]] : Offset{-1};
    }

    // Selects all samples of the chunk except the row's own sample.
    void all_columns(Offset own) {
        const Offset n = last_ - first_;
        std::fill_n(equal_.data(), n_words_, Word{0});
        std::fill_n(equal_.data(), n / bits_per_word, ~Word{0});
        if (n % bits_per_word != 0) {
            equal_.data()[n / bits_per_word] = (Word{1} << n % bits_per_word) - 1;
        }
        if (own >= first_ && own < last_) clear(equal_.data(), own - first_);
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

    static bool bit_of(const Word* map, Offset column) {
        return (map[column / bits_per_word] >> column % bits_per_word & 1u) != 0;
    }

    std::uint64_t in_planes(const Word* planes, int n_planes, Offset column) const {
        std::uint64_t units = 0;
        for (int p = 0; p < n_planes; ++p) {
            units |= std::uint64_t{bit_of(planes + p * n_words_, column)} << p;
        }
        return units;
    }

    // The exact sum, added in the same order as in the list loop.
    Value summed(const Row& row, Offset column) const {
        double sum = 0.0;
        for (const auto& [leaf, weight] : row.visits) {
            unsigned count = 0;
            for (int bit = 0; bit < bitmaps_.depth(); ++bit) {
                count |= unsigned{bit_of(bitmaps_.of(leaf, bit), column)} << bit;
            }
            sum += count == 0 ? 0.0 : weight * count;
        }
        return to_value(row, sum);
    }

    static Value to_value(const Row& row, double sum) {
        const auto value = static_cast<Value>(row.factor * sum);
        require_finite<Value>(std::abs(value) <= std::numeric_limits<Value>::max());
        return value;
    }

    const Product& product_;
    const LeafBitmaps& bitmaps_;
    const PlaneKernels& kernels_;
    Offset first_, last_, k_;
    Offset n_words_;
    std::vector<Row> rows_;
    RowEntries entries_;
    std::vector<std::uint64_t> units_;
    std::vector<const Word*> moved_;
    std::vector<Offset> offered_;
    BestOfRow<Value> best_;
    Words planes_;
    Offset planes_size_ = 0;
    Words equal_, larger_;
};

// The planes of one thread should stay in its cache.
constexpr Offset most_words_of_chunk = 256;

inline Offset samples_per_chunk(const LeafLists& lists, int depth) {
    const Offset words = most_bitmap_bytes / (8 * std::max<Offset>(1, lists.n_leaves() * depth));
    return bits_per_word * std::clamp<Offset>(words / 8 * 8, words_per_tile, most_words_of_chunk);
}

// The number of bitmaps per leaf: one, or one for each bit of the largest count.
inline int bitmap_depth(const LeafLists& lists) {
    std::uint8_t any = 1;
    for (const auto count : lists.weights.counts) any |= count;
    return static_cast<int>(std::bit_width(any));
}

// Estimates the time for a row, in nanoseconds. For counts, a bitmap takes about two nanoseconds per
// 512 samples. A rounded weight has about three bits, and the bounds take a third more. Filling the
// bitmaps is shared by all rows.
inline double cost_by_planes(const Product& product) {
    const Offset n_rows = product.query.n_rows(), n_samples = product.reference.n_samples();
    const Offset n_probes = std::min<Offset>(n_rows, 256);
    Offset visits = 0;
    for (Offset i = 0; i < n_probes; ++i) {
        const auto& incidence = product.query.incidence;
        const Offset row = i * n_rows / n_probes;
        for (Offset e = incidence.begin(row); e < incidence.end(row); ++e)
            visits += product.query.has(e);
    }
    const int depth = bitmap_depth(product.reference);
    const double of_map = product.counts() ? 2.0 : 8.0 * depth;
    const Offset n_chunks = n_samples / samples_per_chunk(product.reference, depth) + 1;
    const double filling =
        2.0 * static_cast<double>(product.reference.members.size()) * static_cast<double>(n_chunks);
    return of_map * static_cast<double>(visits) / static_cast<double>(n_probes) *
               static_cast<double>(n_samples) / 512 +
           filling / static_cast<double>(n_rows);
}

}  // namespace detail

// Writes the k largest entries of each row, as top_k does. Requires bounds_hold().
template <class Value>
void nearest_by_planes(const Product& product, Offset k, Value* values, std::int64_t* samples,
                       int n_threads, const Monitor& monitor) {
    const auto& lists = product.reference;
    const auto& kernels = plane_kernels();
    const int depth = detail::bitmap_depth(lists);
    const Offset size = detail::samples_per_chunk(lists, depth), n = lists.n_samples();
    const Offset n_rows = product.query.n_rows(), n_chunks = (n + size - 1) / size;
    for (Offset chunk = 0; chunk < n_chunks; ++chunk) {
        const Offset first = chunk * size, last = std::min(first + size, n);
        // Report progress over all chunks.
        const Monitor watch = [&](Offset done) {
            if (monitor) monitor((chunk * n_rows + done) / n_chunks);
        };
        const Monitor quiet = [&](Offset) { watch(0); };
        const detail::LeafBitmaps bitmaps(lists, first, last, depth, 0, n_threads, quiet);
        for_each_block(n_rows, detail::rows_per_block, n_threads, watch, [&] {
            return [&, worker = detail::PlaneWorker<Value>(product, bitmaps, first, last, k, kernels)](
                       Offset begin, Offset end, const auto&) mutable {
                worker.work(begin, end, values, samples);
            };
        });
    }
}

}  // namespace leafkernel
