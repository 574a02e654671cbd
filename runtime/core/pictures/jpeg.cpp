// libjpeg reports errors by longjmp, which skips destructors. So each setjmp has its own function;
// the frames of this function and of the callbacks hold nothing with a destructor, and the caller
// owns all memory.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it

#include <jerror.h>
#include <jpeglib.h>

#include <new>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/measure/tensor_statistics.h"
#include "runtime/core/pictures/image_file.h"

namespace stepop {
namespace {

constexpr size_t kMostScans = 500;
/// Progressive images have about ten scans, each over at most kMostPixels.
constexpr size_t kMostScannedPixels = 20 * kMostPixels;

[[noreturn]] void jpeg_does_not_decode(const std::string& name, const char* why) {
  throw Error(fmt::format("{}: the JPEG does not decode: {}", name, why));
}

struct JpegReader {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  jpeg_progress_mgr progress = {};
  std::jmp_buf jump = {};
  char message[JMSG_LENGTH_MAX] = "";
  bool has_too_many = false;  ///< Whether there are too many pixels.
  int most_scans = 0;

  JpegReader() = default;
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() { jpeg_destroy_decompress(&info); }
};

void jpeg_failed(j_common_ptr info) {
  auto* reader = static_cast<JpegReader*>(info->client_data);
  info->err->format_message(info, reader->message);
  std::longjmp(reader->jump, 1);
}

/// libjpeg only warns when it invents pixels for lost data; here this is an error.
void jpeg_warned(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  const bool is_loss = code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER ||
                       code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC;
  if (level < 0 && is_loss) jpeg_failed(info);
}

/// Each scan processes the whole image again, but may take only a few bytes in the file.
void count_scans(j_common_ptr info) {
  auto* reader = static_cast<JpegReader*>(info->client_data);
  if (reader->info.input_scan_number <= reader->most_scans) return;
  std::snprintf(reader->message, sizeof(reader->message), "it has more than %d scans",
                reader->most_scans);
  std::longjmp(reader->jump, 1);
}

bool read_jpeg_header(JpegReader& reader, const unsigned char* bytes, size_t size, Pixels& pixels) {
  jpeg_decompress_struct& info = reader.info;
  info.err = jpeg_std_error(&reader.errors);
  reader.errors.error_exit = jpeg_failed;
  reader.errors.emit_message = jpeg_warned;
  info.client_data = &reader;
  if (setjmp(reader.jump) != 0) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, bytes, size);
  jpeg_read_header(&info, TRUE);
  const size_t count = size_t{info.image_width} * info.image_height;
  // A block of up to 32 x 32 pixels takes at least a byte. A header with more pixels is damaged,
  // and we must not allocate memory for it.
  if (count / 1024 > size) {
    std::snprintf(reader.message, sizeof(reader.message),
                  "the file is too short for the size in its header");
    return false;
  }
  if (count > kMostPixels) {
    pixels.height = info.image_height;
    pixels.width = info.image_width;
    reader.has_too_many = true;
    return false;
  }
  const size_t scans = kMostScannedPixels / std::max<size_t>(count, 1);
  reader.most_scans = static_cast<int>(std::min(scans, kMostScans));
  reader.progress.progress_monitor = count_scans;
  info.progress = &reader.progress;
  const bool is_four = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  const bool is_grey = info.jpeg_color_space == JCS_GRAYSCALE;
  info.out_color_space = is_four ? JCS_CMYK : (is_grey ? JCS_GRAYSCALE : JCS_RGB);
  jpeg_start_decompress(&info);
  pixels.height = info.output_height;
  pixels.width = info.output_width;
  pixels.channels = static_cast<size_t>(info.output_components);
  return true;
}

bool read_jpeg_pixels(JpegReader& reader, JSAMPARRAY rows) {
  if (setjmp(reader.jump) != 0) return false;
  while (reader.info.output_scanline < reader.info.output_height) {
    jpeg_read_scanlines(&reader.info, rows + reader.info.output_scanline,
                        reader.info.output_height - reader.info.output_scanline);
  }
  jpeg_finish_decompress(&reader.info);
  return true;
}

/// Adobe stores CMYK inverted, and only Adobe writes CMYK: so 255 means no ink, as in pillow.
void inverted_cmyk_to_rgb(Pixels& pixels) {
  const size_t count = pixels.height * pixels.width;
  for (size_t i = 0; i < count; ++i) {
    const unsigned key = pixels.bytes[4 * i + 3];
    for (size_t c = 0; c < 3; ++c) {
      const unsigned value = pixels.bytes[4 * i + c] * key;
      pixels.bytes[3 * i + c] = static_cast<unsigned char>((value + 127) / 255);
    }
  }
  pixels.channels = 3;
}

struct JpegWriter {
  jpeg_compress_struct info = {};
  jpeg_error_mgr errors = {};
  jpeg_destination_mgr target = {};
  std::jmp_buf jump = {};
  char message[JMSG_LENGTH_MAX] = "";
  std::array<JOCTET, 16384> buffer = {};
  std::string bytes;

