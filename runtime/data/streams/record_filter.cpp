#include "runtime/data/streams/record_filter.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/name_pattern.h"
#include "runtime/core/base/nearest.h"
#include "runtime/core/base/text.h"
#include "runtime/core/config/read_pattern.h"

namespace stepop {
namespace {

/// Throws UsageError when `values` has not the key that `params` names, but one that is spelt
/// nearly so. A key that is like no other may be one that some records have.
template <class Values>
void check_key(const Config& params, const std::string& key, const Values& values) {
  if (values.contains(key)) return;
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  const auto near = nearest_names(key, names, 1);
  if (near.empty()) return;
  throw params.error(
      "key", fmt::format("the first record has no \"{}\": did you mean \"{}\"? It has: {}", key,
                         near.front(), list_text(names)));
}

class Within : public RecordFilter {
 public:
  struct Params {
    std::string key;
    double least = -std::numeric_limits<double>::infinity();
    double most = std::numeric_limits<double>::infinity();

    void declare(Parameters& p) {
      p.require("key", key, "such as class or json/width");
      p.add("least", least, "the smallest");
      p.add("most", most, "the largest");
    }
  };

  Within(const Params& params, const Config& config)
      : params_(config), key_(params.key), least_(params.least), most_(params.most) {
    if (!(least_ <= most_)) {
      throw config.error("most",
                         fmt::format("expected {} or more, as least is, found {}", least_, most_));
    }
  }

  bool operator()(const Example& example) const override {
    const at::Tensor& tensor = example.tensors.at(key_);
    if (tensor.numel() != 1) {
      throw Error(fmt::format("\"{}\" has {} numbers, expected one", key_, tensor.numel()));
    }
    const auto number = tensor.item<double>();
    return number >= least_ && number <= most_;
  }

  void check(const Example& first) const override { check_key(params_, key_, first.tensors); }

 private:
  Config params_;
  std::string key_;
  double least_;
  double most_;
};

class Matches : public RecordFilter {
 public:
  struct Params {
    std::string key = "text";
    std::optional<NamePattern> pattern;
    bool leave_out = false;

    void declare(Parameters& p) {
      p.add("key", key, "such as text, key or json/source");
      const Config* config = p.describe_required("pattern", "regex", "the regular expression");
      if (config != nullptr) pattern = read_pattern(*config, "pattern");
      p.add("leave_out", leave_out, "true: all other records");
    }
  };

  Matches(const Params& params, const Config& config)
      : params_(config),
        key_(params.key),
        pattern_(*params.pattern),
        leaves_out_(params.leave_out) {}

  bool operator()(const Example& example) const override {
    return pattern_.is_in(example.texts.at(key_)) != leaves_out_;
  }

  void check(const Example& first) const override { check_key(params_, key_, first.texts); }

 private:
  Config params_;
  std::string key_;
  NamePattern pattern_;
  bool leaves_out_;
};

STEPOP_REGISTER_RECORD_FILTER(within, Within, {"Records whose number lies between two."});

STEPOP_REGISTER_RECORD_FILTER(matches, Matches,
                              {"Records whose text has a part that a regular expression matches."});

}  // namespace

RecordFilterRegistry& record_filters() {
  static RecordFilterRegistry registry("record filter", "function");
  return registry;
}

}  // namespace stepop
