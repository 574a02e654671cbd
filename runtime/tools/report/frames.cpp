#include "runtime/tools/report/frames.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "eval_out/read/find_evaluations.h"
#include "runtime/core/log/log_files.h"
#include "runtime/core/pictures/image_file.h"
#include "runtime/train/run/run_files.h"

namespace stepop {
namespace fs = std::filesystem;
namespace {

using SeriesByTitle = std::map<std::string, FrameSeries>;

constexpr std::array<std::string_view, 4> kTextEndings = {".txt", ".csv", ".md", ".tsv"};

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::recursive_directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (entry->is_regular_file(failed)) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void add(SeriesByTitle& all, const std::string& title, int64_t step, const fs::path& path) {
  all[title].title = title;
  all[title].paths[step] = path.string();
}

std::vector<FrameSeries> values_of(const SeriesByTitle& all) {
  std::vector<FrameSeries> series;
  for (const auto& [title, each] : all) series.push_back(each);
  return series;
}

/// Finds pictures, sounds and texts from log ops.
void find_logged(const std::string& run, SeriesByTitle& pictures, SeriesByTitle& texts) {
  std::error_code failed;
  const fs::path train = run + "/train";
  for (const auto& split : fs::directory_iterator(train, failed)) {
    const std::string name = split.path().filename().string();
    if (!is_folder_of_split(name) || !split.is_directory(failed)) continue;
    for (const fs::path& file : files_below(split.path())) {
      const std::string ending = file.extension().string();
      const bool is_picture = is_image_ending(ending) || ending == ".wav";
      if (!is_picture && ending != ".txt") continue;
      const auto parsed = parse_name_with_step(
          (file.parent_path() / file.stem()).lexically_relative(train).string());
      if (parsed) add(is_picture ? pictures : texts, parsed->name, parsed->step, file);
    }
  }
}

/// The sizes of files on a page that shows at most `most_of_one` bytes of each.
struct Sizes {
  int64_t most_of_one;

  int64_t of(const std::string& path) const {
    std::error_code failed;
    const uintmax_t size = fs::file_size(path, failed);
    return failed ? 0 : std::min(static_cast<int64_t>(size), most_of_one);
  }
  int64_t of(const FrameSeries& series) const {
    int64_t bytes = 0;
    for (const auto& [step, path] : series.paths) bytes += of(path);
    return bytes;
  }
  int64_t of(const std::vector<FrameSeries>& series) const {
    int64_t bytes = 0;
    for (const auto& each : series) bytes += of(each);
    return bytes;
  }
};

/// Picks `count` paths evenly, including the first and the last; for 1, the last.
std::map<int64_t, std::string> pick(const std::map<int64_t, std::string>& paths, size_t count) {
  if (count >= paths.size()) return paths;
  const std::vector<std::pair<int64_t, std::string>> all(paths.begin(), paths.end());
  std::map<int64_t, std::string> kept = {all.back()};
  for (size_t i = 0; count > 1 && i < count; ++i) {
    kept.insert(all[i * (all.size() - 1) / (count - 1)]);
  }
  return kept;
}

}  // namespace

RunFrames find_frames(const std::string& run) {
  RunFrames frames;
  SeriesByTitle logged;
  SeriesByTitle logged_texts;
  find_logged(run, logged, logged_texts);
  SeriesByTitle pictures;
  SeriesByTitle texts;
  for (const FoundEvaluation& evaluation : find_evaluations(run)) {
    if (!evaluation.name.empty()) continue;  // in another evaluation's folder
    for (const fs::path& file : files_below(evaluation.folder)) {
      const std::string ending = file.extension().string();
      std::string title =
          (file.parent_path() / file.stem()).lexically_relative(evaluation.folder).string();
      const auto parsed = parse_name_with_step(title);
      if (parsed && parsed->step == evaluation.step) title = parsed->name;
      if (is_image_ending(ending) || ending == ".wav") add(pictures, title, evaluation.step, file);
      const bool is_text =
          std::find(kTextEndings.begin(), kTextEndings.end(), ending) != kTextEndings.end();
      if (is_text) add(texts, title + ending, evaluation.step, file);
    }
  }
  frames.logged = values_of(logged);
  frames.logged_texts = values_of(logged_texts);
  frames.evaluated = values_of(pictures);
  frames.texts = values_of(texts);
  return frames;
}

void fit_frames(std::vector<FrameSeries>& series, int64_t bytes, int64_t most_of_one) {
  const Sizes sizes{most_of_one};
  std::vector<size_t> counts;
  for (auto& each : series) {
    counts.push_back(each.paths.size());
    // A file that is too large by itself takes no space from other files.
    std::erase_if(each.paths, [&](const auto& frame) { return sizes.of(frame.second) > bytes; });
  }
  const std::vector<FrameSeries> all = series;
  size_t longest = 0;
  for (const auto& each : all) longest = std::max(longest, each.paths.size());
  for (size_t most = longest; sizes.of(series) > bytes && most > 0;) {
    // The step is proportional to the excess, so long series need few rounds.
    const double share = static_cast<double>(bytes) / static_cast<double>(sizes.of(series));
    most = std::min(most - 1, static_cast<size_t>(static_cast<double>(most) * share) + 1);
    for (size_t i = 0; i < series.size(); ++i) series[i].paths = pick(all[i].paths, most);
    if (most <= 1) break;
  }
  while (sizes.of(series) > bytes) {
    const auto largest = std::max_element(
        series.begin(), series.end(),
        [&](const FrameSeries& a, const FrameSeries& b) { return sizes.of(a) < sizes.of(b); });
    largest->paths.clear();
  }
  for (size_t i = 0; i < series.size(); ++i) {
    series[i].left_out = counts[i] - series[i].paths.size();
  }
}

}  // namespace stepop
