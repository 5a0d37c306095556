// Binds and runs a conversion, names its output; lists of jobs and their state.
#include "exporters/convert.h"

#include "core/assets/asset_file.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/convert/numbers/elements.h"
#include "core/forward/gguf/type_policy.h"
#include "core/io/atomic_file.h"
#include "core/io/file_system.h"
#include "core/io/graph_reader.h"
#include "core/io/source_file.h"
#include "exporters/preflight.h"

#include <filesystem>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

namespace loadline::exporters {

// --- Binds a conversion, runs it and names its output.

namespace fs = std::filesystem;

// In the model's own folder the output's files would mix with the input's.
void refuse_own_folder(const graph::MetaGraph& graph, const std::string& out) {
  if (!io::is_folder(out)) return;
  std::error_code failure;
  for (const graph::ModelFile& file : graph.files) {
    const fs::path folder = fs::path(file.path).parent_path();
    if (fs::equivalent(out, folder.empty() ? fs::path(".") : folder, failure))
      throw Error(ErrorCode::usage, {.file = out}, "is the folder of the model being read; write elsewhere");
  }
}

namespace {

const Exporter& chosen_exporter(const std::string& to, const std::string& out) {
  if (to.empty()) return out.empty() ? find_exporter("safetensors") : exporter_for_output(out);
  const Exporter& asked = find_exporter(to);
  if (const Exporter* const named = exporter_for(out); named != nullptr && named != &asked)
    throw Error(ErrorCode::usage, "'{}' has the extension of {}, and {} is asked for: choose another name",
                safe_display(out, 200), named->id, asked.id);
  return asked;
}

}  // namespace

const Exporter& checked_exporter(const ConvertRequest& request, const std::optional<std::string>& out) {
  if (out && out->empty()) throw Error(ErrorCode::usage, "the output has no name");
  const Exporter& exporter = chosen_exporter(request.to, out.value_or(""));
  check_options_taken(exporter, request);
  return exporter;
}

Conversion bind_conversion(graph::MetaGraphPtr graph, const ConvertRequest& request,
                           const std::optional<std::string>& out, const ConvertEnvironment& environment) {
  const Exporter& exporter = checked_exporter(request, out);
  Conversion bound{std::move(graph), &exporter, {}, request.layout, request.write};
  ExportOptions& options = bound.options;
  bound.out = out ? *out : output_name(graph::model_name(*bound.graph), exporter, exporter.kind(options));
  if (bound.write.share && bound.write.share->count == 0) {
    if (!environment.share)
      throw Error(ErrorCode::usage,
                  "'auto' needs a process that Slurm or MPI has started: name the part, I/N");
    bound.write.share = environment.share();
  }
  if (const auto type = graph::dtype_named(request.outtype); type && convert::is_cast_target(*type))
    options.outtype = type;
  else if (!request.outtype.empty())
    options.policy = forward::find_type_policy(environment.policies, request.outtype);
  if (options.policy != nullptr && !exporter.supports(*options.policy->type))
    throw Error(ErrorCode::unsupported, "{} files cannot hold quantized weights; the type {} needs gguf",
                exporter.id, options.policy->name)
        .with({"outtype", exporter.supports(graph::DType::bf16) ? "bf16" : "f32"});
  if (!request.order.empty()) options.order = environment.order(*bound.graph, request.order);
  if (!request.imatrix.empty()) options.importance = environment.importance(request.imatrix);
  bound.write.other_inputs = {request.order, request.imatrix};  // an order's name is hardly a file's
  options.follow_links = environment.follow_links;
  return bound;
}

bool can_convert(const graph::MetaGraphPtr& graph, const std::vector<Remedy>& settings,
                 const ConvertEnvironment& environment) {
  try {
    ConvertRequest request;
    for (const Remedy& setting : settings) {
      const auto* const option = find_option(convert_options(), setting.option);
      if (option == nullptr) return false;
      set_option(*option, request, setting.value);
    }
    return !preflight(bind_conversion(graph, request, std::nullopt, environment)).layout.files.empty();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::canceled) throw;
    return false;
  }
}

