#include "runtime/data/streams/tar_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>
#include <utility>

#include "runtime/core/base/error.h"
#include "runtime/core/base/json_text.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/shell_text.h"
#include "runtime/core/base/text.h"
#include "runtime/core/formats/byte_input.h"
#include "runtime/core/system/read_file.h"
#include "runtime/data/stream_dataset.h"
#include "runtime/data/streams/shard_list.h"
#include "runtime/data/text/text_units.h"

namespace stepop {
namespace {

constexpr std::string_view kUrl = "{url}";
constexpr std::string_view kSkip =
    "; on_damage: skip in the config of the stream leaves damaged records out";
constexpr uint64_t kOrderOfShards = seed_of("shards");
constexpr double kMegabyte = 1 << 20;

std::string name_of(const std::string& shard) { return shard.substr(shard.rfind('/') + 1); }

/// `urls`: a pattern, or a list of them.
std::vector<std::string> read_urls(const Config& params) {
  std::vector<std::string> patterns;
  const Value* given = params.peek("urls");
  if (given != nullptr && given->is_list()) {
    patterns = params.get<std::vector<std::string>>("urls");
  } else {
    patterns.push_back(params.get<std::string>("urls"));
  }
  std::vector<std::string> urls;
  for (const auto& pattern : patterns) {
    for (auto& url : expand_braces(pattern)) urls.push_back(std::move(url));
  }
  return urls;
}

/// `notice` is set to what is to be said of other files in their folder.
std::vector<std::string> read_shards(const Config& params, std::string& notice) {
  const char* key = params.has("urls") ? "urls" : "path";
  if (params.has("urls") && params.has("path")) {
    throw params.error("urls", "\"path\" is given as well: shards are local files or remote ones");
  }
  if (params.has("urls") != params.has("pipe")) {
    throw params.has("urls")
        ? params.error("urls",
                       "remote shards need a command that prints one: \"pipe\", such as  curl -sf "
                       "{url}  or  aws s3 cp {url} -")
        : params.error("pipe",
                       "a command is for remote shards, \"urls\"; \"path\" is read without");
  }
  const Value* path = params.peek("path");
  if (path != nullptr && path->is_text() && path->as_text().find("://") != std::string::npos) {
    throw params.error("path",
                       "remote shards are \"urls\", with the command \"pipe\" that prints one");
  }
  std::vector<std::string> shards;
  try {
    if (params.has("urls")) {
      shards = read_urls(params);
    } else {
      const std::string local = params.get_path("path");
      LeftOut left_out;
      shards = list_shards(local, left_out);
      notice = left_out.notice(local, std::ssize(shards));
      params.note_opened("path", place_of_shards(local));
    }
  } catch (const UsageError&) {
    throw;
  } catch (const Error& error) {
    throw params.error(key, error.what());
  }
  if (shards.empty()) throw params.error(key, "expected at least one shard");
  return shards;
}

std::string read_pipe(const Config& params) {
  std::string pipe = params.get<std::string>("pipe");
  if (!pipe.empty() && pipe.find(kUrl) == std::string::npos) {
    throw params.error("pipe", fmt::format("the command has no {} in it", kUrl));
  }
  return pipe;
}

/// `filter`: a filter, or a list of them.
std::vector<std::unique_ptr<RecordFilter>> read_filters(const Config& params) {
  std::vector<std::unique_ptr<RecordFilter>> filters;
  const Value& value = *params.peek("filter");
  if (!value.is_list()) filters.push_back(record_filters().build(params, "filter"));
  for (size_t i = 0; value.is_list() && i < value.as_list().size(); ++i) {
    filters.push_back(record_filters().build(params, fmt::format("filter/{}", i)));
  }
  return filters;
}

/// `classes.txt` beside the first shard, as make_shards.py writes it; empty when there is none.
std::string names_file(const std::vector<std::string>& shards) {
  const auto path = std::filesystem::path(shards.front()).parent_path() / "classes.txt";
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) ? path.string() : "";
}

/// The names of the classes, a line for each number.
std::vector<std::string> read_names(const std::string& path) {
  std::vector<std::string> names;
  const std::string text = read_file(path);
  const auto lines = TextUnits::lines(text, /*skips_empty=*/true);
  for (int64_t i = 0; i < lines.size(); ++i) names.emplace_back(lines[i]);
  return names;
}

}  // namespace

