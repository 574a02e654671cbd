#include "runtime/core/formats/wav_file.h"

#include <bit>
#include <utility>

namespace stepop {
namespace {

static_assert(std::endian::native == std::endian::little, "samples are stored as in memory");

template <class Number>
void append(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

}  // namespace

WavFile encode_wav(const at::Tensor& sound, int64_t rate) {
  constexpr uint16_t kPcm = 1;
  constexpr uint16_t kBytes = 2;  // of a sample
  const at::Tensor samples = sound.to(at::kFloat)
                                 .nan_to_num(0, 1, -1)
                                 .clamp(-1, 1)
                                 .mul(32767)
                                 .round()
                                 .to(at::kShort)
                                 .t()
                                 .contiguous();
  const auto size = static_cast<uint32_t>(samples.nbytes());
  const auto frame = static_cast<uint16_t>(kBytes * sound.size(0));
  std::string bytes = "RIFF";
  append(bytes, size + 36);
  bytes += "WAVEfmt ";
  append(bytes, uint32_t{16});
  append(bytes, kPcm);
  append(bytes, static_cast<uint16_t>(sound.size(0)));
  append(bytes, static_cast<uint32_t>(rate));
  append(bytes, static_cast<uint32_t>(rate) * frame);
  append(bytes, frame);
  append(bytes, static_cast<uint16_t>(8 * kBytes));
  bytes += "data";
  append(bytes, size);
  bytes.append(static_cast<const char*>(samples.const_data_ptr()), size);
  return {std::move(bytes), sound.size(0), sound.size(1), rate};
}

}  // namespace stepop
