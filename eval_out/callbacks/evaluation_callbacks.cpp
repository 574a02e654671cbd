#include "eval_out/callbacks/evaluation_callbacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/pictures/image_grid.h"
#include "runtime/system/atomic_file.h"
#include "runtime/system/folders.h"

namespace stepop {
namespace {

/// All scalars of one callback, under their full names.
OrderedMap<double> read_scalars(const std::string& prefix, const Logs& logs) {
  OrderedMap<double> scalars;
  for (const auto& [key, value] : logs.scalars) {
    const std::string full = fmt::format("{}/{}", prefix, key);
    scalars.set(full, value.read(full));
  }
  return scalars;
}

/// Throws Error for the key of an image that cannot be the end of a path.
void check_file_name(const std::string& key) {
  constexpr size_t kMostBytes = 200;  // file systems take 255, and the step comes behind
  for (size_t begin = 0; begin <= key.size();) {
    const size_t end = std::min(key.find('/', begin), key.size());
    const std::string part = key.substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.size() > kMostBytes ||
        part.find('\0') != std::string::npos) {
      throw Error(
          fmt::format("the image \"{}\" cannot be a file: parts of its name, between "
                      "slashes, have 1 to {} bytes and are not \".\" or \"..\"",
                      key, kMostBytes));
    }
    begin = end + 1;
  }
}

/// The images of one callback as PNG files, by their keys. Throws Error, with the key, for what is
/// no image.
OrderedMap<std::string> encode_images(const Logs& logs) {
  OrderedMap<std::string> pictures;
  for (const auto& [key, image] : logs.images) {
    check_file_name(key);
    try {
      pictures.set(key, image_grid_png(image));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", key, error.what()));
    }
  }
  return pictures;
}

void write_picture(const std::string& path, const std::string& png) {
  make_folders(std::filesystem::path(path).parent_path().string());
  write_file_atomically(path, png);
}

}  // namespace

CallbackScalars look_at_outputs(const Config& config, const std::string& op, int64_t step,
                                const std::string& folder, const Dataset& data_in,
                                const EvalFile& data_out) {
  CallbackResults results = run_callbacks(config, kEvalCallbacks, folder, data_in, data_out);
  CallbackScalars found{{}, std::move(results.failures)};
  for (const auto& [name, logs] : results.logs) {
    OrderedMap<double> scalars;
    OrderedMap<std::string> pictures;
    try {
      scalars = read_scalars(fmt::format("{}/{}", op, name), logs);
      pictures = encode_images(logs);
    } catch (const std::exception& error) {
      found.failures.set(name, error_text(error));
      continue;
    }
    for (const auto& [key, value] : scalars) found.scalars.set(key, value);
    for (const auto& [key, png] : pictures) {
      write_picture(fmt::format("{}/{}/{}_{:07}.png", folder, name, key, step), png);
    }
  }
  return found;
}

}  // namespace stepop
