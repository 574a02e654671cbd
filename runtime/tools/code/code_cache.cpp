#include "runtime/tools/code/code_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "runtime/core/base/abi.h"
#include "runtime/core/system/cache_folder.h"
#include "runtime/core/system/checksum.h"
#include "runtime/core/system/file_lock.h"
#include "runtime/core/system/owner.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/system/start_thread.h"
#include "runtime/core/system/usable_processors.h"
#include "runtime/tools/code/build_settings.h"
#include "runtime/tools/code/cache_entry.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

/// Whether a source includes the precompiled header.
bool takes_all(const std::string& source) {
  return try_read_file(source).value_or("").find("<stepop/stepop.h>") != std::string::npos;
}

std::string in_cache(const std::string& message) {
  return message + ": the folder for compiled code; STEPOP_CACHE names another one";
}

/// What changes the result of a compilation besides the code.
std::string made_by(const std::string& compiler, const std::vector<std::string>& flags,
                    Optimization optimization) {
  static const std::string stepop =
      build_settings().text + STEPOP_BUILT_AGAINST + file_checksum(build_settings().library);
  std::string text;
  for (const auto& flag : flags) text += flag + '\n';
  return text + (optimization == Optimization::kQuick ? "quick\n" : "") + compiler + stepop;
}

/// Called several times a second, by several threads, while another process compiles.
using Waiting = std::function<void()>;

FileLock lock_of(const CacheEntry& entry, const Waiting& waiting) {
  try {
    return FileLock(entry.lock_path(), waiting);
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    throw Error(in_cache(error.what()));
  }
}

/// Removes what a compiler wrote for an entry, and its list of headers, unless the file was kept.
class Part {
 public:
  explicit Part(std::string path) : path_(std::move(path)) {}
  ~Part() {
    std::error_code ignored;
    for (const char* end : {"", ".d"}) fs::remove(path_ + end, ignored);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

 private:
  std::string path_;
};

/// A source, and what it is compiled to.
struct Unit {
  std::string source;
  CacheEntry entry;
  std::optional<CachedFile> object{};
  std::string warnings{};
  std::exception_ptr error{};
};

std::string names_of(const std::vector<Unit*>& units) {
  std::string names;
  for (const auto* unit : units) {
    names += (names.empty() ? "" : ", ") + fs::path(unit->source).filename().string();
  }
  return names;
}

/// Makes one library: compiles the sources whose objects are not in the cache, side by side, and
/// links all objects.
class LibraryBuild {
 public:
  LibraryBuild(std::string folder, std::vector<std::string> flags, const Compiler& compiler,
               Optimization optimization, const Say& say, Waiting waiting)
      : folder_(std::move(folder)),
        flags_(std::move(flags)),
        compiler_(compiler),
        optimization_(optimization),
        header_key_(precompiled_header_key(compiler)),
        say_(say),
        waiting_(std::move(waiting)) {}

  CachedFile make(const CacheEntry& library, const std::vector<std::string>& sources) const {
    // The time before any object was found: its headers had this content then.
    const auto begin = fs::file_time_type::clock::now();
    std::vector<Unit> units;
    for (const auto& source : sources) units.push_back(unit_of(source));
    std::vector<Unit*> all;
    std::vector<Unit*> missing;
    for (auto& unit : units) {
      all.push_back(&unit);
      if (!unit.object) missing.push_back(&unit);
    }
    if (!missing.empty()) compile(missing);
    if (!library.is_current()) {
      throw Error(fmt::format("{} changed while it was compiled: start again", names_of(all)));
    }
    std::vector<std::string> objects;
    std::vector<std::string> headers;
    for (const auto& unit : units) {
      objects.push_back(unit.object->path);
      for (size_t i = 1; i < unit.object->code.size(); ++i) {
        const std::string& header = unit.object->code[i];
        if (std::ranges::find(headers, header) == headers.end()) headers.push_back(header);
      }
    }
    const Part part(library.part_path());
    compiler_.link(objects, library.part_path(), flags_);
    return library.keep(headers, begin, compiler_.identity());
  }

 private:
  CacheEntry object_entry(const std::string& source, Optimization optimization) const {
    return {
        folder_, {source}, made_by(compiler_.identity() + header_key_, flags_, optimization), ".o"};
  }

