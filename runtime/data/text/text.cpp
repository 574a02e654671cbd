#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/error.h"
#include "runtime/core/base/number_text.h"
#include "runtime/core/base/random.h"
#include "runtime/core/system/cache_folder.h"
#include "runtime/core/system/mapped_file.h"
#include "runtime/core/system/owner.h"
#include "runtime/data/dataset.h"
#include "runtime/data/text/stored_numbers.h"
#include "runtime/data/text/text_units.h"
#include "runtime/data/text/tokenizer.h"

namespace stepop {
namespace {

constexpr int64_t kLongest = 1 << 24;
/// Up to this size, the numbers of a text stay in memory.
constexpr size_t kMostInMemory = 16 << 20;
/// The number of lines or documents whose tokens are counted together.
constexpr int64_t kCountedAtOnce = 1024;

struct TextParams {
  InputFile path;
  std::string examples = "lines";
  std::unique_ptr<Tokenizer> tokenizer;
  std::optional<std::string> separator;
  std::optional<int64_t> length;
  std::optional<int64_t> stride;
  bool skip_empty = false;
  std::optional<Path> cache;

  void declare(Parameters& p);
};

MappedFile open_text(const std::string& path) {
  MappedFile file(path);
  if (file.bytes().empty()) throw Error(file.path() + ": the file is empty");
  if (file.bytes().starts_with("\x1f\x8b")) {
    throw Error(file.path() + ": is compressed, and a text is read in place: gunzip it first");
  }
  return file;
}

at::Tensor tensor_of(std::span<const int32_t> ids) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(ids.size())}, at::kLong);
  std::copy(ids.begin(), ids.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

/// The path of the file that keeps a text's numbers; `key` stands for everything on which they
/// depend.
std::string path_of_numbers(const std::optional<Path>& cache, const MappedFile& file,
                            uint64_t key) {
  if (file.bytes().size() <= kMostInMemory && !cache) return {};
  std::string folder;
  if (cache) {
    folder = cache->text;
  } else {
    folder = cache_folder("tokens");
    make_private_folder(folder);
    folder += "/tokens";
  }
  make_private_folder(folder);
  return fmt::format("{}/{:016x}.tokens", folder, key);
}

/// A key that changes with the tokenizer, the file and how the file is cut.
uint64_t key_of_numbers(const Tokenizer& tokenizer, const MappedFile& file, std::string_view how,
                        std::string_view separator) {
  return mix_seed({tokenizer.fingerprint(), seed_of(file.path()), file.bytes().size(),
                   static_cast<uint64_t>(file.time()), seed_of(how), seed_of(separator)});
}

/// The lines or documents of a text.
///
/// An example holds `tokens`, int64 [T], and the text `text`. `labels("length")` gives the numbers
/// of tokens; with any tokenizer except bytes, the first call encodes the whole text.
class TextParts : public Dataset {
 public:
  TextParts(TextParams params, const Config& config)
      : cache_(std::move(params.cache)),
        file_(open_text(params.path.text)),
        tokenizer_(std::move(params.tokenizer)),
        are_lines_(params.examples == "lines"),
        separator_(params.separator.value_or("")),
        length_(params.length.value_or(kLongest)),
        skips_empty_(params.skip_empty) {
    if (!are_lines_ && separator_.empty()) {
      throw config.error("separator",
                         "documents need the text that separates them, such as "
                         "\"<|endoftext|>\" or \"\\n\\n\"");
    }
    units_ = are_lines_ ? TextUnits::lines(file_.bytes(), skips_empty_)
                        : TextUnits::documents(file_.bytes(), separator_);
    if (units_.size() == 0) {
      throw Error(fmt::format("{}: holds no {}", file_.path(), are_lines_ ? "lines" : "documents"));
    }
  }

  int64_t size() const override { return units_.size(); }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, size());
    file_.check_size();
    const std::vector<int32_t> ids = ids_of(index);
    return {.tensors = {{"tokens", tensor_of(ids)}},
            .texts = {{"text", std::string(units_[index])}}};
  }

  at::Tensor labels(std::string_view key) const override {
    if (key != "length") return {};
    std::call_once(is_counted_, [&] { counts_ = count(); });
    return tensor_of(counts_.values());
  }

  std::vector<std::string> label_keys() const override { return {"length"}; }

 private:
  std::vector<int32_t> ids_of(int64_t index) const {
    std::vector<int32_t> ids;
    try {
      tokenizer_->encode_whole(units_[index], ids);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: the {} at byte {}: {}", file_.path(),
                              are_lines_ ? "line" : "document", units_.start(index), error.what()));
    }
    if (static_cast<int64_t>(ids.size()) > length_) ids.resize(static_cast<size_t>(length_));
    return ids;
  }

  StoredNumbers count() const {
    file_.check_size();
    NumbersSource source;
    source.parts = (size() + kCountedAtOnce - 1) / kCountedAtOnce;
    source.make = [&](int64_t part) {
      std::vector<int32_t> lengths;
      const int64_t end = std::min((part + 1) * kCountedAtOnce, size());
      for (int64_t i = part * kCountedAtOnce; i < end; ++i) {
        const size_t length = tokenizer_->is_of_bytes()
                                  ? std::min(units_[i].size(), static_cast<size_t>(length_))
                                  : ids_of(i).size();
        lengths.push_back(static_cast<int32_t>(length));
      }
      return lengths;
    };
    if (!tokenizer_->is_of_bytes()) {
      const auto how = fmt::format("lengths {} {} {}", are_lines_, length_, skips_empty_);
      source.key = key_of_numbers(*tokenizer_, file_, how, separator_);
      source.path = path_of_numbers(cache_, file_, source.key);
    }
    return store_numbers(source);
  }

  std::optional<Path> cache_;
  MappedFile file_;
  std::unique_ptr<Tokenizer> tokenizer_;
  bool are_lines_;
  std::string separator_;
  int64_t length_;
  bool skips_empty_;
  TextUnits units_;
  mutable std::once_flag is_counted_;
  mutable StoredNumbers counts_;
};

