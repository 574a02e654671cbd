#include "runtime/tools/survey/survey_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "runtime/core/base/json_text.h"
#include "runtime/core/formats/wav_file.h"
#include "runtime/core/pictures/animated_png.h"
#include "runtime/core/pictures/canvas.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/core/pictures/image_grid.h"
#include "runtime/tools/report/page.h"
#include "runtime/tools/report/report_json.h"
#include "runtime/tools/survey/survey_text.h"

namespace stepop {
namespace {

/// The number of a video's frames on a page.
constexpr int64_t kMostFrames = 32;
constexpr double kFramesPerSecond = 8;
/// Larger pictures are stored as JPEGs.
constexpr int64_t kMostPngPixels = 128 * 128;
/// The number of bytes of a text on a card, and of indices on a page.
constexpr size_t kCardText = 600;
constexpr size_t kListedIndices = 1000;
/// The part of a sound on a page, and the bytes of all sounds of a dataset.
constexpr int64_t kMostSoundSamples = 200'000;
constexpr size_t kMostSoundBytes = 8'000'000;
constexpr int64_t kMostSoundRate = 1'000'000;

/// With other numbers of channels than an image file has, smaller tensors count as numbers.
constexpr int64_t kLeastSide = 4;

/// The frames of an image [C, H, W] or a video [T, C, H, W], each [1, C, H, W]; empty for any other
/// tensor.
std::vector<at::Tensor> frames_of(const at::Tensor& value, int64_t most) {
  if (value.dim() != 3 && value.dim() != 4) return {};
  const at::Tensor all = value.dim() == 4 ? value : value.unsqueeze(0);
  const int64_t channels = all.size(1);
  const bool is_usual = channels == 1 || channels == 3 || channels == 4;
  const int64_t side = std::min(all.size(2), all.size(3));
  if (!is_image_batch(all) || (!is_usual && side < kLeastSide)) return {};
  return all.slice(0, 0, most).to(at::kFloat).split(1);
}

/// Texts such as `class 3`, for every value except images.
std::vector<std::pair<std::string, std::string>> values_of(const Example& example, size_t most) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [key, tensor] : example.tensors) {
    if (frames_of(tensor, 1).empty()) values.emplace_back(key, short_value(tensor));
  }
  for (const auto& [key, text] : example.texts) values.emplace_back(key, short_text(text, most));
  return values;
}

std::string encoded(const std::vector<at::Tensor>& frames) {
  std::vector<at::Tensor> pictures;
  for (const auto& frame : frames) pictures.push_back(thumbnail(frame, 1));
  if (pictures.size() > 1) return encode_animated_png(pictures, kFramesPerSecond);
  const at::Tensor& picture = pictures.front();
  const bool is_large = picture.size(0) * picture.size(1) > kMostPngPixels;
  return encode_image(picture, {.is_jpeg = is_large});
}

/// The samples [C, T] of a sound: floats with an int64 `rate` beside them, as the dataset Sound has
/// them.
std::optional<WavFile> sound_of(const Example& example, const std::string& key,
                                const at::Tensor& value) {
  const std::string rate_key = key.substr(0, key.rfind('/') + 1) + "rate";
  const at::Tensor* rate = example.tensors.find(rate_key);
  const bool fits = rate != nullptr && rate->numel() == 1 && rate->scalar_type() == at::kLong &&
                    value.is_floating_point() && value.dim() == 2 && value.numel() > 0 &&
                    value.size(0) <= 2;
  if (!fits) return std::nullopt;
  const auto per_second = std::clamp<int64_t>(rate->item<int64_t>(), 1, kMostSoundRate);
  return encode_wav(value.slice(1, 0, kMostSoundSamples), per_second);
}

/// The first sounds take their bytes from `sound_bytes`; others are not on the page.
Json example_json(int64_t index, const Example& example, size_t& sound_bytes) {
  Json json;
  json["index"] = index;
  json["pictures"] = Json::array();
  for (const auto& [key, tensor] : example.tensors) {
    const auto frames = frames_of(tensor, kMostFrames);
    const auto sound = sound_of(example, key, tensor);
    if (sound && sound->bytes.size() <= sound_bytes) {
      json["pictures"].push_back({{"key", key}, {"data", base64(sound->bytes)}});
      sound_bytes -= sound->bytes.size();
    }
    if (frames.empty()) continue;
    json["pictures"].push_back({{"key", key}, {"data", base64(encoded(frames))}});
  }
  json["values"] = Json::array();
  for (const auto& [key, value] : values_of(example, kCardText)) {
    json["values"].push_back({{"key", key}, {"value", value}});
  }
  return json;
}

