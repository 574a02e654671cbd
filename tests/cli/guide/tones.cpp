#include <stepop/audio.h>
#include <stepop/stepop.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>

// Samples of a .wav of 16 bits and one channel, [T] in [-1, 1]. The header must have 44 bytes.
at::Tensor read_wav(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<int16_t> samples((std::filesystem::file_size(path) - 44) / 2);
  file.seekg(44);
  file.read(reinterpret_cast<char*>(samples.data()),
            static_cast<std::streamsize>(2 * samples.size()));
  if (!file) throw std::runtime_error(path + ": it cannot be read");
  return torch::tensor(samples, torch::kShort).to(torch::kFloat) / 32768;
}

// The folder of a file is its class.
class Tones : public stepop::Dataset {
 public:
  explicit Tones(const stepop::Config& params) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(params.get_path("path"))) {
      if (entry.path().extension() == ".wav") files_.push_back(entry.path());
    }
    std::sort(files_.begin(), files_.end());
  }
  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  stepop::Example get(int64_t index, stepop::Random&) const override {
    const at::Tensor audio = read_wav(files_[index]).unsqueeze(0);
    return {.tensors = {{"mel", mel_(audio).squeeze(0)}},
            .texts = {{"file", files_[index]}}};  // [mels, frames]
  }

 private:
  std::vector<std::string> files_;
  stepop::audio::MelSpectrogram mel_{{.sampling_rate = 16000, .highest = 8000}, torch::kCPU};
};
STEPOP_REGISTER_DATASET(Tones, {".wav files.", {{"path", "", "a folder", true}}});
