#include "runtime/core/log/log_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "runtime/core/base/error.h"
#include "runtime/core/formats/csv_file.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/animated_png.h"
#include "runtime/core/pictures/image_grid.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/folders.h"

namespace stepop {
namespace {

/// `folder` is the run's folder and must exist. If a user has moved the run away, making the folder
/// again would start a new run folder without the run's other files.
void write_log_file(const std::string& folder, const std::string& name, const std::string& bytes) {
  if (!std::filesystem::is_directory(folder)) {
    throw Error(fmt::format("{}: this folder of the run was removed or moved", folder));
  }
  const std::string path = folder + "/" + name;
  make_folders(std::filesystem::path(path).parent_path().string());
  write_file_atomically(path, bytes);
}

std::string histogram_csv(const Histogram& histogram) {
  std::string csv = "from,to,count\n";
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    csv += fmt::format("{},{},{}\n", histogram.edge(i), histogram.edge(i + 1), histogram.counts[i]);
  }
  return csv;
}

std::string curve_csv(const Curve& curve) {
  std::string csv = fmt::format("{},{}\n", csv_cell(curve.x_name), csv_cell(curve.y_name));
  const at::Tensor x = curve.x.detach().to(at::kCPU, at::kDouble).contiguous();
  const at::Tensor y = curve.y.detach().to(at::kCPU, at::kDouble).contiguous();
  for (int64_t i = 0; i < x.numel(); ++i) {
    csv += fmt::format("{},{}\n", x.const_data_ptr<double>()[i], y.const_data_ptr<double>()[i]);
  }
  return csv;
}

/// A copy that shares no memory with `tensor`.
at::Tensor host_copy(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true,
                            at::MemoryFormat::Contiguous);
}

}  // namespace

void check_video(const Video& video, const std::string& name) {
  const at::Tensor& frames = video.frames;
  const bool fits = frames.defined() && frames.is_floating_point() && frames.dim() == 5 &&
                    is_image_batch(frames.flatten(0, 1));
  if (!fits) {
    throw Error(fmt::format("{}: expected a batch of videos, floats [B, T, C, H, W], found {}",
                            name,
                            frames.defined() ? describe_tensor(frames) : "an undefined tensor"));
  }
  const double rate = video.frames_per_second;
  if (rate > 0 && rate <= kMostFramesPerSecond) return;
  throw Error(fmt::format("{}: expected more than 0 and at most {} frames a second, found {}", name,
                          kMostFramesPerSecond, rate));
}

void check_audio(const Audio& audio, const std::string& name) {
  constexpr int64_t kMostNumbers = 500'000'000;
  constexpr int64_t kMostRate = 1'000'000;
  const at::Tensor& samples = audio.samples;
  const bool fits = samples.defined() && samples.is_floating_point() && samples.numel() > 0 &&
                    samples.numel() <= kMostNumbers && (samples.dim() == 2 || samples.dim() == 3);
  if (!fits) {
    throw Error(fmt::format("{}: expected a batch of sounds, floats [B, T] or [B, C, T], found {}",
                            name,
                            samples.defined() ? describe_tensor(samples) : "an undefined tensor"));
  }
  if (audio.rate >= 1 && audio.rate <= kMostRate) return;
  throw Error(fmt::format("{}: expected a rate of 1 to {} samples a second, found {}", name,
                          kMostRate, audio.rate));
}

