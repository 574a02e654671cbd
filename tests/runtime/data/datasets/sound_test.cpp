#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/data/datasets/resample.h"
#include "runtime/data/example_random.h"
#include "tests/cli/command.h"
#include "tests/dataset_of.h"
#include "tests/fuzz.h"
#include "tests/message_of.h"
#include "tests/python.h"
#include "tests/scratch_folder.h"
#include "tests/tensor_values.h"

namespace stepop {
namespace sound_test {

/// Writes sounds whose sample i of channel c is (7919 i + 1000 c) mod 60000 - 30000, of 16 bits:
/// WAV by the module wave, FLAC and Ogg by libsndfile.
const char* const kWriteSounds = R"(
import ctypes, os, struct, sys, wave
folder = sys.argv[1]
class Info(ctypes.Structure):
    _fields_ = [("frames", ctypes.c_int64)] + [(n, ctypes.c_int) for n in
                ("rate", "channels", "format", "sections", "seekable")]
library = ctypes.CDLL("libsndfile.so.1")
library.sf_open.restype = ctypes.c_void_p
def samples(count, channels):
    return [(7919 * i + 1000 * c) % 60000 - 30000 for i in range(count) for c in range(channels)]
def path(name):
    os.makedirs(os.path.dirname(folder + "/" + name), exist_ok=True)
    return folder + "/" + name
def write_wav(name, count, channels, rate, width=2):
    with wave.open(path(name), "wb") as file:
        file.setnchannels(channels), file.setsampwidth(width), file.setframerate(rate)
        if width == 1:
            file.writeframes(bytes((v >> 8) + 128 for v in samples(count, channels)))
        else:
            file.writeframes(b"".join(struct.pack("<i", v << 16)[4 - width:] for v in samples(count, channels)))
def write(name, format, count, channels, rate):
    info = Info(0, rate, channels, format, 0, 0)
    file = ctypes.c_void_p(library.sf_open(path(name).encode(), 0x20, ctypes.byref(info)))
    values = samples(count, channels)
    assert library.sf_write_short(file, (ctypes.c_short * len(values))(*values), ctypes.c_int64(len(values))) == len(values)
    library.sf_close(file)
write_wav("a/one.wav", 4000, 1, 8000)
write_wav("a/two.WAV", 3000, 2, 8000)
write_wav("b/width1.wav", 500, 1, 8000, 1)
write_wav("b/width3.wav", 500, 1, 8000, 3)
write_wav("b/width4.wav", 500, 1, 8000, 4)
write("b/z.flac", 0x170002, 6000, 2, 8000)
write("c/z.ogg", 0x200060, 6000, 1, 8000)
write_wav("other/rate.wav", 4410, 1, 44100)
)";

/// The sounds, written once.
const ScratchFolder& sounds() {
  static const ScratchFolder folder;
  static const bool is_written = (run_python(kWriteSounds, {folder.path()}), true);
  (void)is_written;
  return folder;
}

/// What `kWriteSounds` writes: [channels, count].
at::Tensor written(int64_t count, int64_t channels) {
  at::Tensor sound = at::zeros({channels, count});
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t i = 0; i < count; ++i) {
      sound[c][i] = static_cast<float>((7919 * i + 1000 * c) % 60000 - 30000) / 32768;
    }
  }
  return sound;
}

std::unique_ptr<Dataset> sounds_of(const std::string& more) {
  return dataset_of(fmt::format("{{class: Sound, path: {}, {}}}", sounds().path(), more));
}

at::Tensor audio_of(const Dataset& data, int64_t index) {
  return example_of(data, index).tensors.at("audio");
}

