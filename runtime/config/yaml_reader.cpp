#include "runtime/config/yaml_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <cctype>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

namespace stepop {
namespace {

constexpr int kMaxDepth = 200;

/// Builds a Value from yaml-cpp's events, which carry what its node tree loses: marks, quotes,
/// duplicate keys.
class ValueBuilder : public YAML::EventHandler {
 public:
  ValueBuilder(std::string_view text, Origin origin, bool keep_line)
      : text_(text), origin_(std::move(origin)), keep_line_(keep_line) {}

  Value take() { return root_ ? std::move(*root_) : Value(); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark&, const std::string&) override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // `{path}` arrives as a key with a null; only the text tells it from `{path: null}`.
    if (!stack_.empty() && stack_.back().flow && stack_.back().key) {
      const auto start = static_cast<size_t>(stack_.back().key_mark.pos);
      const auto end = static_cast<size_t>(mark.pos);
      stack_.back().reference = stack_.back().value.as_map().empty() && end <= text_.size() &&
                                start < end &&
                                text_.substr(start, end - start).find(':') == std::string::npos;
    }
    add(Value(), mark, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(mark, "an alias inside of its own anchor");
    Value copy = found->second;
    nodes_ += count_nodes(copy);
    if (nodes_ > kMaxNodes) fail(mark, "aliases that expand to more than a million values");
    add(std::move(copy), mark, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    add(tagged_scalar(mark, tag, text), mark, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Value(Value::List{}), mark, tag, anchor, false);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(Value(Value::Map{}), mark, tag, anchor, style == YAML::EmitterStyle::Flow);
  }
  void OnMapEnd() override { close(); }

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const {
    throw UsageError(fmt::format("{}: {}", place(mark).text(), message));
  }

  Origin place(const YAML::Mark& mark) const {
    if (keep_line_ || mark.line < 0) return origin_;
    return {origin_.file, origin_.line + mark.line + 1};
  }

 private:
  static constexpr int64_t kMaxNodes = 1'000'000;

  struct Open {
    Value value;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    bool flow = false;
    bool reference = false;
    std::optional<std::string> key;
    YAML::Mark key_mark;
    std::vector<Value> merged;  // what `<<` brought, in the order of precedence
    bool is_merge_key = false;
  };

  static int64_t count_nodes(const Value& value) {
    int64_t count = 1;
    if (value.is_list()) {
      for (const auto& item : value.as_list()) count += count_nodes(item);
    } else if (value.is_map()) {
      for (const auto& [key, item] : value.as_map()) count += count_nodes(item);
    }
    return count;
  }

  Value tagged_scalar(const YAML::Mark& mark, const std::string& tag, const std::string& text) {
    if (tag == "?" || tag.empty()) return plain_scalar(text);
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return Value(text);
    if (tag == "!remove" || tag == "!replace") {
      Value value = plain_scalar(text);
      value.set_merge(tag == "!remove" ? Value::Merge::kRemove : Value::Merge::kReplace);
      return value;
    }
    for (const char* known : {"int", "float", "bool", "null"}) {
      if (tag == fmt::format("tag:yaml.org,2002:{}", known)) return plain_scalar(text);
    }
    fail(mark, fmt::format("unknown tag \"{}\"; known are !replace and !remove", tag));
  }

  void open(Value value, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            bool flow) {
    if (!stack_.empty() && stack_.back().value.is_map() && !stack_.back().key) {
      fail(mark, "a key must be a single word, found a list or a map");
    }
    if (stack_.size() >= kMaxDepth) fail(mark, fmt::format("nested deeper than {}", kMaxDepth));
    if (tag == "!replace") {
      value.set_merge(Value::Merge::kReplace);
    } else if (tag == "!remove") {
      value.set_merge(Value::Merge::kRemove);
    } else if (tag != "?" && tag != "!" && !tag.empty() &&
               !tag.starts_with("tag:yaml.org,2002:")) {
      fail(mark, fmt::format("unknown tag \"{}\"; known are !replace and !remove", tag));
    }
    Open entry;
    entry.value = std::move(value);
    entry.mark = mark;
    entry.anchor = anchor;
    entry.flow = flow;
    stack_.push_back(std::move(entry));
  }

  void close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    if (done.reference && done.value.as_map().size() == 1) {
      done.value = Value("{" + done.value.as_map().begin()->first + "}");
    } else {
      for (const auto& below : done.merged) {
        for (const auto& [key, item] : below.as_map()) {
          if (!done.value.as_map().contains(key)) done.value.as_map().set(key, item);
        }
      }
    }
    add(std::move(done.value), done.mark, done.anchor);
  }

  void add(Value value, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (++nodes_ > kMaxNodes) fail(mark, "more than a million values");
    if (value.origin().file.empty()) value.set_origin(place(mark));
    if (anchor != 0) anchors_[anchor] = value;
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = stack_.back();
    if (parent.value.is_list()) {
      parent.value.as_list().push_back(std::move(value));
    } else if (!parent.key) {
      take_key(parent, value, mark);
    } else {
      take_value(parent, std::move(value), mark);
    }
  }

