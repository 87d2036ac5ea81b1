// Finds the k nearest samples if some leaves have much larger weights than others.
//
// A leaf adds at most its weight to any sample. Leaves are added from the heaviest to the lightest,
// until the remaining leaves together add less than the current k-th best sum. From then on, no new
// sample can be among the best. A few of the samples seen so far still can be; their sums over all
// leaves are computed one by one. In text retrieval, this method is called MaxScore (Turtle and Flood,
// 1995). The k best values are summed in the same order as in the list loop, so they are equal to the
// last bit.
//
// If the weight of a leaf is one over its size, small leaves are heavy and large leaves are light.
// Nearly all of the work is in the large leaves, which are skipped.
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include "leafkernel/best_of_row.hpp"
#include "leafkernel/for_each_row.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/row_accumulator.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

namespace detail {

// Returns the largest member weight of each leaf.
inline std::vector<double> largest_weights(const LeafLists& lists, int n_threads,
                                           const Monitor& monitor) {
    std::vector<double> largest(static_cast<std::size_t>(lists.n_leaves()));
    for_each_block(lists.n_leaves(), 1024, n_threads, monitor, [&] {
        return [&](Offset begin, Offset end, const auto&) {
            for (Offset leaf = begin; leaf < end; ++leaf) {
                double most = 0.0;
                for (Offset m = lists.offsets[leaf]; m < lists.offsets[leaf + 1]; ++m) {
                    most = std::max(most, lists.weights[m]);
                }
                largest[static_cast<std::size_t>(leaf)] = most;
            }
        };
    });
    return largest;
}

// Processes one row after another. Holds the scratch memory of one thread.
template <class Value>
class BoundWorker {
public:
    BoundWorker(const Product& product, const std::vector<double>& largest, Offset k)
        : product_(product), largest_(largest), k_(k), sums_(product.reference.n_samples()) {}

    void work(Offset row, Value* values, std::int64_t* samples) {
        find_visits(row);
        add_heavy();
        best_.read(values, samples, 0, k_);
        // Best candidates first: a higher k-th value rules out more of the others.
        std::sort(candidates_.begin(), candidates_.end(), larger);
        for (std::size_t c = 0; c < candidates_.size(); ++c) {
            const auto [sum, place] = candidates_[c];
            ask_for(c + 4);
            if (best_.is_full() && factor_ * (sum + left_) < best_.worst().value * slack<Value>) break;
            best_.offer(to_value(summed(place)), product_.reference.sample_at[place]);
        }
        if (!best_.is_full()) fill_up();
        best_.write(values, samples);
    }

    // Estimates the time for a row, in nanoseconds.
    double cost(Offset row) {
        find_visits(row);
        const Offset n_seen = add_heavy();
        const auto n_visits = static_cast<double>(by_weight_.size());
        return 2.0 * static_cast<double>(n_seen) + 10.0 * n_visits +
               of_candidate(by_weight_.size()) * static_cast<double>(candidates_.size());
    }

private:
    struct Visit {
        Offset leaf, group;
        double weight;  // q · g
        double most;    // the most that it adds to any sample
    };
    struct Candidate {
        double sum;  // over the leaves added so far
        SampleId place;
    };

    static bool larger(const Candidate& a, const Candidate& b) { return a.sum > b.sum; }

    // Nanoseconds to compute the full sum of a candidate, whose row must be loaded from memory.
    static double of_candidate(std::size_t n_visits) { return 60.0 + static_cast<double>(n_visits); }

