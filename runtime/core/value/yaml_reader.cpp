#include "runtime/core/value/yaml_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>

#include "runtime/core/base/text.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/value/yaml_text.h"
#include "runtime/core/value/yaml_writer.h"

namespace stepop {
namespace {

constexpr int64_t kMostConfigBytes = 64'000'000;  // a data file, given by mistake
constexpr std::string_view kCoreTag = "tag:yaml.org,2002:";

/// Builds a Value from yaml-cpp's events, which have what its node tree loses: marks, quotes,
/// duplicate keys.
class ValueBuilder : public YAML::EventHandler {
 public:
  ValueBuilder(std::string_view text, Origin origin, bool keep_line, bool takes_paths)
      : text_(text), origin_(std::move(origin)), keep_line_(keep_line), takes_paths_(takes_paths) {}

  const YAML::Mark& start() const { return start_; }
  Value take() { return root_ ? std::move(*root_) : Value(); }

  void OnDocumentStart(const YAML::Mark& mark) override { start_ = mark; }
  void OnDocumentEnd() override {}
  void OnAnchor(const YAML::Mark&, const std::string&) override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    // `{path}` arrives as a key with null; only the source text distinguishes it from `{path:
    // null}`.
    if (!stack_.empty() && stack_.back().flow && stack_.back().key) {
      const auto start = static_cast<size_t>(stack_.back().key_mark.pos);
      const auto end = std::min(static_cast<size_t>(mark.pos), text_.size());
      const bool has_colon =
          start < end && text_.substr(start, end - start).find(':') != std::string::npos;
      const std::string& key = *stack_.back().key;
      const size_t colon = key.find(':');
      if (colon != std::string::npos && has_colon && text_.substr(start, key.size()) == key) {
        fail(mark, fmt::format("\"{}\" is one word: write \"{}: {}\", with a space after the colon",
                               key, key.substr(0, colon), key.substr(colon + 1)));
      }
      stack_.back().reference = stack_.back().value.as_map().empty() && !has_colon;
    }
    add(Value(), mark, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(mark, "an alias inside of its own anchor");
    Value copy = found->second;
    values_ += count_values(copy);
    if (values_ > kMaxValues) fail(mark, "aliases that expand to more than a million values");
    add(std::move(copy), mark, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& read) override {
    const std::string text = read.empty() ? line_breaks(mark) : read;
    if (!is_utf8(text)) fail(mark, "\\N and \\_ are not supported; write \\x85 and \\xa0");
    if (expects_key()) {
      take_key(text, mark, tag == "?" && text == "<<");
      if (anchor != 0) anchors_[anchor] = Value(text).set_origin(place(mark));
      return;
    }
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
  struct Open {
    Value value;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    bool flow = false;
    bool reference = false;
    std::optional<std::string> key;
    YAML::Mark key_mark;
    std::vector<Value> merged;  // values of `<<`, in the order of precedence
    bool is_merge_key = false;
    bool has_merge_key = false;
  };

  /// What a quoted text of empty lines alone is, which yaml-cpp reads as an empty one: the first
  /// break is folded into the others.
  std::string line_breaks(const YAML::Mark& mark) const {
    const auto start = static_cast<size_t>(mark.pos);
    if (start >= text_.size() || (text_[start] != '\'' && text_[start] != '"')) return "";
    const size_t end = text_.find_first_not_of(" \t\r\n", start + 1);
    if (end == std::string::npos || text_[end] != text_[start]) return "";
    const auto breaks = std::count(&text_[start], &text_[end], '\n');
    return breaks == 1 ? " "
                       : std::string(static_cast<size_t>(std::max<int64_t>(breaks - 1, 0)), '\n');
  }

  bool expects_key() const {
    return !stack_.empty() && stack_.back().value.is_map() && !stack_.back().key;
  }

  [[noreturn]] void fail_tag(const YAML::Mark& mark, const std::string& tag) const {
    fail(mark, fmt::format("unknown tag \"{}\"; known are !replace and !remove", tag));
  }

  Value tagged_scalar(const YAML::Mark& mark, const std::string& tag, const std::string& text) {
    if (tag == "?" || tag.empty()) return plain_scalar(text);
    if (tag == "!") return Value(text);
    if (tag == "!remove" || tag == "!replace") {
      Value value = plain_scalar(text);
      value.set_merge(tag == "!remove" ? Value::Merge::kRemove : Value::Merge::kReplace);
      return value;
    }
    if (!tag.starts_with(kCoreTag)) fail_tag(mark, tag);
    const std::string type = tag.substr(kCoreTag.size());
    if (type == "str") return Value(text);
    Value value = plain_scalar(text);
    if ((type == "int" && value.is_int()) || (type == "float" && value.is_float()) ||
        (type == "bool" && value.is_bool()) || (type == "null" && value.is_null())) {
      return value;
    }
    if (type == "float" && value.is_int()) return Value(static_cast<double>(value.as_int()));
    if (type != "int" && type != "float" && type != "bool" && type != "null") fail_tag(mark, tag);
    fail(mark, fmt::format("{} is not of the type !!{}", Value(text).describe(), type));
  }

  void open(Value value, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            bool flow) {
    if (expects_key()) {
      fail(mark, fmt::format("a key must be text, found a {}", value.is_map() ? "map" : "list"));
    }
    if (stack_.size() >= kMaxDepth) fail(mark, fmt::format("nested deeper than {}", kMaxDepth));
    if (tag == "!replace") {
      value.set_merge(Value::Merge::kReplace);
    } else if (tag == "!remove") {
      value.set_merge(Value::Merge::kRemove);
    } else if (tag != "?" && tag != "!" && !tag.empty() &&
               tag != fmt::format("{}{}", kCoreTag, value.is_map() ? "map" : "seq")) {
      fail_tag(mark, tag);
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
      merge_below(done);
    }
    add(std::move(done.value), done.mark, done.anchor);
  }

  /// Puts the values of `<<` first; the map's own values take precedence.
  static void merge_below(Open& done) {
    if (done.merged.empty()) return;
    Value::Map map;
    for (const auto& below : done.merged) {
      for (const auto& [key, item] : below.as_map()) {
        if (!map.contains(key)) map.set(key, item);
      }
    }
    for (auto& [key, item] : done.value.as_map()) map.set(key, std::move(item));
    done.value.as_map() = std::move(map);
  }

  void add(Value value, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (++values_ > kMaxValues) fail(mark, "more than a million values");
    if (value.origin().file.empty()) value.set_origin(place(mark));
    if (anchor != 0) anchors_[anchor] = value;
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& parent = stack_.back();
    if (parent.value.is_list()) {
      if (value.merge() == Value::Merge::kRemove) {
        fail(mark, "!remove drops a key of a map; a list is given whole");
      }
      parent.value.as_list().push_back(std::move(value));
    } else if (!parent.key) {
      if (value.is_list() || value.is_map()) {
        fail(mark, fmt::format("a key must be text, found {}", value.describe()));
      }
      take_key(value.is_text() ? value.as_text() : flow_yaml(value), mark, false);
    } else {
      take_value(parent, std::move(value), mark);
    }
  }

  /// A key keeps its spelling: `010` and `1e3` are found by that name.
  void take_key(const std::string& key, const YAML::Mark& mark, bool is_merge_key) {
    if (key.empty()) fail(mark, "an empty key");
    if (key.size() > kMaxKeyBytes) {
      fail(mark, fmt::format("a key of {} bytes; {} at most", key.size(), kMaxKeyBytes));
    }
    Open& parent = stack_.back();
    if (std::exchange(parent.reference, false)) {  // `{a/b, c}` is a map after all
      check_slash(parent.value.as_map().begin()->first, parent.key_mark);
    }
    parent.key = key;
    parent.key_mark = mark;
    parent.is_merge_key = is_merge_key;
    const Value* first = parent.value.as_map().find(key);
    if (first != nullptr && !is_merge_key) {
      fail(mark,
           fmt::format("duplicate key \"{}\", first given at {}", key, first->origin().text()));
    }
    if (is_merge_key && std::exchange(parent.has_merge_key, true)) {
      fail(mark, "duplicate key \"<<\"; it takes a list: <<: [*a, *b]");
    }
  }

  void check_slash(const std::string& key, const YAML::Mark& mark) const {
    if (takes_paths_ || key.find('/') == std::string::npos) return;
    fail(mark, fmt::format("the key \"{}\" has a slash, which separates the keys of a path; write "
                           "nested maps instead",
                           key));
  }

  void take_value(Open& parent, Value value, const YAML::Mark& mark) {
    const std::string key = *std::exchange(parent.key, std::nullopt);
    if (!parent.reference) check_slash(key, parent.key_mark);
    if (!parent.is_merge_key) {
      value.set_origin(place(parent.key_mark));
      parent.value.as_map().set(key, std::move(value));
      return;
    }
    const Value::List sources = value.is_list() ? value.as_list() : Value::List{value};
    for (const auto& source : sources) {
      if (!source.is_map()) fail(mark, "<< takes a map or a list of maps");
      parent.merged.push_back(source);
    }
  }

  std::string_view text_;
  Origin origin_;
  bool keep_line_;
  bool takes_paths_;
  std::optional<Value> root_;
  YAML::Mark start_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Value> anchors_;
  int64_t values_ = 0;
};

Value parse_document(std::string_view text, const Origin& origin, bool keep_line,
                     bool takes_paths) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a byte order mark
  if (const auto bad = find_bad_byte(text)) {
    const Origin place = keep_line ? origin : Origin{origin.file, origin.line + bad->line + 1};
    throw UsageError(fmt::format("{}: not valid YAML: the byte 0x{:02x} is {}", place.text(),
                                 bad->byte, bad->what));
  }
  if (text == "!remove") {  // yaml-cpp drops a tag without a value
    Value value = Value().set_origin(origin);
    value.set_merge(Value::Merge::kRemove);
    return value;
  }
  std::string closed(text);
  // For yaml-cpp, a quote may end with the file, but not after a comment.
  if (text.ends_with('\n') || text.ends_with('\r')) closed += '#';
  std::istringstream stream{closed};
  ValueBuilder builder(text, origin, keep_line, takes_paths);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return Value().set_origin(origin);
    Value value = builder.take();
    ValueBuilder rest(text, origin, keep_line, takes_paths);
    if (parser.HandleNextDocument(rest)) {
      rest.fail(rest.start(), "a second YAML document begins; a config has one");
    }
    return value;
  } catch (const YAML::Exception& error) {
    builder.fail(error.mark, "not valid YAML: " + explain_yaml(error.msg, text, error.mark.line));
  }
}

Value read_map(const std::string& path, bool takes_paths) {
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed)) {
    throw UsageError(path + ": a folder, where a config file is expected");
  }
  std::string text;
  try {
    text = read_file(path, kMostConfigBytes);
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
  Value value = parse_document(text, {path, 0}, /*keep_line=*/false, takes_paths);
  if (value.is_null()) return Value(Value::Map{}).set_origin({path, 1});
  if (!value.is_map()) {
    throw UsageError(fmt::format("{}: expected a map of keys and values at the top, found {}", path,
                                 value.describe()));
  }
  return value;
}

}  // namespace

Value parse_yaml(std::string_view text, const Origin& origin, bool keep_line) {
  return parse_document(text, origin, keep_line, /*takes_paths=*/false);
}

Value read_yaml_file(const std::string& path) { return read_map(path, /*takes_paths=*/false); }

Value read_yaml_file_with_paths(const std::string& path) {
  return read_map(path, /*takes_paths=*/true);
}

}  // namespace stepop
