// The border to Python: arrays in, arrays out. No algorithm lives on this side of it.
#include "arrays.hpp"

NB_MODULE(_native, module) {
    module.doc() = "Compiled core of leafkernel: arrays in, arrays out.";
    leafkernel::bindings::register_lists(module);
    leafkernel::bindings::register_rows(module);
    leafkernel::bindings::register_routing(module);
}
