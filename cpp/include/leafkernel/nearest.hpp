// Finds the k nearest samples of each row with the fastest method. All methods give the same result.
#pragma once

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

// Returns the loop with the lowest estimated time. `largest` is empty if bounds cannot be used.
template <class Value>
Loop choose_loop(const Product& product, Offset k, const std::vector<double>& largest) {
    const Offset n_rows = product.query.n_rows(), n_samples = product.reference.n_samples();
    constexpr Offset few = 64;  // too few rows to pay for any preparation
    if (n_rows < few || k > n_samples / 8) return Loop::lists;
    const double lists = cost_by_lists(product), planes = cost_by_planes(product);
    const double bounds = largest.empty() ? std::numeric_limits<double>::max()
                                          : 1.3 * cost_by_bounds<Value>(product, largest, k);
    if (bounds < std::min(lists, planes)) return Loop::bounds;
    return planes < lists ? Loop::planes : Loop::lists;
}

}  // namespace detail

template <class Value>
void nearest(const Product& product, Offset k, bool by_magnitude, Value* values, std::int64_t* samples,
             Loop loop, int n_threads, const Monitor& monitor) {
    const auto quiet = [&](Offset) {
        if (monitor) monitor(0);
    };
    std::vector<double> largest;
    if (loop != Loop::lists && (k == 0 || !detail::bounds_hold<Value>(product))) {
        return top_k(product, k, values, samples, n_threads, monitor, by_magnitude, loop);
    }
    const bool may_bound =
        loop == Loop::bounds || (loop == Loop::automatic && !product.by_leaf.empty());
    if (may_bound && detail::knows_samples(product)) {
        largest = detail::largest_weights(product.reference, n_threads, quiet);
    }
    if (loop == Loop::automatic) loop = detail::choose_loop<Value>(product, k, largest);
    if (loop == Loop::bounds && !largest.empty()) {
        nearest_by_bounds(product, largest, k, values, samples, n_threads, monitor);
    } else if (loop == Loop::planes) {
        nearest_by_planes(product, k, values, samples, n_threads, monitor);
    } else {
        const Loop rows = loop == Loop::lists ? Loop::lists : Loop::automatic;
        top_k(product, k, values, samples, n_threads, monitor, by_magnitude, rows);
    }
}

}  // namespace leafkernel
