#include "runtime/data/python/python_object.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "runtime/core/value/yaml_writer.h"

namespace stepop {

std::string read_python_object(const Config& params, std::string_view key,
                               std::string_view example) {
  if (params.get<std::string>(key).empty()) {
    throw params.error(
        key, fmt::format("expected \"my_data.py:{}\" or \"package.module:Name\"", example));
  }
  const auto is_file = [](const std::string& text) {
    return text.substr(0, text.rfind(':')).ends_with(".py");
  };
  if (!is_file(params.get<std::string>(key))) return params.get<std::string>(key);
  params.resolve_path(key);
  std::string object = params.get<std::string>(key);
  const std::string file = object.substr(0, object.rfind(':'));
  std::error_code failed;
  if (!std::filesystem::is_regular_file(file, failed)) {
    throw params.error(key, "no such file: " + file);
  }
  params.note_opened(key, file);
  if (file == object) {
    throw params.error(key, fmt::format("expected a class or a function of the file, \"{}:{}\"",
                                        std::filesystem::path(file).filename().string(), example));
  }
  return object;
}

std::string read_python_kwargs(const Config& params) {
  if (!params.has("kwargs")) return "{}";
  const auto kwargs = params.get<Value>("kwargs");
  if (!kwargs.is_map()) {
    throw params.error("kwargs",
                       "expected a map from arguments to values, found " + kwargs.describe());
  }
  return to_json(kwargs);
}

}  // namespace stepop