WriteReport convert_model(const Conversion& conversion, Progress& progress) {
  return write_model(conversion, preflight(conversion).layout, progress);
}

WriteReport write_model(const Conversion& conversion, const Layout& layout, Progress& progress) {
  const io::StorageReader reader(conversion.graph);
  const io::TensorReader tensors(reader);
  const io::ReadTensor read = [&](graph::TensorId id, std::uint64_t offset, std::span<std::byte> bytes) {
    tensors.read(id, offset, bytes);
  };
  WriteOptions write = conversion.write;
  write.refuse_faults = conversion.options.strict;
  return write_layout(layout, *conversion.graph, read, write, progress);
}

std::string output_name(std::string_view model_name, const Exporter& exporter, OutputKind kind) {
  if (const std::size_t slash = model_name.rfind('/'); slash != std::string_view::npos)
    model_name.remove_prefix(slash + 1);
  // only extensions of exporters count: "llama-3.1-70b" has none
  if (const Exporter* written = exporter_for(model_name)) model_name.remove_suffix(written->extension.size());
  std::string name(model_name.empty() ? "model" : model_name);
  name += "-loadline";
  if (kind == OutputKind::file) name += exporter.extension;
  return name;
}

const Exporter& exporter_for_output(const std::string& out) {
  if (out.empty()) throw Error(ErrorCode::usage, "the output has no name");
  if (const Exporter* exporter = exporter_for(out)) return *exporter;
  const std::string extension = fs::path(out).extension().string();
  // an extension that starts with a digit belongs to a folder's name: "Llama-3.1"
  if (extension.empty() || extension.find_first_of("0123456789") == 1 || io::is_folder(out))
    return find_exporter("safetensors");
  throw Error(ErrorCode::usage, "no output format has the extension '{}'", safe_display(extension))
      .with({"to", "safetensors"});
}

// --- Reads lists of jobs, and reads and writes the state beside them.

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostJobs = 10'000;
constexpr std::size_t kLongestValue = 4096;
constexpr std::uint64_t kMostState = 64 << 20;

std::string_view nearest_option(std::string_view id) {
  std::vector<std::string_view> ids;
  for (const auto& option : convert_options()) ids.push_back(option.id);
  return nearest_word(id, ids);
}