  void take_key(Open& parent, const Value& value, const YAML::Mark& mark) {
    parent.key = value.is_text() ? value.as_text() : key_name(value);
    parent.key_mark = mark;
    parent.is_merge_key = *parent.key == "<<";
    const Value* first = parent.value.as_map().find(*parent.key);
    if (first != nullptr) {
      fail(mark, fmt::format("duplicate key \"{}\", first given at {}", *parent.key,
                             first->origin().text()));
    }
  }

  void take_value(Open& parent, Value value, const YAML::Mark& mark) {
    const std::string key = *std::exchange(parent.key, std::nullopt);
    if (key.find('/') != std::string::npos && !parent.reference) {
      fail(parent.key_mark,
           fmt::format("the key \"{}\" has a slash, which separates the keys of a path; write "
                       "nested maps instead",
                       key));
    }
    if (!parent.is_merge_key) {
      if (!value.is_map() && !value.is_list()) value.set_origin(place(parent.key_mark));
      parent.value.as_map().set(key, std::move(value));
      return;
    }
    const Value::List sources = value.is_list() ? value.as_list() : Value::List{value};
    for (const auto& source : sources) {
      if (!source.is_map()) fail(mark, "<< takes a map or a list of maps");
      parent.merged.push_back(source);
    }
  }

  static std::string key_name(const Value& value);

  std::string_view text_;
  Origin origin_;
  bool keep_line_;
  std::optional<Value> root_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Value> anchors_;
  int64_t nodes_ = 0;
};

std::string ValueBuilder::key_name(const Value& value) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_int()) return fmt::format("{}", value.as_int());
  if (value.is_float()) return fmt::format("{}", value.as_float());
  return value.as_text();
}

/// A stray tag such as `{a: *b}` inside a key makes yaml-cpp name a line only; keep what it says.
std::string lower_first(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::tolower(text[0]));
  return text;
}

bool all_of(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

std::optional<Value> integer(const std::string& text) {
  const bool is_signed = text[0] == '-' || text[0] == '+';
  const std::string_view digits = std::string_view(text).substr(is_signed ? 1 : 0);
  int base = 0;
  if (all_of(digits, "0123456789")) {
    base = 10;
  } else if (!is_signed && text.starts_with("0x") &&
             all_of(digits.substr(2), "0123456789abcdefABCDEF")) {
    base = 16;
  } else if (!is_signed && text.starts_with("0o") && all_of(digits.substr(2), "01234567")) {
    base = 8;
  } else {
    return std::nullopt;
  }
  errno = 0;
  const std::string number = base == 10 ? text : text.substr(2);
  const long long value = std::strtoll(number.c_str(), nullptr, base);
  if (errno == ERANGE) return Value(text);  // larger than an int: kept as it was written
  return Value(static_cast<int64_t>(value));
}

bool is_core_float(const std::string& text) {
  size_t i = text[0] == '-' || text[0] == '+' ? 1 : 0;
  const auto digits = [&] {
    const size_t start = i;
    while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0) ++i;
    return i - start;
  };
  const size_t whole = digits();
  size_t fraction = 0;
  if (i < text.size() && text[i] == '.') {
    ++i;
    fraction = digits();
  }
  if (whole + fraction == 0) return false;
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) ++i;
    if (digits() == 0) return false;
  }
  return i == text.size();
}

}  // namespace

Value plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return {};
  if (text == "true" || text == "True" || text == "TRUE") return Value(true);
  if (text == "false" || text == "False" || text == "FALSE") return Value(false);
  if (const auto number = integer(text)) return *number;
  if (is_core_float(text)) return Value(std::strtod(text.c_str(), nullptr));
  const bool is_signed = text[0] == '-' || text[0] == '+';
  const std::string word = is_signed ? text.substr(1) : text;
  if (word == ".inf" || word == ".Inf" || word == ".INF") {
    const double infinity = std::numeric_limits<double>::infinity();
    return Value(text[0] == '-' ? -infinity : infinity);
  }
  if (text == ".nan" || text == ".NaN" || text == ".NAN") {
    return Value(std::numeric_limits<double>::quiet_NaN());
  }
  return Value(text);
}

Value parse_yaml(std::string_view text, const Origin& origin, bool keep_line) {
  std::istringstream stream{std::string(text)};
  ValueBuilder builder(text, origin, keep_line);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return Value().set_origin(origin);
    Value value = builder.take();
    ValueBuilder rest(text, origin, keep_line);
    if (parser.HandleNextDocument(rest)) {
      throw UsageError(fmt::format("{}: more than one YAML document; a config has one",
                                   origin.file));
    }
    return value;
  } catch (const YAML::Exception& error) {
    builder.fail(error.mark, "not valid YAML: " + lower_first(error.msg));
  }
}

Value read_yaml_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  if (file) content << file.rdbuf();
  if (!file || (content.fail() && file.peek() != std::ifstream::traits_type::eof())) {
    throw UsageError(fmt::format("{}: cannot read this config: {}", path, std::strerror(errno)));
  }
  Value value = parse_yaml(content.str(), {path, 0});
  if (value.is_null()) return Value(Value::Map{}).set_origin({path, 1});
  if (!value.is_map()) {
    throw UsageError(fmt::format("{}: expected a map of keys and values at the top, found {}", path,
                                 value.describe()));
  }
  return value;
}

}  // namespace stepop
