#include "eval_out/hdf5/hdf5_probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <system_error>
#include <vector>

#include "eval_out/hdf5/hdf5.h"
#include "eval_out/hdf5/hdf5_arrays.h"
#include "eval_out/hdf5/hdf5_attributes.h"
#include "eval_out/hdf5/hdf5_file.h"
#include "eval_out/hdf5/hdf5_types.h"
#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/unpack_limit.h"
#include "runtime/core/system/child.h"
#include "runtime/core/system/file_calls.h"

namespace stepop {
namespace {

using Clock = std::chrono::steady_clock;

/// Of the processor; large files have more to walk through.
constexpr rlim_t kMostSeconds = 5;
constexpr uintmax_t kBytesPerSecond = 100'000'000;
constexpr size_t kMostAnswer = 4000;
/// A child that does nothing for so long was born with a lock that some other thread of ours held;
/// the next one hardly is.
constexpr auto kMostIdle = std::chrono::seconds(30);
constexpr int kTries = 3;
constexpr int kPollMilliseconds = 100;

enum ExitCode { kPassed = 0, kNoMemory = 3, kRefused = 4 };

// --- In the child.

bool is_out_of_memory = false;

/// The library calls it for each of its functions that fails.
herr_t keep_memory_errors(hid_t errors, void*) {
  const auto look = [](unsigned, const H5E_error2_t* error, void*) -> herr_t {
    is_out_of_memory = is_out_of_memory || error->maj_num == H5E_RESOURCE;
    return 0;
  };
  return H5Ewalk2(errors, H5E_WALK_UPWARD, look, nullptr);
}

bool has_usual_filters(hid_t dataset) {
  const Hdf5Id creation(H5Dget_create_plist(dataset), H5Pclose, "HDF5 properties");
  for (int i = 0; i < H5Pget_nfilters(creation); ++i) {
    size_t count = 0;
    unsigned flags = 0;
    const H5Z_filter_t filter = H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &count,
                                               nullptr, 0, nullptr, nullptr);
    if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE &&
        filter != H5Z_FILTER_FLETCHER32) {
      return false;
    }
  }
  return true;
}

/// Reads an element: its type is converted, a chunk is found and unpacked. The library's own
/// filters that nobody but it has are less robust: what they packed is read as a whole.
void read_some(hid_t file, hid_t dataset, const std::string& name) {
  const Hdf5Array array = describe_hdf5(dataset, name);  // refuses what lies in other files
  Hdf5Sizes(file).add(dataset, name);
  const auto is_empty = [](int64_t length) { return length == 0; };
  if (array.is_text || !array.dtype || array.shape.empty() ||
      std::any_of(array.shape.begin(), array.shape.end(), is_empty)) {
    return;
  }
  const bool is_whole = !has_usual_filters(dataset);
  std::vector<hsize_t> lengths(array.shape.size(), 1);
  if (is_whole) lengths.assign(array.shape.begin(), array.shape.end());
  lengths[0] = 1;
  const Hdf5Id type = hdf5_type(*array.dtype);
  hsize_t bytes = H5Tget_size(type);
  for (const hsize_t length : lengths) bytes *= length;
  if (is_too_much_unpacked(static_cast<double>(bytes), 0)) return;
  std::vector<char> values(bytes);
  const int64_t rows = is_whole ? array.shape[0] : 1;
  for (int64_t row = 0; row < rows; ++row) {
    check_hdf5(
        H5Dread(dataset, type, hdf5_space(lengths),
                hdf5_rows(dataset, static_cast<hsize_t>(row), lengths), H5P_DEFAULT, values.data()),
        name);
  }
}

void look_at(hid_t file, hid_t object, const std::string& name) {
  if (H5Iget_type(object) == H5I_DATASET) {
    read_some(file, object, name);
  } else if (name == "/") {
    read_attributes(object);
  } else {
    H5Aexists(object, "ragged");
  }
}

/// `answer` gets the message of an Error.
ExitCode walk(const std::string& path, int answer) {
  H5Eset_auto2(H5E_DEFAULT, keep_memory_errors, nullptr);
  try {
    const Hdf5Id file = open_hdf5(path);
    visit_hdf5(file, [&](hid_t object, const std::string& name) {
      try {
        look_at(file, object, name);
      } catch (const Error&) {
      }
    });
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  } catch (const std::exception& error) {
    if (is_out_of_memory) return kNoMemory;
    const std::string message = std::string(error.what()).substr(0, kMostAnswer);
    const ssize_t written = ::write(answer, message.data(), message.size());
    return written > 0 ? kRefused : kPassed;
  }
  return is_out_of_memory ? kNoMemory : kPassed;
}

