#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/formats/csv_file.h"

namespace stepop {

enum class CsvType { kInt, kFloat, kText, kClass, kImage, kSkip };

/// One column of a table as its config asks for.
struct CsvColumn {
  std::string name;  ///< In the file's header.
  std::string key;   ///< In an example.
  CsvType type;
  at::Tensor numbers;              ///< [rows]: int64 of ints and classes, float of floats.
  std::vector<std::string> texts;  ///< Texts, or the absolute paths of images.
};

/// Reads the columns of `table` that the map `columns` of `params` does not skip; see Csv.
std::vector<CsvColumn> read_csv_columns(const CsvTable& table, const Config& params);

}  // namespace stepop