void TarShards::Params::declare(Parameters& p) {
  p.describe({.name = "path",
              .default_value = "none",
              .about = "a folder, a file, or a pattern such as shard-{000..099}.tar",
              .is_path = true,
              .type = {.kind = "path"}});
  const Config* config =
      p.describe({.name = "urls",
                  .default_value = "none",
                  .about = "remote shards in the place of path: a pattern, or a list",
                  .type = {.kind = "text | list of text"}});
  if (config != nullptr) shards = read_shards(*config, left_out);
  config = p.describe_optional("pipe", "text",
                               "the command that prints a remote shard: aws s3 cp {url} -");
  if (config != nullptr) pipe = read_pipe(*config);
  const Range seconds = at_least(0).at_most(1e6);
  p.add("retries", retries, "how often a command is tried again before the run ends",
        at_least(0).at_most(1000));
  p.add("retry_wait", retry_wait,
        "seconds before the first retry; twice as long before each further one", seconds);
  p.add("timeout", timeout, "seconds without a byte after which a command is ended", seconds);
  p.add("read_ahead", read_ahead, "MB of a remote shard that wait to be read",
        at_least(1).at_most(1 << 20));
  parts.declare(p);
  parts.clips.timeout = timeout;
  config = p.describe_optional(
      "filter", "component record filter | list of component record filter",
      "which records are examples: {class: within, key: json/width, least: 256}, a filter of your "
      "own, or a list; null: all");
  if (config != nullptr) filters = read_filters(*config);
}

TarShards::TarShards(Params params, const Config& config)
    : params_(config),
      left_out_(std::move(params.left_out)),
      shards_(std::move(params.shards)),
      pipe_(std::move(params.pipe)),
      retries_(params.retries),
      retry_wait_(params.retry_wait),
      skips_damaged_(read_parameters<StreamSettings>(config).skips_damaged),
      parts_(params.parts, config),
      filters_(std::move(params.filters)) {
  const std::string names = is_remote() ? "" : names_file(shards_);
  if (!names.empty()) parts_.name_classes(config, read_names(names), names);
  pipe_options_.timeout = params.timeout;
  pipe_options_.read_ahead =
      static_cast<size_t>(static_cast<double>(params.read_ahead) * kMegabyte);
}

