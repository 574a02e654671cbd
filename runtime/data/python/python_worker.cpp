#include "runtime/data/python/python_worker.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/interrupt_scope.h"
#include "runtime/core/base/json_text.h"
#include "runtime/data/python/python_answer.h"
#include "runtime/data/python/python_socket.h"

namespace stepop {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr size_t kStatusBytes = 4096;
constexpr size_t kMostBytes = size_t{1} << 48;  ///< Of a tensor.
constexpr double kLongExample = 60;  ///< Seconds after which a slow example is spoken of.

at::ScalarType type_of(const std::string& name) {
  static const std::map<std::string, at::ScalarType, std::less<>> types = {
      {"bool", at::kBool},
      {"uint8", at::kByte},
      {"int8", at::kChar},
      {"int16", at::kShort},
      {"int32", at::kInt},
      {"int64", at::kLong},
      {"uint16", at::kUInt16},
      {"uint32", at::kUInt32},
      {"uint64", at::kUInt64},
      {"float16", at::kHalf},
      {"bfloat16", at::kBFloat16},
      {"float32", at::kFloat},
      {"float64", at::kDouble},
      {"complex64", at::kComplexFloat},
      {"complex128", at::kComplexDouble}};
  const auto found = types.find(name);
  if (found == types.end()) {
    throw Error(fmt::format("a tensor of type {} is not supported: convert it", name));
  }
  return found->second;
}

template <class Number>
void append(std::string& bytes, const Number* numbers, size_t count) {
  bytes.append(reinterpret_cast<const char*>(numbers), count * sizeof(Number));
}

}  // namespace

