#pragma once

#include <string>
#include <vector>

#include "eval_out/hdf5/hdf5.h"
#include "eval_out/hdf5/hdf5_values.h"
#include "runtime/core/base/ordered_map.h"

namespace stepop {

/// Adds the attribute `name` to a file or group and returns it, for `set_attribute`.
Hdf5Id create_attribute(hid_t object, const std::string& name, const Attribute& value);

/// Adds the attribute `name` with a list of texts, [texts], to an array or group.
void add_texts_attribute(hid_t object, const std::string& name,
                         const std::vector<std::string>& texts);

/// Gives an attribute another value of the type with which it was created.
void set_attribute(hid_t attribute, const Attribute& value);

/// All attributes of a file or group that are a scalar bool, integer, float or text, sorted by
/// name.
OrderedMap<Attribute> read_attributes(hid_t object);

}  // namespace stepop
