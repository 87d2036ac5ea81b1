// The border to Python: arrays in, arrays out. No algorithm lives on this side of it.
#include "arrays.hpp"

namespace nb = nanobind;

NB_MODULE(_native, module) {
    // A program may end while it still holds a fitted kernel: that is no leak.
    nb::set_leak_warnings(false);
    module.doc() = "Compiled core of leafkernel: arrays in, arrays out.";
    leafkernel::bindings::register_lists(module);
    leafkernel::bindings::register_rows(module);
    leafkernel::bindings::register_routing(module);
}
