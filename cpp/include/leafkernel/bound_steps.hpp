// The levels of one row's leaves, heaviest first, with a bound on what the rest of them can add.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "leafkernel/leaf_levels.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel::detail {

class BoundSteps {
public:
    // A leaf of the row.
    struct Visit {
        Offset leaf, group;
        double weight;             // q · g
        unsigned n_added;          // levels added so far
        unsigned first, n_levels;  // codes of the levels
        const double* terms;       // what each level adds, then zero
    };
    // A level of a leaf.
    struct Step {
        double weight;  // added to the sum of each member
        double drop;    // the weight minus that of the leaf's next level
        std::uint32_t visit, level;
    };
    // A leaf in which candidates are looked up.
    struct Lookup {
        Offset group;
        const double* terms;  // what each level that was not added adds, then zero
        double rest;          // the most that the leaves after this one add
        unsigned first, n_levels;
    };

    BoundSteps(const Product& product, const LeafLevels& levels) : product_(product), levels_(levels) {}

    void find(Offset row) {
        const auto& query = product_.query;
        visits_.clear();
        const Offset first = query.incidence.begin(row);
        std::size_t n_steps = 0;
        for (Offset e = first; e < query.incidence.end(row); ++e) {
            if (!query.has(e)) continue;
            const Offset leaf = query.incidence.columns[e];
            const double weight = product_.by_leaf.empty() ? 1.0 : product_.by_leaf[leaf];
            if (weight == 0.0) continue;
            visits_.push_back({leaf, e - first, weight, 0, 0, 0, nullptr});
            levels_.ask_for(leaf);
        }
        for (auto& visit : visits_) {
            visit.first = levels_.first_code(visit.group, visit.leaf);
            visit.n_levels = static_cast<unsigned>(levels_.of(visit.leaf).size());
            n_steps += visit.n_levels;
        }
        steps_.resize(n_steps);
        terms_.resize(n_steps + visits_.size());
        rest_.resize(n_steps + 1);
        write_steps();
        n_sorted_ = 0;
        sort_more();
    }

    const std::vector<Visit>& visits() const { return visits_; }  // in the order of trees
    std::size_t size() const { return steps_.size(); }

    // Step s. All steps before it must have been visited.
    const Step& step(std::size_t s) {
        if (s == n_sorted_) sort_more();
        return steps_[s];
    }
    std::size_t n_sorted() const { return n_sorted_; }
    // The most that the steps from s on can add to a sample.
    double rest(std::size_t s) const { return rest_[s]; }

    const Level& level(const Step& step) const {
        return levels_.of(visits_[step.visit].leaf)[step.level];
    }
    void add(const Step& step) { visits_[step.visit].n_added = step.level + 1; }

    // The leaves with levels that were not added, heaviest first. The first `n_added` steps were added.
    const std::vector<Lookup>& lookups(std::size_t n_added) {
        const auto from = steps_.begin() + static_cast<std::ptrdiff_t>(n_added);
        const auto next_of_leaf = [&](const Step& step) {
            return step.level == visits_[step.visit].n_added;
        };
        const auto to = std::partition(from, steps_.end(), next_of_leaf);
        std::sort(from, to, heavier);
        lookups_.clear();
        double rest = 0.0;
        for (auto step = to; step != from;) {
            const Visit& visit = visits_[(--step)->visit];
            lookups_.push_back({visit.group, visit.terms + visit.n_added, rest,
                                visit.first + visit.n_added, visit.n_levels - visit.n_added});
            rest += step->weight;
        }
        std::reverse(lookups_.begin(), lookups_.end());
        return lookups_;
    }

private:
    static bool heavier(const Step& a, const Step& b) { return a.weight > b.weight; }

    void write_steps() {
        Step* step = steps_.data();
        double* term = terms_.data();
        for (std::size_t v = 0; v < visits_.size(); ++v) {
            Visit& visit = visits_[v];
            const auto levels = levels_.of(visit.leaf);
            visit.terms = term;
            for (std::uint32_t l = 0; l < levels.size(); ++l) {
                const unsigned next = l + 1 < levels.size() ? levels[l + 1].count : 0;
                *term = visit.weight * levels[l].count;
                *step++ = {*term++, visit.weight * (levels[l].count - next),
                           static_cast<std::uint32_t>(v), l};
            }
            *term++ = 0.0;
        }
    }

    // Sorts a few more steps. Most rows need only the first ones. Positive numbers are added from the
    // back, so the relative errors of the sums are small.
    void sort_more() {
        constexpr std::size_t at_once = 48;
        const std::size_t begin = n_sorted_;
        n_sorted_ = std::min(begin + at_once, steps_.size());
        const auto from = steps_.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto to = steps_.begin() + static_cast<std::ptrdiff_t>(n_sorted_);
        if (to != steps_.end()) std::nth_element(from, to, steps_.end(), heavier);
        std::sort(from, to, heavier);
        double rest = 0.0;
        for (auto step = to; step != steps_.end(); ++step) rest += step->drop;
        rest_[n_sorted_] = rest;
        for (std::size_t s = n_sorted_; s-- > begin;) rest_[s] = rest_[s + 1] + steps_[s].drop;
    }

    const Product& product_;
    const LeafLevels& levels_;
    std::vector<Visit> visits_;
    std::vector<Step> steps_;
    std::size_t n_sorted_ = 0;
    std::vector<double> terms_, rest_;
    std::vector<Lookup> lookups_;
};

}  // namespace leafkernel::detail
