#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/stream.h"
#include "runtime/data/streams/pipe_input.h"
#include "runtime/data/streams/record_parts.h"
#include "runtime/data/streams/shard_reader.h"

namespace stepop {

/// Examples from tar files in webdataset's layout: members with the same name up to the first dot
/// are one example. Local files, plain or gzip, or what a command of the user's prints for each
/// URL, which is read ahead and tried again when it fails.
class TarShards : public Stream {
 public:
  explicit TarShards(const Config& params);

  void begin(const StreamPass& pass) override;
  std::optional<Record> next(const InterruptCheck& interrupt) override;
  std::string save() const override;
  void load(const std::string& state, const InterruptCheck& interrupt) override;
  /// See RecordParts.
  Example decode(const Record& record, Random& random) const override;
  /// Reads through all local shards; nothing for remote ones.
  std::optional<int64_t> count(const InterruptCheck& interrupt) override;
  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override;

 private:
  const std::string& shard(size_t place) const { return shards_[order_[place]]; }
  bool is_remote() const { return !pipe_.empty(); }
  void open(const InterruptCheck& interrupt, uint64_t offset = 0);
  void pass_over_records(const InterruptCheck& interrupt);
  void close_shard();
  std::unique_ptr<PipeInput> start_command(size_t place) const;
  std::string command(size_t place) const;
  void retry(const std::string& failure, const InterruptCheck& interrupt);
  void read_ahead();

  std::vector<std::string> shards_;  ///< Paths, or URLs.
  std::string pipe_;                 ///< The command; empty for local files.
  PipeInput::Options pipe_options_;
  int64_t retries_;
  double retry_wait_;  ///< Seconds before the first retry; twice as long before each further one.
  bool skips_damaged_;
  RecordParts parts_;

  std::vector<size_t> order_;  ///< Of the shards in this pass.
  size_t place_ = 0;           ///< Of the shard at hand, in `order_`.
  int64_t record_ = 0;         ///< Records of it that were given.
  std::unique_ptr<ShardReader> reader_;
  PipeInput* pipe_input_ = nullptr;   ///< The reader's, when it is one.
  std::unique_ptr<PipeInput> ahead_;  ///< Of the next shard.
  int64_t failures_ = 0;              ///< Of the command since it came further than before.
  int64_t furthest_ = 0;              ///< Records of the shard at hand.
};

}  // namespace stepop
