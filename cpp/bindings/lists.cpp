// Bindings for incidences and leaf lists.
#include "lists.hpp"

#include "arrays.hpp"
#include "leafkernel/checks.hpp"
#include "leafkernel/draws.hpp"
#include "leafkernel/leaf_lists.hpp"
#include "leafkernel/leaf_overlaps.hpp"

namespace leafkernel::bindings {

namespace {

// Returns (entries, weights) of each leaf. `weights` is None if the rows have none.
nb::tuple masses(const nb::object& source, int n_threads) {
    Arrays arrays;
    const WeighedRows rows = read_rows(arrays, source);
    const Offset n_leaves = rows.incidence.n_columns();
    const Monitor monitor = make_monitor(nb::none());
    const bool weighs = !rows.weights.all_one();
    Buffer<std::int64_t> counts(n_leaves);
    Buffer<double> weights(weighs ? n_leaves : 0);
    {
        const nb::gil_scoped_release no_gil;
        leaf_masses(rows, counts.data(), weighs ? weights.data() : nullptr, n_threads, monitor);
    }
    return nb::make_tuple(to_numpy(std::move(counts)),
                          weighs ? to_numpy(std::move(weights)) : nb::object(nb::none()));
}

std::span<Offset> as_span(Buffer<Offset>& buffer) {
    return {buffer.data(), static_cast<std::size_t>(buffer.size())};
}

template <class Weight>
HeldLists list_as(const WeighedRows& rows, std::span<const SampleId> sample_at, int n_threads) {
    const Offset n_leaves = rows.incidence.n_columns();
    const Monitor monitor = make_monitor(nb::none());
    const bool weighs = !rows.weights.all_one();
    Buffer<Offset> offsets(n_leaves + 1);
    Buffer<SampleId> order(static_cast<Offset>(sample_at.size()));
    {
        const nb::gil_scoped_release no_gil;
        std::copy(sample_at.begin(), sample_at.end(), order.data());
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
    return {to_locked_numpy(std::move(offsets)), to_locked_numpy(std::move(members)),
            weighs ? to_locked_numpy(std::move(weights)) : nb::object(nb::none()),
            to_locked_numpy(std::move(order))};
}

HeldLists list_by_leaf(const nb::object& source, const Array<SampleId>& sample_at, int n_threads) {
    Arrays arrays;
    const WeighedRows rows = read_rows(arrays, source);
    const std::span<const SampleId> order{sample_at.data(), sample_at.size()};
    require_size(order.size(), static_cast<std::size_t>(rows.n_rows()), "sample_at");
    require_permutation(order, "sample_at");
    if (!rows.weights.counts.empty()) return list_as<std::uint8_t>(rows, order, n_threads);
    if (!rows.weights.floats.empty()) return list_as<float>(rows, order, n_threads);
    return list_as<double>(rows, order, n_threads);
}

// Returns the inner products of the centered kernels of all pairs of trees, (n_trees, n_trees).
nb::object tree_products(const nb::object& source, int n_threads) {
    Arrays arrays;
    const WeighedRows rows = read_rows(arrays, source);
    const auto n_trees = static_cast<std::size_t>(rows.incidence.n_groups());
    const Monitor monitor = make_monitor(nb::none());
    Buffer<double> products(static_cast<Offset>(n_trees * n_trees));
    {
        const nb::gil_scoped_release no_gil;
        centered_tree_products(rows, products.data(), n_threads, monitor);
    }
    return to_numpy(std::move(products), {n_trees, n_trees});
}

// Creates an incidence from untrusted arrays.
void make_incidence(HeldIncidence* incidence, const nb::object& columns, const nb::object& first,
                    const nb::object& offsets, int n_threads) {
    HeldIncidence made(locked(columns), locked(first), locked(offsets));
    const Monitor monitor = make_monitor(nb::none());
    {
        const nb::gil_scoped_release no_gil;
        made.view.longest = check_incidence(made.view, n_threads, monitor);
    }
    new (incidence) HeldIncidence(std::move(made));
}

// Returns the rows [begin, end) of an incidence that was checked before.
HeldIncidence some_rows(const HeldIncidence& incidence, Offset begin, Offset end) {
    require(incidence.offsets.is_none(), "only rows with one column per group can be sliced");
    require(0 <= begin && begin <= end && end <= incidence.view.n_rows, "the range of rows is invalid");
    const nb::object rows = nb::slice(nb::int_(begin), nb::int_(end), nb::none());
    HeldIncidence some(incidence.columns[rows], incidence.first, incidence.offsets);
    some.view.longest = incidence.view.longest;
    return some;
}

// Creates lists from untrusted arrays.
void make_lists(HeldLists* lists, const nb::object& offsets, const nb::object& members,
                const nb::object& weights, const nb::object& sample_at) {
    HeldLists made(locked(offsets), locked(members), locked(weights), locked(sample_at));
    check_lists(made.view);
    new (lists) HeldLists(std::move(made));
}

// Returns the same lists with renumbered samples.
HeldLists with_samples(const HeldLists& lists, const nb::object& sample_at) {
    HeldLists renumbered(lists.offsets, lists.members, lists.weights, locked(sample_at));
    require_size(renumbered.view.sample_at.size(), lists.view.sample_at.size(), "sample_at");
    require_permutation(renumbered.view.sample_at, "sample_at");
    return renumbered;
}

// Returns how often each tree drew each sample, (n_samples, n_trees), or None if a count exceeds a
// byte.
nb::object draws_of(const nb::list& trees, Offset n_samples, int n_threads) {
    std::vector<Array<std::int32_t>> arrays;
    std::vector<std::span<const std::int32_t>> draws;
    for (const auto& tree : trees) {
        arrays.push_back(nb::cast<Array<std::int32_t>>(tree, false));
        draws.emplace_back(arrays.back().data(), arrays.back().size());
    }
    require(n_samples >= 0 && n_samples <= std::numeric_limits<SampleId>::max(),
            "n_samples is out of range");
    const Monitor monitor = make_monitor(nb::none());
    Buffer<std::uint8_t> counts(n_samples * static_cast<Offset>(draws.size()));
    bool fits;
    {
        const nb::gil_scoped_release no_gil;
        fits = count_draws(draws, n_samples, counts.data(), n_threads, monitor);
    }
    if (!fits) return nb::none();
    return to_numpy(std::move(counts), {static_cast<std::size_t>(n_samples), draws.size()});
}

// Does the same from the seeds of the trees, each of which drew n_draws samples with replacement.
nb::object seeded_draws_of(const Array<std::uint32_t>& seeds, Offset n_samples, Offset n_draws,
                           int n_threads) {
    require(n_samples >= 0 && n_samples <= std::numeric_limits<SampleId>::max(),
            "n_samples is out of range");
    require(n_draws >= 0 && (n_draws == 0 || n_samples > 0), "n_draws is out of range");
    const Monitor monitor = make_monitor(nb::none());
    Buffer<std::uint8_t> counts(n_samples * static_cast<Offset>(seeds.size()));
    bool fits;
    {
        const nb::gil_scoped_release no_gil;
        fits = count_seeded_draws({seeds.data(), seeds.size()}, n_samples, n_draws, counts.data(),
                                  n_threads, monitor);
    }
    if (!fits) return nb::none();
    return to_numpy(std::move(counts), {static_cast<std::size_t>(n_samples), seeds.size()});
}

// Returns which entries of a table are zero, in the shape of the table.
nb::object zeros_of(const Table<std::uint8_t>& table, int n_threads) {
    const auto n_entries = static_cast<Offset>(table.size());
    Buffer<bool> zeros(n_entries);
    const Monitor monitor = make_monitor(nb::none());
    {
        const nb::gil_scoped_release no_gil;
        for_each_block(n_entries, Offset{1} << 20, n_threads, monitor, [&] {
            return [&](Offset begin, Offset end, const auto&) {
                for (Offset i = begin; i < end; ++i) zeros[i] = table.data()[i] == 0;
            };
        });
    }
    return to_numpy(std::move(zeros), {table.shape(0), table.shape(1)});
}

// Returns the number of set flags in each row of a table, (n_rows, 1).
nb::object flags_of(const Table<bool>& table, int n_threads) {
    const auto n_rows = static_cast<Offset>(table.shape(0)),
               width = static_cast<Offset>(table.shape(1));
    Buffer<std::int64_t> counts(n_rows);
    const Monitor monitor = make_monitor(nb::none());
    {
        const nb::gil_scoped_release no_gil;
        for_each_block(n_rows, Offset{1} << 13, n_threads, monitor, [&] {
            return [&](Offset begin, Offset end, const auto&) {
                for (Offset row = begin; row < end; ++row) {
                    const auto* flags =
                        reinterpret_cast<const std::uint8_t*>(table.data()) + row * width;
                    std::int64_t count = 0;
                    for (Offset i = 0; i < width; ++i) count += flags[i] != 0;
                    counts[row] = count;
                }
            };
        });
    }
    return to_numpy(std::move(counts), {table.shape(0), std::size_t{1}});
}

// Returns the order of rows by their first column. Ties are ordered by row number.
nb::object locality_order_of(const HeldIncidence& incidence) {
    Buffer<Offset> order(incidence.view.n_rows);
    {
        const nb::gil_scoped_release no_gil;
        locality_order(incidence.view, {order.data(), static_cast<std::size_t>(order.size())});
    }
    return to_locked_numpy(std::move(order));
}

}  // namespace

void register_lists(nb::module_& module) {
    using namespace nb::literals;
    nb::class_<HeldIncidence>(module, "Incidence")
        .def("__init__", &make_incidence, "columns"_a, "first"_a, "offsets"_a.none(), "n_threads"_a)
        .def_ro("columns", &HeldIncidence::columns)
        .def_ro("first", &HeldIncidence::first)
        .def_ro("offsets", &HeldIncidence::offsets)
        .def("rows", &some_rows, "begin"_a, "end"_a)
        .def("__getstate__",
             [](const HeldIncidence& held) {
                 return nb::make_tuple(held.columns, held.first, held.offsets);
             })
        .def("__setstate__", [](HeldIncidence& held, const nb::tuple& state) {
            if (state.size() != 3) throw nb::value_error("invalid pickle of an incidence");
            make_incidence(&held, locked_in_place(state[0]), locked_in_place(state[1]),
                           locked_in_place(state[2]), 1);
        });
    nb::class_<HeldIndex>(module, "LeafIndex")
        .def(nb::init<nb::object, nb::object, const nb::object&>(), "lists"_a, "by_place"_a.none(),
             "rows"_a.none() = nb::none());
    nb::class_<HeldLists>(module, "LeafLists")
        .def("__init__", &make_lists, "offsets"_a, "members"_a, "weights"_a.none(), "sample_at"_a)
        .def_ro("offsets", &HeldLists::offsets)
        .def_ro("members", &HeldLists::members)
        .def_ro("weights", &HeldLists::weights)
        .def_ro("sample_at", &HeldLists::sample_at)
        .def("with_samples", &with_samples, "sample_at"_a)
        .def("__getstate__",
             [](const HeldLists& lists) {
                 return nb::make_tuple(lists.offsets, lists.members, lists.weights, lists.sample_at);
             })
        .def("__setstate__", [](HeldLists& lists, const nb::tuple& state) {
            if (state.size() != 4) throw nb::value_error("invalid pickle of leaf lists");
            make_lists(&lists, locked_in_place(state[0]), locked_in_place(state[1]),
                       locked_in_place(state[2]), locked_in_place(state[3]));
        });
    module.def("count_draws", &draws_of, "draws"_a, "n_samples"_a, "n_threads"_a);
    module.def("count_seeded_draws", &seeded_draws_of, "seeds"_a.noconvert(), "n_samples"_a,
               "n_draws"_a, "n_threads"_a);
    module.def("zeros", &zeros_of, "table"_a.noconvert(), "n_threads"_a);
    module.def("count_flags", &flags_of, "table"_a.noconvert(), "n_threads"_a);
    module.def("locality_order", &locality_order_of, "rows"_a);
    module.def("centered_tree_products", &tree_products, "rows"_a, "n_threads"_a);
    module.def("leaf_masses", &masses, "rows"_a, "n_threads"_a);
    module.def("list_by_leaf", &list_by_leaf, "rows"_a, "sample_at"_a.noconvert(), "n_threads"_a);
}

}  // namespace leafkernel::bindings
