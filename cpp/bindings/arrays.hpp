// NumPy arrays as views on the way in, owned memory on the way out, and Python's say in between.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "leafkernel/memory.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel::bindings {

namespace nb = nanobind;

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

inline void require_size(std::size_t found, std::size_t expected, const char* name) {
    if (found != expected) {
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(found) +
                                    " entries, expected " + std::to_string(expected));
    }
}

// An array that may be left out.
template <class T>
void require_optional(std::span<const T> array, std::size_t size, const char* name) {
    if (!array.empty()) require_size(array.size(), size, name);
}

template <class Id>
void require_offsets(std::span<const Offset> offsets, std::span<const Id> entries, const char* name) {
    if (offsets.empty() || offsets.front() != 0 ||
        offsets.back() != static_cast<Offset>(entries.size())) {
        throw std::invalid_argument(std::string(name) + " do not span their entries");
    }
}

// Weights in the type that they were given in; None where all are one.
inline EntryWeights read_weights(const nb::object& owner, const char* name) {
    const nb::object value = owner.attr(name);
    EntryWeights weights;
    if (value.is_none()) return weights;
    if (nb::isinstance<Array<std::uint8_t>>(value)) {
        weights.counts = view<std::uint8_t>(owner, name);
    } else if (nb::isinstance<Array<float>>(value)) {
        weights.floats = view<float>(owner, name);
    } else {
        weights.doubles = view<double>(owner, name);
    }
    return weights;
}

// The leaves of rows and their weights, from an object with `leaf`, `present` and `weights`.
inline QueryRows read_rows(const nb::object& source) {
    QueryRows rows;
    const nb::object leaf = source.attr("leaf");
    if (nb::isinstance<Array<std::int64_t>>(leaf)) {
        rows.leaves.wide = view<std::int64_t>(source, "leaf");
    } else {
        rows.leaves.narrow = view<std::int32_t>(source, "leaf");
    }
    const auto shape = nb::cast<std::pair<Offset, Offset>>(leaf.attr("shape"));
    rows.n_rows = shape.first;
    rows.n_trees = shape.second;
    rows.present = view<std::uint8_t>(source, "present");
    rows.weights = read_weights(source, "weights");
    const auto n_entries = static_cast<std::size_t>(rows.leaves.size());
    require_optional(rows.present, n_entries, "present");
    if (!rows.weights.all_one()) require_size(rows.weights.size(), n_entries, "weights");
    return rows;
}

// Lets Python handle its signals (Ctrl-C raises here) and hear of the progress.
inline Monitor make_monitor(nb::object on_progress) {
    return [on_progress = std::move(on_progress)](Offset rows_done) {
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!on_progress.is_none()) on_progress(rows_done);
    };
}

// An array on its way to Python.
template <class T>
nb::object to_numpy(Buffer<T> data, std::initializer_list<std::size_t> shape) {
    T* pointer = data.release();
    const nb::capsule owner(pointer, [](void* memory) noexcept { std::free(memory); });
    return nb::cast(nb::ndarray<nb::numpy, T>(pointer, shape, owner));
}

template <class T>
nb::object to_numpy(Buffer<T> data) {
    const auto size = static_cast<std::size_t>(data.size());
    return to_numpy(std::move(data), {size});
}

void register_lists(nb::module_& module);
void register_rows(nb::module_& module);
void register_routing(nb::module_& module);

}  // namespace leafkernel::bindings
