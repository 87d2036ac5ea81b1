// Leaf lists as a Python object: checked once when it is made, and read by every product after that.
#pragma once

#include "arrays.hpp"

namespace leafkernel::bindings {

struct HeldLists {
    // The arrays as Python sees them, which keep the memory alive.
    nb::object offsets, members, weights, sample_at;
    LeafLists view;
    Arrays arrays;

    HeldLists(nb::object offsets_, nb::object members_, nb::object weights_, nb::object sample_at_)
        : offsets(std::move(offsets_)),
          members(std::move(members_)),
          weights(std::move(weights_)),
          sample_at(std::move(sample_at_)) {
        view.offsets = arrays.view<Offset>(offsets, "offsets");
        view.members = arrays.view<SampleId>(members, "members");
        view.weights = read_weights(arrays, weights, "weights");
        view.sample_at = arrays.view<SampleId>(sample_at, "sample_at");
    }
};

}  // namespace leafkernel::bindings
