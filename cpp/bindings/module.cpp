// The border to Python: arrays in, arrays out. No algorithm lives here.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

#include "leafkernel/reducers.hpp"

namespace nb = nanobind;
using namespace leafkernel;

namespace {

template <class T>
using Array = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;

// A view of a NumPy array, kept alive by the Python object it came from. The conversion is strict:
// a wrong dtype or layout is an error of the caller, never a silent copy.
template <class T>
std::span<const T> view(const nb::object& owner, const char* name) {
    const nb::object value = owner.attr(name);
    if (value.is_none()) return {};
    Array<T> array;
    if (!nb::try_cast(value, array, false)) {
        const std::string message = std::string(name) + " has the wrong dtype or layout";
        throw nb::type_error(message.c_str());
    }
    return {array.data(), array.size()};
}

template <class T>
void require_size(std::span<const T> array, std::size_t size, const char* name) {
    if (array.size() != size) {
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(array.size()) +
                                    " entries, expected " + std::to_string(size));
    }
}

template <class Id>
void require_offsets(std::span<const Offset> offsets, std::span<const Id> entries, const char* name) {
    if (offsets.empty() || offsets.front() != 0 ||
        offsets.back() != static_cast<Offset>(entries.size())) {
        throw std::invalid_argument(std::string(name) + " do not span their entries");
    }
}

template <class Value, class LeafId>
Product<Value, LeafId> read_product(const nb::object& source) {
    Product<Value, LeafId> product;
    product.query = {view<Offset>(source, "query_offsets"), view<LeafId>(source, "query_leaves"),
                     view<Value>(source, "query_weights")};
    const nb::object index = source.attr("reference");
    product.reference = {view<Offset>(index, "offsets"), view<SampleId>(index, "members"),
                         view<Value>(index, "weights"), nb::cast<SampleId>(index.attr("n_samples"))};
    product.own = view<SampleId>(source, "own");
    product.diagonal = view<double>(source, "diagonal");
    const auto n_words = nb::cast<Offset>(source.attr("n_oob_words"));
    product.query_oob = {view<std::uint64_t>(source, "query_oob"), n_words};
    product.reference_oob = {view<std::uint64_t>(source, "reference_oob"), n_words};

    // Sizes are cheap to check, and a wrong one would read past an array.
    const auto n_rows = static_cast<std::size_t>(product.query.n_rows());
    const auto n_samples = static_cast<std::size_t>(product.reference.n_samples);
    require_offsets(product.query.offsets, product.query.leaves, "query offsets");
    require_size(product.query.weights, product.query.leaves.size(), "query weights");
    require_offsets(product.reference.offsets, product.reference.members, "reference offsets");
    require_size(product.reference.weights, product.reference.members.size(), "reference weights");
    if (!product.own.empty()) require_size(product.own, n_rows, "own");
    if (!product.diagonal.empty()) {
        require_size(product.diagonal, n_rows, "diagonal");
        require_size(product.own, n_rows, "own");
    }
    if (product.divides_by_shared_oob()) {
        require_size(product.query_oob.words, n_rows * static_cast<std::size_t>(n_words), "query_oob");
        require_size(product.reference_oob.words, n_samples * static_cast<std::size_t>(n_words),
                     "reference_oob");
    }
    return product;
}

// Calls visit(product) with the product in the types that its arrays have.
template <class Visit>
auto with_product(const nb::object& source, Visit&& visit) {
    const bool is_double = nb::isinstance<Array<double>>(source.attr("query_weights"));
    const bool is_wide = nb::isinstance<Array<std::int64_t>>(source.attr("query_leaves"));
    if (is_double && is_wide) return visit(read_product<double, std::int64_t>(source));
    if (is_double) return visit(read_product<double, std::int32_t>(source));
    if (is_wide) return visit(read_product<float, std::int64_t>(source));
    return visit(read_product<float, std::int32_t>(source));
}

// Lets Python handle its signals (Ctrl-C raises here) and hear of the progress.
Monitor make_monitor(nb::object on_progress) {
    return [on_progress = std::move(on_progress)](Offset rows_done) {
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!on_progress.is_none()) on_progress(rows_done);
    };
}

template <class T>
struct Owned {  // an uninitialised array on its way to Python
    explicit Owned(Offset size_)
        : size(static_cast<std::size_t>(size_)), data(std::make_unique_for_overwrite<T[]>(size)) {}

    nb::object to_numpy(std::initializer_list<std::size_t> shape) {
        const nb::capsule owner(data.get(), [](void* p) noexcept { delete[] static_cast<T*>(p); });
        T* pointer = data.release();
        return nb::cast(nb::ndarray<nb::numpy, T>(pointer, shape, owner));
    }