TEST_CASE("WAV and FLAC files have the samples that were written, with their folder as the class") {
  const auto data = sounds_of("classes: [b, a], mono: false");
  REQUIRE(data->size() == 6);
  CHECK(values_of<int64_t>(data->labels("class")) == std::vector<int64_t>{0, 0, 0, 0, 1, 1});
  CHECK(values_of<int64_t>(data->labels("length")) ==
        std::vector<int64_t>{500, 500, 500, 6000, 4000, 3000});
  CHECK(at::equal(audio_of(*data, 0), (written(500, 1) * 128).floor() / 128));
  CHECK(at::equal(audio_of(*data, 1), written(500, 1)));
  CHECK(at::equal(audio_of(*data, 2), written(500, 1)));
  CHECK(at::equal(audio_of(*data, 3), written(6000, 2)));
  const Example wav = example_of(*data, 5);
  CHECK(at::equal(wav.tensors.at("audio"), written(3000, 2)));
  CHECK(wav.tensors.at("class").item<int64_t>() == 1);
  CHECK(wav.tensors.at("rate").item<int64_t>() == 8000);
  CHECK(wav.texts.at("path") == "a/two.WAV");
  CHECK(at::equal(audio_of(*sounds_of("classes: [a]"), 1), written(3000, 2).mean(0, true)));
  CHECK(unknown_keys_of(
            fmt::format("{{class: Sound, path: {}, classes: [a], list: null}}", sounds().path()))
            .empty());
}

TEST_CASE("an Ogg file is nearly what was written, also from its middle") {
  const auto data = sounds_of("classes: [c]");
  const at::Tensor whole = audio_of(*data, 0);
  CHECK(whole.sizes() == at::IntArrayRef{1, 6000});
  CHECK((whole - written(6000, 1)).abs().mean().item<double>() < 0.1);
  const auto middle = sounds_of("classes: [c], seconds: 0.25, random: false");
  CHECK(at::allclose(audio_of(*middle, 0), whole.narrow(1, 2000, 2000), 1e-5, 1e-5));
}

TEST_CASE(
    "a part of a sound is the same for the same random numbers, and zeros follow a short one") {
  const auto data = sounds_of("classes: [b, a], mono: false, seconds: 0.1");
  CHECK(data->label_keys() == std::vector<std::string>{"class"});
  const at::Tensor whole = written(6000, 2);
  std::vector<int64_t> begins;
  for (int64_t epoch = 0; epoch < 8; ++epoch) {
    Random random = random_at(5, epoch, 3);
    Random again = random_at(5, epoch, 3);
    const at::Tensor part = data->get(3, random).tensors.at("audio");
    CHECK(at::equal(part, data->get(3, again).tensors.at("audio")));
    // Samples repeat after 60,000, so the first one says where the part is.
    const at::Tensor places = (whole[0] == part[0][0]).nonzero();
    REQUIRE(places.numel() == 1);
    begins.push_back(places.item<int64_t>());
    CHECK(at::equal(part, whole.narrow(1, begins.back(), 800)));
  }
  std::sort(begins.begin(), begins.end());
  CHECK(std::unique(begins.begin(), begins.end()) - begins.begin() > 5);
  CHECK(at::equal(audio_of(*data, 0).narrow(1, 0, 500), audio_of(*sounds_of("classes: [b]"), 0)));
  CHECK(audio_of(*data, 0).sizes() == at::IntArrayRef{1, 800});
  CHECK(audio_of(*data, 0).narrow(1, 500, 300).count_nonzero().item<int64_t>() == 0);
  const auto middle = sounds_of("classes: [b], mono: false, seconds: 0.1, random: false");
  CHECK(at::equal(audio_of(*middle, 3), whole.narrow(1, 2600, 800)));
}

TEST_CASE("a sound of another rate is resampled as by the Resampler, or named") {
  const audio::Resampler resampler(44100, 16000, c10::kCPU);
  const at::Tensor made = audio_of(*sounds_of("classes: [other], rate: 16000"), 0);
  CHECK(made.sizes() == at::IntArrayRef{1, 1600});
  CHECK(at::equal(made, resampler(written(4410, 1))));
  const auto cut = sounds_of("classes: [other], rate: 16000, seconds: 0.05, random: false");
  // 800 samples at 16,000 Hz are 2,205 of the file.
  CHECK(at::equal(audio_of(*cut, 0), resampler(written(4410, 1).narrow(1, 1102, 2205))));
  CHECK(values_of<int64_t>(sounds_of("classes: [other], rate: 16000")->labels("length")) ==
        std::vector<int64_t>{1600});
  const auto mixed = sounds_of("classes: [a, other]");
  CHECK(message_of([&] { batch_of(*mixed, {2}); }) ==
        fmt::format("example 2: {}/other/rate.wav: has 44100 samples a second, and a/one.wav has "
                    "8000; \"rate: 8000\" resamples",
                    sounds().path()));
  CHECK(message_of([&] { sounds_of("classes: [a], seconds: 0"); }) ==
        "test.yaml:1: data/seconds: expected 1 to 250000000 samples, found 0");
}

