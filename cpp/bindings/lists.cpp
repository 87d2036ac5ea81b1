// Leaves of samples to samples of leaves.
#include "arrays.hpp"
#include "leafkernel/draws.hpp"
#include "leafkernel/leaf_lists.hpp"

namespace leafkernel::bindings {

namespace {

void require_leaves(const QueryRows& rows, Offset n_leaves) {
    for (Offset e = 0; e < rows.leaves.size(); ++e) {
        if (rows.leaves[e] < 0 || rows.leaves[e] >= n_leaves) {
            throw std::invalid_argument("a leaf id is out of range");
        }
    }
}

// (entries, weights) of each leaf; weights is None where the rows have none.
nb::tuple masses(const nb::object& source, Offset n_leaves, int n_threads) {
    const QueryRows rows = read_rows(source);
    const Monitor monitor = make_monitor(nb::none());
    const bool weighs = !rows.weights.all_one();
    Buffer<std::int64_t> counts(n_leaves);
    Buffer<double> weights(weighs ? n_leaves : 0);
    {
        const nb::gil_scoped_release no_gil;
        require_leaves(rows, n_leaves);
        std::fill_n(counts.data(), n_leaves, 0);
        std::fill_n(weights.data(), weights.size(), 0.0);
        leaf_masses(rows, counts.data(), weighs ? weights.data() : nullptr, n_threads, monitor);
    }
    return nb::make_tuple(to_numpy(std::move(counts)),
                          weighs ? to_numpy(std::move(weights)) : nb::object(nb::none()));
}

std::span<Offset> as_span(Buffer<Offset>& buffer) {
    return {buffer.data(), static_cast<std::size_t>(buffer.size())};
}

template <class Weight>
nb::tuple list_as(const QueryRows& rows, std::span<const SampleId> sample_at, Offset n_leaves,
                  bool weighs, int n_threads) {
    const Monitor monitor = make_monitor(nb::none());
    Buffer<Offset> offsets(n_leaves + 1);
    {
        const nb::gil_scoped_release no_gil;
        require_leaves(rows, n_leaves);
        std::fill_n(offsets.data(), offsets.size(), Offset{0});
        count_members(rows, as_span(offsets), n_threads, monitor);
    }
    const Offset n_entries = offsets[n_leaves];
    Buffer<SampleId> members(n_entries);
    Buffer<Weight> weights(weighs ? n_entries : 0);
    {
        const nb::gil_scoped_release no_gil;
        list_members(rows, sample_at, as_span(offsets), members.data(),
                     weighs ? weights.data() : nullptr, n_threads, monitor);
    }
    return nb::make_tuple(to_numpy(std::move(offsets)), to_numpy(std::move(members)),
                          weighs ? to_numpy(std::move(weights)) : nb::object(nb::none()));
}

nb::tuple list_by_leaf(const nb::object& source, const Array<SampleId>& sample_at, Offset n_leaves,
                       int n_threads) {
    const QueryRows rows = read_rows(source);
    const std::span<const SampleId> order{sample_at.data(), sample_at.size()};
    require_size(order.size(), static_cast<std::size_t>(rows.n_rows), "sample_at");
    for (const SampleId sample : order) {
        if (sample < 0 || sample >= rows.n_rows) {
            throw std::invalid_argument("sample_at holds something that is no sample");
        }
    }
    const bool weighs = !rows.weights.all_one();
    if (!rows.weights.counts.empty()) {
        return list_as<std::uint8_t>(rows, order, n_leaves, weighs, n_threads);
    }
    if (!rows.weights.floats.empty()) return list_as<float>(rows, order, n_leaves, weighs, n_threads);
    return list_as<double>(rows, order, n_leaves, weighs, n_threads);
}

// How often each tree drew each sample, (n_samples, n_trees); None where a count exceeds a byte.
nb::object draws_of(const nb::list& trees, Offset n_samples, int n_threads) {
    std::vector<Array<std::int32_t>> arrays;
    std::vector<std::span<const std::int32_t>> draws;
    for (const auto& tree : trees) {
        arrays.push_back(nb::cast<Array<std::int32_t>>(tree, false));
        draws.emplace_back(arrays.back().data(), arrays.back().size());
    }
    const Monitor monitor = make_monitor(nb::none());
    Buffer<std::uint8_t> counts(n_samples * static_cast<Offset>(draws.size()));
    bool fits;
    {
        const nb::gil_scoped_release no_gil;
        for (const auto& drawn : draws) {
            for (const auto sample : drawn) {
                if (sample < 0 || sample >= n_samples) {
                    throw std::invalid_argument("a draw is no sample");
                }
            }
        }
        fits = count_draws(draws, n_samples, counts.data(), n_threads, monitor);
    }
    if (!fits) return nb::none();
    return to_numpy(std::move(counts), {static_cast<std::size_t>(n_samples), draws.size()});
}

}  // namespace

void register_lists(nb::module_& module) {
    using namespace nb::literals;
    module.def("count_draws", &draws_of, "draws"_a, "n_samples"_a, "n_threads"_a);
    module.def("leaf_masses", &masses, "rows"_a, "n_leaves"_a, "n_threads"_a);
    module.def("list_by_leaf", &list_by_leaf, "rows"_a, "sample_at"_a.noconvert(), "n_leaves"_a,
               "n_threads"_a);
}

}  // namespace leafkernel::bindings