/// Memory that Python shares with this process.
class PythonWorker::Block {
 public:
  Block(const OpenFile& file, size_t size) : size_(size) {
    struct stat status {};
    const bool fits =
        ::fstat(file.number(), &status) == 0 && status.st_size >= static_cast<int64_t>(size);
    if (!fits) throw Error("Python shared less memory than it announced");
    data_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
    if (data_ == MAP_FAILED) fail_file("map the memory of a batch", errno);
  }
  ~Block() { ::munmap(data_, size_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  char* data() const { return static_cast<char*>(data_); }
  size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  size_t size_;
};

/// The blocks whose tensors are gone, for the next request.
struct PythonWorker::Released {
  std::mutex mutex;
  std::vector<uint32_t> numbers;
};

struct PythonWorker::Layout {
  struct Tensor {
    std::string key;
    at::ScalarType type;
    std::vector<int64_t> sizes;
    size_t offset = 0;
    size_t bytes = 0;
  };
  std::vector<Tensor> tensors;
  std::vector<std::string> texts;

  explicit Layout(std::string_view text) {
    try {
      read(read_ordered_json(text));
    } catch (const Json::exception& error) {
      throw Error(fmt::format("Python sent a layout that cannot be read: {}", error.what()));
    }
  }

 private:
  void read(const Json& json) {
    for (const auto& each : json.at("tensors")) {
      Tensor tensor{.key = each.at(0).get<std::string>(),
                    .type = type_of(each.at(1).get<std::string>()),
                    .sizes = each.at(2).get<std::vector<int64_t>>(),
                    .offset = each.at(3).get<size_t>()};
      tensor.bytes = bytes_of(tensor);
      tensors.push_back(std::move(tensor));
    }
    texts = json.at("texts").get<std::vector<std::string>>();
  }

  static size_t bytes_of(const Tensor& tensor) {
    size_t bytes = c10::elementSize(tensor.type);
    if (tensor.offset % bytes != 0) throw Error("Python announced a tensor between two places");
    for (const int64_t length : tensor.sizes) {
      const bool fits =
          length >= 0 &&
          !__builtin_mul_overflow(bytes, static_cast<size_t>(std::max<int64_t>(length, 1)), &bytes);
      if (!fits || bytes > kMostBytes)
        throw Error("Python announced a tensor of impossible lengths");
    }
    const bool is_empty =
        std::find(tensor.sizes.begin(), tensor.sizes.end(), 0) != tensor.sizes.end();
    return is_empty ? 0 : bytes;
  }
};

/// What the worker writes into its status file: the example that it reads, and a number that grows
/// with each example and batch.
struct PythonWorker::Progress {
  OpenFile file;
  std::unique_ptr<Block> memory;
  Clock::time_point since = Clock::now();
  std::pair<int64_t, int64_t> last = {-1, 0};
  bool has_said = false;

  Progress() {
    file = OpenFile(::memfd_create("stepop status", MFD_CLOEXEC));
    if (!file || ::ftruncate(file.number(), kStatusBytes) != 0) {
      fail_file("make shared memory for Python", errno);
    }
    memory = std::make_unique<Block>(file, kStatusBytes);
  }

  std::pair<int64_t, int64_t> now() const {
    std::array<int64_t, 2> numbers{};
    std::memcpy(numbers.data(), memory->data(), sizeof(numbers));
    return {numbers[0], numbers[1]};
  }
};

PythonWorker::PythonWorker(PythonServer& server, double timeout, const InterruptCheck& interrupt)
    : server_(server),
      timeout_(timeout),
      progress_(std::make_unique<Progress>()),
      released_(std::make_shared<Released>()) {
  auto [ours, theirs] = make_sockets();
  socket_ = std::move(ours);
  pid_ = server_.start_worker(theirs.number(), progress_->file.number(), [&] {
    if (interrupt) interrupt();
    check_start();
  });
  process_ = OpenFile(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
}

PythonWorker::~PythonWorker() {
  // A worker that waits for a request ends by itself when the socket closes, and can clean up.
  if (!has_ended_ && !is_usable_) ::kill(pid_, SIGKILL);
}

Batch PythonWorker::load(std::span<const int64_t> indices, std::span<const uint64_t> seeds) {
  std::string request;
  {
    const std::lock_guard lock(released_->mutex);
    const std::array<uint32_t, 2> counts = {static_cast<uint32_t>(indices.size()),
                                            static_cast<uint32_t>(released_->numbers.size())};
    append(request, counts.data(), counts.size());
    append(request, indices.data(), indices.size());
    append(request, seeds.data(), seeds.size());
    append(request, released_->numbers.data(), released_->numbers.size());
    released_->numbers.clear();
  }
  OpenFile file;
  const std::string answer = ask(request, InterruptScope::current(), &file);
  return read_batch(answer, std::move(file), indices);
}

std::string PythonWorker::ask(const std::string& request, const InterruptCheck& interrupt,
                              OpenFile* file) {
  is_usable_ = false;
  progress_->since = Clock::now();
  std::string answer;
  try {
    const auto waiting = [&] {
      if (interrupt) interrupt();
      check_process();
      check_progress();
    };
    send_message(socket_, request, waiting);
    answer = receive_message(socket_, waiting, file);
  } catch (const SocketClosed&) {
    has_ended_ = true;
    throw PythonError(progress_->now().first,
                      fmt::format("the Python process {} that read it {}", pid_,
                                  server_.end_of_worker(pid_, interrupt)));
  }
  is_usable_ = true;
  if (!answer.starts_with('X')) return answer;
  PythonAnswer error(std::string_view(answer).substr(1));
  const auto index = error.number<int64_t>();
  throw PythonError(index, std::string(error.rest()));
}

/// A process that the worker started may keep the socket open after the worker's death.
void PythonWorker::check_process() {
  if (!process_) return;  // the kernel is older than Linux 5.3
  pollfd ended{process_.number(), POLLIN, 0};
  if (::poll(&ended, 1, 0) <= 0) return;
  pollfd answer{socket_.number(), POLLIN, 0};
  if (::poll(&answer, 1, 0) <= 0) throw SocketClosed();
}

void PythonWorker::check_progress() {
  Progress& progress = *progress_;
  if (const auto now = progress.now(); now != progress.last) {
    progress.last = now;
    progress.since = Clock::now();
    progress.has_said = false;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - progress.since).count();
  if (timeout_ > 0 && seconds > timeout_) fail_late(seconds);
  if (timeout_ == 0 && seconds > kLongExample && !progress.has_said) {
    progress.has_said = true;
    const std::string line = fmt::format(
        "{}: example {} takes longer than {:g} s in the Python process {} (`timeout: 300` ends a "
        "training that waits for longer)\n",
        server_.place(), progress.last.first, kLongExample, pid_);
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, line.data(), line.size());
  }
}

/// The process that forks workers may be stopped, or the dataset's own threads keep it busy.
void PythonWorker::check_start() {
  Progress& progress = *progress_;
  const double seconds = std::chrono::duration<double>(Clock::now() - progress.since).count();
  if (timeout_ > 0 && seconds > timeout_) {
    throw Error(fmt::format(
        "the Python process {} that forks workers has not answered for {:.3g} s (`timeout`): it is "
        "stopped, or busy",
        server_.pid(), seconds));
  }
  if (timeout_ == 0 && seconds > kLongExample && !progress.has_said) {
    progress.has_said = true;
    const std::string line =
        fmt::format("{}: the Python process {} that forks workers has not answered for {:g} s\n",
                    server_.place(), server_.pid(), kLongExample);
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, line.data(), line.size());
  }
}

void PythonWorker::fail_late(double seconds) {
  const int64_t lines = server_.printed().count();
  ::kill(pid_, SIGUSR1);  // faulthandler prints where it is
  const std::string where = server_.printed().last(lines);
  throw PythonError(progress_->last.first,
                    fmt::format("took longer than {:.3g} s (`timeout`) in the Python process {}{}",
                                seconds, pid_, where));
}

Batch PythonWorker::read_batch(std::string_view bytes, OpenFile file,
                               std::span<const int64_t> indices) {
  PythonAnswer answer(bytes);
  if (answer.text(1) != "B") throw Error("Python sent an answer of an unknown kind");
  const auto number = answer.number<uint32_t>();
  const auto size = answer.number<uint64_t>();
  const auto dropped = answer.number<uint32_t>();
  for (uint32_t i = 0; i < dropped; ++i) blocks_.erase(answer.number<uint32_t>());
  if (file) blocks_[number] = std::make_shared<Block>(file, size);
  const auto layout_size = answer.number<uint32_t>();
  if (layout_size > 0) layout_ = std::make_unique<Layout>(answer.text(layout_size));
  const auto found = blocks_.find(number);
  if (found == blocks_.end() || !layout_) throw Error("Python sent an answer without its memory");

  /// The tensors share it; the worker uses the block again when it is gone.
  struct Lease {
    std::shared_ptr<Block> block;
    std::shared_ptr<Released> released;
    uint32_t number;
    ~Lease() {
      const std::lock_guard lock(released->mutex);
      released->numbers.push_back(number);
    }
  };
  const auto lease = std::make_shared<Lease>(found->second, released_, number);
  const Block& memory = *found->second;
  OrderedMap<at::Tensor> tensors;
  for (const auto& part : layout_->tensors) {
    if (part.sizes.empty() || part.sizes.front() != static_cast<int64_t>(indices.size())) {
      throw Error(fmt::format("Python sent another number of examples than {}", indices.size()));
    }
    if (part.bytes > memory.size() || part.offset > memory.size() - part.bytes) {
      throw Error("Python announced a tensor outside of its memory");
    }
    at::Tensor tensor = part.bytes == 0 ? at::empty(part.sizes, part.type)
                                        : at::from_blob(
                                              memory.data() + part.offset, part.sizes,
                                              [lease](void*) {}, part.type);
    tensors.set(part.key, std::move(tensor));
  }
  OrderedMap<std::vector<std::string>> texts;
  for (const auto& key : layout_->texts) {
    std::vector<std::string> values;
    for (size_t i = 0; i < indices.size(); ++i) {
      values.emplace_back(answer.text(answer.number<uint32_t>()));
    }
    texts.set(key, std::move(values));
  }
  return {std::move(tensors), std::move(texts), {indices.begin(), indices.end()}};
}

}  // namespace stepop
