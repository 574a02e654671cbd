#include "runtime/tools/code/code_places.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/programs/child_process.h"
#include "runtime/core/programs/find_program.h"
#include "runtime/tools/code/build_settings.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostFrames = 16;      // of the user's own code that are kept
constexpr size_t kMostLooked = 10'000;  // of the stack, because of endless recursion
constexpr size_t kMostThrown = 32;      // exceptions that may be active at once

/// Filled in order: a signal handler reads `library_count` first.
std::array<UserLibrary, kMostUserLibraries + 1> known_libraries{};
std::atomic<size_t> library_count{0};
std::vector<std::string>& user_files() {
  static std::vector<std::string> files;
  return files;
}

const UserLibrary* library_of(uintptr_t address) {
  const size_t count = library_count.load(std::memory_order_acquire);
  for (size_t i = 0; i < count; ++i) {
    if (address >= known_libraries[i].begin && address < known_libraries[i].end)
      return &known_libraries[i];
  }
  return nullptr;
}

struct Walk {
  void** addresses;
  size_t most;
  size_t count = 0;
  size_t looked = 0;
};

_Unwind_Reason_Code on_frame(_Unwind_Context* context, void* argument) {
  auto& walk = *static_cast<Walk*>(argument);
  int is_exact = 0;  // whether this is the instruction itself, not the next one after a call
  const uintptr_t address = _Unwind_GetIPInfo(context, &is_exact) - (is_exact != 0 ? 0 : 1);
  if (library_of(address) != nullptr) {
    walk.addresses[walk.count++] = reinterpret_cast<void*>(address);
  }
  return walk.count == walk.most || ++walk.looked == kMostLooked ? _URC_END_OF_STACK
                                                                 : _URC_NO_REASON;
}

/// Where active exceptions passed the user's code, newest last.
class Thrown {
 public:
  /// Notes this thread's stack for the exception at `object`. An exception that is thrown while
  /// `cause` is handled takes over the places of `cause`, if there are more of them.
  void note(const void* object, const void* cause, bool is_new) {
    Record record{object, {}, 0};
    record.count = user_frames(record.addresses.data(), record.addresses.size());
    const std::lock_guard lock(mutex_);
    const Record* own = find(object);  // for a new exception: of an earlier object at the address
    if (!is_new && own != nullptr && own->count > 0) return;
    const Record* before = find(cause);
    if (before != nullptr && before->count >= record.count) {
      record.addresses = before->addresses;
      record.count = before->count;
    }
    if (record.count > 0 || own != nullptr) records_[next_++ % kMostThrown] = record;
  }

  std::vector<void*> addresses(const void* object) {
    const std::lock_guard lock(mutex_);
    const Record* record = find(object);
    if (record == nullptr) return {};
    return {record->addresses.begin(),
            record->addresses.begin() + static_cast<std::ptrdiff_t>(record->count)};
  }

 private:
  struct Record {
    const void* object = nullptr;
    std::array<void*, kMostFrames> addresses{};
    size_t count = 0;
  };

  const Record* find(const void* object) const {
    if (object == nullptr) return nullptr;
    for (size_t i = next_; i > 0 && next_ - i < kMostThrown; --i) {
      const Record& record = records_[(i - 1) % kMostThrown];
      if (record.object == object) return &record;
    }
    return nullptr;
  }

  std::mutex mutex_;
  std::array<Record, kMostThrown> records_{};
  size_t next_ = 0;
};

Thrown& thrown() {
  static auto* all = new Thrown;  // never freed: an exception may be thrown while the program ends
  return *all;
}

/// An exception_ptr is a pointer to the thrown object.
const void* object_of(const std::exception_ptr& exception) {
  static_assert(sizeof exception == sizeof(void*));
  const void* object = nullptr;
  std::memcpy(&object, &exception, sizeof object);
  return object;
}

/// The folders of headers of the system, LibTorch and stepop, each with a slash at its end.
const std::vector<std::string>& folders_of_others() {
  static const std::vector<std::string> folders = [] {
    const BuildSettings& settings = build_settings();
    std::vector<std::string> found = {"/usr/"};
    for (const auto& folder : settings.includes) {
      for (const char* part : {"/runtime/", "/eval_out/", "/stepop/"})
        found.push_back(folder + part);
    }
    const auto& own = settings.includes;
    for (const auto& flag : settings.flags) {
      const bool is_own = std::find(own.begin(), own.end(), flag) != own.end();
      if (flag.starts_with('/') && !is_own) found.push_back(flag + "/");
    }
    return found;
  }();
  return folders;
}

