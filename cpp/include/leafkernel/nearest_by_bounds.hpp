// Finds the k nearest samples if some leaves have much larger weights than others.
//
// Each leaf is split into levels of equal count (see leaf_levels.hpp). Levels are added from the
// heaviest to the lightest, until the remaining levels together add less than the k-th best sum. From
// then on, no new sample can be among the best. Some of the samples seen so far still can be. These
// candidates are looked up in the remaining leaves, heaviest first, and dropped as soon as they cannot
// reach the k-th best sum. In text retrieval, this method is called MaxScore (Turtle and Flood, 1995).
// The k best values are summed in the same order as in the list loop, so they are equal to the last
// bit.
//
// If the weight of a leaf is one over its size, small leaves are heavy and large leaves are light.
// Nearly all of the work is in the large leaves, which are skipped. Rows in which too many samples are
// alike take too long, and are left to another loop.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "leafkernel/best_of_row.hpp"
#include "leafkernel/bound_steps.hpp"
#include "leafkernel/for_each_row.hpp"
#include "leafkernel/leaf_levels.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/row_accumulator.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

namespace detail {

// Processes one row after another. Holds the scratch memory of one thread.
template <class Value>
class BoundWorker {
public:
    BoundWorker(const Product& product, const LeafLevels& levels, Offset k)
        : product_(product),
          levels_(levels),
          k_(k),
          sums_(product.reference.n_samples()),
          steps_(product, levels) {}

    // Returns false, and writes nothing, if the row would take longer than `most` nanoseconds.
    bool work(Offset row, double most, Value* values, std::int64_t* samples) {
        if (!find_candidates(row, most)) return false;
        best_.read(values, samples, 0, k_);
        look_up_candidates();
        if (!best_.is_full()) fill_up();
        best_.write(values, samples);
        return true;
    }

    // Estimates the time for a row, in nanoseconds. Rows that take longer than `most` take `other`
    // more.
    double cost(Offset row, double most, double other) {
        const bool is_done = find_candidates(row, most);
        return is_done ? spent_ : spent_ + other;
    }

private:
    struct Candidate {
        double sum;  // over the levels added so far
        SampleId place;
    };

    static bool larger(const Candidate& a, const Candidate& b) { return a.sum > b.sum; }

    // Measured times, in nanoseconds.
    static constexpr double of_row = 5000, of_step = 15, of_member = 3, of_look = 2000,
                            of_candidate = 10;

    bool find_candidates(Offset row, double most) {
        const auto& query = product_.query;
        own_ = product_.own.empty() ? -1 : product_.own[row];
        factor_ = product_.scale * (query.by_row.empty() ? 1.0 : query.by_row[row]);
        n_added_ = 0;
        enough_ = cut_ = left_ = spent_ = 0.0;
        candidates_.clear();
        if (factor_ == 0.0) return true;
        steps_.find(row);
        spent_ = of_row + of_step * static_cast<double>(steps_.size());
        if (!add_heavy(most)) {
            sums_.clear();
            return false;
        }
        left_ = steps_.rest(n_added_);
        candidates_.clear();
        const double least = enough_ * slack<Value> - left_;
        sums_.drain([&](SampleId place, double sum) {
            if (sum >= least && place != own_) candidates_.push_back({sum, place});
        });
        spent_ += of_candidate * static_cast<double>(candidates_.size());
        return spent_ <= most;
    }

    // Adds levels until no unseen sample can be among the best, and the next level is too large to be
    // added for the sake of the candidates. Returns false if that would take too long.
    bool add_heavy(double most) {
        constexpr std::size_t ahead = 4;
        Offset n_seen = 0, next_look = 32 * k_;
        for (std::size_t s = 0; s < steps_.size(); ++s) {
            const auto& step = steps_.step(s);
            const Level& level = steps_.level(step);
            if (steps_.rest(s) < enough_ * slack<Value> && 16 * level.size() > sums_.n_used()) break;
            if (s + ahead < steps_.n_sorted()) {
                prefetch(levels_.members() + steps_.level(steps_.step(s + ahead)).begin);
            }
            sums_.add(levels_.members(), level.begin, level.end,
                      [weight = step.weight](Offset) { return weight; });
            steps_.add(step);
            n_added_ = s + 1;
            n_seen += level.size();
            spent_ += of_member * static_cast<double>(level.size());
            // A look takes about as long as adding, so there are only a few.
            if (n_seen >= next_look && steps_.rest(n_added_) >= enough_ * slack<Value>) {
                raise_enough();
                next_look = 3 * n_seen;
                if (spent_ + of_rest() > most) return false;
            }
        }
        return true;
    }

    // The time until no unseen sample can be among the best. Most samples seen become candidates.
    double of_rest() {
        Offset n_members = 0;
        for (std::size_t s = n_added_; s < steps_.size(); ++s) {
            const auto& step = steps_.step(s);
            if (steps_.rest(s) < enough_ * slack<Value>) break;
            n_members += steps_.level(step).size();
        }
        return (of_member + 0.6 * of_candidate) * static_cast<double>(n_members);
    }

