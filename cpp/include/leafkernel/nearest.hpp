// Finds the k nearest samples of each row with the fastest method. All methods give the same result.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "leafkernel/nearest_by_bounds.hpp"
#include "leafkernel/nearest_by_planes.hpp"
#include "leafkernel/reducers.hpp"
#include "leafkernel/row_plan.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel {

namespace detail {

// Estimates the time for a row with lists, in nanoseconds.
inline double cost_by_lists(const Product& product) {
    const auto collisions = static_cast<double>(mean_collisions(product));
    const auto n_samples = static_cast<double>(product.reference.n_samples());
    return std::min(2.0 * collisions, 0.7 * collisions + 1.5 * n_samples);
}

// The loop for the rows, and the loop for the rows that bounds leave to it.
struct NearestPlan {
    static constexpr double no_limit = std::numeric_limits<double>::max();

    std::unique_ptr<LeafLevels> levels;  // null to start without bounds
    double most = no_limit;              // nanoseconds for a row with bounds
    bool by_planes = false;              // for all other rows; else by lists
    PlanePlan planes;

    template <class Value>
    static NearestPlan of(const Product& product, Offset k, Loop loop, int n_threads,
                          const Monitor& monitor) {
        NearestPlan plan;
        const bool is_automatic = loop == Loop::automatic;
        if (loop == Loop::lists || (is_automatic && has_few(product, k))) return plan;
        if (loop != Loop::bounds) plan.planes = PlanePlan::of(product);
        plan.by_planes = loop == Loop::planes;
        double other = no_limit;
        if (is_automatic) {
            const double lists = cost_by_lists(product), planes = plan.planes.cost(product);
            plan.by_planes = planes < lists;
            other = std::min(lists, planes);
        }
        // Bounds save nothing if all members of all leaves have the same weight.
        const bool may_bound = loop == Loop::bounds || (is_automatic && !product.by_leaf.empty());
        if (!may_bound || other < least_by_bounds(product) || !knows_samples(product)) return plan;
        const auto& first_leaves = product.reference.rows.incidence.first;
        auto levels = std::make_unique<LeafLevels>(product.reference, first_leaves, n_threads, monitor);
        if (!levels->fits()) return plan;
        if (is_automatic) {
            plan.most = 0.8 * other;
            // The estimate is from a few rows, so bounds must be clearly faster.
            const double bounds = cost_by_bounds<Value>(product, *levels, k, plan.most, other);
            if (bounds > 0.9 * other) return plan;
        }
        plan.levels = std::move(levels);
        return plan;
    }

private:
    // The least time for a row with bounds, in nanoseconds, with its share of the preparation.
    static double least_by_bounds(const Product& product) {
        const auto n_rows = static_cast<double>(product.row_order.size());
        const auto n_codes = static_cast<double>(product.reference.n_samples()) *
                             static_cast<double>(product.query.incidence.longest);
        return 1.5e4 + 10 * n_codes / n_rows;
    }

    // Whether there are too few rows, or too many neighbors, to pay for any preparation.
    static bool has_few(const Product& product, Offset k) {
        return product.query.n_rows() < 64 || k > product.reference.n_samples() / 8;
    }
};

}  // namespace detail

template <class Value>
void nearest(Product product, Offset k, bool by_magnitude, Value* values, std::int64_t* samples,
             Loop loop, int n_threads, const Monitor& monitor) {
    if (loop != Loop::lists && (k == 0 || !detail::bounds_hold<Value>(product))) {
        return top_k(product, k, values, samples, n_threads, monitor, by_magnitude, loop);
    }
    const Monitor quiet = [&](Offset) {
        if (monitor) monitor(0);
    };
    auto plan = detail::NearestPlan::of<Value>(product, k, loop, n_threads, quiet);
    const auto n_rows = static_cast<Offset>(product.row_order.size());
    std::vector<Offset> late;
    if (plan.levels) {
        late =
            nearest_by_bounds(product, *plan.levels, k, plan.most, values, samples, n_threads, monitor);
        if (late.empty()) return;
        product.row_order = late;  // too few rows do not pay for bitmaps
        plan.by_planes = plan.planes.cost(product) < detail::cost_by_lists(product);
    }
    const Offset n_done = n_rows - static_cast<Offset>(product.row_order.size());
    const Monitor watch = [&](Offset done) {
        if (monitor) monitor(n_done + done);
    };
    if (plan.by_planes) {
        nearest_by_planes(product, plan.planes, k, values, samples, n_threads, watch);
    } else {
        const Loop rows = loop == Loop::lists ? Loop::lists : Loop::automatic;
        top_k(product, k, values, samples, n_threads, watch, by_magnitude, rows);
    }
}

}  // namespace leafkernel
