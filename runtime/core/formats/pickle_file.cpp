#include "runtime/core/formats/pickle_file.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <map>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/unpack_limit.h"

namespace stepop {
namespace {

using Kind = PickleValue::Kind;
using Pointer = PickleValue::Pointer;

/// The stack machine that runs the program in a pickle.
class Unpickler {
 public:
  Unpickler(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Pickle run() {
    while (true) {
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code != '.') {
        step(code);
        continue;
      }
      made_.root = pop();
      made_.size = at_;
      return std::move(made_);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}: not a pickle of plain data: byte {}: {}", name_, at_, what));
  }

  std::string_view take(size_t size) {
    if (size > bytes_.size() - at_) fail("cut short");
    const std::string_view part = bytes_.substr(at_, size);
    at_ += size;
    return part;
  }
  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("cut short");
    const std::string_view part = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return part;
  }
  /// Reads a little-endian number.
  uint64_t number(size_t size) {
    uint64_t value = 0;
    const std::string_view part = take(size);
    for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<unsigned char>(part[i]);
    return value;
  }

  /// Counts memory: a few bytes can repeat a text or a list of any size, and a value of one byte
  /// takes a hundred.
  void count_memory(size_t bytes) {
    memory_ += static_cast<double>(bytes);
    if (memory_ < limit_ || !is_too_much_unpacked(memory_, static_cast<double>(at_))) return;
    throw Error(fmt::format("{}: the {} of its pickle up to here take {} of memory: {}", name_,
                            size_text(static_cast<double>(at_)), size_text(memory_),
                            unpack_remedy(memory_)));
  }

  void push(PickleValue value) {
    count_memory(sizeof value + 2 * sizeof(Pointer) + value.text.size() +
                 value.items.size() * sizeof(Pointer));
    stack_.push_back(&made_.values.emplace_back(std::move(value)));
  }
  /// Pushes a value that all places of the pickle share.
  void push_shared(Pointer& value, Kind kind, int64_t number) {
    if (value == nullptr) value = &made_.values.emplace_back(kind, number);
    stack_.push_back(value);
  }
  void push_number(int64_t value) { push({.kind = Kind::kInt, .number = value}); }
  void push_text(std::string_view text) { push({.kind = Kind::kText, .text = std::string(text)}); }
  Pointer pop() {
    if (stack_.empty()) fail("nothing is left to take");
    const Pointer value = stack_.back();
    stack_.pop_back();
    return value;
  }
  Pointer& top() {
    if (stack_.empty()) fail("nothing is left to take");
    return stack_.back();
  }
  /// Pops the values since the last mark.
  std::vector<Pointer> pop_marked() {
    if (marks_.empty() || marks_.back() > stack_.size()) fail("a mark is missing");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<Pointer> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  void push_tuple(size_t size) {
    std::vector<Pointer> items(size);
    for (size_t i = size; i-- > 0;) items[i] = pop();
    push({.kind = Kind::kList, .items = std::move(items)});
  }
  void append(const std::vector<Pointer>& items, Kind kind) {
    PickleValue& target = *top();
    const bool fits = target.kind == kind || target.kind == Kind::kObject;
    if (!fits || (kind == Kind::kDict && items.size() % 2 != 0)) fail("wrong order");
    count_memory(items.size() * sizeof(Pointer));
    target.items.insert(target.items.end(), items.begin(), items.end());
  }
  void remember(uint64_t place) {
    constexpr size_t kNode = 64;  // of the map
    if (memo_.insert_or_assign(place, top()).second) count_memory(kNode);
  }
  void recall(uint64_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) fail("refers to what is not there");
    stack_.push_back(found->second);
  }
  uint64_t decimal(std::string_view text) {
    uint64_t value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc() || end != text.data() + text.size()) fail("expected a number");
    return value;
  }

  void step(unsigned char code) {
    switch (code) {
      case 0x80:  // the protocol's number
        take(1);
        return;
      case 0x95:  // a frame
        take(8);
        return;
      case 'N':
        return push_shared(none_, Kind::kNone, 0);
      case 0x88:
        return push_shared(true_, Kind::kBool, 1);
      case 0x89:
        return push_shared(false_, Kind::kBool, 0);
      case 'J':
        return push_number(static_cast<int32_t>(number(4)));
      case 'K':
        return push_number(static_cast<int64_t>(number(1)));
      case 'M':
        return push_number(static_cast<int64_t>(number(2)));
      case 0x8a:
        return push_long(number(1));
      case 0x8b:
        return push_long(number(4));
      case 'I':
      case 'L':
        return push_decimal(line());
      case 'G':
        return push({.kind = Kind::kFloat, .real = big_endian_float()});
      case 'U':
      case 0x8c:
      case 'C':
        return push_text(take(number(1)));
      case 'T':
      case 'X':
      case 'B':
        return push_text(take(number(4)));
      case 0x8d:
      case 0x8e:
      case 0x96:
        return push_text(take(number(8)));
      case 0x8f:
        return push({.kind = Kind::kList});
      case 0x91:
        return push({.kind = Kind::kList, .items = pop_marked()});
      case '(':
        return marks_.push_back(stack_.size());
      case ')':
      case ']':
        return push({.kind = Kind::kList});
      case '}':
        return push({.kind = Kind::kDict});
      case 't':
      case 'l':
        return push({.kind = Kind::kList, .items = pop_marked()});
      case 'd':
        return push({.kind = Kind::kDict, .items = pop_marked()});
      case 0x85:
        return push_tuple(1);
      case 0x86:
        return push_tuple(2);
      case 0x87:
        return push_tuple(3);
      default:
        return change(code);
    }
  }

