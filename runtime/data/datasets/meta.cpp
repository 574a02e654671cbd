#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/core/base/nearest.h"
#include "runtime/core/base/text.h"
#include "runtime/core/formats/npy_file.h"
#include "runtime/core/pictures/exif.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/data/class_numbers.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/image_reader.h"
#include "runtime/data/datasets/meta_labels.h"
#include "runtime/data/keeps_float64.h"
#include "runtime/data/notice.h"

namespace stepop {
namespace {

/// Larger labels are not read at once.
constexpr int64_t kMostMetaLabelBytes = 64'000'000;
constexpr int64_t kMostMetaSide = 1 << 14;

/// How a row is loaded, with edflow's names and parameters.
struct MetaLoader {
  enum class Kind { kNone, kImage, kArray, kCategory };

  Kind kind = Kind::kNone;
  std::string root = {};
  std::string support = {};        ///< Empty means "-1->1".
  std::vector<int64_t> size = {};  ///< [H, W], or empty.
  Value categories = {};           ///< A list or a map.
};

/// One key of the examples.
struct MetaField {
  MetaLabel label;
  MetaLoader loader;
  std::optional<ClassRenumbering> classes = {};  ///< Of numbers whose categories are a list.
};

/// An error whose message begins with the value's place in meta.yaml.
Error meta_error(const MetaFolder& folder, const std::string& place, const std::string& what) {
  return Error(fmt::format("{}/meta.yaml: {}: {}", folder.path, place, what));
}

std::string text_at(const Value& map, const char* key, const MetaFolder& folder,
                    const std::string& place) {
  const Value* value = map.is_map() ? map.as_map().find(key) : nullptr;
  if (value == nullptr || value->is_null()) return {};
  if (value->is_text()) return value->as_text();
  throw meta_error(folder, join_path(place, key), "expected a text, found " + value->describe());
}

/// `resize_to`: a side, or [width, height] in Pillow's order.
std::vector<int64_t> size_at(const Value& kwargs, const MetaFolder& folder,
                             const std::string& place) {
  const Value* value = kwargs.is_map() ? kwargs.as_map().find("resize_to") : nullptr;
  if (value == nullptr || value->is_null()) return {};
  const Value::List sides = value->is_list() ? value->as_list() : Value::List{*value, *value};
  std::vector<int64_t> size;
  for (const auto& side : sides) {
    if (side.is_int() && side.as_int() >= 1 && side.as_int() <= kMostMetaSide) {
      size.insert(size.begin(), side.as_int());
    }
  }
  if (size.size() == 2 && sides.size() == 2) return size;
  throw meta_error(folder, join_path(place, "resize_to"),
                   fmt::format("expected a side or [width, height], each 1 to {}, found {}",
                               kMostMetaSide, value->describe()));
}

/// `root`: in place of that of the folder.
MetaLoader loader_of(const MetaFolder& folder, const MetaLabel& label,
                     const std::optional<Path>& root) {
  const Value* named = folder.meta.find(join_path("loaders", label.key));
  const std::string name = named != nullptr && named->is_text() ? named->as_text() : label.loader;
  MetaLoader loader;
  if (name.empty()) return loader;
  const std::string place = join_path("loader_kwargs", label.key);
  const Value* found = folder.meta.find(place);
  const Value kwargs = found != nullptr ? *found : Value(Value::Map{});
  loader.root = root ? root->text : text_at(kwargs, "root", folder, place);
  // The absolute root may be missing in a folder that was copied from another machine.
  std::error_code ignored;
  if (std::filesystem::path(loader.root).is_absolute() &&
      !std::filesystem::is_directory(loader.root, ignored)) {
    loader.root.clear();
  }
  if (name == "image") {
    loader.kind = MetaLoader::Kind::kImage;
    loader.support = text_at(kwargs, "support", folder, place);
    loader.size = size_at(kwargs, folder, place);
    for (const char* one : {"", "-1->1", "0->1", "0->255"}) {
      if (loader.support == one) return loader;
    }
    throw meta_error(folder, join_path(place, "support"),
                     fmt::format("expected -1->1, 0->1 or 0->255, found \"{}\"", loader.support));
  }
  if (name == "np") {
    loader.kind = MetaLoader::Kind::kArray;
    return loader;
  }
  if (name == "category" || name == "cat") {
    const Value* categories = kwargs.is_map() ? kwargs.as_map().find("categories") : nullptr;
    if (categories == nullptr || (!categories->is_list() && !categories->is_map())) {
      throw meta_error(folder, join_path(place, "categories"), "expected a list or a map");
    }
    loader.kind = MetaLoader::Kind::kCategory;
    loader.categories = *categories;
    return loader;
  }
  throw Error(
      fmt::format("{}: the loader of \"{}\" is {}, which is Python's own; here are image, np "
                  "and category. Leave the label out with keys: [...], or write a dataset "
                  "that reads it",
                  folder.path, label.key, name));
}

/// A folder with a meta.yaml in edflow's form: arrays with a row for each example, mapped into
/// memory, and loaders that turn some of them into images, arrays or names.
///
/// An example holds each label under its key, numbers as tensors and texts as texts. A label with a
/// loader holds the loaded value, and its row under `<key>_`. The loader `image` gives a picture,
/// [C, H, W], float in [-1, 1] unless `support` says otherwise: "0->1" gives floats in [0, 1],
/// "0->255" bytes. The loader `np` gives the array in a file, and `category` the text or number
/// among `categories`. Relative paths begin at the folder.
class Meta : public Dataset, public KeepsFloat64 {
 public:
  struct Params {
    InputFolder path;
    std::vector<std::string> keys = {};
    std::optional<Path> root;
    bool has_unknown = false;
    bool float64 = false;
    ImageOptions images;

