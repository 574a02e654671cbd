#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/system/optional_library.h"
#include "runtime/core/system/read_file.h"
#include "runtime/data/dataset.h"
#include "runtime/data/datasets/class_files.h"
#include "runtime/data/datasets/resample.h"
#include "runtime/data/notice.h"
#include "runtime/data/text/text_units.h"

namespace stepop {
namespace {

constexpr int64_t kMostRate = 1'000'000;
constexpr double kMostPartSamples = 250e6;
constexpr int kReadMode = 0x10;  // SFM_READ
constexpr int64_t kMostSoundNumbers = 250'000'000;
constexpr int64_t kMostSamples = int64_t{1} << 40;
constexpr int64_t kReadAtOnce = 4096;

/// SF_INFO of sndfile.h, which has been the same since version 1.0.
struct SoundInfo {
  int64_t frames;
  int samplerate;
  int channels;
  int format;
  int sections;
  int seekable;
};

/// The functions of libsndfile.
struct SoundLibrary {
  void* (*open)(const char*, int, SoundInfo*);
  int (*close)(void*);
  int64_t (*seek)(void*, int64_t, int);
  int64_t (*read)(void*, float*, int64_t);
  const char* (*error_text)(void*);

  SoundLibrary() {
    const OptionalLibrary library("libsndfile.so.1",
                                  "sound files need libsndfile (Debian: apt-get install "
                                  "libsndfile1)");
    library.find(open, "sf_open");
    library.find(close, "sf_close");
    library.find(seek, "sf_seek");
    library.find(read, "sf_readf_float");
    library.find(error_text, "sf_strerror");
  }
};

const SoundLibrary& sound_library() {
  static const SoundLibrary library;
  return library;
}

/// A WAV, FLAC or Ogg file that libsndfile decodes. The library is loaded when it is first needed,
/// so that neither a build nor an installation needs it. Each thread opens its own.
class SoundFile {
 public:
  /// Throws Error, with the path, for a file that libsndfile cannot read or that has no samples;
  /// and for a missing library, with its package.
  explicit SoundFile(std::string path);

  int64_t rate() const { return rate_; }        ///< Samples a second.
  int64_t samples() const { return samples_; }  ///< Of each channel.

  /// float32 [channels, count] in [-1, 1] from sample `first` on. Throws Error when the file holds
  /// fewer samples than its header says, or when they need more than a gigabyte.
  at::Tensor read(int64_t first, int64_t count) const;

 private:
  std::string path_;
  std::shared_ptr<void> file_;
  int64_t rate_ = 0;
  int64_t samples_ = 0;
  int64_t channels_ = 0;
};

SoundFile::SoundFile(std::string path) : path_(std::move(path)) {
  const SoundLibrary& library = sound_library();
  SoundInfo info{};
  void* file = library.open(path_.c_str(), kReadMode, &info);
  if (file == nullptr) {
    throw Error(
        fmt::format("{}: libsndfile cannot read it: {}", path_, library.error_text(nullptr)));
  }
  file_ = std::shared_ptr<void>(file, library.close);
  rate_ = info.samplerate;
  samples_ = info.frames;
  channels_ = info.channels;
  if (rate_ < 1 || samples_ < 1 || samples_ > kMostSamples || channels_ < 1) {
    throw Error(fmt::format("{}: expected samples, found {} of {} channels, {} a second", path_,
                            samples_, channels_, rate_));
  }
}

at::Tensor SoundFile::read(int64_t first, int64_t count) const {
  if (count > kMostSoundNumbers / channels_) {
    throw Error(
        fmt::format("{}: {} samples of {} channels need more than 1 GB; \"seconds\" takes "
                    "a part",
                    path_, count, channels_));
  }
  const SoundLibrary& library = sound_library();
  at::Tensor sound = at::empty({channels_, count}, at::kFloat);
  auto* target = sound.mutable_data_ptr<float>();
  std::vector<float> buffer(static_cast<size_t>(kReadAtOnce * channels_));
  bool can_be_read = first == 0 || library.seek(file_.get(), first, SEEK_SET) == first;
  for (int64_t done = 0; can_be_read && done < count;) {
    const int64_t read =
        library.read(file_.get(), buffer.data(), std::min(kReadAtOnce, count - done));
    for (int64_t i = 0; i < read * channels_; ++i) {
      target[i % channels_ * count + done + i / channels_] = buffer[static_cast<size_t>(i)];
    }
    done += read;
    can_be_read = read > 0;
  }
  if (can_be_read) return sound;
  throw Error(fmt::format("{}: is damaged: samples {} to {} of {} cannot be decoded: {}", path_,
                          first, first + count, samples_, library.error_text(file_.get())));
}

/// The files that are named in the lines of a text file.
ClassFiles listed(const std::string& list) {
  ClassFiles files;
  const std::string text = read_file(list);
  const auto lines = TextUnits::lines(text, /*skips_empty=*/true);
  for (int64_t i = 0; i < lines.size(); ++i) files.paths.emplace_back(lines[i]);
  if (files.paths.empty()) throw Error(list + ": names no files");
  return files;
}

/// Sound files in folders. Without `rate`, a file of another rate than the first one's is an error.
/// A part is cut before it is resampled.
///
/// An example holds `audio`, float [C, T] in [-1, 1], `rate`, int64 [], the text `path`, relative
/// to the folder, and if there are classes `class`, int64 []. Without `seconds`, T differs, and the
/// first call of `labels("length")`, which has T, opens all files. Throws Error with the file for
/// one that cannot be decoded.
class Sound : public Dataset {
 public:
  struct Params {
    InputFolder path;
    ClassFolders folders;
    std::optional<InputFile> list;
    std::optional<int64_t> rate;
    bool mono = true;
    std::optional<double> seconds;
    bool random = true;

