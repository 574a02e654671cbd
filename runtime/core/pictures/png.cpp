// libpng reports errors by longjmp, which skips destructors. So each setjmp has its own function;
// the frames of this function and of the callbacks hold nothing with a destructor, and the caller
// owns all memory.
#include <fmt/format.h>
#include <png.h>

#include <bit>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/image_file.h"

namespace stepop {
namespace {

[[noreturn]] void png_does_not_decode(const std::string& name, const char* why) {
  throw Error(fmt::format("{}: the PNG does not decode: {}", name, why));
}

/// The state that the callbacks share; always freed.
struct PngReader {
  std::string_view bytes;
  size_t offset = 0;
  char message[128] = "";
  bool has_too_many = false;  ///< Whether there are too many pixels.
  png_structp png = nullptr;
  png_infop info = nullptr;

  explicit PngReader(std::string_view all_bytes) : bytes(all_bytes) {}
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

struct PngWriter {
  std::string bytes;
  char message[128] = "";
  png_structp png = nullptr;
  png_infop info = nullptr;

  PngWriter() = default;
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;
  ~PngWriter() { png_destroy_write_struct(&png, &info); }
};

template <class Owner>
void png_failed(png_structp png, png_const_charp text) {
  auto* owner = static_cast<Owner*>(png_get_error_ptr(png));
  std::snprintf(owner->message, sizeof(owner->message), "%s", text);
  png_longjmp(png, 1);
}

void png_warned(png_structp, png_const_charp) {}

void give_png_bytes(png_structp png, png_bytep target, size_t size) {
  auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
  if (reader->bytes.size() - reader->offset < size) png_error(png, "the file ends too early");
  std::memcpy(target, reader->bytes.data() + reader->offset, size);
  reader->offset += size;
}

void take_png_bytes(png_structp png, png_bytep source, size_t size) {
  auto* writer = static_cast<PngWriter*>(png_get_io_ptr(png));
  bool is_full = false;
  try {
    writer->bytes.append(reinterpret_cast<const char*>(source), size);
  } catch (const std::bad_alloc&) {
    is_full = true;
  }
  if (is_full) png_error(png, "out of memory");
}

/// What is read of a pixel.
enum class PngPixels {
  kColours,
  kColoursAndAlpha,
  kNumbers,  ///< The stored number of a grey pixel, or its place in the palette.
};

bool read_png_header(PngReader& reader, PngPixels what, Pixels& pixels) {
  png_structp png = reader.png;
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, &reader, give_png_bytes);
  png_read_info(png, reader.info);
  pixels.height = png_get_image_height(png, reader.info);
  pixels.width = png_get_image_width(png, reader.info);
  // Deflate packs at most 1032 : 1. A header with more pixels is damaged, and we must not allocate
  // memory for it.
  if (png_get_rowbytes(png, reader.info) > reader.bytes.size() * 1032 / pixels.height + 1) {
    png_error(png, "the file is too short for the size in its header");
  }
  if (pixels.height * pixels.width > kMostPixels) {
    reader.has_too_many = true;
    return false;
  }
  const int depth = png_get_bit_depth(png, reader.info);
  const bool is_palette = png_get_color_type(png, reader.info) == PNG_COLOR_TYPE_PALETTE;
  if (what == PngPixels::kNumbers) {
    png_set_packing(png);
  } else {
    if (is_palette) png_set_palette_to_rgb(png);
    if (!is_palette && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
  }
  if (depth == 16 && std::endian::native == std::endian::little) png_set_swap(png);
  if (what == PngPixels::kColoursAndAlpha) {
    if (png_get_valid(png, reader.info, PNG_INFO_tRNS) != 0) png_set_tRNS_to_alpha(png);
    png_set_gray_to_rgb(png);
  } else {
    png_set_strip_alpha(png);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, reader.info);
  pixels.is_16_bit = depth == 16;
  pixels.channels = png_get_channels(png, reader.info);
  return true;
}

bool read_png_pixels(PngReader& reader, png_bytepp rows) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_read_image(reader.png, rows);
  png_read_end(reader.png, nullptr);
  return true;
}

bool write_png(PngWriter& writer, png_bytepp rows, png_uint_32 width, png_uint_32 height,
               int color_type) {
  png_structp png = writer.png;
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_write_fn(png, &writer, take_png_bytes, nullptr);
  png_set_IHDR(png, writer.info, width, height, 8, color_type, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_compression_level(png, 3);
  png_write_info(png, writer.info);
  png_write_image(png, rows);
  png_write_end(png, writer.info);
  return true;
}

}  // namespace

namespace {

Pixels decode(std::string_view bytes, const std::string& name, PngPixels what) {
  PngReader reader(bytes);
  reader.png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, png_failed<PngReader>, png_warned);
  if (reader.png != nullptr) reader.info = png_create_info_struct(reader.png);
  if (reader.info == nullptr) png_does_not_decode(name, "libpng cannot be started");
  Pixels pixels;
  if (!read_png_header(reader, what, pixels)) {
    if (reader.has_too_many) {
      throw Error(fmt::format("{}: {}", name, too_many_pixels(pixels.width, pixels.height)));
    }
    png_does_not_decode(name, reader.message);
  }
  pixels.bytes.resize(pixels.height * pixels.row_bytes());
  std::vector<unsigned char*> rows = pixels.rows();
  if (!read_png_pixels(reader, rows.data())) png_does_not_decode(name, reader.message);
  return pixels;
}

}  // namespace

Pixels decode_png(std::string_view bytes, const std::string& name, bool has_alpha) {
  return decode(bytes, name, has_alpha ? PngPixels::kColoursAndAlpha : PngPixels::kColours);
}

Pixels decode_png_numbers(std::string_view bytes, const std::string& name) {
  return decode(bytes, name, PngPixels::kNumbers);
}

std::string encode_png(const at::Tensor& picture) {
  check_picture(picture, "a PNG");
  const at::Tensor pixels = picture.contiguous();
  std::vector<unsigned char*> rows = rows_of(pixels);
  PngWriter writer;
  writer.png =
      png_create_write_struct(PNG_LIBPNG_VER_STRING, &writer, png_failed<PngWriter>, png_warned);
  if (writer.png != nullptr) writer.info = png_create_info_struct(writer.png);
  if (writer.info == nullptr) throw Error("libpng cannot be started");
  if (!write_png(writer, rows.data(), static_cast<png_uint_32>(pixels.size(1)),
                 static_cast<png_uint_32>(pixels.size(0)),
                 pixels.size(2) == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB)) {
    throw Error(
        fmt::format("the PNG of {} cannot be made: {}", describe_tensor(pixels), writer.message));
  }
  return std::move(writer.bytes);
}

}  // namespace stepop