    void declare(Parameters& p) {
      p.require("path", path, "the folder");
      std::optional<std::vector<std::string>> given;
      p.add("keys", given, "which labels are read; null: all");
      if (given) keys = *given;
      p.add("root", root, "folder where paths in labels begin, instead of meta.yaml's");
      add_unknown_classes(
          p, has_unknown,
          "a category of a list that is none of the training is an error; id: it has the number "
          "behind the last one");
      p.add("float64", float64, "true: kept; else they are read as float32");
      images.declare_exif(p);
    }
  };

  Meta(const Params& params, const Config& config)
      : params_(config),
        folder_(params.path.text),
        keeps_float64_(params.float64),
        has_exif_(params.images.exif) {
    MetaFolder folder = read_meta_folder(folder_);
    size_ = folder.labels[0].array.rows();
    const std::vector<std::string>& keys = params.keys;
    std::vector<std::string> all;
    for (const auto& label : folder.labels) all.push_back(label.key);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (std::find(all.begin(), all.end(), keys[i]) != all.end()) continue;
      throw config.error(fmt::format("keys/{}", i),
                         fmt::format("{} has no label \"{}\"; it has: {}", folder_, keys[i],
                                     list_text(sorted_by_distance(keys[i], all))));
    }
    for (auto& label : folder.labels) {
      if (!keys.empty() && std::find(keys.begin(), keys.end(), label.key) == keys.end()) continue;
      const MetaLoader loader = loader_of(folder, label, params.root);
      if (is_readable(label, loader)) fields_.push_back({std::move(label), loader});
    }
    for (auto& field : fields_) number_classes(field, folder.meta, params.has_unknown);
    if (fields_.empty()) throw Error(folder_ + ": no label can be read");
  }

