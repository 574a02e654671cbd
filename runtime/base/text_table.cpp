#include "runtime/base/text_table.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/error.h"

namespace stepop {
namespace {

constexpr size_t kGap = 2;
constexpr std::string_view kCut = "...";

bool is_inside_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

/// The part of `text` from character `begin` on, `count` characters.
std::string characters(std::string_view text, size_t begin, size_t count) {
  std::string part;
  size_t at = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i > 0 && !is_inside_character(text[i])) ++at;
    if (at >= begin && at < begin + count) part += text[i];
  }
  return part;
}

std::string cut(const std::string& name, size_t most) {
  const size_t width = text_width(name);
  if (width <= most || most < kCut.size() + 2) return name;
  const size_t tail = (most - kCut.size() + 1) / 2;
  const size_t head = most - kCut.size() - tail;
  return characters(name, 0, head) + std::string(kCut) + characters(name, width - tail, tail);
}

}  // namespace

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

void TextTable::add(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) throw std::logic_error("a row has a cell for each column");
  for (auto& cell : cells) cell = printable(std::move(cell));
  rows_.push_back(std::move(cells));
}

std::vector<size_t> TextTable::widths() const {
  std::vector<size_t> widths;
  for (const auto& column : columns_) widths.push_back(text_width(column.title));
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], text_width(row[i]));
  }
  return widths;
}

size_t TextTable::width() const {
  size_t sum = columns_.empty() ? 0 : kGap * (columns_.size() - 1);
  for (const size_t width : widths()) sum += width;
  return sum;
}

std::string TextTable::text() const {
  const std::vector<size_t> column_widths = widths();
  std::string text;
  const auto add_line = [&](const auto& cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      const std::string space(column_widths[i] - text_width(cell), ' ');
      line += (i > 0 ? std::string(kGap, ' ') : "");
      line += columns_[i].is_right ? space + cell : cell + space;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  const bool has_titles = std::any_of(columns_.begin(), columns_.end(),
                                      [](const Column& column) { return !column.title.empty(); });
  if (has_titles) {
    add_line([&](size_t i) -> const std::string& { return columns_[i].title; });
  }
  for (const auto& row : rows_) {
    add_line([&](size_t i) -> const std::string& { return row[i]; });
  }
  return text;
}

std::string letter_of(size_t i) {
  return i < 26 ? std::string(1, static_cast<char>('a' + i)) : std::to_string(i + 1);
}

size_t text_width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_inside_character(c); }));
}

std::vector<std::string> shortened(const std::vector<std::string>& names, size_t most) {
  std::map<std::string, std::set<std::string>> by_short_name;
  for (const auto& name : names) by_short_name[cut(name, most)].insert(name);
  std::vector<std::string> result;
  for (const auto& name : names) {
    const std::string short_name = cut(name, most);
    result.push_back(by_short_name[short_name].size() > 1 ? name : short_name);
  }
  return result;
}

}  // namespace stepop
