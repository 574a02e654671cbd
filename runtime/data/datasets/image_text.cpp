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
/// PNG and JPEG images are taken at any depth, each with its caption in a file of the same name,
/// `a.txt` beside `a.jpg`, or in a table.
///
/// An example holds `image`, float [C, H, W] in [-1, 1], the texts `text` and `path`, and with a
/// tokenizer `tokens`, int64 [T]; `labels("length")` gives T for all examples. When `lines` is
/// true, each line of a caption file is a caption: one is drawn each time, and the label "length"
/// is undefined. Missing captions are an error, or their images are left out, or the captions are
/// empty texts.
class ImageText : public Dataset {
 public:
  struct Params {
    InputFolder path;
    std::optional<InputFile> table;
    std::string image_column = "image";
    std::string caption_column = "caption";
    std::optional<char> separator;
    std::string missing = "error";
    bool lines = false;
    std::unique_ptr<Tokenizer> tokenizer;
    std::optional<int64_t> length;
    ImageOptions images;

    void declare(Parameters& p);
    /// Of a table, or of files; both are described.
    void declare_table(Parameters& p);
  };

  ImageText(Params params, const Config& config)
      : folder_(params.path.text),
        reader_(params.images),
        has_lines_(params.lines),
        length_(params.length.value_or(kLongestCaption)),
        tokenizer_(std::move(params.tokenizer)) {
    params.table ? read_table(params, config) : list_folder(params.missing);
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

  void list_folder(const std::string& missing) {
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

  void read_table(const Params& params, const Config& config) {
    if (has_lines_) throw config.error("lines", "a caption in a table is one caption");
    CsvTable table = read_csv(params.table->text, params.separator);
    const auto column = [&](const char* key, const std::string& name) {
      const auto found = table.places.find(name);
      if (found == table.places.end()) {
        throw config.error(key, fmt::format("{} has no column \"{}\"; there are: {}", table.path,
                                            name, list_text(table.header)));
      }
      return std::move(table.columns[found->second]);
    };
    images_ = column("image_column", params.image_column);
    captions_ = column("caption_column", params.caption_column);
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

void ImageText::Params::declare(Parameters& p) {
  p.require("path", path, "folder of the images, and of the captions: a.txt beside a.jpg");
  p.add("table", table, "CSV file with the captions; null: they are in files");
  const bool is_described = path.text.empty();
  if (table || is_described) declare_table(p);
  if (!table) {
    p.add("missing", missing, "images without a caption: error, drop or empty",
          one_of({"error", "drop", "empty"}));
  }
  p.add("lines", lines, "each line of a file is a caption, of which one is drawn each time");
  p.add("tokenizer", tokenizer, "bytes, {class: bpe, path: tokenizer.json} ...; null: texts alone");
  p.add("length", length, "most tokens of a caption; the others are cut off",
        at_least(1).at_most(kLongestCaption));
  images.declare(p);
}

void ImageText::Params::declare_table(Parameters& p) {
  p.add("image_column", image_column, "column of the table with paths below `path`");
  p.add("caption_column", caption_column, "column of the table with captions");
  std::optional<std::string> given;
  p.add("separator", given, "one character, of the table; null: a comma");
  if (given) separator = (*given)[0];
}

STEPOP_REGISTER_DATASET(
    ImageText, {"PNG and JPEG images with a caption each, in a file beside it or in a table."});

}  // namespace
}  // namespace stepop