  int64_t size() const override { return size_; }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, size_);
    const std::span<const int64_t> rows(&index, 1);
    Example example;
    for (const MetaField& field : fields_) {
      const StoredArray& array = field.label.array;
      const bool is_loaded = field.loader.kind != MetaLoader::Kind::kNone;
      const std::string key = field.label.key + (is_loaded ? "_" : "");
      std::string text;
      if (array.type().is_text()) {
        text = array.gather_texts(rows)[0];
        example.texts.set(key, text);
      } else {
        at::Tensor row = finished(array.gather(rows), key).squeeze(0);
        example.tensors.set(key, field.classes ? field.classes->apply(row) : row);
      }
      if (is_loaded) load(field, index, text, example);
    }
    return example;
  }

  /// Defined for labels of numbers of up to 64 MB, [size(), ...].
  at::Tensor labels(std::string_view key) const override {
    for (const MetaField& field : fields_) {
      if (!is_label(field) || key_of(field) != key) continue;
      const at::Tensor all = finished(field.label.array.all(), key);
      return field.classes ? field.classes->apply(all) : all;
    }
    return {};
  }

  std::vector<std::string> label_keys() const override {
    std::vector<std::string> keys;
    for (const MetaField& field : fields_) {
      if (is_label(field)) keys.push_back(key_of(field));
    }
    return keys;
  }

  bool keep_float64(std::string_view key) override {
    kept_.emplace(key);
    return std::ranges::any_of(fields_, [&](const auto& field) { return key_of(field) == key; });
  }

  std::string notice() const override {
    std::vector<std::string> notices = {class_notice_};
    for (const auto& key : plain_keys_) notices.push_back(plain_numbers_notice(params_, key));
    if (!left_out_.empty()) {
      notices.push_back(fmt::format("{}: left out {}: only texts of one dimension, [N], are read",
                                    folder_, list_text(left_out_)));
    }
    for (const auto& field : fields_) {
      if (has_exif_ || field.loader.kind != MetaLoader::Kind::kImage) continue;
      notices.push_back(orientation_notice("", files_of(field)));
    }
    return joined_notices(notices);
  }

 private:
  static std::string key_of(const MetaField& field) {
    return field.label.key + (field.loader.kind != MetaLoader::Kind::kNone ? "_" : "");
  }

  static bool is_label(const MetaField& field) {
    return !field.label.array.type().is_text() && field.label.array.bytes() <= kMostMetaLabelBytes;
  }

  /// Throws Error if the loader cannot read a label of this type.
  bool is_readable(const MetaLabel& label, const MetaLoader& loader) {
    const bool is_text = label.array.type().is_text();
    const bool is_flat = label.array.shape().size() == 1;
    const bool takes_path =
        loader.kind == MetaLoader::Kind::kImage || loader.kind == MetaLoader::Kind::kArray;
    if (takes_path && (!is_text || !is_flat)) {
      throw Error(fmt::format("{}: expected the paths of files, text [N], found {}",
                              label.array.name(), label.array.describe()));
    }
    const char kind = label.array.type().kind;
    if (loader.kind == MetaLoader::Kind::kCategory &&
        (!is_flat || (!is_text && kind != 'i' && kind != 'u'))) {
      throw Error(fmt::format("{}: expected the numbers or names of categories, [N], found {}",
                              label.array.name(), label.array.describe()));
    }
    if (is_text && !is_flat) left_out_.push_back(label.key);
    return !is_text || is_flat;
  }

  /// The names of categories, a list or a map from 0, 1, 2 and so on; none when they are no texts,
  /// or others are numbered.
  static std::vector<std::string> names_by_number(const Value& categories) {
    if (!categories.is_list() && !categories.is_map()) return {};
    const bool is_list = categories.is_list();
    const size_t count = is_list ? categories.as_list().size() : categories.as_map().size();
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
      const Value* name =
          is_list ? &categories.as_list()[i] : categories.as_map().find(std::to_string(i));
      if (name == nullptr || !name->is_text()) return {};
      names.push_back(name->as_text());
    }
    return names;
  }

  /// The categories of one folder, or the classes that `stepop meta` has written, may be numbered
  /// in another way than those of the training.
  void number_classes(MetaField& field, const Value& meta, bool has_unknown) {
    const char kind = field.label.array.type().kind;
    if (!is_label(field) || (kind != 'i' && kind != 'u')) return;
    const Value* names_of = &field.loader.categories;
    if (const Value* written = meta.find(kMetaClassNames);
        written != nullptr && written->is_map()) {
      const Value* found = written->as_map().find(field.label.key);
      const bool has_loader = field.loader.kind != MetaLoader::Kind::kNone;
      if (found != nullptr && !has_loader) names_of = found;
    }
    std::vector<std::string> names = names_by_number(*names_of);
    if (names.empty()) {
      plain_keys_.push_back(key_of(field));
      return;
    }
    const std::string file = folder_ + "/meta.yaml: " + field.label.key;
    field.classes.emplace(params_, key_of(field), std::move(names), file, has_unknown);
    std::string notice;
    if (field.classes->are_others()) {
      notice = fmt::format(
          "{}: none of its categories is one of the training: they keep their own "
          "numbers",
          file);
      field.classes.reset();
    } else {
      notice = field.classes->notice(field.classes->apply(field.label.array.all()));
    }
    if (!notice.empty()) class_notice_ += (class_notice_.empty() ? "" : "; ") + notice;
  }

  at::Tensor finished(const at::Tensor& rows, std::string_view key) const {
    const bool is_rounded =
        rows.scalar_type() == at::kDouble && !keeps_float64_ && !kept_.contains(key);
    return is_rounded ? rows.to(at::kFloat) : rows;
  }

  void load(const MetaField& field, int64_t index, const std::string& text,
            Example& example) const {
    const std::string& key = field.label.key;
    const MetaLoader& loader = field.loader;
    if (loader.kind == MetaLoader::Kind::kCategory) {
      const auto place =
          text.empty() && !field.label.array.type().is_text()
              ? std::to_string(
                    field.label.array.gather(std::span(&index, 1)).to(at::kLong).item<int64_t>())
              : text;
      return set_category(field, place, example);
    }
    const std::string file = file_of(field, text);
    example.tensors.set(key, loader.kind == MetaLoader::Kind::kImage
                                 ? image_in(file, loader)
                                 : finished(open_npy(file).all(), key));
  }

  void set_category(const MetaField& field, const std::string& place, Example& example) const {
    const std::string& key = field.label.key;
    const Value& all = field.loader.categories;
    const Value* category = nullptr;
    if (all.is_map()) {
      category = all.as_map().find(place);
    } else if (const int64_t i = list_index(place);
               i >= 0 && i < static_cast<int64_t>(all.as_list().size())) {
      category = &all.as_list()[static_cast<size_t>(i)];
    }
    if (category == nullptr) {
      throw Error(
          fmt::format("{}/meta.yaml: {}/categories: there is no category {}", folder_, key, place));
    }
    if (category->is_int()) {
      example.tensors.set(key, at::scalar_tensor(category->as_int(), at::kLong));
    } else if (category->is_float()) {
      example.tensors.set(key, at::scalar_tensor(category->as_float(), at::kFloat));
    } else {
      example.texts.set(key, category->is_text() ? category->as_text() : category->describe());
    }
  }

  std::string file_of(const MetaField& field, const std::string& row) const {
    const std::filesystem::path path =
        std::filesystem::path(folder_) / std::filesystem::path(field.loader.root) / row;
    return path.lexically_normal().string();
  }

  /// The files of images, of at most 1,000 examples.
  std::vector<std::string> files_of(const MetaField& field) const {
    constexpr int64_t kMostRows = 1000;
    std::vector<int64_t> rows(static_cast<size_t>(std::min(size_, kMostRows)));
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = static_cast<int64_t>(i) * size_ / std::ssize(rows);
    }
    std::vector<std::string> files;
    for (const auto& row : field.label.array.gather_texts(rows)) {
      files.push_back(file_of(field, row));
    }
    return files;
  }

  at::Tensor image_in(const std::string& file, const MetaLoader& loader) const {
    at::Tensor image = read_stored_image(file);
    if (has_exif_) image = turned_upright(image, exif_orientation_of_file(file));
    if (!loader.size.empty() && image.sizes().slice(1) != at::IntArrayRef(loader.size)) {
      image = at::_upsample_bicubic2d_aa(image.unsqueeze(0), loader.size, /*align_corners=*/false)
                  .squeeze(0);
      if (image.scalar_type() != at::kByte) image.clamp_(-1, 1);
    }
    if (loader.support == "0->255") {
      return image.scalar_type() == at::kByte ? image.contiguous()
                                              : image.add(1).mul(127.5).round().to(at::kByte);
    }
    if (image.scalar_type() == at::kByte) image = from_stored_image(image);
    return loader.support == "0->1" ? image.add(1).div_(2) : image;
  }

  Config params_;
  std::string folder_;
  bool keeps_float64_;
  bool has_exif_;
  std::set<std::string, std::less<>> kept_;  ///< Keys whose float64 is kept.
  int64_t size_ = 0;
  std::vector<MetaField> fields_;
  std::vector<std::string> left_out_;
  std::string class_notice_;
  std::vector<std::string> plain_keys_;  ///< Keys of whole numbers without names.
};

STEPOP_REGISTER_DATASET(
    Meta, {"A folder with a meta.yaml and labels in files, as edflow's MetaDataset reads it."});

}  // namespace
}  // namespace stepop
