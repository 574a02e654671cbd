#include "eval_out/hdf5/hdf5_references.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "eval_out/hdf5/hdf5_arrays.h"
#include "eval_out/hdf5/hdf5_file.h"
#include "runtime/core/base/error.h"

namespace stepop {
namespace {

constexpr uint64_t kReferenceBytes = 16;  // a length, an address and an index
constexpr uint64_t kObjectHeaderBytes = 16;
constexpr uint64_t kHeapPieceBytes = 1 << 20;
constexpr size_t kMostCollections = 4096;  // the limit in memory
constexpr size_t kMostMessageChunks = 1000;
constexpr uint64_t kMostHead = 64;  // the bytes of an object's header before its messages

constexpr uint64_t kContinuation = 0x10;  // types of messages
constexpr uint64_t kAttribute = 0x0c;
constexpr uint64_t kIsShared = 0x02;
constexpr uint64_t kVariableLength = 9;  // a class of types
constexpr uint64_t kText = 1;

uint64_t padded(uint64_t size) { return (size + 7) / 8 * 8; }

std::string unshuffled(const std::string& bytes, size_t element_bytes) {
  const size_t count = element_bytes == 0 ? 0 : bytes.size() / element_bytes;
  std::string raw = bytes;  // remaining bytes at the end stay in place
  for (size_t byte = 0; byte < element_bytes; ++byte) {
    for (size_t i = 0; i < count; ++i) raw[i * element_bytes + byte] = bytes[byte * count + i];
  }
  return raw;
}

std::string inflated(const std::string& bytes, size_t most, const std::string& name) {
  std::string raw(most, '\0');
  uLongf size = most;
  const int result = uncompress(reinterpret_cast<Bytef*>(raw.data()), &size,
                                reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  if (result != Z_OK) {
    throw Error(fmt::format("{}: a compressed chunk is damaged ({})", name, zError(result)));
  }
  raw.resize(size);
  return raw;
}

/// A chunk with `dataset`'s filters undone, of at most `most` bytes.
std::string unfiltered(hid_t dataset, std::string bytes, uint32_t left_out, size_t most,
                       const std::string& name) {
  const Hdf5Id creation(H5Dget_create_plist(dataset), H5Pclose, "HDF5 properties");
  constexpr size_t kSumBytes = 4;
  for (int i = H5Pget_nfilters(creation) - 1; i >= 0; --i) {
    unsigned flags = 0;
    unsigned values[8] = {};
    size_t count = 8;
    const H5Z_filter_t filter = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &count,
                                               values, 0, nullptr, nullptr);
    if (i < 32 && (left_out >> i & 1U) != 0) continue;
    if (filter == H5Z_FILTER_DEFLATE) {
      bytes = inflated(bytes, most + kSumBytes, name);
    } else if (filter == H5Z_FILTER_SHUFFLE) {
      bytes = unshuffled(bytes, kReferenceBytes);
    } else if (filter == H5Z_FILTER_FLETCHER32 && bytes.size() >= kSumBytes) {
      bytes.resize(bytes.size() - kSumBytes);
    } else {
      throw Error(
          fmt::format("{}: text with the filter {} is not read; h5repack -f {}:GZIP=4 gives it "
                      "another one",
                      name, static_cast<int>(filter), name));
    }
  }
  return bytes;
}

uint64_t address_of_header(hid_t object) {
#if H5_VERSION_GE(1, 12, 0)
  H5O_info2_t info{};
  check_hdf5(H5Oget_info3(object, &info, H5O_INFO_BASIC), "cannot look at an object");
  haddr_t address = 0;
  check_hdf5(H5VLnative_token_to_addr(object, info.token, &address), "cannot look at an object");
  return address;
#else
  H5O_info_t info{};
  check_hdf5(H5Oget_info2(object, &info, H5O_INFO_BASIC), "cannot look at an object");
  return info.addr;
#endif
}

}  // namespace

class Hdf5References::Bytes {
 public:
  explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}

  uint64_t left() const { return bytes_.size() - at_; }

