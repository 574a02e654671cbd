#include "runtime/data/datasets/meta_labels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/formats/npy_file.h"
#include "runtime/core/value/yaml_reader.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kBetween = "-*-";

std::vector<int64_t> shape_of(std::string_view text, const std::string& path) {
  std::vector<int64_t> shape;
  while (true) {
    const std::string_view part = text.substr(0, std::min(text.find('x'), text.size()));
    int64_t length = -1;
    const auto [end, status] = std::from_chars(part.data(), part.data() + part.size(), length);
    if (status != std::errc() || end != part.data() + part.size() || length < 0) {
      throw Error(
          fmt::format("{}: expected the name KEY-*-SHAPE-*-DTYPE.npy, with a shape such as "
                      "100x18x2, found \"{}\"",
                      path, text));
    }
    shape.push_back(length);
    if (part.size() == text.size()) return shape;
    text.remove_prefix(part.size() + 1);
  }
}

/// The array in a file whose name gives its shape and type.
StoredArray open_label(const std::string& path, const std::vector<int64_t>& shape,
                       const std::string& dtype) {
  const auto source = map_source(path);
  ElementType type;
  try {
    type = parse_element_type(dtype);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
  StoredArray array(source, path, type, shape);
  const auto found = static_cast<int64_t>(source->bytes().size());
  if (array.bytes() == found) return array;
  if (is_npy(source->bytes())) return open_npy(path);  // saved by np.save, with a header
  throw Error(fmt::format("{}: has {} bytes; its name says {}, which are {}", path,
                          with_thousands(found), array.describe(), with_thousands(array.bytes())));
}

/// Adds one file, unless its name is not a label's name.
void add_label(const fs::path& file, const fs::path& folder, std::vector<MetaLabel>& labels) {
  std::string name = file.filename().string();
  if (!name.ends_with(".npy")) return;
  name.erase(name.size() - 4);
  const size_t first = name.find(kBetween);
  const size_t last = name.rfind(kBetween);
  if (first == std::string::npos || first == last) return;
  const std::string path = file.string();
  const auto shape = shape_of(
      std::string_view(name).substr(first + kBetween.size(), last - first - kBetween.size()), path);
  const std::string dtype = name.substr(last + kBetween.size());
  std::string key = name.substr(0, first);
  std::string loader;
  if (const size_t colon = key.find(':'); colon != std::string::npos) {
    loader = key.substr(colon + 1);
    key.erase(colon);
  }
  const std::string below = file.parent_path().lexically_relative(folder).string();
  if (below != ".") key = below + "/" + key;
  labels.push_back({std::move(key), std::move(loader), open_label(path, shape, dtype)});
}

}  // namespace

MetaFolder read_meta_folder(const std::string& path) {
  MetaFolder folder{.path = path, .meta = read_yaml_file(path + "/meta.yaml"), .labels = {}};
  const fs::path labels = fs::path(path) / "labels";
  std::error_code failure;
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator it(labels, failure), end; !failure && it != end;
       it.increment(failure)) {
    if (it->is_regular_file()) files.push_back(it->path());
  }
  if (failure) {
    throw Error(fmt::format("{}: cannot be listed: {}", labels.string(), failure.message()));
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) add_label(file, labels, folder.labels);
  if (folder.labels.empty()) {
    throw Error(labels.string() + ": holds no label, a file KEY-*-SHAPE-*-DTYPE.npy");
  }
  std::ranges::sort(folder.labels, {}, &MetaLabel::key);
  const MetaLabel& first = folder.labels.front();
  for (size_t i = 1; i < folder.labels.size(); ++i) {
    const MetaLabel& label = folder.labels[i];
    if (label.key == folder.labels[i - 1].key) {
      throw Error(fmt::format("{} and {} are both the label \"{}\"",
                              folder.labels[i - 1].array.name(), label.array.name(), label.key));
    }
    if (label.array.rows() == first.array.rows()) continue;
    throw Error(fmt::format("{}: the label \"{}\" has {}, \"{}\" has {}", path, first.key,
                            counted(first.array.rows(), "row"), label.key, label.array.rows()));
  }
  if (first.array.rows() == 0) throw Error(path + ": its labels have 0 rows");
  return folder;
}

std::string meta_label_file(const std::string& key, const std::vector<int64_t>& shape,
                            const std::string& dtype) {
  return fmt::format("{}-*-{}-*-{}.npy", key, fmt::join(shape, "x"), dtype);
}

}  // namespace stepop
