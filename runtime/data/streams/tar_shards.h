#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/notice.h"
#include "runtime/data/stream.h"
#include "runtime/data/streams/pipe_input.h"
#include "runtime/data/streams/record_filter.h"
#include "runtime/data/streams/record_parts.h"
#include "runtime/data/streams/shard_reader.h"

namespace stepop {

/// Examples from tar files in webdataset's layout: members with the same name up to the first dot
/// are one example. The shards are local files, plain or gzip, or the output of a user's command
/// for each URL, which is read ahead and run again when it fails.
class TarShards : public Stream, public StreamNotice {
 public:
  struct Params {
    std::vector<std::string> shards;  ///< Paths, or URLs.
    std::string left_out;             ///< A notice about other files of the folder.
    std::string pipe;                 ///< The command; empty for local files.
    std::vector<std::unique_ptr<RecordFilter>> filters;
    RecordParts::Params parts;
    int64_t retries = 3;
    double retry_wait = 1;
    double timeout = 60;
    int64_t read_ahead = 32;  ///< In MB.

    void declare(Parameters& p);
  };

  TarShards(Params params, const Config& config);
  explicit TarShards(const Config& config) : TarShards(read_parameters<Params>(config), config) {}

  void begin(const StreamPass& pass) override;
  std::optional<Record> next(const InterruptCheck& interrupt) override;
  std::string save() const override;
  void load(const std::string& state, const InterruptCheck& interrupt) override;
  /// See RecordParts.
  Example decode(const Record& record, Random& random) const override;
  /// Reads all local shards, without pictures; returns nothing for remote shards.
  std::optional<int64_t> count(const InterruptCheck& interrupt) override;
  Batch collate(const std::vector<Example>& examples, std::vector<int64_t> indices) const override;
  /// About other files in the shards' folder and members that are not read. Reads the first records
  /// of the first local shard.
  std::string notice() const override;

 private:
  const std::string& shard(size_t place) const { return shards_[order_[place]]; }
  bool is_remote() const { return !pipe_.empty(); }
  void open(const InterruptCheck& interrupt, uint64_t offset = 0);
  void pass_over_records(const InterruptCheck& interrupt);
  bool passes(const Record& record) const;
  void close_shard();
  std::unique_ptr<PipeInput> start_command(size_t place) const;
  std::string command(size_t place) const;
  void retry(const std::string& failure, const InterruptCheck& interrupt);
  void read_ahead();

  Config params_;
  std::string left_out_;             ///< A notice about other files of the folder.
  std::vector<std::string> shards_;  ///< Paths, or URLs.
  std::string pipe_;                 ///< The command; empty for local files.
  PipeInput::Options pipe_options_;
  int64_t retries_;
  double retry_wait_;  ///< Seconds before the first retry; the wait doubles before each further
                       ///< retry.
  bool skips_damaged_;
  RecordParts parts_;
  std::vector<std::unique_ptr<RecordFilter>> filters_;  ///< All have to choose a record.
  mutable bool is_filter_checked_ = false;              ///< The first record was shown to them.

  std::vector<size_t> order_;  ///< The order of the shards in this pass.
  size_t place_ = 0;           ///< The current shard's position in `order_`.
  int64_t record_ = 0;         ///< The number of the current shard's records that were returned.
  std::unique_ptr<ShardReader> reader_;
  PipeInput* pipe_input_ = nullptr;   ///< The reader's input, when it is a PipeInput.
  std::unique_ptr<PipeInput> ahead_;  ///< The next shard's input.
  int64_t failures_ = 0;              ///< The number of failures of the command since it last got
                                      ///< further than before.
  int64_t furthest_ = 0;              ///< The largest number of records that was reached in the
                                      ///< current shard.
};

}  // namespace stepop