    void find_visits(Offset row) {
        const auto& query = product_.query;
        const auto& incidence = query.incidence;
        own_ = product_.own.empty() ? -1 : product_.own[row];
        factor_ = product_.scale * (query.by_row.empty() ? 1.0 : query.by_row[row]);
        in_order_.clear();
        left_ = 0.0;
        for (Offset e = incidence.begin(row); e < incidence.end(row) && factor_ != 0.0; ++e) {
            if (!query.has(e)) continue;
            const Offset leaf = incidence.columns[e];
            const double weight = product_.by_leaf.empty() ? 1.0 : product_.by_leaf[leaf];
            if (weight == 0.0 || product_.reference.leaf_size(leaf) == 0) continue;
            const double most = weight * largest_[static_cast<std::size_t>(leaf)];
            in_order_.push_back({leaf, e - incidence.begin(row), weight, most});
        }
        by_weight_ = in_order_;
        std::sort(by_weight_.begin(), by_weight_.end(),
                  [](const Visit& a, const Visit& b) { return a.most > b.most; });
        // Start with the lightest, to reduce rounding errors.
        for (std::size_t v = by_weight_.size(); v-- > 0;) left_ += by_weight_[v].most;
    }

    // Adds leaves until no unseen sample can be among the best, and only a few seen samples can be.
    // These become the candidates. Returns the number of members added.
    Offset add_heavy() {
        const auto& lists = product_.reference;
        // Scanning the sums takes longer than adding to them, so it is done only a few times.
        Offset n_seen = 0, next_look = 32 * k_;
        double enough = 0.0;  // a lower bound on the k-th best sum over all leaves
        cut_ = 0.0;
        candidates_.clear();
        for (std::size_t v = 0; v < by_weight_.size(); ++v) {
            add(by_weight_[v].leaf, by_weight_[v].weight);
            left_ = std::max(0.0, left_ - by_weight_[v].most);
            n_seen += lists.leaf_size(by_weight_[v].leaf);
            const bool is_last = v + 1 == by_weight_.size();
            const bool is_near = left_ < enough * slack<Value>;
            if (!is_last && n_seen < (is_near ? next_look / 2 : next_look)) continue;
            enough = std::max(enough, find_enough());
            next_look = 3 * n_seen;
            if (is_last) left_ = 0.0;
            if (!is_last && left_ >= enough * slack<Value>) continue;
            find_candidates(enough * slack<Value> - left_);
            // Adding one more leaf removes about one candidate in eight.
            if (is_last || of_candidate(by_weight_.size()) * static_cast<double>(candidates_.size()) <
                               16.0 * static_cast<double>(lists.leaf_size(by_weight_[v + 1].leaf))) {
                break;
            }
        }
        sums_.clear();
        return n_seen;
    }

    void add(Offset leaf, double weight) {
        const auto& lists = product_.reference;
        const SampleId* members = lists.members.data();
        const Offset begin = lists.offsets[leaf], end = lists.offsets[leaf + 1];
        if (lists.weights.counts.empty()) {
            sums_.add(members, begin, end, [weight](Offset) { return weight; });
        } else {
            const std::uint8_t* counts = lists.weights.counts.data();
            sums_.add(members, begin, end, [=](Offset m) { return weight * counts[m]; });
        }
    }

    // Returns a lower bound on the k-th best sum: the smallest full sum of the k samples that are best
    // so far.
    double find_enough() {
        find_candidates(cut_);
        const auto k = static_cast<std::ptrdiff_t>(k_);
        if (std::ssize(candidates_) < k) return 0.0;
        std::nth_element(candidates_.begin(), candidates_.begin() + k - 1, candidates_.end(), larger);
        cut_ = candidates_[static_cast<std::size_t>(k - 1)].sum;
        double enough = std::numeric_limits<double>::max();
        for (std::ptrdiff_t i = 0; i < k; ++i) enough = std::min(enough, summed(candidates_[i].place));
        return enough;
    }

    void find_candidates(double least) {
        candidates_.clear();
        sums_.look([&](SampleId place, double sum) {
            if (sum >= least && place != own_) candidates_.push_back({sum, place});
        });
    }

    // The sum over all leaves, added in the same order as in the list loop.
    double summed(SampleId place) const {
        const auto& rows = product_.reference.rows;
        const Offset first = rows.incidence.begin(product_.reference.sample_at[place]);
        const auto& columns = rows.incidence.columns;
        return columns.wide.empty() ? summed_in(columns.narrow.data() + first, first)
                                    : summed_in(columns.wide.data() + first, first);
    }

