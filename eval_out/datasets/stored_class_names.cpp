#include "eval_out/datasets/stored_class_names.h"

#include <variant>

#include "runtime/core/value/yaml_reader.h"
#include "runtime/data/class_numbers.h"

namespace stepop {

OrderedMap<std::vector<std::string>> stored_class_names(const EvalFile& file) {
  const Attribute* yaml = file.attributes().find("config");
  const auto* text = yaml == nullptr ? nullptr : std::get_if<std::string>(yaml);
  if (text == nullptr) return {};
  return all_class_names(Config(parse_yaml(*text, {"", 0})));
}

}  // namespace stepop