/// Windows of a fixed number of tokens over a whole text.
///
/// An example holds `tokens` and `targets`, int64 [length]: the target of each token is the next
/// token.
class TextWindows : public Dataset {
 public:
  TextWindows(TextParams params, const Config& config)
      : file_(open_text(params.path.text)),
        tokenizer_(std::move(params.tokenizer)),
        separator_(params.separator.value_or("")),
        length_(*params.length),
        stride_(params.stride.value_or(length_)) {
    if (tokenizer_->is_of_bytes()) {
      count_ = static_cast<int64_t>(file_.bytes().size());
    } else {
      encode_all(params.cache);
    }
    if (count_ <= length_) {
      throw config.error(
          "length", fmt::format("a window needs {} tokens and the one that follows; {} has {}",
                                with_thousands(length_), file_.path(), with_thousands(count_)));
    }
  }

  int64_t size() const override { return (count_ - 1 - length_) / stride_ + 1; }

  Example get(int64_t index, Random& /*random*/) const override {
    check_index(index, size());
    check_files();
    at::Tensor tokens = at::empty({length_}, at::kLong);
    at::Tensor targets = at::empty({length_}, at::kLong);
    fill(index, tokens.mutable_data_ptr<int64_t>(), targets.mutable_data_ptr<int64_t>());
    return {.tensors = {{"tokens", tokens}, {"targets", targets}}, .texts = {}};
  }

  std::optional<Batch> get_batch(std::span<const int64_t> indices,
                                 std::span<Random> /*randoms*/) const override {
    check_files();
    const auto rows = static_cast<int64_t>(indices.size());
    at::Tensor tokens = at::empty({rows, length_}, at::kLong);
    at::Tensor targets = at::empty({rows, length_}, at::kLong);
    auto* token = tokens.mutable_data_ptr<int64_t>();
    auto* target = targets.mutable_data_ptr<int64_t>();
    for (const int64_t index : indices) {
      check_index(index, size());
      fill(index, token, target);
      token += length_;
      target += length_;
    }
    return Batch({{"tokens", tokens}, {"targets", targets}}, {},
                 std::vector<int64_t>(indices.begin(), indices.end()));
  }

