#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/formats/csv_file.h"
#include "runtime/core/system/read_file.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/image_reader.h"
#include "runtime/data/notice.h"
#include "runtime/data/text/tokenizer.h"

namespace stepop {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLongestCaption = 1 << 24;  // in tokens
constexpr int64_t kMostCaptionBytes = 16'000'000;

/// The text without white space at its ends.
std::string trimmed(std::string text) {
  const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && is_space(text.back())) text.pop_back();
  text.erase(text.begin(), std::find_if_not(text.begin(), text.end(), is_space));
  return text;
}

/// Images with captions.
///
/// Parameters: `path`, a folder with PNG and JPEG images at any depth, each with its caption in a
/// file of the same name, `a.txt` beside `a.jpg`. With `table`, the captions come from a CSV file
/// instead: its columns `image_column` and `caption_column` hold paths below `path` and captions.
/// `tokenizer` and `length` are as in the dataset Text, `size` and `channels` as in ImageReader.
///
/// An example holds `image`, float [C, H, W] in [-1, 1], the texts `text` and `path`, and with a
/// tokenizer `tokens`, int64 [T]; `labels("length")` gives T for all examples. When `lines` is
/// true, each line of a caption file is a caption: one is drawn each time, and the label "length"
/// is undefined. Missing captions are an error, or their images are left out, or the captions are
/// empty texts.
class ImageText : public Dataset {
 public:
  explicit ImageText(const Config& params)
      : folder_(get_folder(params, "path")),
        reader_(params),
        has_lines_(params.get("lines", false)),
        length_(params.get_between("length", 1, kLongestCaption, kLongestCaption)) {
    if (params.has("tokenizer")) tokenizer_ = read_tokenizer(params);
    params.has("table") ? read_table(params) : list_folder(params);
  }

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }

  Example get(int64_t index, Random& random) const override {
    check_index(index, size());
    const auto place = static_cast<size_t>(index);
    std::string caption = caption_of(place);
    if (has_lines_) caption = one_line(caption, random);
    Example example{.tensors = {{"image", reader_.read(folder_ + "/" + images_[place])}},
                    .texts = {{"text", caption}, {"path", images_[place]}}};
    if (tokenizer_) {
      const std::vector<int32_t> ids = ids_of(caption, place);
      at::Tensor tokens = at::empty({static_cast<int64_t>(ids.size())}, at::kLong);
      std::copy(ids.begin(), ids.end(), tokens.mutable_data_ptr<int64_t>());
      example.tensors.set("tokens", std::move(tokens));
    }
    return example;
  }

  /// Defined for "length". The first call reads all captions.
  at::Tensor labels(std::string_view key) const override {
    if (key != "length" || !tokenizer_ || has_lines_) return {};
    std::call_once(is_counted_, [&] {
      lengths_ = at::empty({size()}, at::kLong);
      auto* length = lengths_.mutable_data_ptr<int64_t>();
      for (size_t i = 0; i < images_.size(); ++i) {
        *length++ = static_cast<int64_t>(ids_of(caption_of(i), i).size());
      }
    });
    return lengths_;
  }

  std::vector<std::string> label_keys() const override {
    if (!tokenizer_ || has_lines_) return {};
    return {"length"};
  }

  std::string notice() const override {
    std::string text;
    if (left_out_ > 0) {
      text = fmt::format("{}: {} without a caption left out", folder_, counted(left_out_, "image"));
    }
    return joined_notices({text, left_out_notice_, reader_.notice(folder_, images_)});
  }

  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override {
    check_lengths(examples);
    return ImageReader::collate(examples, std::move(indices));
  }

 private:
  static void check_lengths(const std::vector<Example>& examples) {
    for (const Example& example : examples) {
      const at::Tensor* first = examples.front().tensors.find("tokens");
      const at::Tensor* tokens = example.tensors.find("tokens");
      if (tokens == nullptr || first == nullptr || tokens->sizes() == first->sizes()) continue;
      throw Error(
          fmt::format("captions of {} and {} tokens in one batch: {{class: Padded, pad: "
                      "{{tokens: 0}}, dataset: {{class: ImageText, ...}}}} makes them "
                      "equally long",
                      first->numel(), tokens->numel()));
    }
  }

  static std::string caption_file(const std::string& image) {
    return fs::path(image).replace_extension(".txt").string();
  }

  /// Whether a file is the caption of an image beside it.
  bool is_caption(const std::string& file) const {
    if (!file.ends_with(".txt")) return false;
    const std::string name = file.substr(0, file.size() - 3);  // with its dot
    for (auto image = std::ranges::lower_bound(images_, name);
         image != images_.end() && image->starts_with(name); ++image) {
      if (image->find_first_of("./", name.size()) == std::string::npos) return true;
    }
    return false;
  }

  void list_folder(const Config& params) {
    const auto missing = params.get("missing", "error");
    if (missing != "error" && missing != "drop" && missing != "empty") {
      throw params.error("missing",
                         fmt::format("expected error, drop or empty, found \"{}\"", missing));
    }
    std::vector<std::string> without;
    LeftOut left_out;
    images_ = list_images(folder_, left_out);
    left_out.forget([&](const std::string& file) { return is_caption(file); });
    left_out_notice_ = left_out.notice(folder_, std::ssize(images_));
    const auto found = images_.size();
    for (auto& image : images_) {
      std::error_code ignored;
      if (fs::exists(fs::path(folder_) / caption_file(image), ignored)) continue;
      without.push_back(image);
      if (missing == "drop") image.clear();
    }
    if (!without.empty() && missing == "error") {
      throw Error(fmt::format(
          "{}: {} of {} images have no caption, such as {}, which needs {}; \"missing: drop\" "
          "leaves them out, \"missing: empty\" gives them empty ones",
          folder_, with_thousands(static_cast<int64_t>(without.size())),
          with_thousands(static_cast<int64_t>(found)), without[0], caption_file(without[0])));
    }
    allows_missing_ = missing == "empty";
    left_out_ = static_cast<int64_t>(std::erase(images_, ""));
    if (images_.empty()) {
      throw Error(
          fmt::format("{}: holds no images with captions; they are looked for as NAME.png, "
                      ".jpg or .jpeg with NAME.txt",
                      folder_));
    }
  }

  void read_table(const Config& params) {
    if (has_lines_) throw params.error("lines", "a caption in a table is one caption");
    const bool has_separator = params.has("separator");
    const char separator = params.get("separator", ",")[0];
    CsvTable table = read_csv(get_file(params, "table"),
                              has_separator ? std::optional(separator) : std::nullopt);
    const auto column = [&](const char* key, const char* fallback) {
      const auto name = params.get(key, fallback);
      const auto found = table.places.find(name);
      if (found == table.places.end()) {
        throw params.error(key, fmt::format("{} has no column \"{}\"; there are: {}", table.path,
                                            name, list_text(table.header)));
      }
      return std::move(table.columns[found->second]);
    };
    images_ = column("image_column", "image");
    captions_ = column("caption_column", "caption");
    if (images_.empty()) throw Error(table.path + ": holds no rows below its header");
  }

  std::string caption_of(size_t place) const {
    if (!captions_.empty()) return captions_[place];
    const std::string path = folder_ + "/" + caption_file(images_[place]);
    if (!allows_missing_) return trimmed(read_file(path, kMostCaptionBytes));
    return trimmed(try_read_file(path, kMostCaptionBytes).value_or(""));
  }

  static std::string one_line(const std::string& text, Random& random) {
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      if (auto line = trimmed(text.substr(at, end - at)); !line.empty()) lines.push_back(line);
      at = end + 1;
    }
    if (lines.empty()) return "";
    return lines[static_cast<size_t>(random.below(static_cast<int64_t>(lines.size())))];
  }

  std::vector<int32_t> ids_of(const std::string& caption, size_t place) const {
    std::vector<int32_t> ids;
    try {
      tokenizer_->encode_whole(caption, ids);
    } catch (const Error& error) {
      throw Error(fmt::format("the caption of {}: {}", images_[place], error.what()));
    }
    if (static_cast<int64_t>(ids.size()) > length_) ids.resize(static_cast<size_t>(length_));
    return ids;
  }

  std::string folder_;
  ImageReader reader_;
  bool has_lines_;
  int64_t length_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::string> images_;    ///< Relative to `folder_`.
  std::vector<std::string> captions_;  ///< The captions of a table; empty when the captions are in
                                       ///< files.
  bool allows_missing_ = false;
  int64_t left_out_ = 0;
  std::string left_out_notice_;  ///< About files that are neither images nor captions.
  mutable std::once_flag is_counted_;
  mutable at::Tensor lengths_;
};

STEPOP_REGISTER_DATASET(
    ImageText,
    {"PNG and JPEG images with a caption each, in a file beside it or in a table.",
     {{"path", "", "folder of the images, and of the captions: a.txt beside a.jpg", true},
      {"table", "null", "CSV file with the captions; null: they are in files", true},
      {"image_column", "image", "column of the table with paths below `path`"},
      {"caption_column", "caption", "column of the table with captions"},
      {"separator", "\",\"", "one character, of the table"},
      {"missing", "error", "images without a caption: error, drop or empty"},
      {"lines", "false", "each line of a file is a caption, of which one is drawn each time"},
      {"tokenizer", "null", "bytes, {class: bpe, path: tokenizer.json} ...; null: texts alone"},
      {"length", "null", "most tokens of a caption; the others are cut off"},
      {"size", "null", "[H, W] to resize to; null: as stored"},
      {"channels", "null", "1 (grey), 3 (colour) or 4 (with alpha); null: as stored"},
      exif_parameter()}});

}  // namespace
}  // namespace stepop