  /// A unit with the object that the cache has.
  Unit unit_of(const std::string& source) const {
    Unit unit{.source = source, .entry = object_entry(source, optimization_)};
    unit.object = unit.entry.find();
    if (!unit.object && optimization_ == Optimization::kQuick) {
      unit.object = object_entry(source, Optimization::kFull).find();
    }
    return unit;
  }

  void compile(const std::vector<Unit*>& units) const {
    const bool takes_header =
        std::ranges::any_of(units, takes_all, &Unit::source) && compiler_.fits_header(flags_);
    const auto precompiled = takes_header ? precompiled_flags(compiler_, header_key_, folder_, say_)
                                          : std::vector<std::string>();
    say_("compiling " + names_of(units));
    std::atomic<size_t> next = 0;
    const auto compile_next = [&] {
      for (size_t i = next++; i < units.size(); i = next++) {
        try {
          compile_one(*units[i], precompiled);
        } catch (const Interrupted&) {
          units[i]->error = std::current_exception();
          next = units.size();
        } catch (...) {
          units[i]->error = std::current_exception();
        }
      }
    };
    const auto at_once = static_cast<size_t>(usable_processors());
    {
      std::vector<std::jthread> threads;
      while (threads.size() < std::min(units.size(), at_once)) {
        try {
          threads.emplace_back(compile_next);
        } catch (const std::system_error& error) {
          fail_thread("compiles " + names_of(units), error);
        }
      }
    }
    report(units);
  }

  /// Says the warnings; throws the errors of all sources in their order, or an error that is no
  /// compiler's.
  void report(const std::vector<Unit*>& units) const {
    std::string errors;
    for (const auto* unit : units) {
      try {
        if (unit->error) std::rethrow_exception(unit->error);
        if (!unit->warnings.empty()) say_(unit->warnings);
      } catch (const CompileError& error) {
        const std::string& note = compiler_.note();
        if (errors.ends_with(note)) errors.resize(errors.size() - note.size());  // once, at the end
        errors += error.what();
      }
    }
    if (!errors.empty()) throw CompileError(errors);
  }

  void compile_one(Unit& unit, const std::vector<std::string>& precompiled) const {
    const FileLock held = lock_of(unit.entry, waiting_);
    unit.object = unit.entry.find();  // another process may have compiled it for another library
    if (unit.object) return;
    std::vector<std::string> flags = flags_;
    if (takes_all(unit.source)) flags.insert(flags.end(), precompiled.begin(), precompiled.end());
    const auto begin = fs::file_time_type::clock::now();
    const std::string path = unit.entry.part_path();
    const Part part(path);
    const auto headers = compiler_.compile(unit.source, path, flags, optimization_, unit.warnings);
    unit.object = unit.entry.keep(headers, begin, compiler_.identity());
  }

  std::string folder_;
  std::vector<std::string> flags_;
  const Compiler& compiler_;
  Optimization optimization_;
  std::string header_key_;
  const Say& say_;
  Waiting waiting_;
};

}  // namespace

std::string code_cache_folder() { return cache_folder("compiled code"); }

CompiledCode compile_code(const std::vector<std::string>& sources,
                          const std::vector<std::string>& flags, Optimization optimization,
                          const Say& say, const InterruptCheck& interrupt) {
  const std::string folder = code_cache_folder();
  const std::string path = compiler_for(flags);
  const auto entry_for = [&](Optimization of) {
    return CacheEntry(folder, sources, made_by(path, flags, of), ".so");
  };
  const auto result = [](CachedFile file) {
    return CompiledCode{std::move(file.path), std::move(file.code), std::move(file.compiler)};
  };
  try {
    make_private_folder(folder);
  } catch (const Error& error) {
    throw Error(in_cache(error.what()));
  }
  if (auto found = entry_for(Optimization::kFull).find()) return result(*found);
  const Compiler compiler(path, interrupt);
  // GCC takes as long without optimization.
  if (!compiler.is_clang()) optimization = Optimization::kFull;
  const CacheEntry entry = entry_for(optimization);
  std::mutex one;
  bool is_said = false;
  const Waiting waiting = [&] {
    const std::lock_guard only(one);
    if (!is_said) say("waiting for another stepop, which compiles the same code");
    is_said = true;
    if (interrupt) interrupt();
  };
  const FileLock held = lock_of(entry, waiting);
  if (auto found = entry.find()) return result(*found);
  remove_unused_entries(folder);
  return result(
      LibraryBuild(folder, flags, compiler, optimization, say, waiting).make(entry, sources));
}

}  // namespace stepop
