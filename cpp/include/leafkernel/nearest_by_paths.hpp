// Finds the k nearest samples of each row if whole paths are compared. Every pair of samples shares
// nodes in every tree, but most of them are far apart, and bounds tell that without looking at them.
//
// In each tree, the search starts at the leaf of the query and climbs to an ancestor: its horizon. The
// samples below the horizon are visited. All others have at most bound(t), so a sample has at most
//
//     Σ bound(t) + Σ over the trees that visited it of (k_t − bound(t))
//
// The samples with the largest limits are looked up in all trees, until the k-th best exact sum exceeds
// the limits of the others. If it does not exceed Σ bound(t), the limit of the samples that were never
// visited, or if too many samples have to be looked up, the horizons were too low: the row is searched
// again with higher ones. At the roots, all samples are visited and their limits are exact. The sums of
// the best are in the order of the trees, so they do not depend on horizons.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "leafkernel/best_of_row.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/views.hpp"
#include "leafkernel/weighted_nodes.hpp"

namespace leafkernel {

namespace detail {

// Processes one row after another. Holds the scratch memory of one thread.
template <class Value>
class PathWorker {
public:
    PathWorker(const Product& product, const WeightedNodes& nodes, Offset k)
        : product_(product),
          nodes_(nodes),
          k_(k),
          gains_(product.reference.sample_at.size(), never),
          trees_(static_cast<std::size_t>(nodes.n_trees())) {}

    // Returns the number of visits and lookups: pairs of a sample and a tree.
    Offset work(Offset row, Value* values, std::int64_t* samples) {
        climb(row);
        Offset n_pairs = 0;
        const Offset n_samples = product_.reference.n_samples();
        // Neighboring rows need similar horizons. Start one step lower, to find out if that is enough.
        for (step_ = std::max(step_ - 1, 0);; ++step_) {
            const Offset most = step_ == 0 ? 0 : smallest << (2 * step_);
            n_visits_ = n_looks_ = 0;
            visit(most);
            best_.read(values, samples, 0, k_);
            const bool is_done = look_up(row, most >= n_samples);
            for (const SampleId place : visited_) gains_[place] = never;
            visited_.clear();
            n_pairs += n_visits_ + n_looks_;
            if (is_done) break;
        }
        best_.write(values, samples);
        return n_pairs;
    }

private:
    // A node on the path of the query.
    struct Ancestor {
        double factor;  // norm, with the decay on the side of the query
        double bound;   // the largest inner product of the query with a leaf that is not below
        std::int32_t first_leaf, end_leaf, depth;

        bool is_above(Offset leaf) const { return first_leaf <= leaf && leaf < end_leaf; }
    };

    // The path of the query in one tree: positions in ancestors_, from the leaf to the root.
    struct Path {
        std::size_t begin, end, horizon;
    };

    struct Limit {
        double most;
        SampleId place;
        bool operator<(const Limit& other) const { return most < other.most; }
    };

    static constexpr Offset smallest = 16;  // samples below the horizons of step 0, then 4 times more
    static constexpr double tolerance = 1 + 1e-10;  // sums of the same terms in another order
    static constexpr double never = -std::numeric_limits<double>::infinity();

    // Stores the paths of a row.
    void climb(Offset row) {
        ancestors_.clear();
        for (Offset tree = 0; tree < nodes_.n_trees(); ++tree) {
            auto& path = trees_[static_cast<std::size_t>(tree)];
            path.begin = ancestors_.size();
            const auto& columns = product_.query.incidence.columns;
            NodeId at = nodes_.node_of(columns[row * nodes_.n_trees() + tree]);
            for (std::int32_t edges = 0; at >= 0; ++edges) {
                const auto& node = nodes_[at];
                const double decay = nodes_.power(edges);
                ancestors_.push_back({decay * node.norm, decay * node.outside, node.first_leaf,
                                      node.end_leaf, node.depth});
                at = node.parent;
            }
            path.end = ancestors_.size();
        }
    }

    // Visits the samples below the horizon of each tree: the highest ancestor with at most `most`
    // samples, or the leaf.
    void visit(Offset most) {
        const auto& offsets = product_.reference.offsets;
        unseen_ = 0.0;
        for (auto& path : trees_) {
            path.horizon = path.begin;
            while (path.horizon + 1 < path.end) {
                const auto& next = ancestors_[path.horizon + 1];
                if (offsets[next.end_leaf] - offsets[next.first_leaf] > most) break;
                ++path.horizon;
            }
            const double bound = ancestors_[path.horizon].bound;
            unseen_ += bound;
            Offset first = ancestors_[path.begin].first_leaf, end = first;
            for (std::size_t a = path.begin; a <= path.horizon; ++a) {
                const auto& node = ancestors_[a];  // adds the leaves that are not below the last one
                add(node, node.first_leaf, first, bound);
                add(node, end, node.end_leaf, bound);
                first = node.first_leaf;
                end = node.end_leaf;
            }
        }
    }

