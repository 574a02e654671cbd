#include "eval_out/hdf5/hdf5_driver.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <mutex>

#include "eval_out/read/eval_reader.h"
#include "eval_out/write/eval_writer.h"
#include "tests/index_range.h"
#include "tests/places.h"
#include "tests/scratch_folder.h"

namespace stepop {
namespace hdf5_driver_test {

/// How files became shorter while it lives.
class Cuts {
 public:
  Cuts() { set(this); }
  ~Cuts() { set(nullptr); }
  Cuts(const Cuts&) = delete;
  Cuts& operator=(const Cuts&) = delete;

  /// What a process that is killed after the cut leaves claims to be longer than it is.
  int harmful = 0;
  int all = 0;

  static void note(int file, off_t length) {
    const std::lock_guard lock(mutex);
    struct stat status {};
    if (current == nullptr || ::fstat(file, &status) != 0 || length >= status.st_size) return;
    ++current->all;
    if (claimed_length(file) > length) ++current->harmful;
  }

 private:
  static void set(Cuts* cuts) {
    const std::lock_guard lock(mutex);
    current = cuts;
  }

  /// The "end of file address" in the superblock, by HDF5's specification of the format.
  static int64_t claimed_length(int file) {
    std::array<unsigned char, 64> block{};
    if (::pread(file, block.data(), block.size(), 0) != static_cast<ssize_t>(block.size()) ||
        std::memcmp(block.data(), "\x89HDF\r\n\x1a\n", 8) != 0) {
      return 0;
    }
    constexpr std::array<size_t, 4> kPlaces{40, 44, 28, 28};  // by the superblock's version
    int64_t length = 0;
    std::memcpy(&length, &block.at(kPlaces.at(block[8])), sizeof(length));
    return length;
  }

  static inline std::mutex mutex;
  static inline Cuts* current = nullptr;
};

}  // namespace hdf5_driver_test
}  // namespace stepop

/// The system's own, for this program and the HDF5 library in it.
extern "C" [[gnu::visibility("default")]] int ftruncate(int file, off_t length) noexcept {
  stepop::hdf5_driver_test::Cuts::note(file, length);
  return static_cast<int>(::syscall(SYS_ftruncate, file, length));
}

namespace stepop {
namespace hdf5_driver_test {

constexpr int64_t kRows = 64;
constexpr int64_t kBatch = 8;

/// Rows of which texts, and chunks where it compresses, make the file longer than it ends as.
void write_until(const std::string& path, EvalCompression compression, int64_t rows) {
  EvalWriter writer(path, kRows, {},
                    {.gather_time = std::chrono::milliseconds(0), .compression = compression});
  for (int64_t first = 0; first < rows; first += kBatch) {
    std::vector<at::Tensor> ragged;
    std::vector<std::string> texts;
    for (int64_t i = first; i < first + kBatch; ++i) {
      ragged.push_back(at::full({first > 0 ? 40 : 10}, i));
      texts.push_back("row " + std::to_string(i));
    }
    const at::Tensor x = at::arange(first, first + kBatch, at::kFloat).unsqueeze(1);
    writer.write(
        {.outputs = {{"x", x.expand({kBatch, 20'000})}, {"ragged", ragged}, {"text", texts}}},
        index_range(first, kBatch));
  }
  if (rows == kRows) writer.finish();
}

TEST_CASE("whenever a file is cut, it says before that it is shorter") {
  for (const EvalCompression compression : {EvalCompression::kNone, EvalCompression::kGzip}) {
    for (const int64_t rows : {kRows, kRows / 2}) {
      CAPTURE(rows);
      const ScratchFolder folder;
      const std::string path = folder.path("outputs.h5");
      {
        const Cuts cuts;
        write_until(path, compression, rows);
        CHECK(cuts.all > 0);
        CHECK(cuts.harmful == 0);
      }
      const EvalFile file(rows == kRows ? path : path + ".part");
      CHECK(file.rows() == rows);
      CHECK(file.read("outputs/x", rows - 1, 1).eq(rows - 1).all().item<bool>());
      CHECK(file.read_texts("outputs/text", 9, 1).at(0) == "row 9");
    }
  }
}

TEST_CASE("a file that is closed is as long as it says, and reading cuts none") {
  const ScratchFolder folder;
  const std::string path = folder.path("outputs.h5");
  write_until(path, EvalCompression::kNone, kRows);
  const std::string bytes = read_bytes(path);
  int64_t length = 0;
  std::memcpy(&length, &bytes.at(40), sizeof(length));
  CHECK(length == static_cast<int64_t>(bytes.size()));
  write_bytes(path + ".part", bytes + std::string(100, '\0'));  // as one that was reserved
  CHECK(EvalFile(path + ".part").rows() == kRows);
  CHECK(read_bytes(path + ".part").size() == bytes.size() + 100);
}

TEST_CASE("a file that cannot be opened to be written keeps its bytes") {
  const ScratchFolder folder;
  const std::string plain = read_bytes(STEPOP_SOURCE_DIR "/tests/data/hdf5/plain.h5");
  for (const std::string& bytes :
       {std::string(3000, 'x'), plain.substr(0, plain.size() - 1), plain.substr(0, 100)}) {
    const std::string path = folder.path("a.h5");
    write_bytes(path, bytes);
    {
      const Hdf5Lock lock;
      CHECK(H5Fopen(path.c_str(), H5F_ACC_RDWR, hdf5_file_access(true)) < 0);
    }
    CHECK(read_bytes(path) == bytes);
  }
}

}  // namespace hdf5_driver_test
}  // namespace stepop