  JpegWriter() = default;
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;
  ~JpegWriter() { jpeg_destroy_compress(&info); }
};

void jpeg_write_failed(j_common_ptr info) {
  auto* writer = static_cast<JpegWriter*>(info->client_data);
  info->err->format_message(info, writer->message);
  std::longjmp(writer->jump, 1);
}

void jpeg_write_warned(j_common_ptr, int) {}

void begin_jpeg_buffer(j_compress_ptr info) {
  auto* writer = static_cast<JpegWriter*>(info->client_data);
  writer->target.next_output_byte = writer->buffer.data();
  writer->target.free_in_buffer = writer->buffer.size();
}

void take_jpeg_bytes(JpegWriter& writer, size_t count) {
  bool is_full = false;
  try {
    writer.bytes.append(reinterpret_cast<const char*>(writer.buffer.data()), count);
  } catch (const std::bad_alloc&) {
    is_full = true;
  }
  if (!is_full) return;
  std::snprintf(writer.message, sizeof(writer.message), "out of memory");
  std::longjmp(writer.jump, 1);
}

boolean empty_jpeg_buffer(j_compress_ptr info) {
  auto* writer = static_cast<JpegWriter*>(info->client_data);
  take_jpeg_bytes(*writer, writer->buffer.size());
  begin_jpeg_buffer(info);
  return TRUE;
}

void end_jpeg_buffer(j_compress_ptr info) {
  auto* writer = static_cast<JpegWriter*>(info->client_data);
  take_jpeg_bytes(*writer, writer->buffer.size() - writer->target.free_in_buffer);
}

bool write_jpeg(JpegWriter& writer, JSAMPARRAY rows, JDIMENSION width, JDIMENSION height,
                int channels, int quality) {
  jpeg_compress_struct& info = writer.info;
  info.err = jpeg_std_error(&writer.errors);
  writer.errors.error_exit = jpeg_write_failed;
  writer.errors.emit_message = jpeg_write_warned;
  info.client_data = &writer;
  if (setjmp(writer.jump) != 0) return false;
  jpeg_create_compress(&info);
  writer.target.init_destination = begin_jpeg_buffer;
  writer.target.empty_output_buffer = empty_jpeg_buffer;
  writer.target.term_destination = end_jpeg_buffer;
  info.dest = &writer.target;
  info.image_width = width;
  info.image_height = height;
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, quality, TRUE);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    jpeg_write_scanlines(&info, rows + info.next_scanline, info.image_height - info.next_scanline);
  }
  jpeg_finish_compress(&info);
  return true;
}

}  // namespace

Pixels decode_jpeg(std::string_view bytes, const std::string& name) {
  JpegReader reader;
  Pixels pixels;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  if (!read_jpeg_header(reader, data, bytes.size(), pixels)) {
    if (reader.has_too_many) {
      throw Error(fmt::format("{}: {}", name, too_many_pixels(pixels.width, pixels.height)));
    }
    jpeg_does_not_decode(name, reader.message);
  }
  pixels.bytes.resize(pixels.height * pixels.row_bytes());
  std::vector<unsigned char*> rows = pixels.rows();
  if (!read_jpeg_pixels(reader, rows.data())) jpeg_does_not_decode(name, reader.message);
  if (pixels.channels == 4) inverted_cmyk_to_rgb(pixels);
  return pixels;
}

std::string encode_jpeg(const at::Tensor& picture, int quality) {
  check_picture(picture, "a JPEG");
  const at::Tensor pixels = picture.contiguous();
  std::vector<unsigned char*> rows = rows_of(pixels);
  JpegWriter writer;
  if (!write_jpeg(writer, rows.data(), static_cast<JDIMENSION>(pixels.size(1)),
                  static_cast<JDIMENSION>(pixels.size(0)), static_cast<int>(pixels.size(2)),
                  quality)) {
    throw Error(
        fmt::format("the JPEG of {} cannot be made: {}", describe_tensor(pixels), writer.message));
  }
  return std::move(writer.bytes);
}

}  // namespace stepop
