// A conversion: the request, its binding, one run, a list of runs.
#pragma once

#include "core/base/option.h"
#include "core/base/progress.h"
#include "exporters/exporter.h"
#include "exporters/writer/write_layout.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::exporters {

// --- A conversion request, and the table of its options for every front end.

// The words that need a model, files or assets to mean anything are kept as words.
struct ConvertRequest {
  std::string to = {};        // an exporter's id; empty: chosen by the output's name
  std::string outtype = {};   // a float type, or the name of a policy of types; empty: as stored
  std::string order = {};     // an order of the tensors, or a file of their names; empty: the source's
  std::string imatrix = {};   // the path of an importance matrix; empty: none
  ExportOptions layout = {};  // without what these words stand for
  WriteOptions write = {};
};

std::span<const Option<ConvertRequest>> convert_options();

// Whether a conversion to that format takes the option. Options that no exporter lists apply to all formats.
bool takes_option(const Exporter& exporter, std::string_view id);
// Throws Error{usage} naming the first option that is set and that the format does not take.
void check_options_taken(const Exporter& exporter, const ConvertRequest& request);

// --- Binds a request to a model: the one place where its words are understood.

// What words stand for in rooms that the exporters may not include, and in the environment of the process.
struct ConvertEnvironment {
  std::span<const forward::TypePolicy> policies;
  std::function<std::vector<graph::StorageId>(const graph::MetaGraph&, const std::string& order)> order;
  std::function<std::shared_ptr<const graph::ImportanceFile>(const std::string& path)> importance;
  std::function<WriteShare()> share;  // of the part "auto"
  bool follow_links = false;          // as the model was opened
};

struct Conversion {
  graph::MetaGraphPtr graph;
  const Exporter* exporter = nullptr;
  std::string out;
  ExportOptions options = {};
  WriteOptions write = {};
};

// Without `out` the output is named after the model. Throws as checked_exporter() and the environment do.
Conversion bind_conversion(graph::MetaGraphPtr graph, const ConvertRequest& request,
                           const std::optional<std::string>& out, const ConvertEnvironment& environment);

// The part of binding that needs no model, for front ends that refuse before they open one or begin a job:
// the format asked for, else the one that the output's name implies; safetensors if neither is given. Throws
// Error{usage} for an empty name, an extension of another format than the one asked for, and options that the
// format does not take.
const Exporter& checked_exporter(const ConvertRequest& request, const std::optional<std::string>& out);

// Whether a model can be converted with these options: what an advice is tried with before it is given.
bool can_convert(const graph::MetaGraphPtr& graph, const std::vector<Remedy>& settings,
                 const ConvertEnvironment& environment);

// --- Converts a model, for every front end: makes the layout, reads the source and writes the output.

// preflight() and write_model(). Throws an Error for a model without weights or with a note of severity
// error, and as the exporter's layout and write_layout do.
WriteReport convert_model(const Conversion& conversion, Progress& progress);

// Writes what preflight() laid out.
WriteReport write_model(const Conversion& conversion, const Layout& layout, Progress& progress);

// A name for the converted model: the model's name, "-loadline" and, for a file, the exporter's extension.
// "org/name" counts as "name". A file extension that some exporter writes is removed first.
std::string output_name(std::string_view model_name, const Exporter& exporter, OutputKind kind);

// Throws Error{usage} if `out` is the folder that the model's files lie in.
void refuse_own_folder(const graph::MetaGraph& graph, const std::string& out);

// The exporter for the extension of `out`; a path without an extension is a safetensors folder. Throws
// Error{usage} for an extension that no exporter has.
const Exporter& exporter_for_output(const std::string& out);

// --- A list of conversions in a file, and what is known of those that are done.

struct BatchJob {
  std::string in, out;  // as they are opened: relative paths of the file count from its folder
  std::string source;   // what it is known by, even once it is consumed: a whole path, or a name of the hub
  // Option ids and values as written, the file's own before the job's; they are what `request` was made from.
  std::vector<std::pair<std::string, std::string>> options;
  ConvertRequest request;
};

// {"options": {id: value}, "jobs": [{"in": ..., "out": ..., "options": {id: value}}]}: ids are those of
// convert_options(), the first options are for all jobs. `path` is for messages and relative paths. Throws
// Error{malformed | limit} with the line of the fault, also for two jobs with the same output and for the
// option memory_budget, which all jobs share. `cached` gives the folder of a model in the hub cache, or
// nothing: it is asked for inputs that do not exist.
using CachedModel = std::function<std::optional<std::string>(const std::string& name)>;
std::vector<BatchJob> parse_batch(std::string_view json, const std::string& path,
                                  const CachedModel& cached = {});
std::vector<BatchJob> read_batch(const std::string& path, const CachedModel& cached = {});

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

}  // namespace loadline::exporters