void add_files(UnfinishedLog& log, const std::string& prefix, const Logs& logs,
               const ImageEncoding& encoding) {
  const auto name_of = [&](const char* what, const std::string& key) {
    check_file_name(what, key);
    return prefix + "/" + key;
  };
  for (const auto& [key, images] : logs.images) {
    const std::string name = name_of("the image", key);
    try {
      check_images(images);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", key, error.what()));
    }
    log.images.set(name, {host_copy(images), encoding});
  }
  for (const auto& [key, video] : logs.videos) {
    const std::string name = name_of("the video", key);
    check_video(video, key);
    log.videos.set(name, {host_copy(video.frames), video.frames_per_second});
  }
  for (const auto& [key, audio] : logs.audio) {
    const std::string name = name_of("the sound", key);
    check_audio(audio, key);
    const at::Tensor first = audio.samples.slice(0, 0, kMostLoggedSounds);
    log.audio.set(name, {host_copy(first.dim() == 2 ? first.unsqueeze(1) : first), audio.rate});
  }
  for (const auto& [key, text] : logs.texts) log.record.texts.set(name_of("the text", key), text);
  for (const auto& [key, numbers] : logs.histograms) {
    const std::string name = name_of("the histogram", key);
    log.record.histograms.set(name, histogram_of(numbers)).key = name;
  }
  for (const auto& [key, curve] : logs.curves) {
    const std::string name = name_of("the curve", key);
    check_curve(curve, key);
    log.record.curves.set(name,
                          {host_copy(curve.x), host_copy(curve.y), curve.x_name, curve.y_name});
  }
}

void make_pictures(UnfinishedLog& log) {
  for (const auto& [name, images] : log.images) {
    try {
      log.record.images.set(name, encode_image(image_grid(images.images), images.encoding));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", name, error.what()));
    }
  }
  log.images.clear();
  for (const auto& [name, video] : log.videos) {
    std::vector<at::Tensor> frames;
    for (int64_t i = 0; i < video.frames.size(1); ++i) {
      frames.push_back(image_grid(video.frames.select(1, i)));
    }
    log.record.images.set(name, encode_animated_png(frames, video.frames_per_second));
  }
  log.videos.clear();
  for (const auto& [name, audio] : log.audio) {
    for (int64_t i = 0; i < audio.samples.size(0); ++i) {
      log.record.sounds.set(fmt::format("{}/{}", name, i),
                            encode_wav(audio.samples[i], audio.rate));
    }
  }
  log.audio.clear();
  for (const auto& [name, curve] : log.record.curves) {
    log.record.images.set(name, curve_picture(curve));
  }
}

void write_log_files(const std::string& folder, int64_t step, const LogRecord& record) {
  for (const auto& [name, bytes] : record.images) {
    write_log_file(folder, picture_file(name, step, bytes), bytes);
  }
  for (const auto& [name, sound] : record.sounds) {
    write_log_file(folder, name_with_step(name, step) + ".wav", sound.bytes);
  }
  for (const auto& [name, text] : record.texts) {
    write_log_file(folder, name_with_step(name, step) + ".txt", text);
  }
  for (const auto& [name, histogram] : record.histograms) {
    const std::string file = name_with_step(name, step);
    write_log_file(folder, file + ".png", histogram_picture(histogram));
    write_log_file(folder, file + ".csv", histogram_csv(histogram));
  }
  for (const auto& [name, curve] : record.curves) {
    write_log_file(folder, name_with_step(name, step) + ".csv", curve_csv(curve));
  }
}

std::string picture_file(std::string_view name, int64_t step, std::string_view bytes) {
  return name_with_step(name, step) + image_ending(bytes);
}

std::string name_with_step(std::string_view name, int64_t step) {
  return fmt::format("{}_{:07}", name, step);
}

std::optional<SteppedName> parse_name_with_step(std::string_view name) {
  const size_t underscore = name.rfind('_');
  if (underscore == std::string_view::npos) return std::nullopt;
  const std::string_view digits = name.substr(underscore + 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit)) return std::nullopt;
  SteppedName found{std::string(name.substr(0, underscore)), 0};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), found.step);
  return error == std::errc() ? std::optional(std::move(found)) : std::nullopt;
}

void check_file_name(const std::string& what, std::string_view name) {
  constexpr size_t kMostBytes = 200;  // file systems allow 255, and the step is appended
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.size() > kMostBytes ||
        part.find('\0') != std::string_view::npos) {
      throw Error(
          fmt::format("{} \"{}\" cannot be a file: parts of its name, between slashes, have 1 to "
                      "{} bytes and are not \".\" or \"..\"",
                      what, name, kMostBytes));
    }
    begin = end + 1;
  }
}

}  // namespace stepop