Json key_json(const std::string& key, const KeySummary& summary) {
  Json json;
  json["key"] = key;
  json["type"] = summary.type_text();
  json["shape"] = summary.shape_text();
  json["examples"] = summary.examples();
  json["min"] = number(summary.min());
  json["max"] = number(summary.max());
  json["mean"] = number(summary.mean());
  json["deviation"] = number(summary.deviation());
  json["nans"] = summary.nans();
  json["infinities"] = summary.infinities();
  json["counts"] = Json::array();
  std::vector<std::pair<std::string, int64_t>> counts;
  for (const auto& [value, times] : summary.counts()) counts.emplace_back(value, times);
  if (!summary.is_text()) {
    std::ranges::sort(counts, {}, [](const auto& each) { return std::stod(each.first); });
  }
  for (const auto& [value, times] : counts) {
    json["counts"].push_back({short_text(value, 60), times});
  }
  return json;
}

Json survey_json(const TitledSurvey& titled) {
  const Survey& survey = titled.survey;
  Json json;
  json["title"] = titled.title;
  json["size"] = survey.size;
  json["read"] = survey.read;
  json["seconds"] = number(survey.seconds);
  json["example_seconds"] = number(survey.example_seconds);
  json["keys"] = Json::array();
  for (const auto& [key, summary] : survey.keys) json["keys"].push_back(key_json(key, summary));
  json["bad_count"] = survey.bad_count;
  json["bad_indices"] = index_list(survey.bad_indices, kListedIndices);
  json["bad"] = Json::array();
  for (const auto& bad : survey.bad) {
    json["bad"].push_back({{"index", bad.index}, {"problem", bad.problem}});
  }
  json["with_nan"] = index_list(survey.with_nan, kListedIndices);
  json["shown"] = Json::array();
  size_t sound_bytes = kMostSoundBytes;
  for (const auto& [index, example] : survey.shown) {
    json["shown"].push_back(example_json(index, example, sound_bytes));
  }
  return json;
}

}  // namespace

std::string survey_sheet(const Survey& survey, size_t most) {
  std::vector<CaptionedImage> images;
  size_t in_a_row = 0;
  const size_t count = std::min(most, survey.shown.size());
  for (size_t i = 0; i < count; ++i) {
    const auto& [index, example] = survey.shown[i * survey.shown.size() / count];
    std::vector<std::string> lines = {fmt::format("#{}", index)};
    for (auto& [key, value] : values_of(example, 40)) {
      // Wide lines are cut, unless a comma parts them.
      constexpr size_t kRoom = kThumbnailSide / (2 * kGlyphWidth);
      const bool fits = key.size() + 1 + value.size() <= kRoom;
      if (!fits) lines.push_back(key);
      const size_t comma = value.size() > kRoom ? value.rfind(", ", kRoom - 1) : std::string::npos;
      if (comma != std::string::npos) {
        lines.push_back(value.substr(0, comma + 1));
        value.erase(0, comma + 2);
      }
      lines.push_back(fits ? key + " " + value : value);
    }
    size_t pictures = 0;
    for (const auto& [key, tensor] : example.tensors) {
      const auto frames = frames_of(tensor, 1);
      if (frames.empty()) continue;
      if (pictures++ > 0) lines = {key};
      images.push_back({thumbnail(frames.front()), lines});
    }
    in_a_row = std::max(in_a_row, pictures);
  }
  if (images.empty()) return "";
  // The images of an example stay side by side.
  const size_t columns = in_a_row == 1 ? 0 : in_a_row * std::max<size_t>(1, 12 / in_a_row);
  const at::Tensor picture = captioned_picture(images, static_cast<int64_t>(columns));
  return encode_png(picture);
}

std::string survey_page(std::span<const TitledSurvey> surveys, const std::string& title) {
  Json json;
  json["title"] = title;
  json["datasets"] = Json::array();
  for (const auto& each : surveys) json["datasets"].push_back(survey_json(each));
  const std::string data = write_json(json);
  return html_page({"elements.js", "survey.js"}, data, title);
}

}  // namespace stepop