    // Raises the lower bound on the k-th best sum, from the sums over all leaves of the samples that
    // are best so far.
    void raise_enough() {
        spent_ += of_look;
        candidates_.clear();
        sums_.look([&](SampleId place, double sum) {
            if (sum >= cut_ && place != own_) candidates_.push_back({sum, place});
        });
        const auto k = static_cast<std::size_t>(k_);
        const std::size_t n = std::min(k + k / 2, candidates_.size());
        if (n < k) return;
        const auto last = candidates_.begin() + static_cast<std::ptrdiff_t>(n) - 1;
        std::nth_element(candidates_.begin(), last, candidates_.end(), larger);
        cut_ = last->sum;
        candidates_.resize(n);
        for (const auto& candidate : candidates_) levels_.ask_for_codes(candidate.place);
        full_.clear();
        for (const auto& candidate : candidates_) full_.push_back(summed(candidate.place));
        const auto worst = full_.begin() + static_cast<std::ptrdiff_t>(k) - 1;
        std::nth_element(full_.begin(), worst, full_.end(), std::greater<>());
        enough_ = std::max(enough_, *worst);
    }

    // Looks up the candidates in the remaining leaves. Those that may be among the best are summed.
    void look_up_candidates() {
        constexpr std::size_t ahead = 6;
        if (candidates_.empty()) return;
        const auto& lookups = steps_.lookups(n_added_);
        double least = enough_ * slack<Value>;
        for (std::size_t c = 0; c < candidates_.size(); ++c) {
            if (c + ahead < candidates_.size()) levels_.ask_for_codes(candidates_[c + ahead].place);
            const auto [sum, place] = candidates_[c];
            if (sum + left_ < least || !reaches(sum, place, lookups, least)) continue;
            best_.offer(to_value(summed(place)), product_.reference.sample_at[place]);
            if (best_.is_full()) {
                const auto worst = static_cast<double>(best_.worst().value);
                least = std::max(least, worst / factor_ * slack<Value>);
            }
        }
    }

    bool reaches(double sum, SampleId place, const std::vector<BoundSteps::Lookup>& lookups,
                 double least) const {
        const LeafLevels::Code* codes = levels_.codes(place);
        for (const auto& lookup : lookups) {
            // The codes of levels that were added are smaller, and wrap around.
            sum += lookup.terms[std::min(codes[lookup.group] - lookup.first, lookup.n_levels)];
            if (sum + lookup.rest < least) return false;
        }
        return true;
    }

    // The sum over all leaves, added in the same order as in the list loop.
    double summed(SampleId place) const {
        const LeafLevels::Code* codes = levels_.codes(place);
        double sum = 0.0;
        for (const auto& visit : steps_.visits()) {
            sum += visit.terms[std::min(codes[visit.group] - visit.first, visit.n_levels)];
        }
        return sum;
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
    const LeafLevels& levels_;
    Offset k_;
    SampleId own_ = -1;
    double factor_ = 0.0;
    RowAccumulator<double> sums_;
    BoundSteps steps_;
    std::size_t n_added_ = 0;  // steps added so far
    double left_ = 0.0;        // the most that the other steps can add
    double enough_ = 0.0;      // a lower bound on the k-th best sum over all leaves
    double cut_ = 0.0;    // samples with smaller partial sums were not among the best at the last look
    double spent_ = 0.0;  // nanoseconds, estimated
    std::vector<Candidate> candidates_;
    std::vector<double> full_;
    BestOfRow<Value> best_;
};

// Estimates the mean time per row, in nanoseconds, from a sample of the rows. Rows that take longer
// than `most` take `other` more.
template <class Value>
double cost_by_bounds(const Product& product, const LeafLevels& levels, Offset k, double most,
                      double other) {
    const Offset n_rows = product.query.n_rows(), n_probes = std::min<Offset>(n_rows, 64);
    BoundWorker<Value> worker(product, levels, k);
    double cost = 0.0;
    for (Offset i = 0; i < n_probes; ++i) cost += worker.cost(i * n_rows / n_probes, most, other);
    return cost / static_cast<double>(std::max<Offset>(1, n_probes));
}

}  // namespace detail

// Writes the k largest entries of each row, as top_k does, except for rows that would take longer than
// `most` nanoseconds. Returns these rows, in the row order. Requires bounds_hold() and knows_samples().
template <class Value>
std::vector<Offset> nearest_by_bounds(const Product& product, const detail::LeafLevels& levels,
                                      Offset k, double most, Value* values, std::int64_t* samples,
                                      int n_threads, const Monitor& monitor) {
    const auto n_rows = static_cast<Offset>(product.row_order.size());
    std::vector<std::uint8_t> is_late(product.row_order.size());
    std::atomic<Offset> n_late{0};
    Offset n_shown = 0;
    const Monitor watch = [&](Offset done) {  // late rows are not done
        n_shown = std::max(n_shown, done - n_late.load(std::memory_order_relaxed));
        if (monitor) monitor(n_shown);
    };
    for_each_block(n_rows, 64, n_threads, watch, [&] {
        return [&, worker = detail::BoundWorker<Value>(product, levels, k)](Offset begin, Offset end,
                                                                            const auto& poll) mutable {
            for (Offset i = begin; i < end; ++i) {
                poll();
                const Offset row = product.row_order[i];
                if (worker.work(row, most, values + row * k, samples + row * k)) continue;
                is_late[i] = 1;
                n_late.fetch_add(1, std::memory_order_relaxed);
            }
        };
    });
    std::vector<Offset> late;
    for (Offset i = 0; i < n_rows; ++i) {
        if (is_late[i] != 0) late.push_back(product.row_order[i]);
    }
    return late;
}

}  // namespace leafkernel
