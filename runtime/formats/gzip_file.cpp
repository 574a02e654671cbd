#include "runtime/formats/gzip_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/system/read_file.h"

namespace stepop {
namespace {

constexpr std::string_view kMagic = "\x1f\x8b";
constexpr size_t kFirstRoom = 1 << 16;

/// Ends zlib's stream whatever happens.
struct Inflater {
  z_stream stream = {};

  Inflater() {
    // 16 asks for gzip's header and check sum.
    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) throw Error("zlib cannot be started");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

}  // namespace

std::string read_plain_or_gzip(const std::string& path) {
  std::string bytes = read_file(path);
  return bytes.starts_with(kMagic) ? unpack_gzip(bytes, path) : bytes;
}

std::string unpack_gzip(std::string_view packed, const std::string& path) {
  constexpr size_t kMost = std::numeric_limits<uInt>::max();
  Inflater inflater;
  z_stream& stream = inflater.stream;
  std::string unpacked;
  size_t taken = 0;
  size_t given = 0;
  while (true) {
    if (given == unpacked.size()) unpacked.resize(std::max(kFirstRoom, 2 * unpacked.size()));
    // zlib counts in 32 bits and takes its input through a pointer that is not const.
    const size_t input = std::min(packed.size() - taken, kMost);
    const size_t output = std::min(unpacked.size() - given, kMost);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data() + taken));
    stream.avail_in = static_cast<uInt>(input);
    stream.next_out = reinterpret_cast<Bytef*>(unpacked.data() + given);
    stream.avail_out = static_cast<uInt>(output);
    const int status = inflate(&stream, Z_NO_FLUSH);
    taken += input - stream.avail_in;
    given += output - stream.avail_out;
    if (status == Z_STREAM_END) {
      // Another member may follow, or padding with zeros.
      const std::string_view rest = packed.substr(taken);
      if (rest.find_first_not_of('\0') == std::string_view::npos) break;
      if (!rest.starts_with(kMagic)) {
        throw Error(
            fmt::format("{}: {} bytes that are no gzip follow the gzip data", path, rest.size()));
      }
      inflateReset(&stream);
    } else if (status == Z_BUF_ERROR || (status == Z_OK && taken == packed.size())) {
      if (given == unpacked.size()) continue;  // only the room was used up
      throw Error(fmt::format(
          "{}: the gzip data is cut short: the file ends after {} bytes, which hold {}; copy or "
          "download it again",
          path, packed.size(), given));
    } else if (status != Z_OK) {
      throw Error(fmt::format("{}: the gzip data is corrupt ({}); copy or download it again", path,
                              stream.msg == nullptr ? zError(status) : stream.msg));
    }
  }
  unpacked.resize(given);
  return unpacked;
}

}  // namespace stepop
