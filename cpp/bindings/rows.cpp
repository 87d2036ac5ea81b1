// Bindings that compute rows, neighbors, sums and counts of a product.
#include <nanobind/stl/string.h>

#include <algorithm>
#include <limits>

#include "arrays.hpp"
#include "leafkernel/csr_rows.hpp"
#include "leafkernel/nearest.hpp"
#include "leafkernel/reducers.hpp"
#include "leafkernel/twins.hpp"
#include "lists.hpp"
#include "product.hpp"

namespace leafkernel::bindings {

namespace {

#if defined(__clang__)
constexpr const char* compiler = "Clang " __clang_version__;
#elif defined(__GNUC__)
constexpr const char* compiler = "GCC " __VERSION__;
#else
constexpr const char* compiler = "other";
#endif

// SciPy requires the same integer type for offsets and columns.
template <class Index, class From>
Buffer<Index> as_index(Buffer<From> from) {
    if constexpr (std::is_same_v<Index, From>) {
        return from;
    } else {
        Buffer<Index> to(from.size());
        std::transform(from.data(), from.data() + from.size(), to.data(),
                       [](From i) { return static_cast<Index>(i); });
        return to;
    }
}

template <class Index, class From, class Value>
nb::tuple to_python(CsrMatrix<From, Value> matrix) {
    return nb::make_tuple(to_numpy(std::move(matrix.values)),
                          to_numpy(as_index<Index>(std::move(matrix.columns))),
                          to_numpy(as_index<Index>(std::move(matrix.offsets))));
}

nb::tuple rows_of(const nb::object& source, const HeldIndex& index, bool sorted, Offset most_entries,
                  const std::string& loop_name, int n_threads, bool wide_indices,
                  const nb::object& on_progress) {
    const Loop loop = find_loop(loop_name);
    const HeldProduct held = read_product(source, index);
    const Product& product = held.view;
    const Monitor monitor = make_monitor(on_progress);
    return in_type_of(source, [&](auto zero) {
        using Value = decltype(zero);
        const auto compute = [&](auto index) {
            const nb::gil_scoped_release no_gil;
            return csr_rows<decltype(index), Value>(product, sorted, most_entries, n_threads, monitor,
                                                    loop);
        };
        if (wide_indices) return to_python<std::int64_t>(compute(std::int64_t{}));
        auto matrix = compute(std::int32_t{});
        if (matrix.columns.size() <= std::numeric_limits<std::int32_t>::max()) {
            return to_python<std::int32_t>(std::move(matrix));
        }
        return to_python<std::int64_t>(std::move(matrix));
    });
}

nb::tuple nearest_of(const nb::object& source, const HeldIndex& index, Offset k, bool by_magnitude,
                     const std::string& loop_name, int n_threads, const nb::object& on_progress) {
    const Loop loop = find_loop(loop_name);
    const HeldProduct held = read_product(source, index);
    const Product& product = held.view;
    check_neighbors(product, k);
    const Monitor monitor = make_monitor(on_progress);
    const Offset n_rows = product.query.n_rows();
    return in_type_of(source, [&](auto zero) {
        Buffer<decltype(zero)> similarities(n_rows * k);
        Buffer<std::int64_t> samples(n_rows * k);
        {
            const nb::gil_scoped_release no_gil;
            leafkernel::nearest(product, k, by_magnitude, similarities.data(), samples.data(), loop,
                                n_threads, monitor);
        }
        const auto rows = static_cast<std::size_t>(n_rows);
        const auto columns = static_cast<std::size_t>(k);
        return nb::make_tuple(to_numpy(std::move(similarities), {rows, columns}),
                              to_numpy(std::move(samples), {rows, columns}));
    });
}

nb::object sums(const nb::object& source, const HeldIndex& index, const Array<double>& values,
                const std::string& loop_name, int n_threads, const nb::object& on_progress) {
    const Loop loop = find_loop(loop_name);
    const HeldProduct held = read_product(source, index);
    const Product& product = held.view;
    const Monitor monitor = make_monitor(on_progress);
    return in_type_of(source, [&](auto zero) {
        return times_dense(product, values, [&](auto in, Offset n_columns, double* out) {
            weighted_sums<decltype(zero)>(product, in, n_columns, out, n_threads, monitor, loop);
        });
    });
}

nb::object dense_rows(const nb::object& source, const HeldIndex& index, const std::string& loop_name,
                      int n_threads, const nb::object& on_progress) {
    const Loop loop = find_loop(loop_name);
    const HeldProduct held = read_product(source, index);
    const Product& product = held.view;
    const Monitor monitor = make_monitor(on_progress);
    const Offset n_rows = product.query.n_rows(), n_columns = product.reference.n_samples();
    return in_type_of(source, [&](auto zero) {
        auto matrix = Buffer<decltype(zero)>::zeros(n_rows * n_columns);
        {
            const nb::gil_scoped_release no_gil;
            fill_dense(product, matrix.data(), n_threads, monitor, loop);
        }
        return to_numpy(std::move(matrix),
                        {static_cast<std::size_t>(n_rows), static_cast<std::size_t>(n_columns)});
    });
}

nb::object nonzeros(const nb::object& source, const HeldIndex& index, const std::string& loop_name,
                    int n_threads, const nb::object& on_progress) {
    const Loop loop = find_loop(loop_name);
    const HeldProduct held = read_product(source, index);
    const Product& product = held.view;
    const Monitor monitor = make_monitor(on_progress);
    return in_type_of(source, [&](auto zero) {
        Buffer<std::int64_t> counts(product.query.n_rows());
        {
            const nb::gil_scoped_release no_gil;
            count_nonzeros<decltype(zero)>(product, counts.data(), n_threads, monitor, loop);
        }
        return to_numpy(std::move(counts));
    });
}

// Returns the memory of the bitmaps that summing the rows would use.
Offset bitmap_bytes(const nb::object& source, const HeldIndex& index, const std::string& loop_name) {
    const HeldProduct held = read_product(source, index);
    const nb::gil_scoped_release no_gil;
    return RowPlan::bytes(held.view, find_loop(loop_name));
}

// Returns, for each row, the first row that it equals.
nb::object twins_of(const nb::object& source, int n_threads) {
    Arrays arrays;
    const WeighedRows rows = read_rows(arrays, source);
    require(rows.incidence.offsets.empty() && rows.weights.all_one(),
            "twins need rows with one column per group and no entry weights");
    const Monitor monitor = make_monitor(nb::none());
    Buffer<Offset> twin_of(rows.n_rows());
    {
        const nb::gil_scoped_release no_gil;
        find_twins(rows, twin_of.data(), n_threads, monitor);
    }
    return to_numpy(std::move(twin_of));
}

// Returns the arrays of a CSR matrix that consists of the requested rows, which may repeat.
template <class Index, class Value>
nb::tuple repeated(const Array<Value>& values, const Array<Index>& columns, const Array<Index>& offsets,
                   const Array<Offset>& rows, int n_threads) {
    const std::span<const Index> from(offsets.data(), offsets.size());
    const std::span<const Offset> asked(rows.data(), rows.size());
    require_offsets(from, columns.size(), "offsets");
    require_size(values.size(), columns.size(), "values");
    const auto n_rows = static_cast<Offset>(from.size()) - 1;
    Buffer<Index> to(static_cast<Offset>(asked.size()) + 1);
    Offset n_entries = 0;
    to[0] = 0;
    for (std::size_t i = 0; i < asked.size(); ++i) {
        require(asked[i] >= 0 && asked[i] < n_rows, "a row does not exist");
        n_entries += from[asked[i] + 1] - from[asked[i]];
        require(n_entries <= std::numeric_limits<Index>::max(), "the matrix needs 64-bit indices");
        to[static_cast<Offset>(i) + 1] = static_cast<Index>(n_entries);
    }
    const Monitor monitor = make_monitor(nb::none());
    Buffer<Index> to_columns(n_entries);
    Buffer<Value> to_values(n_entries);
    {
        const nb::gil_scoped_release no_gil;
        repeat_rows(from.data(), columns.data(), values.data(), asked,
                    std::span<const Index>(to.data(), static_cast<std::size_t>(to.size())),
                    to_columns.data(), to_values.data(), n_threads, monitor);
    }
    return nb::make_tuple(to_numpy(std::move(to_values)), to_numpy(std::move(to_columns)),
                          to_numpy(std::move(to)));
}

template <class Index, class Value>
void register_repeat(nb::module_& module) {
    using namespace nb::literals;
    module.def("repeat_rows", &repeated<Index, Value>, "values"_a.noconvert(), "columns"_a.noconvert(),
               "offsets"_a.noconvert(), "rows"_a.noconvert(), "n_threads"_a);
}

nb::object collisions(const nb::object& source, const HeldIndex& index, int n_threads) {
    const HeldProduct held = read_product(source, index);
    const Product& product = held.view;
    const Monitor monitor = make_monitor(nb::none());
    Buffer<std::int64_t> counts(product.query.n_rows());
    {
        const nb::gil_scoped_release no_gil;
        for_each_block(product.query.n_rows(), 1024, n_threads, monitor, [&] {
            return [&](Offset begin, Offset end, const auto&) {
                for (Offset i = begin; i < end; ++i) {  // this order finds leaves in cache
                    const Offset row = product.row_order[i];
                    counts[row] = product.collisions(row);
                }
            };
        });
    }
    return to_numpy(std::move(counts));
}

}  // namespace

void register_rows(nb::module_& module) {
    using namespace nb::literals;
    nb::exception<TooManyEntries>(module, "TooManyEntriesError", PyExc_MemoryError);
    module.def("csr_rows", &rows_of, "product"_a, "index"_a, "sort"_a, "most_entries"_a, "loop"_a,
               "n_threads"_a, "wide_indices"_a, "on_progress"_a.none());
    module.def("dense_rows", &dense_rows, "product"_a, "index"_a, "loop"_a, "n_threads"_a,
               "on_progress"_a.none());
    module.def("nearest", &nearest_of, "product"_a, "index"_a, "k"_a, "by_magnitude"_a, "loop"_a,
               "n_threads"_a, "on_progress"_a.none());
    module.def("sums", &sums, "product"_a, "index"_a, "values"_a.noconvert(), "loop"_a, "n_threads"_a,
               "on_progress"_a.none());
    module.def("nonzeros", &nonzeros, "product"_a, "index"_a, "loop"_a, "n_threads"_a,
               "on_progress"_a.none());
    module.def("bitmap_bytes", &bitmap_bytes, "product"_a, "index"_a, "loop"_a);
    module.def("twins", &twins_of, "rows"_a, "n_threads"_a);
    register_repeat<std::int32_t, float>(module);
    register_repeat<std::int32_t, double>(module);
    register_repeat<std::int64_t, float>(module);
    register_repeat<std::int64_t, double>(module);
    module.def("simd", [] { return plane_kernels().name; });
    module.def("compiler", [] { return compiler; });
    module.def("collisions", &collisions, "product"_a, "index"_a, "n_threads"_a);
}

}  // namespace leafkernel::bindings