    nb::object to_numpy() { return to_numpy({size}); }

    std::size_t size;
    std::unique_ptr<T[]> data;
};

template <class Index, class Value>
nb::tuple join(CsrBuilder<Value>& builder, std::span<const Offset> row_offsets, int n_threads) {
    Owned<Index> offsets(static_cast<Offset>(row_offsets.size()));
    Owned<Index> columns(row_offsets.back());
    Owned<Value> values(row_offsets.back());
    {
        const nb::gil_scoped_release no_gil;
        std::copy(row_offsets.begin(), row_offsets.end(), offsets.data.get());
        builder.join(row_offsets, columns.data.get(), values.data.get(), n_threads);
    }
    return nb::make_tuple(values.to_numpy(), columns.to_numpy(), offsets.to_numpy());
}

nb::tuple csr_rows(const nb::object& source, int n_threads, bool wide_indices,
                   const nb::object& on_progress) {
    return with_product(source, [&](const auto& product) {
        const Monitor monitor = make_monitor(on_progress);
        std::unique_ptr<CsrBuilder<typename std::decay_t<decltype(product)>::Value>> builder;
        std::vector<Offset> row_offsets;
        {
            const nb::gil_scoped_release no_gil;
            builder = build_rows(product, n_threads, monitor);
            row_offsets = builder->row_offsets();
        }
        // SciPy wants one integer type for offsets and columns.
        if (wide_indices || row_offsets.back() > std::numeric_limits<std::int32_t>::max()) {
            return join<std::int64_t>(*builder, row_offsets, n_threads);
        }
        return join<std::int32_t>(*builder, row_offsets, n_threads);
    });
}

nb::tuple nearest(const nb::object& source, Offset k, int n_threads, const nb::object& on_progress) {
    return with_product(source, [&](const auto& product) {
        using Value = typename std::decay_t<decltype(product)>::Value;
        const Offset available = product.reference.n_samples - (product.own.empty() ? 0 : 1);
        if (k < 0 || k > available) throw std::invalid_argument("k is larger than what exists");
        const Monitor monitor = make_monitor(on_progress);
        const Offset n_rows = product.query.n_rows();
        Owned<Value> similarities(n_rows * k);
        Owned<std::int64_t> samples(n_rows * k);
        {
            const nb::gil_scoped_release no_gil;
            top_k(product, k, similarities.data.get(), samples.data.get(), n_threads, monitor);
        }
        const auto rows = static_cast<std::size_t>(n_rows);
        const auto columns = static_cast<std::size_t>(k);
        return nb::make_tuple(similarities.to_numpy({rows, columns}),
                              samples.to_numpy({rows, columns}));
    });
}

nb::object sums(const nb::object& source, const Array<double>& values, int n_threads,
                const nb::object& on_progress) {
    return with_product(source, [&](const auto& product) {
        if (values.ndim() != 2 ||
            values.shape(0) != static_cast<std::size_t>(product.reference.n_samples)) {
            throw std::invalid_argument("values must have one row for each reference sample");
        }
        const Monitor monitor = make_monitor(on_progress);
        const Offset n_rows = product.query.n_rows();
        const auto n_columns = values.shape(1);
        Owned<double> out(n_rows * static_cast<Offset>(n_columns));
        {
            const nb::gil_scoped_release no_gil;
            weighted_sums(product, {values.data(), values.size()}, static_cast<Offset>(n_columns),
                          out.data.get(), n_threads, monitor);
        }
        return out.to_numpy({static_cast<std::size_t>(n_rows), n_columns});
    });
}

nb::object nonzeros(const nb::object& source, int n_threads, const nb::object& on_progress) {
    return with_product(source, [&](const auto& product) {
        const Monitor monitor = make_monitor(on_progress);
        Owned<std::int64_t> counts(product.query.n_rows());
        {
            const nb::gil_scoped_release no_gil;
            count_nonzeros(product, counts.data.get(), n_threads, monitor);
        }
        return counts.to_numpy();
    });
}

}  // namespace

NB_MODULE(_native, module) {
    using namespace nb::literals;
    module.doc() = "Compiled core of leafkernel: see leafkernel.engines.native.";
    module.def("csr_rows", &csr_rows, "product"_a, "n_threads"_a, "wide_indices"_a,
               "on_progress"_a.none());
    module.def("nearest", &nearest, "product"_a, "k"_a, "n_threads"_a, "on_progress"_a.none());
    module.def("sums", &sums, "product"_a, "values"_a.noconvert(), "n_threads"_a,
               "on_progress"_a.none());
    module.def("nonzeros", &nonzeros, "product"_a, "n_threads"_a, "on_progress"_a.none());
}
