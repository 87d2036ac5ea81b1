// NumPy arrays as views on the way in, owned memory on the way out, and Python's say in between.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "leafkernel/parallel.hpp"

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

// Lets Python handle its signals (Ctrl-C raises here) and hear of the progress.
inline Monitor make_monitor(nb::object on_progress) {
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

void register_rows(nb::module_& module);
void register_routing(nb::module_& module);

}  // namespace leafkernel::bindings
