#pragma once

#include <string>
#include <string_view>

namespace stepop {

/// A dataset of edflow or VUNet that has a class here.
struct ShippedDataset {
  std::string_view path;   ///< The last two parts of its import path.
  std::string_view here;   ///< Its config in YAML; `{}` is `data_root`.
  std::string_view files;  ///< The files that must exist.
  bool has_classes;        ///< Whether the pictures `image` have a `class`.
};

/// The dataset with this import path, or null. A class without an end, such as CelebA, is the base
/// of the class of the training.
const ShippedDataset* find_shipped(const std::string& import_path);

}  // namespace stepop
