#include "runtime/tools/code/code_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <thread>

#include "runtime/core/base/abi.h"
#include "runtime/core/system/atomic_file.h"
#include "runtime/core/system/cache_folder.h"
#include "runtime/core/system/checksum.h"
#include "runtime/core/system/file_lock.h"
#include "runtime/core/system/folders.h"
#include "runtime/core/system/owner.h"
#include "runtime/core/system/read_file.h"
#include "runtime/core/system/start_thread.h"
#include "runtime/tools/code/build_settings.h"
#include "runtime/tools/code/code_text.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kUnused = std::chrono::hours(24 * 60);

/// Leaves out comments, so a changed comment does not change the checksum.
std::string checksum_of_code(const std::string& content) {
  return content_checksum(code_without_comments(content));
}

std::string checksum_of_file(const std::string& file) {
  return checksum_of_code(try_read_file(file).value_or(""));
}

/// One set of sources in the cache. `<key>.json` lists the compiled libraries, one for each version
/// of the headers, newest first.
class Entry {
 public:
  Entry(std::string folder, const std::vector<std::string>& sources,
        const std::vector<std::string>& flags, std::string compiler, Optimization optimization)
      : folder_(std::move(folder)),
        sources_(sources),
        flags_(flags),
        compiler_(std::move(compiler)),
        optimization_(optimization),
        key_(make_key()),
        base_(fs::path(sources.front()).parent_path()) {}

  std::string lock_path() const { return folder_ + "/" + key_ + ".lock"; }

  /// The library whose headers have not changed; nothing without one.
  std::optional<CompiledCode> find() const {
    for (const auto& build : builds()) {
      CompiledCode code{folder_ + "/" + build.at("library").get<std::string>(), sources_};
      bool is_same = fs::exists(code.library) && foreign_reason(code.library).empty();
      for (const auto& [path, checksum] : build.at("headers").items()) {
        code.files.push_back((base_ / path).lexically_normal().string());
        const auto content = try_read_file(code.files.back());
        is_same = is_same && content && checksum_of_code(*content) == checksum.get<std::string>();
      }
      if (is_same) {
        std::error_code ignored;  // the cache may belong to another user
        fs::last_write_time(json_path(), fs::file_time_type::clock::now(), ignored);
        return code;
      }
    }
    return std::nullopt;
  }

  CompiledCode compile(const Compiler& compiler, const Say& say) const {
    const bool takes_header =
        std::any_of(sources_.begin(), sources_.end(), takes_all) && compiler.fits_header(flags_);
    const auto precompiled =
        takes_header ? precompiled_flags(compiler, folder_, say) : std::vector<std::string>();
    std::string names;
    for (const auto& source : sources_) {
      names += (names.empty() ? "" : ", ") + fs::path(source).filename().string();
    }
    say("compiling " + names);
    const fs::path work = fs::path(folder_) / fmt::format("{}.{}.tmp", key_, ::getpid());
    make_folders(work.string());
    struct Remove {
      const fs::path& folder;
      ~Remove() {
        std::error_code ignored;
        fs::remove_all(folder, ignored);
      }
    } const remove{work};
    const auto begin = fs::file_time_type::clock::now();
    const CompiledCode code = compile_in(work, compiler, precompiled, say);
    if (make_key() != key_) {
      throw Error(fmt::format("{} changed while it was compiled: start again", names));
    }
    // A header that was saved during the compilation may differ from the compiled header.
    const bool is_sure = std::all_of(code.files.begin(), code.files.end(), [&](const auto& file) {
      std::error_code failed;
      return fs::last_write_time(file, failed) < begin && !failed;
    });
    if (is_sure) record(code);
    return code;
  }

 private:
  /// Whether a source includes the precompiled header.
  static bool takes_all(const std::string& source) {
    return try_read_file(source).value_or("").find("<stepop/stepop.h>") != std::string::npos;
  }

  std::string make_key() const {
    Checksum sum;
    for (const auto& flag : flags_) sum.add(flag + '\n');
    sum.add(compiler_ + build_settings().text + STEPOP_BUILT_AGAINST);
    if (optimization_ == Optimization::kQuick) sum.add("quick\n");
    sum.add(try_read_file(build_settings().library).value_or(""));
    for (const auto& source : sources_) {
      const std::string content = code_without_comments(try_read_file(source).value_or(""));
      sum.add(fmt::format("{} {}\n", fs::path(source).filename().string(), content.size()));
      sum.add(content);
    }
    return sum.text();
  }

  std::string json_path() const { return folder_ + "/" + key_ + ".json"; }

  /// A file that another user put there is ignored.
  Json builds() const {
    const auto text = foreign_reason(json_path()).empty() ? try_read_file(json_path())
                                                          : std::optional<std::string>();
    const Json all = text ? Json::parse(*text, nullptr, false) : Json::array();
    Json whole = Json::array();
    for (const auto& build : all) {  // damaged entries are compiled again
      const bool is_whole = build.is_object() && build.contains("library") &&
                            build["library"].is_string() && build.contains("headers") &&
                            build["headers"].is_object();
      if (is_whole) whole.push_back(build);
    }
    return whole;
  }