/// The number of parts that two paths have in common at their ends.
size_t common_parts(const fs::path& a, const fs::path& b) {
  auto part_a = a.end();
  auto part_b = b.end();
  size_t count = 0;
  while (part_a != a.begin() && part_b != b.begin() && *--part_a == *--part_b) ++count;
  return count;
}

/// The known path of a user's file, relative to the current folder; empty for any other file. A
/// cached library may have been compiled from other paths, so the ends of paths count.
std::string known_file(const std::string& path) {
  if (is_path_of_others(path)) return "";
  std::string known;
  size_t most = 0;
  for (const auto& file : user_files()) {
    const size_t count = common_parts(path, file);
    if (count <= most || is_path_of_others(file)) continue;
    most = count;
    known = file;
  }
  if (known.empty()) return "";
  const std::string here = fs::path(known).lexically_proximate(fs::current_path()).string();
  return here.starts_with("..") ? known : here;
}

/// The same in a string; a name of which nothing is left is that of a lambda.
std::string short_name(const std::string& symbol) {
  std::string name(symbol.size(), ' ');
  name.resize(shorten_symbol(symbol, name.data()));
  return name.empty() ? "a lambda" : name;  // without -g, a lambda's name is only operator()
}

/// Adds the lines for addresses in one library: function and place, alternating; for an address in
/// an inlined function, also its callers.
void add_places(const UserLibrary& library, const std::vector<void*>& addresses,
                std::vector<std::string>& places) {
  std::vector<std::string> words = {addr2line_path(), "-Cfi", "-e", library.path};
  for (const void* address : addresses) {
    words.push_back(fmt::format("{:#x}", reinterpret_cast<uintptr_t>(address) - library.offset));
  }
  const ChildResult result = run_child(std::move(words), [] {});
  std::istringstream lines(result.out);
  std::string function;
  std::string place;
  while (std::getline(lines, function) && std::getline(lines, place)) {
    place = place.substr(0, place.find(" (discriminator"));
    const size_t colon = place.rfind(':');
    if (place.starts_with('?') || colon == std::string::npos) continue;
    if (place.ends_with(":?") || place.ends_with(":0")) continue;
    const std::string file = fs::path(place.substr(0, colon)).lexically_normal().string();
    const std::string known = known_file(file);
    if (known.empty()) continue;
    std::string text = fmt::format("{}{}: in {}", known, place.substr(colon), short_name(function));
    if (places.empty() || places.back() != text) places.push_back(std::move(text));
  }
}

}  // namespace

void add_user_library(const std::string& path, const std::vector<std::string>& files) {
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  const link_map* map = nullptr;
  const size_t count = library_count.load();
  if (handle == nullptr || count == kMostUserLibraries ||
      ::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) {
    return;  // messages then have no places
  }
  UserLibrary library{::strdup(path.c_str()), 0, 0, map->l_addr};
  const auto find_end = [](dl_phdr_info* info, size_t, void* argument) {
    auto& found = *static_cast<UserLibrary*>(argument);
    if (info->dlpi_addr != found.offset) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const auto& part = info->dlpi_phdr[i];
      if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
      found.begin = info->dlpi_addr + part.p_vaddr;
      found.end = found.begin + part.p_memsz;
    }
    return 1;
  };
  ::dl_iterate_phdr(find_end, &library);
  user_files().insert(user_files().end(), files.begin(), files.end());
  addr2line_path();  // found now, since a signal handler must not search
  folders_of_others();
  known_libraries[count] = library;
  library_count.store(count + 1, std::memory_order_release);
}

const UserLibrary* user_libraries() { return known_libraries.data(); }

size_t user_frames(void** addresses, size_t most) {
  if (library_count.load(std::memory_order_relaxed) == 0) return 0;
  Walk walk{addresses, most};
  _Unwind_Backtrace(on_frame, &walk);
  return walk.count;
}

bool is_path_of_others(std::string_view path) {
  return std::ranges::any_of(folders_of_others(),
                             [&](const std::string& folder) { return path.starts_with(folder); });
}

