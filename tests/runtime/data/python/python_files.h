#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

#include "tests/dataset_of.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop {

/// The tree's own Python, which has NumPy, PyTorch and Pillow.
inline constexpr const char* kPython = STEPOP_SOURCE_DIR "/.venv/bin/python3";

/// A folder with the user's file `my_data.py`.
struct PythonFiles : ScratchFolder {
  explicit PythonFiles(const std::string& code) { write("my_data.py", code); }

  /// The config of a dataset of the class or function `name`; `more` are further keys.
  std::string config(const std::string& name, const std::string& more = "") const {
    return fmt::format("{{class: Python, python: {}, folder: {}, object: '{}/my_data.py:{}'{}{}}}",
                       kPython, path(), path(), name, more.empty() ? "" : ", ", more);
  }

  std::unique_ptr<Dataset> dataset(const std::string& name, const std::string& more = "") const {
    return dataset_of(config(name, more));
  }
};

}  // namespace stepop