  std::string notice() const override {
    return fmt::format("{}: {}, {} of {}", file_.path(), counted(count_, "token"),
                       counted(size(), "window"), with_thousands(length_));
  }

 private:
  void check_files() const {
    file_.check_size();
    ids_.check();
  }

  void fill(int64_t index, int64_t* tokens, int64_t* targets) const {
    const auto copy = [&](auto first) {
      std::copy_n(first, length_, tokens);
      std::copy_n(first + 1, length_, targets);
    };
    if (tokenizer_->is_of_bytes()) {
      copy(reinterpret_cast<const unsigned char*>(file_.bytes().data()) + index * stride_);
    } else {
      copy(ids_.values().data() + index * stride_);
    }
  }

  /// Encodes each document, or each piece of some lines, separately.
  void encode_all(const std::optional<Path>& cache) {
    const TextPieces pieces(file_.bytes(), separator_);
    const std::vector<size_t> ends = pieces.block_ends();
    NumbersSource source;
    source.parts = static_cast<int64_t>(ends.size());
    source.make = [&](int64_t block) {
      std::vector<int32_t> ids;
      const auto place = static_cast<size_t>(block);
      for (size_t at = place == 0 ? 0 : ends[place - 1]; at < ends[place];) {
        const size_t end = pieces.end_of_piece(at);
        const std::string_view piece = file_.bytes().substr(at, end - at);
        try {
          separator_.empty() ? tokenizer_->encode(piece, ids)
                             : tokenizer_->encode_whole(piece, ids);
        } catch (const Error& error) {
          throw Error(fmt::format("{}: the text at bytes {} to {}: {}", file_.path(), at, end,
                                  error.what()));
        }
        at = end;
      }
      return ids;
    };
    source.key = key_of_numbers(*tokenizer_, file_, "windows", separator_);
    source.path = path_of_numbers(cache, file_, source.key);
    ids_ = store_numbers(source);
    count_ = static_cast<int64_t>(ids_.values().size());
  }

  MappedFile file_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::string separator_;
  int64_t length_;
  int64_t stride_;
  StoredNumbers ids_;
  int64_t count_ = 0;  ///< The number of tokens.
};

void TextParams::declare(Parameters& p) {
  p.require("path", path, "the file");
  p.require("tokenizer", tokenizer,
            "bytes, {class: characters, of: FILE} or {class: bpe, path: tokenizer.json}");
  p.add("examples", examples, "lines, documents, or windows of a fixed number of tokens",
        one_of({"lines", "documents", "windows"}));
  const bool is_described = tokenizer == nullptr;
  const bool are_lines = is_described || examples == "lines";
  const bool are_windows = is_described || examples == "windows";
  const Config* config = nullptr;
  if (is_described || !are_lines) {
    config = p.describe_optional("separator", "text", "the text between two documents");
  }
  if (config != nullptr) separator = config->get<std::string>("separator");
  if (separator && separator->empty()) {
    throw config->error("separator", "expected a text, such as \"<|endoftext|>\" or \"\\n\\n\"");
  }
  const Range tokens = at_least(1).at_most(kLongest);
  constexpr const char* kLength =
      "tokens of a window; of a line or document: the most, others are cut";
  examples == "windows" ? p.require("length", length, kLength, tokens)
                        : p.add("length", length, kLength, tokens);
  if (are_windows) {
    p.add("stride", stride, "tokens from one window to the next; null: length", tokens);
  }
  if (are_lines) {
    p.add("skip_empty", skip_empty, "whether lines without a character are left out");
  }
  p.add("cache", cache,
        "folder for the tokens of windows, 4 bytes each, and for lengths; null: memory for a text "
        "up to 16 MB, else the folder tokens of stepop's cache");
}

std::unique_ptr<Dataset> make_text(const Config& config) {
  auto params = read_parameters<TextParams>(config);
  if (params.examples == "windows") {
    return std::make_unique<TextWindows>(std::move(params), config);
  }
  return std::make_unique<TextParts>(std::move(params), config);
}

STEPOP_REGISTER(datasets(), "Text", make_text,
                {"Lines, documents or windows of a text file of any size, as tokens.",
                 parameters_of<TextParams>()});

}  // namespace
}  // namespace stepop
