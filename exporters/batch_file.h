// A list of conversions in a file, and what is known of those that are done.
#pragma once

#include "exporters/convert_options.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline {

struct BatchJob {
  std::string in, out;  // as they are opened: relative paths of the file count from its folder
  // Option ids and values as written, the file's own before the job's; they are what `request` was made from.
  std::vector<std::pair<std::string, std::string>> options;
  ConvertRequest request;
};

// {"options": {id: value}, "jobs": [{"in": ..., "out": ..., "options": {id: value}}]}: ids are those of
// convert_options(), the first options are for all jobs. `path` is for messages and relative paths. Throws
// Error{malformed | limit} with the line of the fault, also for two jobs with the same output and for the
// option memory_budget, which all jobs share.
std::vector<BatchJob> parse_batch(std::string_view json, const std::string& path);
std::vector<BatchJob> read_batch(const std::string& path);

// A file as it was when a job ended.
struct FileStamp {
  std::string path;
  std::uint64_t bytes = 0;
  std::int64_t modified = 0;  // nanoseconds
  bool operator==(const FileStamp&) const = default;
};

// Which jobs are done, in a file beside the list: by output, with the request and the files that were read
// and written. A job counts as done if its request is the same, and none of these files has another size or
// time.
class BatchState {
 public:
  // Reads the state if there is one. Throws Error{malformed} for a file that is none.
  explicit BatchState(const std::string& jobs_path);

  static std::string path_of(const std::string& jobs_path);
  bool is_done(const BatchJob& job) const;
  // Throws Error{io}.
  void set_done(const BatchJob& job, std::span<const std::string> read, std::span<const std::string> written);

 private:
  struct Done {
    std::string request;
    std::vector<FileStamp> files;
  };
  void save() const;

  std::string path_;
  std::map<std::string, Done> done_;  // by output
};

}  // namespace loadline
