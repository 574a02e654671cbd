#include "runtime/tools/report/report_frames.h"

#include "runtime/core/base/text.h"
#include "runtime/core/system/read_file.h"

namespace stepop {
namespace {

template <class Encode>
Json encode_frames(const std::vector<FrameSeries>& all, const Encode& encode) {
  Json list = Json::array();
  for (const FrameSeries& series : all) {
    Json frames = Json::array();
    for (const auto& [step, path] : series.paths) {
      frames.push_back({{"step", step}, {"data", encode(try_read_file(path).value_or(""))}});
    }
    if (!frames.empty() || series.left_out > 0) {
      list.push_back({{"title", series.title}, {"frames", frames}, {"left_out", series.left_out}});
    }
  }
  return list;
}

}  // namespace

std::string cut_text(const std::string& text) {
  return shortened(text, kMostTextBytes, "\n... (cut)");
}

Json frames_json(const std::vector<FrameSeries>& all) { return encode_frames(all, base64); }

Json text_frames_json(const std::vector<FrameSeries>& all) { return encode_frames(all, cut_text); }

}  // namespace stepop