    void add(const Ancestor& common, Offset first_leaf, Offset end_leaf, double bound) {
        const auto& lists = product_.reference;
        for (Offset leaf = first_leaf; leaf < end_leaf; ++leaf) {
            const Offset begin = lists.offsets[leaf], end = lists.offsets[leaf + 1];
            const double gain = product_of(common, leaf) - bound;
            for (Offset m = begin; m < end; ++m) {
                const SampleId place = lists.members[m];
                if (gains_[place] == never) {
                    gains_[place] = gain;
                    visited_.push_back(place);
                } else {
                    gains_[place] += gain;
                }
            }
            n_visits_ += end - begin;
        }
    }

    double product_of(const Ancestor& common, Offset leaf) const {
        return common.factor * nodes_.power(nodes_.depth_of_leaf(leaf) - common.depth);
    }

    // Whether a sample with at most this sum may be among the best.
    bool may_be_best(double most) const {
        if (!best_.is_full()) return true;
        return static_cast<Value>(product_.scale * most * tolerance) >= best_.worst().value;
    }

    // Looks up samples, the largest limits first. Returns whether the k best are known.
    bool look_up(Offset row, bool is_last) {
        const SampleId own = product_.own.empty() ? -1 : product_.own[row];
        limits_.clear();
        for (const SampleId place : visited_) {
            if (place != own) limits_.push_back({unseen_ + gains_[place], place});
        }
        std::make_heap(limits_.begin(), limits_.end());
        const Offset most_looks = 2 * n_visits_ + 4 * k_ * nodes_.n_trees();
        while (!limits_.empty() && may_be_best(limits_.front().most)) {
            if (n_looks_ > most_looks && !is_last) return false;
            const Limit limit = limits_.front();
            std::pop_heap(limits_.begin(), limits_.end());
            limits_.pop_back();
            offer(limit);
        }
        return is_last || (best_.is_full() && !may_be_best(unseen_));
    }

    // Sums the inner products with a sample, and drops it as soon as it cannot be among the best.
    void offer(Limit limit) {
        const std::int64_t sample = product_.reference.sample_at[limit.place];
        const auto& columns = product_.reference.rows.incidence.columns;
        double total = 0.0;
        const auto n_trees = static_cast<Offset>(trees_.size());
        for (Offset tree = 0; tree < n_trees; ++tree) {
            const auto& path = trees_[static_cast<std::size_t>(tree)];
            const Offset leaf = columns[sample * n_trees + tree];
            const auto common = std::partition_point(
                ancestors_.begin() + static_cast<Offset>(path.begin),
                ancestors_.begin() + static_cast<Offset>(path.end),
                [&](const Ancestor& ancestor) { return !ancestor.is_above(leaf); });
            const double found = product_of(*common, leaf);
            total += found;
            ++n_looks_;
            if (common - ancestors_.begin() > static_cast<Offset>(path.horizon)) {
                limit.most -= ancestors_[path.horizon].bound - found;
                if (!may_be_best(limit.most)) return;
            }
        }
        best_.offer(static_cast<Value>(product_.scale * total), sample);
    }

    const Product& product_;
    const WeightedNodes& nodes_;
    Offset k_;
    std::vector<double> gains_;  // by place; `never` if it was not visited
    std::vector<SampleId> visited_;
    std::vector<Ancestor> ancestors_;
    std::vector<Path> trees_;
    std::vector<Limit> limits_;  // a heap
    BestOfRow<Value> best_;
    double unseen_ = 0.0;
    int step_ = 0;
    Offset n_visits_ = 0, n_looks_ = 0;
};

}  // namespace detail

// Finds the k nearest samples, and counts the visits and lookups of each row. Rows and samples have one
// leaf in each tree, and weights of one.
template <class Value>
void nearest_by_paths(const Product& product, const WeightedNodes& nodes, Offset k, Value* values,
                      std::int64_t* samples, std::int64_t* n_looks, int n_threads,
                      const Monitor& monitor) {
    for_each_block(product.query.n_rows(), 16, n_threads, monitor, [&] {
        return [&, worker = detail::PathWorker<Value>(product, nodes, k)](Offset begin, Offset end,
                                                                          const auto& poll) mutable {
            for (Offset i = begin; i < end; ++i) {
                const Offset row = product.row_order[i];
                n_looks[row] = worker.work(row, values + row * k, samples + row * k);
                poll();
            }
        };
    });
}

}  // namespace leafkernel