    template <class ColumnId>
    double summed_in(const ColumnId* leaves, Offset first) const {
        const auto& rows = product_.reference.rows;
        const std::uint8_t* counts = !rows.weights.counts.empty() ? rows.weights.counts.data() + first
                                     : !rows.present.empty()      ? rows.present.data() + first
                                                                  : nullptr;
        double sum = 0.0;
        for (const auto& visit : in_order_) {
            const bool is_there = static_cast<Offset>(leaves[visit.group]) == visit.leaf;
            const double count = counts == nullptr ? 1.0 : counts[visit.group];
            sum += is_there ? visit.weight * count : 0.0;
        }
        return sum;
    }

    // Prefetches the row of a candidate.
    void ask_for(std::size_t candidate) const {
        if (candidate >= candidates_.size()) return;
        const Offset sample = product_.reference.sample_at[candidates_[candidate].place];
        prefetch_row(product_.reference.rows.incidence, sample);
    }

    Value to_value(double sum) const {
        const auto value = static_cast<Value>(factor_ * sum);
        require_finite<Value>(std::abs(value) <= std::numeric_limits<Value>::max());
        return value;
    }

    // Fills the remaining entries with samples of proximity zero, in order. All samples that share a
    // leaf with the row are candidates in this case.
    void fill_up() {
        std::vector<SampleId> taken;
        if (own_ >= 0) taken.push_back(product_.reference.sample_at[own_]);
        for (const auto& c : candidates_) taken.push_back(product_.reference.sample_at[c.place]);
        std::sort(taken.begin(), taken.end());
        auto next = taken.begin();
        for (SampleId sample = 0; !best_.is_full(); ++sample) {
            if (next != taken.end() && *next == sample) {
                ++next;
            } else {
                best_.offer(Value{0}, sample);
            }
        }
    }

    const Product& product_;
    const std::vector<double>& largest_;
    Offset k_;
    SampleId own_ = -1;
    double factor_ = 0.0;
    RowAccumulator<double> sums_;
    std::vector<Visit> in_order_, by_weight_;
    double left_ = 0.0;  // the most that the remaining leaves can add
    double cut_ = 0.0;   // the k-th best partial sum at the last scan
    std::vector<Candidate> candidates_;
    BestOfRow<Value> best_;
};

// Whether the samples are available by row as well, with one leaf per tree.
inline bool knows_samples(const Product& product) {
    const auto& rows = product.reference.rows;
    const auto& asked = product.query.incidence;
    return rows.n_rows() == product.reference.n_samples() && rows.incidence.offsets.empty() &&
           asked.offsets.empty() && rows.incidence.longest == asked.longest;
}

// Estimates the mean time per row, in nanoseconds, from a sample of the rows.
template <class Value>
double cost_by_bounds(const Product& product, const std::vector<double>& largest, Offset k) {
    const Offset n_rows = product.query.n_rows(), n_probes = std::min<Offset>(n_rows, 32);
    BoundWorker<Value> worker(product, largest, k);
    double cost = 0.0;
    for (Offset i = 0; i < n_probes; ++i) cost += worker.cost(i * n_rows / n_probes);
    return cost / static_cast<double>(std::max<Offset>(1, n_probes));
}

}  // namespace detail

// Writes the k largest entries of each row, as top_k does. Requires bounds_hold() and knows_samples().
template <class Value>
void nearest_by_bounds(const Product& product, const std::vector<double>& largest, Offset k,
                       Value* values, std::int64_t* samples, int n_threads, const Monitor& monitor) {
    for_each_block(product.query.n_rows(), 64, n_threads, monitor, [&] {
        return [&, worker = detail::BoundWorker<Value>(product, largest, k)](Offset begin, Offset end,
                                                                             const auto& poll) mutable {
            for (Offset i = begin; i < end; ++i) {
                poll();
                const Offset row = product.row_order[i];
                worker.work(row, values + row * k, samples + row * k);
            }
        };
    });
}

}  // namespace leafkernel
