// Runs a conversion and names its output.
#include "exporters/convert.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/file_system.h"
#include "core/io/storage_reader.h"
#include "core/io/tensor_reader.h"
#include "exporters/preflight.h"

#include <filesystem>

namespace loadline {

namespace fs = std::filesystem;

// In the model's own folder the output's files would mix with the input's.
void refuse_own_folder(const MetaGraph& graph, const std::string& out) {
  if (!is_folder(out)) return;
  std::error_code failure;
  for (const ModelFile& file : graph.files) {
    const fs::path folder = fs::path(file.path).parent_path();
    if (fs::equivalent(out, folder.empty() ? fs::path(".") : folder, failure))
      throw Error(ErrorCode::usage, {.file = out}, "is the folder of the model being read; write elsewhere");
  }
}

WriteReport convert_model(const MetaGraphPtr& graph, const Exporter& exporter, const ExportOptions& options,
                          const std::string& out, const WriteOptions& write, Progress& progress) {
  return write_model(graph, preflight(*graph, exporter, options, out).layout, write, progress);
}

WriteReport write_model(const MetaGraphPtr& graph, const Layout& layout, const WriteOptions& write,
                        Progress& progress) {
  const StorageReader reader(graph);
  const TensorReader tensors(reader);
  const ReadTensor read = [&](TensorId id, std::uint64_t offset, std::span<std::byte> bytes) {
    tensors.read(id, offset, bytes);
  };
  return write_layout(layout, *graph, read, write, progress);
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
  if (extension.empty() || extension.find_first_of("0123456789") == 1 || is_folder(out))
    return find_exporter("safetensors");
  throw Error(ErrorCode::usage, "no output format has the extension '{}'", safe_display(extension))
      .with({"to", "safetensors"});
}

}  // namespace loadline
