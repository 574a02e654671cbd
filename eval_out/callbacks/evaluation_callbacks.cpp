#include "eval_out/callbacks/evaluation_callbacks.h"

#include <fmt/format.h>

#include <filesystem>

#include "runtime/base/error_text.h"
#include "runtime/log/log_files.h"
#include "runtime/pictures/image_grid.h"
#include "runtime/system/atomic_file.h"
#include "runtime/system/folders.h"

namespace stepop {
namespace {

/// All scalars of one callback, under their full names.
OrderedMap<double> scalars_of_callback(const std::string& prefix, const Logs& logs) {
  OrderedMap<double> scalars;
  for (const auto& [key, value] : logs.scalars) {
    const std::string full = fmt::format("{}/{}", prefix, key);
    scalars.set(full, value.read(full));
  }
  return scalars;
}

/// The images of one callback as PNG files, by their keys. Throws Error, with the key, for what is
/// no image.
OrderedMap<std::string> encode_images(const Logs& logs) {
  OrderedMap<std::string> pictures;
  for (const auto& [key, image] : logs.images) {
    check_file_name("the image", key);
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
      scalars = scalars_of_callback(fmt::format("{}/{}", op, name), logs);
      pictures = encode_images(logs);
    } catch (const std::exception& error) {
      found.failures.set(name, error_text(error));
      continue;
    }
    for (const auto& [key, value] : scalars) found.scalars.set(key, value);
    for (const auto& [key, png] : pictures) {
      write_picture(fmt::format("{}/{}/{}.png", folder, name, name_with_step(key, step)), png);
    }
  }
  return found;
}

}  // namespace stepop
