#include "iterators/vunet/data/pose_pairs.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "iterators/vunet/data/pose_pairs_of_dataset.h"
#include "runtime/core/formats/csv_file.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/resize.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/tables/csv_columns.h"

namespace stepop::vunet {
namespace {

/// The types of the columns that PosePairs needs, in the form of Csv's parameters.
Value::Map columns_of(const CsvTable& table, size_t joints) {
  Value::Map types;
  for (const auto& name : table.header) types.set(name, "skip");
  std::vector<std::string> missing;
  const auto take = [&](const std::string& name, const char* type) {
    if (!types.contains(name)) missing.push_back(name);
    types.set(name, type);
  };
  take("image", "image");
  for (size_t joint = 0; joint < joints; ++joint) {
    take(fmt::format("x{}", joint), "float");
    take(fmt::format("y{}", joint), "float");
  }
  take("person", "class");
  if (missing.empty()) return types;
  throw Error(
      fmt::format("{}: no column {}; expected image, x0, y0, ..., x{}, y{} and person, "
                  "found the {} columns {}",
                  table.path, fmt::join(missing, ", "), joints - 1, joints - 1, table.header.size(),
                  fmt::join(table.header, ", ")));
}

}  // namespace

PosePairs::PosePairs(const PosePairsParams& params)
    : path_(params.path.text),
      image_size_(params.size),
      style_(params.style),
      model_(params.model) {
  const CsvTable table = read_csv(path_);
  if (table.lines.empty()) throw Error(path_ + ": holds no rows below its header");
  const Config types(Value(Value::Map{{"columns", columns_of(table, model_.joints)}}));
  rows_.resize(table.lines.size());
  for (size_t row = 0; row < rows_.size(); ++row) {
    rows_[row].line = table.lines[row];
    rows_[row].joints.resize(model_.joints);
  }
  for (const CsvColumn& column : read_csv_columns(table, types)) take_column(column);
  std::vector<int64_t> people;
  for (const Row& row : rows_) people.push_back(row.person);
  partners_ = Partners(people, params.is_random());
}

void PosePairs::take_column(const CsvColumn& column) {
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (column.type == CsvType::kImage) {
      row.image = column.texts[i];
    } else if (column.type == CsvType::kClass) {
      row.person = column.numbers.const_data_ptr<int64_t>()[i];
    } else {
      const float pixels = column.numbers.const_data_ptr<float>()[i];
      if (!std::isfinite(pixels)) {
        throw Error(
            fmt::format("{}:{}: column \"{}\": expected a finite number, found {}; an "
                        "absent joint has x = 0 and y = 0",
                        path_, row.line, column.name, pixels));
      }
      Joint& joint = row.joints[std::stoul(column.name.substr(1))];
      (column.name[0] == 'x' ? joint.x : joint.y) = static_cast<double>(pixels);
    }
  }
}

at::Tensor PosePairs::read_image_of(const Row& row) const {
  try {
    return read_image(row.image, 3);
  } catch (const Error& error) {
    throw Error(fmt::format("{}:{}: column \"image\": {}", path_, row.line, error.what()));
  }
}

at::Tensor PosePairs::stickman_of(const Row& row, int64_t height, int64_t width) const {
  const double down = static_cast<double>(image_size_) / static_cast<double>(height);
  const double right = static_cast<double>(image_size_) / static_cast<double>(width);
  std::vector<Joint> joints = row.joints;
  for (Joint& joint : joints) joint = {joint.x * right, joint.y * down};
  try {
    return draw_stickman(joints, image_size_, style_, model_);
  } catch (const Error& error) {
    throw Error(
        fmt::format("{}:{}: resized to {} pixels, {}", path_, row.line, image_size_, error.what()));
  }
}

Example PosePairs::get(int64_t index, Random& random) const {
  check_index(index, size());
  const size_t partner = partners_.partner_of(static_cast<size_t>(index), random);
  const Row& target = rows_[static_cast<size_t>(index)];
  const Row& appearance = rows_[partner];
  const at::Tensor image = read_image_of(target);
  const std::array<int64_t, 2> sides = {image_size_, image_size_};
  const at::Tensor resized = resize_image(image, sides);
  return {.tensors = {{"stickman", stickman_of(target, image.size(1), image.size(2))},
                      {"appearance", &appearance == &target
                                         ? resized.clone()
                                         : resize_image(read_image_of(appearance), sides)},
                      {"target", resized},
                      {"person", at::scalar_tensor(target.person, at::kLong)}},
          .texts = {{"target_path", target.image}, {"appearance_path", appearance.image}}};
}

at::Tensor PosePairs::labels(std::string_view key) const {
  if (key != "person") return {};
  at::Tensor people = at::empty({size()}, at::kLong);
  auto* person = people.mutable_data_ptr<int64_t>();
  for (const Row& row : rows_) *person++ = row.person;
  return people;
}

STEPOP_REGISTER(
    datasets(), "PosePairs",
    [](const Config& config) -> std::unique_ptr<Dataset> {
      auto params = read_parameters<PosePairsParams>(config);
      if (params.dataset) return pose_pairs_of_dataset(std::move(params), config);
      return std::make_unique<PosePairs>(params);
    },
    {"Two images of one person in two poses, from a CSV table of images, keypoints and people, or "
     "from another dataset.",
     parameters_of<PosePairsParams>()});

}  // namespace stepop::vunet