    void declare(Parameters& p) {
      p.require("path", path, "folder of the class folders");
      folders.declare(p, "sounds");
      p.add("list", list, "text file with a path below `path` in each line, without classes");
      p.add("rate", rate,
            "samples a second, to which others are resampled; null: that of all files",
            at_least(1).at_most(kMostRate));
      p.add("mono", mono, "one channel, the mean of a file's channels; false: as stored");
      p.add("seconds", seconds,
            "length of the part that is taken, with zeros behind a shorter file; null: whole "
            "files");
      p.add("random", random, "the part is taken from anywhere; false: in the middle");
    }
  };

  Sound(const Params& params, const Config& config)
      : folder_(params.path.text),
        files_(params.list ? listed(params.list->text)
                           : list_class_files(config, folder_, params.folders,
                                              {{".wav", ".flac", ".ogg"},
                                               "WAV, FLAC or Ogg file",
                                               "sounds",
                                               "NAME.wav, .flac or .ogg"})),
        rate_(params.rate ? *params.rate : open(0).rate()),
        resamples_(params.rate.has_value()),
        is_mono_(params.mono),
        is_random_(params.random) {
    if (!params.seconds) return;
    const auto samples = *params.seconds * static_cast<double>(rate_);
    if (!(samples >= 1 && samples <= kMostPartSamples)) {
      throw config.error(
          "seconds", fmt::format("expected 1 to {} samples, found {}", kMostPartSamples, samples));
    }
    length_ = std::llround(samples);
  }

  int64_t size() const override { return static_cast<int64_t>(files_.paths.size()); }

  Example get(int64_t index, Random& random) const override {
    check_index(index, size());
    const SoundFile file = open(index);
    int64_t first = 0;
    int64_t count = file.samples();
    // The samples of the file that become `length_` samples.
    const int64_t part = (length_ * file.rate() + rate_ - 1) / rate_;
    if (length_ > 0 && count > part) {
      first = is_random_ ? random.below(count - part + 1) : (count - part) / 2;
      count = part;
    }
    at::Tensor audio = file.read(first, count);
    if (is_mono_ && audio.size(0) > 1) audio = audio.mean(0, /*keepdim=*/true);
    if (file.rate() != rate_) audio = resampled(audio, file.rate(), index);
    if (length_ > 0) {
      audio = at::constant_pad_nd(audio, {0, length_ - audio.size(1)});  // negative: cuts
    }
    Example example{.tensors = {{"audio", audio}, {"rate", at::scalar_tensor(rate_, at::kLong)}},
                    .texts = {{"path", files_.paths[static_cast<size_t>(index)]}}};
    if (files_.classes.defined()) example.tensors.set("class", files_.classes[index].clone());
    return example;
  }

  at::Tensor labels(std::string_view key) const override {
    if (key == "class") return files_.classes;
    if (key != "length" || length_ > 0) return {};
    std::call_once(are_measured_, [&] {
      lengths_ = at::empty({size()}, at::kLong);
      auto* length = lengths_.mutable_data_ptr<int64_t>();
      for (int64_t i = 0; i < size(); ++i) {
        const SoundFile file = open(i);
        *length++ = (file.samples() * rate_ + file.rate() - 1) / file.rate();
      }
    });
    return lengths_;
  }

  std::vector<std::string> label_keys() const override {
    std::vector<std::string> keys;
    if (files_.classes.defined()) keys.emplace_back("class");
    if (length_ == 0) keys.emplace_back("length");
    return keys;
  }

  std::string notice() const override {
    return joined_notices({files_.notice, files_.left_out.notice(folder_, size())});
  }

 private:
  SoundFile open(int64_t index) const {
    return SoundFile(folder_ + "/" + files_.paths[static_cast<size_t>(index)]);
  }

  at::Tensor resampled(const at::Tensor& audio, int64_t from, int64_t index) const {
    const std::string& path = files_.paths[static_cast<size_t>(index)];
    if (!resamples_) {
      throw Error(
          fmt::format("{}/{}: has {} samples a second, and {} has {}; \"rate: {}\" resamples",
                      folder_, path, from, files_.paths[0], rate_, rate_));
    }
    const audio::Resampler* resampler = nullptr;
    try {
      const std::lock_guard lock(mutex_);
      resampler = &resamplers_.try_emplace(from, from, rate_, c10::kCPU).first->second;
    } catch (const Error& error) {
      throw Error(fmt::format("{}/{}: {}", folder_, path, error.what()));
    }
    return (*resampler)(audio);
  }

  std::string folder_;
  ClassFiles files_;
  int64_t rate_;
  bool resamples_;
  bool is_mono_;
  bool is_random_;
  int64_t length_ = 0;  ///< Samples of an example; 0: as many as a file has.
  mutable std::once_flag are_measured_;
  mutable at::Tensor lengths_;
  mutable std::mutex mutex_;
  mutable std::map<int64_t, audio::Resampler> resamplers_;  ///< By the rates of files.
};

STEPOP_REGISTER_DATASET(
    Sound, {"WAV, FLAC and Ogg files, one folder for each class, as samples in [-1, 1]."});

}  // namespace
}  // namespace stepop