  CompiledCode compile_in(const fs::path& work, const Compiler& compiler,
                          const std::vector<std::string>& precompiled, const Say& say) const {
    struct Unit {
      std::string object;
      std::string text;
      std::vector<std::string> headers;
      std::exception_ptr error;
    };
    std::vector<Unit> units(sources_.size());
    const auto compile_one = [&](size_t i) {
      Unit& unit = units[i];
      unit.object = (work / fmt::format("{}.o", i)).string();
      try {
        std::vector<std::string> flags = flags_;
        if (takes_all(sources_[i])) {
          flags.insert(flags.end(), precompiled.begin(), precompiled.end());
        }
        unit.headers = compiler.compile(sources_[i], unit.object, flags, optimization_, unit.text);
      } catch (...) {
        unit.error = std::current_exception();
      }
    };
    const size_t at_once = std::max(1U, std::thread::hardware_concurrency());
    for (size_t i = 0; i < sources_.size(); i += at_once) {
      std::vector<std::jthread> threads;
      for (size_t k = i; k < std::min(sources_.size(), i + at_once); ++k) {
        try {
          threads.emplace_back(compile_one, k);
        } catch (const std::system_error& error) {
          fail_thread("compiles " + sources_[k], error);
        }
      }
    }
    CompiledCode code{"", sources_};
    std::vector<std::string> objects;
    for (const auto& unit : units) {
      if (!unit.text.empty() && !unit.error) say(unit.text);
      objects.push_back(unit.object);
      for (const auto& header : unit.headers) {
        if (std::find(code.files.begin(), code.files.end(), header) == code.files.end()) {
          code.files.push_back(header);
        }
      }
    }
    for (const auto& unit : units) {
      if (unit.error) std::rethrow_exception(unit.error);
    }
    std::string content;
    for (const auto& file : code.files) content += checksum_of_file(file);
    code.library =
        fmt::format("{}/{}-{}.so", folder_, key_, content_checksum(content).substr(0, 8));
    compiler.link(objects, code.library + ".tmp", flags_);
    rename_into_place(code.library + ".tmp", code.library);
    return code;
  }

  void record(const CompiledCode& code) const {
    Json headers = Json::object();
    for (size_t i = sources_.size(); i < code.files.size(); ++i) {
      const std::string path = fs::path(code.files[i]).lexically_relative(base_).string();
      headers[path] = checksum_of_file(code.files[i]);
    }
    Json all = Json::array({{{"library", fs::path(code.library).filename().string()},
                             {"headers", std::move(headers)}}});
    for (const auto& build : builds()) {
      if (build.at("library") != all[0]["library"]) all.push_back(build);
    }
    write_file_atomically(json_path(), all.dump(1) + "\n");
  }

  std::string folder_;
  std::vector<std::string> sources_;
  std::vector<std::string> flags_;
  std::string compiler_;
  Optimization optimization_;
  std::string key_;
  fs::path base_;  ///< Headers' paths are relative to it; a copy of all files has the same paths.
};

/// Removes entries that were long unused; ignores files that cannot be removed.
void remove_unused(const std::string& folder) {
  std::error_code ignored;
  const auto limit = fs::file_time_type::clock::now() - kUnused;
  std::vector<std::string> keys;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".json" && entry.last_write_time(ignored) < limit) {
      keys.push_back(entry.path().stem().string());
    }
  }
  for (const auto& key : keys) {
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.path().filename().string().starts_with(key)) fs::remove(entry.path(), ignored);
    }
  }
}

std::string in_cache(const std::string& message) {
  return message + ": the folder for compiled code; STEPOP_CACHE names another one";
}

}  // namespace

std::string code_cache_folder() { return cache_folder("compiled code"); }

CompiledCode compile_code(const std::vector<std::string>& sources,
                          const std::vector<std::string>& flags, Optimization optimization,
                          const Say& say, const InterruptCheck& interrupt) {
  const std::string folder = code_cache_folder();
  const std::string path = compiler_for(flags);
  const Entry full(folder, sources, flags, path, Optimization::kFull);
  try {
    make_private_folder(folder);
  } catch (const Error& error) {
    throw Error(in_cache(error.what()));
  }
  if (auto code = full.find()) return *code;
  const Compiler compiler(path, interrupt);
  // GCC takes as long without optimization.
  const bool is_quick = optimization == Optimization::kQuick && compiler.is_clang();
  const Entry entry = is_quick ? Entry(folder, sources, flags, path, optimization) : full;
  bool is_said = false;
  const auto waiting = [&] {
    if (!is_said) say("waiting for another stepop, which compiles the same code");
    is_said = true;
    if (interrupt) interrupt();
  };
  std::optional<FileLock> lock;
  try {
    lock.emplace(entry.lock_path(), waiting);
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    throw Error(in_cache(error.what()));
  }
  if (auto code = entry.find()) return *code;
  remove_unused(folder);
  return entry.compile(compiler, say);
}

}  // namespace stepop