  std::string take(uint64_t size) {
    if (size > left()) throw Error("the file is damaged: something is shorter than it says");
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

  /// A little-endian number.
  uint64_t number(uint64_t size) {
    uint64_t value = 0;
    std::memcpy(&value, take(size).data(), size);
    return value;
  }

 private:
  std::string bytes_;
  uint64_t at_ = 0;
};

Hdf5References::Hdf5References(hid_t file) : file_(hdf5_descriptor(file)) {
  struct stat status {};
  if (::fstat(file_, &status) == 0) end_ = static_cast<uint64_t>(status.st_size);
  const Hdf5Id creation(H5Fget_create_plist(file), H5Pclose, "HDF5 properties");
  hsize_t user_block = 0;
  check_hdf5(H5Pget_userblock(creation, &user_block), "HDF5 properties");
  base_ = user_block;
  size_t address = 0;
  size_t length = 0;
  check_hdf5(H5Pget_sizes(creation, &address, &length), "HDF5 properties");
  is_known_ = address == 8 && length == 8;
}

/// Reads from a place in the file that includes the base address.
std::string Hdf5References::read(uint64_t place, uint64_t size) const {
  std::string bytes;
  if (place <= end_ && size <= end_ - place) {
    bytes.resize(size);
    uint64_t done = 0;
    while (done < size) {
      const ssize_t count =
          ::pread(file_, bytes.data() + done, size - done, static_cast<off_t>(place + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail_file("read", errno);
      if (count == 0) break;
      done += static_cast<uint64_t>(count);
    }
    if (done == size) return bytes;
  }
  throw Error(
      fmt::format("the file is damaged: {} bytes at byte {} are past its end", size, place));
}

const Hdf5References::Sizes& Hdf5References::collection(uint64_t place) {
  const auto known = collections_.find(place);
  if (known != collections_.end()) return known->second;
  const auto damaged = [&] {
    return Error(fmt::format("the file is damaged: no heap of texts is at byte {}", place));
  };
  if (place > end_ || base_ > end_ - place) throw damaged();
  const uint64_t begin = base_ + place;
  Bytes head(read(begin, kObjectHeaderBytes));
  if (head.take(4) != "GCOL" || head.number(1) != 1) throw damaged();
  head.take(3);
  const uint64_t size = head.number(8);
  if (size < kObjectHeaderBytes || size > end_ - begin) throw damaged();
  Sizes sizes;
  std::string piece;
  uint64_t piece_begin = 0;
  for (uint64_t at = kObjectHeaderBytes; size - at >= kObjectHeaderBytes;) {
    if (at < piece_begin || at + kObjectHeaderBytes > piece_begin + piece.size()) {
      piece = read(begin + at, std::min(size - at, kHeapPieceBytes));
      piece_begin = at;
    }
    Bytes object(piece.substr(at - piece_begin, kObjectHeaderBytes));
    const uint64_t index = object.number(2);
    object.take(6);
    const uint64_t bytes = object.number(8);
    // Index 0 is the free space, whose size counts its header.
    if (bytes > size - at || (index == 0 && bytes < kObjectHeaderBytes)) throw damaged();
    const uint64_t whole = index == 0 ? bytes : kObjectHeaderBytes + padded(bytes);
    if (whole > size - at) throw damaged();
    if (index > 0) sizes.emplace_back(static_cast<uint16_t>(index), bytes);
    at += whole;
  }
  std::sort(sizes.begin(), sizes.end());
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::adjacent_find(sizes.begin(), sizes.end(), same) != sizes.end()) throw damaged();
  if (collections_.size() >= kMostCollections) collections_.clear();
  return collections_.emplace(place, std::move(sizes)).first->second;
}

/// Returns the length of the text to which a reference points.
uint64_t Hdf5References::check(Bytes& reference) {
  const uint64_t length = reference.number(4);
  const uint64_t place = reference.number(8);
  const uint64_t index = reference.number(4);
  if (place == 0) return 0;  // there is no text
  const Sizes& sizes = collection(place);
  const auto found =
      std::lower_bound(sizes.begin(), sizes.end(), std::pair(index, uint64_t{0}),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
  if (found != sizes.end() && found->first == index && found->second == length) return length;
  throw Error(
      fmt::format("the file is damaged: the heap of texts at byte {} has no text {} of {} bytes",
                  place, index, length));
}

std::set<std::string> Hdf5References::check_attributes(hid_t object) {
  std::set<std::string> checked;
  if (!is_known_) return checked;
  // The chunks of messages that are still to be checked: beginning and length.
  std::vector<std::pair<uint64_t, uint64_t>> rest;
  uint64_t begin = base_ + address_of_header(object);
  const uint64_t head_bytes = std::min(kMostHead, end_ - std::min(begin, end_));
  Bytes head(read(begin, head_bytes));
  const std::string signature = head.take(4);
  int version = 1;
  bool has_order = false;
  if (signature == "OHDR") {
    version = 2;
    head.take(1);
    const uint64_t flags = head.number(1);
    has_order = (flags & 0x04) != 0;
    if ((flags & 0x20) != 0) head.take(16);  // times
    if ((flags & 0x10) != 0) head.take(4);
    const uint64_t size = head.number(uint64_t{1} << (flags & 0x03));
    check_messages(Bytes(read(begin + head_bytes - head.left(), size)), version, has_order, rest,
                   checked);
  } else {
    if (signature[0] != 1) return checked;  // unknown
    head.take(4);
    const uint64_t size = head.number(4);
    check_messages(Bytes(read(begin + 16, size)), version, has_order, rest, checked);
  }
  for (size_t i = 0; i < rest.size() && i < kMostMessageChunks; ++i) {
    const auto [place, size] = rest[i];
    if (place > end_) throw Error("the file is damaged: a header is past its end");
    begin = base_ + place;
    if (version == 1) {
      check_messages(Bytes(read(begin, size)), version, has_order, rest, checked);
    } else if (size >= 8) {  // a signature before the messages, a checksum after them
      check_messages(Bytes(read(begin + 4, size - 8)), version, has_order, rest, checked);
    }
  }
  return checked;
}

void Hdf5References::check_messages(Bytes messages, int version, bool has_order,
                                    std::vector<std::pair<uint64_t, uint64_t>>& rest,
                                    std::set<std::string>& checked) {
  const uint64_t header = version == 1 ? 8 : (has_order ? 6 : 4);
  while (messages.left() >= header) {
    const uint64_t type = messages.number(version == 1 ? 2 : 1);
    const uint64_t size = messages.number(2);
    const uint64_t flags = messages.number(1);
    if (version == 1) messages.take(3);
    if (version == 2 && has_order) messages.take(2);
    Bytes message(messages.take(size));
    if (type == kContinuation && size >= 16) {
      const uint64_t place = message.number(8);
      rest.emplace_back(place, message.number(8));
    }
    if (type == kAttribute && (flags & kIsShared) == 0)
      check_attribute(std::move(message), checked);
  }
}

void Hdf5References::check_attribute(Bytes message, std::set<std::string>& checked) {
  const uint64_t version = message.number(1);
  const uint64_t flags = message.number(1);
  const uint64_t name_size = message.number(2);
  const uint64_t type_size = message.number(2);
  const uint64_t space_size = message.number(2);
  if (version == 3) message.take(1);
  // In version 1, the second byte has no meaning.
  if (version < 1 || version > 3 || (version > 1 && (flags & 0x03) != 0)) return;
  const auto whole = [&](uint64_t size) { return version == 1 ? padded(size) : size; };
  const std::string name = message.take(whole(name_size)).c_str();
  Bytes type(message.take(whole(type_size)));
  message.take(whole(space_size));
  if (type_size < 8 || (type.number(1) & 0x0f) != kVariableLength) return;
  if ((type.number(1) & 0x0f) != kText) return;
  type.take(10);  // the type's size and the type of its characters
  try {
    if (type.number(4) != 1) throw Error("the file is damaged: its characters have many bytes");
    while (message.left() >= kReferenceBytes) check(message);
    checked.insert(name);
  } catch (const Error& error) {
    throw Error(fmt::format("cannot read the attribute {}: {}", name, error.what()));
  }
}

/// The references as they are in the file; empty when the file stores none.
std::string Hdf5References::stored(hid_t dataset, const std::string& name, uint64_t first,
                                   uint64_t count) const {
  const Hdf5Id creation(H5Dget_create_plist(dataset), H5Pclose, "HDF5 properties");
  if (H5Pget_layout(creation) == H5D_CONTIGUOUS) {
    const haddr_t offset = H5Dget_offset(dataset);
    if (offset == HADDR_UNDEF) return "";
    return read(offset + first * kReferenceBytes, count * kReferenceBytes);
  }
  if (!is_chunked(dataset)) {
    throw Error(
        fmt::format("{}: text in a compact layout is not read; h5repack -l {}:CONTI gives "
                    "it another one",
                    name, name));
  }
  const uint64_t rows = chunk_lengths(dataset).at(0);
  std::string references;
  for (uint64_t begin = first / rows * rows; begin < first + count; begin += rows) {
    const hsize_t place = begin;
    hsize_t size = 0;
    std::string chunk;
    if (H5Dget_chunk_storage_size(dataset, &place, &size) >= 0 && size > 0) {
      if (size > end_) throw Error(name + ": the file is damaged: a chunk is longer than it");
      chunk.resize(size);
      uint32_t left_out = 0;
      check_hdf5(H5Dread_chunk(dataset, H5P_DEFAULT, &place, &left_out, chunk.data()),
                 "cannot read " + name);
      chunk = unfiltered(dataset, std::move(chunk), left_out, rows * kReferenceBytes, name);
      if (chunk.size() < rows * kReferenceBytes) {
        throw Error(name + ": the file is damaged: a chunk is too short");
      }
    }
    chunk.resize(rows * kReferenceBytes);  // zeros for a chunk that is not stored
    const uint64_t from = std::max(begin, first) - begin;
    const uint64_t end = std::min(begin + rows, first + count) - begin;
    references.append(chunk, from * kReferenceBytes, (end - from) * kReferenceBytes);
  }
  return references;
}

std::vector<int64_t> Hdf5References::check_texts(hid_t dataset, const std::string& name,
                                                 int64_t first, int64_t count) {
  std::vector<int64_t> lengths(static_cast<size_t>(count), 0);
  if (count == 0) return lengths;
  if (!is_known_) throw Error(name + ": text is read of files with addresses of 8 bytes only");
  const std::string references =
      stored(dataset, name, static_cast<uint64_t>(first), static_cast<uint64_t>(count));
  if (references.empty()) return lengths;
  for (size_t i = 0; i < lengths.size(); ++i) {
    Bytes reference(references.substr(i * kReferenceBytes, kReferenceBytes));
    try {
      lengths[i] = static_cast<int64_t>(check(reference));
    } catch (const Error& error) {
      throw Error(
          fmt::format("{}: row {}: {}", name, first + static_cast<int64_t>(i), error.what()));
    }
  }
  return lengths;
}

}  // namespace stepop