  /// The steps that change, name or recall values.
  void change(unsigned char code) {
    switch (code) {
      case 'a': {
        const Pointer item = pop();
        return append({item}, Kind::kList);
      }
      case 'e':
      case 0x90:
        return append(pop_marked(), Kind::kList);
      case 's': {
        const Pointer value = pop();
        const Pointer key = pop();
        return append({key, value}, Kind::kDict);
      }
      case 'u':
        return append(pop_marked(), Kind::kDict);
      case 'q':
        return remember(number(1));
      case 'r':
        return remember(number(4));
      case 'p':
        return remember(decimal(line()));
      case 0x94:
        return remember(memo_.size());
      case 'h':
        return recall(number(1));
      case 'j':
        return recall(number(4));
      case 'g':
        return recall(decimal(line()));
      case 'c': {
        std::string text(line());
        text += ' ';
        text += line();
        return push({.kind = Kind::kName, .text = std::move(text)});
      }
      case 0x93: {
        const Pointer name = pop();
        const Pointer module = pop();
        return push({.kind = Kind::kName, .text = module->text + " " + name->text});
      }
      case 'R':
      case 0x81: {
        const Pointer arguments = pop();
        return push_object(pop(), arguments);
      }
      case 0x92: {
        pop();  // the arguments with names
        const Pointer arguments = pop();
        return push_object(pop(), arguments);
      }
      case 'Q': {
        const Pointer id = pop();
        return push({.kind = Kind::kOutside, .items = {id}});
      }
      case '2':
        return stack_.push_back(top());
      case '1':
        pop_marked();
        return;
      case 'b': {
        const Pointer state = pop();
        PickleValue& target = *top();
        if (target.kind != Kind::kObject && target.kind != Kind::kDict) fail("wrong order");
        target.state = state;
        return;
      }
      case '0':
        pop();
        return;
      default:
        refuse(code);
    }
  }

  [[noreturn]] void refuse(unsigned char code) {
    if (std::string_view("FPSV").find(static_cast<char>(code)) != std::string_view::npos) {
      fail(
          "written with protocol 0, in which PyTorch cannot read tensors either; save it with "
          "pickle_protocol=2");
    }
    fail(fmt::format("a step 0x{:02x}, which plain data does not need", code));
  }

  void push_object(Pointer name, Pointer arguments) {
    if (name->kind != Kind::kName) fail("calls what has no name");
    if (name->text != "collections OrderedDict") {
      return push({.kind = Kind::kObject, .items = {name, arguments}});
    }
    PickleValue dict{.kind = Kind::kDict};
    if (!arguments->items.empty()) {
      for (const Pointer pair : arguments->items[0]->items) {
        if (pair->items.size() != 2) fail("expected pairs");
        dict.items.insert(dict.items.end(), pair->items.begin(), pair->items.end());
      }
    }
    push(std::move(dict));
  }

  double big_endian_float() {
    const std::string_view part = take(8);
    uint64_t bits = 0;
    for (const char byte : part) bits = bits << 8 | static_cast<unsigned char>(byte);
    return std::bit_cast<double>(bits);
  }

  /// Pushes an integer that is written as a text, with an L behind it or not; and `00` or `01`,
  /// which stand for False and True.
  void push_decimal(std::string_view text) {
    if (text == "01") return push_shared(true_, Kind::kBool, 1);
    if (text == "00") return push_shared(false_, Kind::kBool, 0);
    if (text.ends_with('L')) text.remove_suffix(1);
    int64_t value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || end != text.data() + text.size()) fail("expected a number");
    if (status == std::errc::result_out_of_range) {
      return push({.kind = Kind::kInt, .text = std::string(text)});
    }
    push_number(value);
  }

  /// Pushes an integer of `size` bytes, in two's complement.
  void push_long(uint64_t size) {
    if (size > 8) return push({.kind = Kind::kInt, .text = std::string(take(size))});
    uint64_t value = number(size);
    if (size > 0 && size < 8 && (value >> (8 * size - 1)) != 0) value |= ~uint64_t{0} << (8 * size);
    push_number(static_cast<int64_t>(value));
  }

  std::string_view bytes_;
  const std::string& name_;
  size_t at_ = 0;
  Pickle made_;
  std::vector<Pointer> stack_;
  std::vector<size_t> marks_;
  std::map<uint64_t, Pointer> memo_;
  Pointer none_ = nullptr;
  Pointer true_ = nullptr;
  Pointer false_ = nullptr;
  double memory_ = 0;  ///< Bytes that the values take.
  const double limit_ = unpack_limit();
};

}  // namespace

const PickleValue* PickleValue::find(std::string_view key) const {
  if (kind != Kind::kDict) return nullptr;
  for (size_t i = 0; i + 1 < items.size(); i += 2) {
    if (items[i]->kind == Kind::kText && items[i]->text == key) return items[i + 1];
  }
  return nullptr;
}

Pickle read_pickle(std::string_view bytes, const std::string& name) {
  return Unpickler(bytes, name).run();
}

}  // namespace stepop
