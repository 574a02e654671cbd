#include "runtime/data/streams/clip_commands.h"

#include <ATen/ops/stack.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/unpack_limit.h"
#include "runtime/core/system/file_calls.h"
#include "runtime/data/streams/pipe_input.h"

namespace stepop {
namespace {

constexpr std::string_view kFile = "{file}";

/// A file in memory, which other programs read by its path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(::memfd_create("stepop clip", MFD_CLOEXEC)) {
    if (!file_) fail_file("make a file in memory", errno);
    while (!bytes.empty()) {
      const ssize_t count = ::write(file_.number(), bytes.data(), bytes.size());
      if (count < 0) fail_file("write a file in memory", errno);
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }
  std::string path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), file_.number()); }

 private:
  OpenFile file_;
};

std::string output_of(const std::string& command, size_t stored, double timeout) {
  std::string output;
  PipeInput input(command, {.timeout = timeout});
  std::string piece(size_t{1} << 20, '\0');
  while (const size_t count = input.read(piece.data(), piece.size())) {
    output.append(piece, 0, count);
    const auto size = static_cast<double>(output.size());
    if (is_too_much_unpacked(size, static_cast<double>(stored))) {
      throw Error("the command prints too much: " + unpack_remedy(size));
    }
  }
  return output;
}

/// Where a JPEG at the beginning of `text` ends; the end of `text` if it is cut. Segments are
/// passed by their lengths, as a thumbnail in one has an end of its own (ITU-T T.81, B.1.1 and
/// B.1.2).
size_t jpeg_size(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : size_t{0};
  };
  size_t at = 2;
  while (at + 4 <= text.size()) {
    const size_t marker = byte(at + 1);
    const bool is_bare = marker == 0 || marker == 1 || (marker >= 0xD0 && marker <= 0xD7);
    if (byte(at) != 0xFF || marker == 0xFF) {  // what a scan is made of, and fill bytes
      at += 1;
    } else if (marker == 0xD9) {
      return at + 2;
    } else {
      at += is_bare ? 2 : 2 + 256 * byte(at + 2) + byte(at + 3);
    }
  }
  return text.size();
}

/// The first picture of `text`, a PNG or a JPEG.
std::string_view first_picture(std::string_view text) {
  if (text.starts_with("\xFF\xD8")) return text.substr(0, jpeg_size(text));
  constexpr std::string_view kEnd = "IEND\xAE\x42\x60\x82";
  const size_t place = text.find(kEnd);
  return place == std::string_view::npos ? text : text.substr(0, place + kEnd.size());
}

}  // namespace

void ClipCommands::Params::declare(Parameters& p) {
  p.add("frames", frames, "how many pictures of a video, at equal distances; null: all",
        at_least(1));
  const Config* config =
      p.describe_optional("decode", "map",
                          "commands that print the pictures of a video, by extension: {mp4: "
                          "'ffmpeg -v error -i {file} -f image2pipe -c:v png -'}");
  if (config == nullptr) return;
  for (const auto& ending : config->at("decode").keys()) {
    const std::string path = "decode/" + ending;
    const auto command = config->get<std::string>(path);
    if (command.find(kFile) == std::string::npos) {
      throw config->error(path, fmt::format("the command has no {} in it", kFile));
    }
    decode.set(ending, command);
  }
}

at::Tensor ClipCommands::decode(std::string_view ending, const std::string& bytes,
                                const ImageReader& images) const {
  const MemoryFile file(bytes);
  std::string command = p_.decode.at(ending);
  for (size_t i = 0; (i = command.find(kFile, i)) != std::string::npos;) {
    command.replace(i, kFile.size(), file.path());
  }
  std::string output;
  try {
    output = output_of(command, bytes.size(), p_.timeout);
  } catch (const PipeFailed& failed) {
    throw Error(fmt::format("the command failed: {}\n  {}", failed.what(), command));
  }
  std::vector<std::string_view> pictures;
  for (std::string_view rest = output; !rest.empty();) {
    pictures.push_back(first_picture(rest));
    rest.remove_prefix(pictures.back().size());
  }
  if (pictures.empty()) throw Error("the command printed no picture:\n  " + command);
  const auto count = static_cast<int64_t>(pictures.size());
  std::vector<at::Tensor> frames;
  const int64_t taken = p_.frames.value_or(count);
  for (int64_t i = 0; i < taken; ++i) {
    const int64_t place = p_.frames ? i * count / taken : i;
    frames.push_back(images.decode(pictures[static_cast<size_t>(place)],
                                   fmt::format("picture {} of the command's", place)));
  }
  return at::stack(frames);
}

}  // namespace stepop