void read_options(const assets::AssetNode& from, BatchJob& job) {
  assets::for_each_field(
      from, "options", convert_options().size(), [&](const std::string& id, const assets::AssetNode& node) {
        if (id == "memory_budget")
          node.place.fail("'memory_budget' is shared by all jobs: it is set for the batch");
        const auto* const option = find_option(convert_options(), id);
        if (option == nullptr) {
          const std::string meant(nearest_option(id));
          node.place.fail("no option is called '{}'{}", safe_display(id, 60),
                          meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
        }
        const std::string& text = node.name(fmt::format("'{}'", id), kLongestValue);
        try {
          set_option(*option, job.request, text);
        } catch (const Error& error) {
          if (error.code() != ErrorCode::usage) throw;
          node.place.fail("'{}': {}", id, error.what());
        }
        job.options.emplace_back(id, text);
      });
}

std::string path_in(const assets::AssetNode& job, std::string_view key) {
  const assets::AssetNode& node = job.at(key);
  const std::string& text = node.name(fmt::format("'{}'", key), kLongestValue);
  if (text.empty()) node.place.fail("'{}' is empty", key);
  return text;
}

// The same from every working folder.
std::string absolute_text(const std::string& path) {
  std::error_code failure;
  const fs::path whole = fs::absolute(path, failure);
  return failure ? path : whole.lexically_normal().string();
}

std::optional<FileStamp> stamp(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return FileStamp{absolute_text(path), static_cast<std::uint64_t>(status.st_size), io::changed_at(status)};
}

std::string request_text(const BatchJob& job) {
  Json options = Json::array();
  for (const auto& [id, value] : job.options) options.push_back({id, value});
  return Json({{"in", job.source}, {"options", options}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A path that does not exist may be the name of a model in the hub cache; a path of the working folder it is
// not, nor does one hide that model.
void find_source(BatchJob& job, const fs::path& folder, const fs::path& in, const CachedModel& cached) {
  std::error_code ignored;
  job.in = (folder / in).string();
  job.source = absolute_text(job.in);
  if (fs::exists(job.in, ignored)) return;
  const bool is_hidden = fs::exists(in, ignored);
  if (const auto model = cached ? cached(in.string()) : std::nullopt) {
    job.in = is_hidden ? *model : in.string();
    job.source = in.string();
  } else if (!is_hidden) {
    job.in = in.string();
  }
}

}  // namespace

std::vector<BatchJob> parse_batch(std::string_view json, const std::string& path, const CachedModel& cached) {
  const assets::AssetNode root = assets::parse_asset(json, path);
  root.allow({"options", "jobs"});
  BatchJob shared;
  read_options(root, shared);
  const assets::AssetNode& list = root.at("jobs").as(assets::AssetNode::Kind::list, "'jobs'");
  list.at_most(kMostJobs, "'jobs'");
  const fs::path folder = fs::path(path).parent_path();
  std::vector<BatchJob> jobs;
  std::set<fs::path> outputs;
  for (const assets::AssetNode& node : list.items) {
    node.as(assets::AssetNode::Kind::object, "a job").allow({"in", "out", "options"});
    BatchJob job = shared;
    const fs::path in = path_in(node, "in"), out = path_in(node, "out");
    find_source(job, folder, in, cached);
    job.out = (folder / out).string();
    if (!outputs.insert((folder / out).lexically_normal()).second)
      node.at("out").place.fail("two jobs write '{}'", safe_display(out.string(), 200));
    read_options(node, job);
    jobs.push_back(std::move(job));
  }
  return jobs;
}

std::vector<BatchJob> read_batch(const std::string& path, const CachedModel& cached) {
  return parse_batch(assets::asset_text(path), path, cached);
}

std::string BatchState::path_of(const std::string& jobs_path) { return jobs_path + ".state"; }

BatchState::BatchState(const std::string& jobs_path) : path_(path_of(jobs_path)) {
  if (std::error_code ignored; !fs::exists(path_, ignored)) return;
  const io::SourceFile file = io::SourceFile::open(path_);
  const auto damaged = [&] {
    return Error(ErrorCode::malformed, {.file = path_},
                 "is not a batch state file: remove it to run every job again");
  };
  if (file.size() > kMostState) throw damaged();
  try {
    const Json json = small_json<Json>(file.text_at(0, file.size()));
    for (const Json& entry : json.at("done")) {
      Done done{entry.at("request"), {}};
      for (const Json& of : entry.at("files"))
        done.files.push_back({of.at("path"), of.at("bytes"), of.at("modified")});
      done_.insert_or_assign(entry.at("out").get<std::string>(), std::move(done));
    }
  } catch (const nlohmann::json::exception&) {
    throw damaged();
  }
}

bool BatchState::is_done(const BatchJob& job) const {
  const auto found = done_.find(absolute_text(job.out));
  if (found == done_.end() || found->second.request != request_text(job)) return false;
  for (const FileStamp& file : found->second.files)
    if (stamp(file.path) != file) return false;
  return true;
}

void BatchState::set_done(const BatchJob& job, std::span<const std::string> read,
                          std::span<const std::string> written) {
  Done done{request_text(job), {}};
  for (const auto& paths : {read, written})
    for (const std::string& path : paths)
      if (auto of = stamp(path)) done.files.push_back(std::move(*of));
  done_.insert_or_assign(absolute_text(job.out), std::move(done));
  save();
}

void BatchState::save() const {
  Json list = Json::array();
  for (const auto& [out, done] : done_) {
    Json files = Json::array();
    for (const FileStamp& file : done.files)
      files.push_back({{"path", file.path}, {"bytes", file.bytes}, {"modified", file.modified}});
    list.push_back({{"out", out}, {"request", done.request}, {"files", std::move(files)}});
  }
  const std::string text = Json({{"done", list}}).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  io::AtomicFile file(path_);
  file.write_at(0, std::as_bytes(std::span(text)));
  file.commit();
}

}  // namespace loadline::exporters