void set_limit(decltype(RLIMIT_CPU) resource, rlim_t most) {
  rlimit limit{};
  ::getrlimit(resource, &limit);
  limit.rlim_cur = std::min(limit.rlim_cur, most);
  ::setrlimit(resource, &limit);
}

[[noreturn]] void run_child(const std::string& path, int answer, rlim_t most_seconds,
                            rlim_t most_memory) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Our own handlers would write messages of a crash; what asks a run to end is for the parent.
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGXCPU}) {
    ::signal(number, SIG_DFL);
  }
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) ::signal(number, SIG_IGN);
  const int nowhere = ::open("/dev/null", O_RDWR);
  ::dup2(nowhere, STDOUT_FILENO);
  ::dup2(nowhere, STDERR_FILENO);
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_CPU, most_seconds);
  set_limit(RLIMIT_AS, most_memory);
  hdf5_is_alone();
  ::_exit(walk(path, answer));
}

// --- In the parent.

/// The address space that this process has, in bytes.
rlim_t own_memory() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

double processor_seconds(pid_t child) {
  clockid_t clock{};
  timespec time{};
  if (::clock_getcpuclockid(child, &clock) != 0 || ::clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Error harmful(const std::string& path, const std::string& what) {
  return Error(fmt::format("cannot read {}: the file is damaged, or made to harm: reading it {}",
                           path, what));
}

/// Whether the child came to an end; throws Error for what it found.
bool try_probe(const std::string& path, const InterruptCheck& interrupt) {
  std::error_code failed;
  const uintmax_t size = std::filesystem::file_size(path, failed);
  const rlim_t most_seconds = kMostSeconds + (failed ? 0 : size / kBytesPerSecond);
  const double most_memory = unpack_limit();
  const rlim_t address_space = own_memory() + static_cast<rlim_t>(most_memory);
  // The child writes its answer into the other end, which is closed when it ends.
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  const OpenFile read_end(ends[0]);
  OpenFile write_end(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return false;
  if (pid == 0) run_child(path, write_end.number(), most_seconds, address_space);
  Child child(pid, Child::Ends::kAtOnce);
  write_end.close();
  const auto begin = Clock::now();
  while (!child.has_ended()) {
    if (interrupt) interrupt();
    if (Clock::now() - begin > kMostIdle && processor_seconds(pid) < 1) return false;
    pollfd end{read_end.number(), POLLIN, 0};
    const int ready = ::poll(&end, 1, kPollMilliseconds);
    if (ready > 0) ::poll(nullptr, 0, 1);  // it is about to end
  }
  const int status = child.status();
  if (WIFSIGNALED(status)) {
    const int number = WTERMSIG(status);
    if (number == SIGXCPU) {
      throw harmful(path, fmt::format("takes the HDF5 library more than {} s", most_seconds));
    }
    throw harmful(path, fmt::format("ends the HDF5 library with the signal {} ({})", number,
                                    ::strsignal(number)));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) == kPassed) return true;
  if (WEXITSTATUS(status) == kRefused) {
    // The same steps could crash here: what the library does after a failure is not always sound.
    std::string message(kMostAnswer, '\0');
    const ssize_t count = ::read(read_end.number(), message.data(), message.size());
    message.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
    throw Error(message.find(path) == std::string::npos ? path + ": " + message : message);
  }
  if (WEXITSTATUS(status) == kNoMemory) {
    throw harmful(path, fmt::format("takes more than {} of memory; if you know where it is from, "
                                    "STEPOP_UNPACK_LIMIT=2e10 in the environment allows more",
                                    size_text(most_memory)));
  }
  throw harmful(path, "crashes the HDF5 library");  // reported by a sanitizer
}

}  // namespace

void probe_hdf5(const std::string& path, const InterruptCheck& interrupt) {
  for (int left = kTries; left > 0; --left) {
    if (try_probe(path, interrupt)) return;
  }
  throw Error(
      fmt::format("cannot read {}: the process that tests whether it is harmful could not be "
                  "started, or hung, {} times: try again, with more memory and processes",
                  path, kTries));
}

}  // namespace stepop
