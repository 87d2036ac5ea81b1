// NumPy arrays as views on the way in, owned memory on the way out, and signals in between.
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

// Reads arrays from the attributes of Python objects and keeps them alive: an attribute may be a
// property that makes a new array each time. The conversion is strict: a wrong dtype or layout is an
// error of the caller, never a silent copy.
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

    // An array of an element type that is known only here.
    template <class... T, class Visit>
    void visit(const nb::object& value, const char* name, Visit&& visit) {
        const bool found =
            ((nb::isinstance<Array<T>>(value) && (visit(view<T>(value, name)), true)) || ...);
        if (!found) wrong_type(name);
    }

    // A table (rows, columns); columns is left as it is for None.
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

    std::vector<nb::ndarray<nb::ro>> buffers_;  // not their owners, which may let go of the memory
    std::vector<nb::object> objects_;
};

// Weights in the type that they were given in; None where all are one.
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

// The same for an array that others read by its address: nobody may write to it.
template <class T>
nb::object to_locked_numpy(Buffer<T> data) {
    nb::object array = to_numpy(std::move(data));
    array.attr("setflags")(nb::arg("write") = false);
    return array;
}

// Whether nobody can write to an array, nor to an array that it is a view of.
inline bool is_locked(nb::object array) {
    const nb::object kind = nb::module_::import_("numpy").attr("ndarray");
    for (; nb::isinstance(array, kind); array = array.attr("base")) {
        if (nb::cast<bool>(array.attr("flags").attr("writeable"))) return false;
    }
    return true;
}

// A read-only array with the same entries. Shared if it is read-only already, else a copy: what has
// been checked must not change. None stays None.
inline nb::object locked(const nb::object& array) {
    if (array.is_none()) return array;
    const nb::object numpy = nb::module_::import_("numpy").attr("asarray")(array);
    if (is_locked(numpy)) return numpy;
    const nb::object copy = numpy.attr("copy")();
    copy.attr("setflags")(nb::arg("write") = false);
    return copy.attr("view")();  // which, unlike the copy itself, cannot be unlocked
}

// The same for an array that was just unpickled, so that nobody else has it: it is not copied.
inline nb::object locked_in_place(const nb::object& array) {
    if (!array.is_none() && nb::hasattr(array, "setflags")) {
        array.attr("setflags")(nb::arg("write") = false);
    }
    return locked(array);
}

void register_lists(nb::module_& module);
void register_rows(nb::module_& module);
void register_routing(nb::module_& module);

}  // namespace leafkernel::bindings
