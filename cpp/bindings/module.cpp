// The Python module. It converts arrays and contains no algorithms.
#include "arrays.hpp"

namespace nb = nanobind;

NB_MODULE(_native, module) {
    // A fitted kernel may be alive when the interpreter exits. This is not a leak.
    nb::set_leak_warnings(false);
    module.doc() = "Compiled core of leafkernel: arrays in, arrays out.";
    leafkernel::bindings::register_lists(module);
    leafkernel::bindings::register_rows(module);
    leafkernel::bindings::register_paths(module);
    leafkernel::bindings::register_routing(module);
}