void TarShards::begin(const StreamPass& pass) {
  ahead_.reset();
  order_.resize(shards_.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  if (pass.shuffles) {
    Random random(mix_seed({pass.seed, kOrderOfShards, static_cast<uint64_t>(pass.number)}));
    for (size_t i = order_.size(); i > 1; --i) {
      std::swap(order_[i - 1], order_[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    }
  }
  place_ = 0;
  close_shard();
}

void TarShards::close_shard() {
  reader_.reset();
  pipe_input_ = nullptr;
  record_ = furthest_ = failures_ = 0;
}

std::string TarShards::command(size_t place) const {
  std::string command = pipe_;
  const std::string url = shell_word(shard(place));
  for (size_t i = 0; (i = command.find(kUrl, i)) != std::string::npos; i += url.size()) {
    command.replace(i, kUrl.size(), url);
  }
  return command;
}

std::unique_ptr<PipeInput> TarShards::start_command(size_t place) const {
  return std::make_unique<PipeInput>(command(place), pipe_options_);
}

/// Opens the current shard, at a record that begins at `offset`.
void TarShards::open(const InterruptCheck& interrupt, uint64_t offset) {
  if (interrupt) interrupt();
  const auto wants = [this](const std::string& extension) { return parts_.wants(extension); };
  std::unique_ptr<ByteInput> input;
  pipe_input_ = nullptr;
  if (is_remote()) {
    auto piped = ahead_ ? std::move(ahead_) : start_command(place_);
    piped->set_interrupt(&interrupt);
    pipe_input_ = piped.get();
    input = std::make_unique<UnpackedInput>(std::move(piped));
  } else {
    auto unpacked = std::make_unique<UnpackedInput>(std::make_unique<FileInput>(shard(place_)));
    if (offset > 0 && !unpacked->is_gzip()) {
      auto file = std::make_unique<FileInput>(shard(place_));
      file->seek(offset);
      reader_ = std::make_unique<ShardReader>(std::move(file), shard(place_), wants, offset);
      return;
    }
    input = std::move(unpacked);
  }
  reader_ = std::make_unique<ShardReader>(std::move(input), shard(place_), wants);
  pass_over_records(interrupt);
}

/// Skips the records that were returned before.
void TarShards::pass_over_records(const InterruptCheck& interrupt) {
  for (int64_t i = 0; i < record_;) {
    if (interrupt) interrupt();
    try {
      if (!reader_->next()) {
        throw Error(fmt::format("{}: the shard has changed: it has {}, and {} were read before",
                                shard(place_), counted(i, "record"), record_));
      }
      ++i;
    } catch (const DamagedShard& damage) {
      if (!skips_damaged_ || damage.is_cut()) throw;
    }
  }
}

/// Whether all filters choose the record. Throws DamagedShard for one that they cannot read.
bool TarShards::passes(const Record& record) const {
  if (filters_.empty()) return true;
  try {
    const Example example = parts_.decode(record.parts, RecordParts::Which::kDescriptions);
    if (!std::exchange(is_filter_checked_, true)) {
      for (const auto& filter : filters_) filter->check(example);
    }
    return std::ranges::all_of(filters_, [&](const auto& filter) { return (*filter)(example); });
  } catch (const UsageError&) {
    throw;
  } catch (...) {
    throw DamagedShard(fmt::format("{}: filter: {}", record.name, text_of_current_exception()),
                       /*is_cut=*/false);
  }
}

/// Waits, then opens the current shard again.
void TarShards::retry(const std::string& failure, const InterruptCheck& interrupt) {
  if (record_ > furthest_) failures_ = 0;
  furthest_ = record_;
  ++failures_;
  reader_.reset();
  pipe_input_ = nullptr;
  ahead_.reset();
  if (failures_ > retries_) {
    throw Error(fmt::format("{}: the command failed{}: {}\n  {}", shard(place_),
                            failures_ > 1 ? fmt::format(" {} times", failures_) : "", failure,
                            command(place_)));
  }
  const std::chrono::duration<double> wait(retry_wait_ *
                                           std::pow(2.0, static_cast<double>(failures_ - 1)));
  using std::chrono::steady_clock;
  const auto begin = steady_clock::now();
  while (steady_clock::now() - begin < wait) {
    if (interrupt) interrupt();
    constexpr std::chrono::milliseconds kLookEvery(20);
    std::this_thread::sleep_for(std::min<steady_clock::duration>(
        kLookEvery, std::chrono::duration_cast<steady_clock::duration>(wait)));
  }
}

/// Starts the next shard's command once the whole current shard has arrived.
void TarShards::read_ahead() {
  if (pipe_input_ == nullptr || ahead_ || place_ + 1 >= order_.size()) return;
  if (pipe_input_->has_all()) ahead_ = start_command(place_ + 1);
}

std::optional<Record> TarShards::next(const InterruptCheck& interrupt) {
  while (place_ < order_.size()) {
    std::string failure;
    try {
      if (!reader_) open(interrupt);
      if (pipe_input_ != nullptr) pipe_input_->set_interrupt(&interrupt);
      std::optional<Record> record = reader_->next();
      if (record) ++record_;
      read_ahead();
      if (reader_->is_at_end()) {
        close_shard();
        ++place_;
      }
      if (record && passes(*record)) return record;
      if (interrupt) interrupt();
      continue;
    } catch (const PipeFailed& failed) {
      failure = failed.what();
    } catch (const DamagedShard& damage) {
      if (is_remote() && damage.is_cut()) {
        failure = damage.what();
      } else if (!skips_damaged_) {
        throw Error(damage.what() + std::string(kSkip));
      } else {
        note_skipped(damage.what());
        if (!damage.is_cut()) continue;
        close_shard();
        ++place_;
        continue;
      }
    }
    retry(failure, interrupt);
  }
  return std::nullopt;
}

std::string TarShards::save() const {
  nlohmann::ordered_json json = {{"shard", place_}, {"record", record_}};
  if (place_ < order_.size()) json["name"] = name_of(shard(place_));
  if (reader_ && !is_remote()) json["offset"] = reader_->offset();
  return write_json(json);
}

void TarShards::load(const std::string& state, const InterruptCheck& interrupt) {
  std::string name;
  uint64_t offset = 0;
  try {
    const auto json = read_json(state);
    json.at("shard").get_to(place_);
    json.at("record").get_to(record_);
    name = json.value("name", "");
    offset = json.value("offset", uint64_t{0});
  } catch (const std::exception& error) {
    throw Error(fmt::format("the place in the shards cannot be read: {}", error.what()));
  }
  const std::string now = place_ < order_.size() ? name_of(shard(place_)) : "";
  if (name != now || record_ < 0 || place_ > order_.size()) {
    throw Error(fmt::format(
        "the shards have changed: number {} of this pass was {}, and is now {}. Resume with the "
        "same shards, or begin anew with these weights: -r",
        place_, name.empty() ? "none" : name, now.empty() ? "none" : now));
  }
  reader_.reset();
  furthest_ = failures_ = 0;
  if (place_ == order_.size() || record_ == 0) return;
  if (!is_remote()) {
    open(interrupt, offset);
    return;
  }
  while (!reader_) {
    try {
      open(interrupt);
    } catch (const PipeFailed& failed) {
      retry(failed.what(), interrupt);
    } catch (const DamagedShard& damage) {
      retry(damage.what(), interrupt);
    }
  }
}

Example TarShards::decode(const Record& record, Random& /*random*/) const {
  return parts_.decode(record.parts);
}

std::optional<int64_t> TarShards::count(const InterruptCheck& interrupt) {
  if (is_remote()) return std::nullopt;
  int64_t count = 0;
  for (const auto& path : shards_) {
    ShardReader reader(std::make_unique<UnpackedInput>(std::make_unique<FileInput>(path)), path,
                       [this](const std::string& extension) {
                         return !filters_.empty() &&
                                parts_.wants(extension, RecordParts::Which::kDescriptions);
                       });
    while (!reader.is_at_end()) {
      if (interrupt) interrupt();
      try {
        const auto record = reader.next();
        if (record && passes(*record)) ++count;
      } catch (const DamagedShard& damage) {
        // When damaged records are skipped, they are counted when they are read, not here.
        if (!skips_damaged_) throw Error(damage.what() + std::string(kSkip));
      }
    }
  }
  return count;
}

Batch TarShards::collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const {
  return ImageReader::collate(examples, std::move(indices));
}

STEPOP_REGISTER_STREAM(TarShards, {"Tar files in webdataset's layout, local or remote."});

}  // namespace stepop
