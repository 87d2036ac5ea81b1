// Conversion between NumPy arrays and views or buffers, and handling of Python signals.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "leafkernel/memory.hpp"
#include "leafkernel/parallel.hpp"
#include "leafkernel/require.hpp"
#include "leafkernel/views.hpp"

namespace leafkernel::bindings {

namespace nb = nanobind;

template <class T>
using Array = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Reads arrays from the attributes of Python objects and keeps them alive, because a property may
// create a new array on each access. A wrong dtype or layout is an error; arrays are never copied
// silently.
class Arrays {
public:
    // Keeps any Python object alive.
    void keep(nb::object object) { objects_.push_back(std::move(object)); }

    template <class T>
    std::span<const T> view(const nb::object& value, const char* name) {
        if (value.is_none()) return {};
        const auto array = cast<Array<T>>(value, name);
        return {array.data(), array.size()};
    }

    template <class T>
    std::span<const T> attribute(const nb::object& owner, const char* name) {
        return view<T>(owner.attr(name), name);
    }

    // Reads an array whose element type is one of several.
    template <class... T, class Visit>
    void visit(const nb::object& value, const char* name, Visit&& visit) {
        const bool found =
            ((nb::isinstance<Array<T>>(value) && (visit(view<T>(value, name)), true)) || ...);
        if (!found) wrong_type(name);
    }

    // Reads a 2D array. n_columns does not change if the attribute is None.
    template <class T>
    std::span<const T> table(const nb::object& owner, const char* name, Offset& n_columns) {
        const nb::object value = owner.attr(name);
        if (value.is_none()) return {};
        const auto array = cast<Table<T>>(value, name);
        n_columns = static_cast<Offset>(array.shape(1));
        return {array.data(), array.size()};
    }

private:
    template <class Wanted>
    Wanted cast(const nb::object& value, const char* name) {
        Wanted array;
        if (!nb::try_cast(value, array, false)) wrong_type(name);
        buffers_.push_back(nb::ndarray<nb::ro>(array));
        return array;
    }

    [[noreturn]] static void wrong_type(const char* name) {
        throw nb::type_error((std::string(name) + " has the wrong dtype or layout").c_str());
    }

    std::vector<nb::ndarray<nb::ro>> buffers_;  // these hold the memory itself
    std::vector<nb::object> objects_;
};

// Reads weights in their own type. None means that all are one.
inline EntryWeights read_weights(Arrays& arrays, const nb::object& value, const char* name) {
    EntryWeights weights;
    if (value.is_none()) return weights;
    arrays.visit<std::uint8_t, float, double>(value, name, [&]<class T>(std::span<const T> found) {
        if constexpr (std::is_same_v<T, std::uint8_t>) weights.counts = found;
        if constexpr (std::is_same_v<T, float>) weights.floats = found;
        if constexpr (std::is_same_v<T, double>) weights.doubles = found;
    });
    return weights;
}

// Returns a monitor that lets Python handle signals (Ctrl-C raises here) and reports progress.
inline Monitor make_monitor(nb::object on_progress) {
    return [on_progress = std::move(on_progress)](Offset rows_done) {
        const nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!on_progress.is_none()) on_progress(rows_done);
    };
}

// Converts a buffer to a NumPy array that owns the memory.
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

// Converts a buffer to a read-only NumPy array, because the core keeps pointers to it.
template <class T>
nb::object to_locked_numpy(Buffer<T> data) {
    nb::object array = to_numpy(std::move(data));
    array.attr("setflags")(nb::arg("write") = false);
    return array;
}

// Whether an array and all arrays that it is a view of are read-only.
inline bool is_locked(nb::object array) {
    const nb::object kind = nb::module_::import_("numpy").attr("ndarray");
    for (; nb::isinstance(array, kind); array = array.attr("base")) {
        if (nb::cast<bool>(array.attr("flags").attr("writeable"))) return false;
    }
    return true;
}

// Returns a read-only array with the same entries. An array that is read-only already is shared; others
// are copied, because checked data must not change. None stays None.
inline nb::object locked(const nb::object& array) {
    if (array.is_none()) return array;
    const nb::object numpy = nb::module_::import_("numpy").attr("asarray")(array);
    if (is_locked(numpy)) return numpy;
    const nb::object copy = numpy.attr("copy")();
    copy.attr("setflags")(nb::arg("write") = false);
    return copy.attr("view")();  // a view cannot be made writable again, unlike the copy itself
}

// Makes a newly unpickled array read-only. No other code holds it, so no copy is needed.
inline nb::object locked_in_place(const nb::object& array) {
    if (!array.is_none() && nb::hasattr(array, "setflags")) {
        array.attr("setflags")(nb::arg("write") = false);
    }
    return locked(array);
}

void register_lists(nb::module_& module);
void register_paths(nb::module_& module);
void register_rows(nb::module_& module);
void register_routing(nb::module_& module);

}  // namespace leafkernel::bindings
