#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "models/exported/exported_operations.h"

namespace stepop {

/// Which values of a graph in JSON are its inputs and outputs, by name; an empty name is a result
/// that is no tensor.
struct ExportedValues {
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> state = {};  ///< Those of the inputs that are tensors of the module.
};

/// The operations of a graph of torch.export. Throws Error, with the module that calls it, for an
/// operation that this program does not have.
std::shared_ptr<ExportedOperations> read_operations(const nlohmann::json& graph,
                                                    const ExportedValues& values);

/// The kind of an argument, such as `as_ints`, and its value. Throws Error for something else.
std::pair<std::string, const nlohmann::json*> kind_and_value(const nlohmann::json& argument);

}  // namespace stepop
