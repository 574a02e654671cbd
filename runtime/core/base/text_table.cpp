#include "runtime/core/base/text_table.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/base/shown_text.h"
#include "runtime/core/base/text.h"

namespace stepop {
namespace {

constexpr size_t kGap = 2;

}  // namespace

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

void TextTable::add(std::vector<std::string> cells) {
  if (cells.size() != columns_.size()) throw std::logic_error("a row has a cell for each column");
  for (auto& cell : cells) cell = shown_in_line(cell);
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

std::vector<TextTable> TextTable::parts(size_t most, size_t repeated) const {
  if (width() <= most || columns_.size() <= repeated) return {*this};
  const std::vector<size_t> column_widths = widths();
  size_t first_width = 0;
  for (size_t i = 0; i < repeated; ++i) first_width += column_widths[i] + kGap;
  std::vector<std::vector<size_t>> chosen;
  size_t room = 0;
  for (size_t i = repeated; i < columns_.size(); ++i) {
    if (chosen.empty() || room < column_widths[i] + kGap) {
      chosen.emplace_back();
      for (size_t k = 0; k < repeated; ++k) chosen.back().push_back(k);
      room = most + kGap > first_width ? most + kGap - first_width : 0;
    }
    chosen.back().push_back(i);
    room -= std::min(room, column_widths[i] + kGap);
  }
  std::vector<TextTable> tables;
  for (const auto& places : chosen) {
    std::vector<Column> columns;
    for (const size_t i : places) columns.push_back(columns_[i]);
    TextTable& table = tables.emplace_back(std::move(columns));
    for (const auto& row : rows_) {
      std::vector<std::string> cells;
      for (const size_t i : places) cells.push_back(row[i]);
      table.rows_.push_back(std::move(cells));
    }
  }
  return tables;
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

}  // namespace stepop
