// Products to rows, neighbours, sums and counts.
#include <limits>

#include "arrays.hpp"
#include "leafkernel/reducers.hpp"

namespace leafkernel::bindings {

namespace {

template <class Value, class LeafId>
Product<Value, LeafId> read_product(const nb::object& source) {
    Product<Value, LeafId> product;
    product.query = {view<Offset>(source, "query_offsets"), view<LeafId>(source, "query_leaves"),
                     view<Value>(source, "query_weights")};
    const nb::object index = source.attr("reference");
    product.reference = {view<Offset>(index, "offsets"), view<SampleId>(index, "members"),
                         view<Value>(index, "weights"), view<SampleId>(index, "sample_at")};
    product.row_order = view<Offset>(source, "row_order");
    product.own = view<SampleId>(source, "own");
    product.diagonal = view<double>(source, "diagonal");
    const auto n_words = nb::cast<Offset>(source.attr("n_oob_words"));
    product.query_oob = {view<std::uint64_t>(source, "query_oob"), n_words};
    product.reference_oob = {view<std::uint64_t>(source, "reference_oob"), n_words};

    // Sizes are cheap to check, and a wrong one would read past an array.
    const auto n_rows = static_cast<std::size_t>(product.query.n_rows());
    const auto n_samples = static_cast<std::size_t>(product.reference.n_samples());
    require_offsets(product.query.offsets, product.query.leaves, "query offsets");
    require_size(product.query.weights, product.query.leaves.size(), "query weights");
    require_offsets(product.reference.offsets, product.reference.members, "reference offsets");
    require_size(product.reference.weights, product.reference.members.size(), "reference weights");
    require_size(product.row_order, n_rows, "row_order");
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

template <class Index, class Value>
nb::tuple join(CsrBuilder<Value>& builder, std::span<const Offset> row_offsets, int n_threads) {
    // Progress counts rows, and all are done: only signals are looked at here.
    const Monitor monitor = make_monitor(nb::none());
    Owned<Index> offsets(static_cast<Offset>(row_offsets.size()));
    Owned<Index> columns(row_offsets.back());
    Owned<Value> values(row_offsets.back());
    {
        const nb::gil_scoped_release no_gil;
        std::copy(row_offsets.begin(), row_offsets.end(), offsets.data.get());
        builder.join(row_offsets, columns.data.get(), values.data.get(), n_threads, monitor);
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
        const Offset available = product.reference.n_samples() - (product.own.empty() ? 0 : 1);
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
            values.shape(0) != static_cast<std::size_t>(product.reference.n_samples())) {
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

void register_rows(nb::module_& module) {
    using namespace nb::literals;
    module.def("csr_rows", &csr_rows, "product"_a, "n_threads"_a, "wide_indices"_a,
               "on_progress"_a.none());
    module.def("nearest", &nearest, "product"_a, "k"_a, "n_threads"_a, "on_progress"_a.none());
    module.def("sums", &sums, "product"_a, "values"_a.noconvert(), "n_threads"_a,
               "on_progress"_a.none());
    module.def("nonzeros", &nonzeros, "product"_a, "n_threads"_a, "on_progress"_a.none());
}

}  // namespace leafkernel::bindings