size_t shorten_symbol(std::string_view symbol, char* out) {
  // g++'s names of lambdas in arguments of templates, which addr2line cannot read.
  if (symbol.starts_with("_Z")) return 0;
  // The registration derives such a class from a network; the user's function may be inlined in it.
  size_t skipped = std::string_view::npos;
  for (const std::string_view watched :
       {"stepop::networks::Watched<", "stepop::networks::WatchedMulti<"}) {
    const size_t end = symbol.find(">::");
    if (!symbol.starts_with(watched) || end == std::string_view::npos) continue;
    skipped = end - watched.size();
    symbol.remove_prefix(watched.size());
  }
  size_t size = 0;
  int depth = 0;
  for (size_t i = 0; i < symbol.size(); ++i) {
    if (i == skipped) continue;
    const std::string_view rest = symbol.substr(i);
    size_t left_out = 0;
    for (const std::string_view what : {"(anonymous namespace)::", "operator()"}) {
      if (rest.starts_with(what)) left_out = what.size();
    }
    if (left_out > 0) {
      i += left_out - 1;
      continue;
    }
    const char c = symbol[i];
    if (c == '(' || c == '<' || c == '{') ++depth;
    if (depth == 0) out[size++] = c;
    if (depth == 1 && rest.starts_with("{lambda")) {
      for (const char letter : std::string_view("lambda")) out[size++] = letter;
    }
    if (c == ')' || c == '>' || c == '}') --depth;
  }
  const auto trim = [&] {
    while (size > 0 && (out[size - 1] == ':' || out[size - 1] == ' ')) --size;
  };
  trim();
  if (std::string_view(out, size).ends_with(" const")) size -= 6;
  trim();
  return std::string_view(out, size).starts_with("$_") ? 0 : size;  // a lambda, as Clang calls it
}

const std::string& addr2line_path() {
  static const std::string path = find_program("addr2line");
  return path;
}

std::string places_of(const std::exception_ptr& exception) {
  const std::vector<void*> addresses = thrown().addresses(object_of(exception));
  std::vector<std::string> places;
  if (addr2line_path().empty()) return "";
  try {
    // Adjacent addresses in one library share a call: each call of addr2line reads all debug info.
    for (size_t i = 0; i < addresses.size();) {
      const UserLibrary* library = library_of(reinterpret_cast<uintptr_t>(addresses[i]));
      std::vector<void*> together;
      for (;
           i < addresses.size() && library_of(reinterpret_cast<uintptr_t>(addresses[i])) == library;
           ++i) {
        together.push_back(addresses[i]);
      }
      if (library != nullptr) add_places(*library, together, places);
    }
  } catch (const Error&) {  // the error itself matters more than its places
    return "";
  }
  std::string text;
  for (const auto& place : places) text += "\n  " + place;
  return text.empty() ? "" : "\nin your own code:" + text;
}

std::string with_places(const std::string& text, int exit_code) {
  const std::string places = exit_code == 1 ? places_of(std::current_exception()) : "";
  return text.find(places) == std::string::npos ? text + places : text;
}

namespace {

/// The next library's function of this name: the C++ library's, or a sanitizer's.
template <class Function>
Function next_function(const char* name) {
  void* const found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  Function function = nullptr;
  std::memcpy(&function, &found, sizeof function);
  return function;
}

void note_thrown(const void* object, bool is_new) {
  if (library_count.load(std::memory_order_relaxed) == 0) return;
  thrown().note(object, object_of(std::current_exception()), is_new);
}

}  // namespace

// `throw` calls this: https://itanium-cxx-abi.github.io/cxx-abi/abi-eh.html#cxx-throw
using Throw = void(void* object, std::type_info* type, void (*destroy)(void*));
Throw on_throw asm("__cxa_throw");
[[gnu::visibility("default")]] void on_throw(void* object, std::type_info* type,
                                             void (*destroy)(void*)) {
  static const auto next = next_function<Throw*>("__cxa_throw");
  note_thrown(object, /*is_new=*/true);
  next(object, type, destroy);
  std::abort();  // it does not return
}

// An exception from another thread, such as a LibTorch thread, enters the user's code here.
using Rethrow = void(std::exception_ptr exception);
Rethrow on_rethrow asm("_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE");
[[gnu::visibility("default")]] void on_rethrow(std::exception_ptr exception) {
  static const auto next =
      next_function<Rethrow*>("_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE");
  note_thrown(object_of(exception), /*is_new=*/false);
  next(std::move(exception));
  std::abort();
}

}  // namespace stepop