TEST_CASE("files of a list need no class folders, and Padded makes sounds equally long") {
  const ScratchFolder folder;
  const auto list = folder.write("list.txt", "b/z.flac\r\n\na/one.wav\n");
  const auto data = dataset_of(fmt::format(
      "{{class: Padded, pad: {{audio: 0}}, dataset: {{class: Sound, path: {}, list: {}}}}}",
      sounds().path(), list));
  const Batch batch = batch_of(*data, {0, 1});
  CHECK(batch["audio"].sizes() == at::IntArrayRef{2, 1, 6000});
  CHECK(at::equal(batch["audio"][1].narrow(1, 0, 4000), written(4000, 1)));
  CHECK(batch["audio"][1].narrow(1, 4000, 2000).count_nonzero().item<int64_t>() == 0);
  CHECK_FALSE(batch.contains("class"));
  CHECK(batch.text("path") == std::vector<std::string>{"b/z.flac", "a/one.wav"});
}

TEST_CASE("a sound file that cannot be decoded is named") {
  const ScratchFolder folder;
  const std::string flac = read_bytes(sounds() / "b/z.flac");
  folder.write("x/a.flac", flac);
  folder.write("x/b.flac", flac.substr(0, flac.size() / 2));
  folder.write("x/c.wav", "no sound");
  const auto data = dataset_of("{class: Sound, path: " + folder.path() + "}");
  const std::string cut = message_of([&] { batch_of(*data, {1}); });
  CHECK(cut.starts_with("example 1: " + folder.path() +
                        "/x/b.flac: is damaged: samples 0 to 6000 of 6000 cannot be decoded: "));
  const std::string other = message_of([&] { batch_of(*data, {2}); });
  CHECK(other.starts_with("example 2: " + folder.path() + "/x/c.wav: libsndfile cannot read it: "));
  const ScratchFolder empty;
  empty.write("a/note.txt", "");
  CHECK(message_of([&] { dataset_of("{class: Sound, path: " + empty.path() + "}"); }) ==
        empty.path() +
            "/a: this class folder holds no WAV, FLAC or Ogg file; add some, or name the classes "
            "with \"classes\"");
}

TEST_CASE("without libsndfile the error has the package that brings it") {
  const ScratchFolder folder;
  folder.write("lib/libsndfile.so.1", "");  // no library
  folder.write("x/a.wav", read_bytes(sounds() / "a/one.wav"));
  folder.write("a.yaml", "datasets: {train: {class: Sound, path: x, classes: []}}\n");
  const auto shown = run_in(folder, "LD_LIBRARY_PATH=lib:$LD_LIBRARY_PATH stepop data -b a.yaml");
  CHECK(shown.exit_code != 0);
  CHECK(shown.err.find("sound files need libsndfile (Debian: apt-get install libsndfile1): ") !=
        std::string::npos);
}

TEST_CASE("damaged WAV and FLAC files are read or refused") {
  const ScratchFolder folder;
  const std::vector<std::string> seeds = {read_bytes(sounds() / "b/width3.wav"),
                                          read_bytes(sounds() / "b/z.flac")};
  ByteMutator mutator(fuzz_seed(), {"RIFF", "data", "fmt ", "fLaC", "LIST"}, {"fmt ", "fLaC"});
  FuzzWatch watch("sound", fuzz_seed());
  int read = 0;
  for (uint64_t i = 0; i < fuzz_first() + fuzz_count(300); ++i) {
    folder.write("a.wav", mutator.mutate(seeds[mutator.below(seeds.size())]));
    if (i < fuzz_first()) continue;
    watch.run(i, [&] {
      try {
        const auto data =
            dataset_of("{class: Sound, classes: [], rate: 8000, path: " + folder.path() + "}");
        example_of(*data, 0);
        ++read;
      } catch (const Error&) {
      }
    });
  }
  CHECK(read > 10);
}

}  // namespace sound_test
}  // namespace stepop
