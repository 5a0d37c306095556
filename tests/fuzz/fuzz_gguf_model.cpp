// libFuzzer target for GGUF files as models: whatever the keys and arrays of a file are, reading its
// configuration, its operators and its tokenizer, and making a Hugging Face model of it, give those or an
// Error.
#include "core/base/error.h"
#include "core/forward/model/forward_model.h"
#include "core/forward/model/known_models.h"
#include "core/tokenizer/gguf_tokenizer.h"
#include "exporters/gguf/hugging_face.h"
#include "importers/importer.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using namespace loadline;

// Arrays are read from the file when they are asked for, by its path: a file in memory that has one.
class NamedBytes {
 public:
  NamedBytes() : file_(memfd_create("input", 0)), path_(fmt::format("/proc/self/fd/{}", file_)) {
    if (file_ < 0) std::abort();
  }
  const std::string& path() const { return path_; }
  void set(const std::uint8_t* data, std::size_t size) const {
    if (ftruncate(file_, 0) != 0 || pwrite(file_, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  }

 private:
  int file_;
  std::string path_;
};

template <typename Read>
void attempt(Read read) {
  try {
    read();
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const importers::Importer& importer =
      *std::find_if(importers::importers().begin(), importers::importers().end(),
                    [](const importers::Importer& row) { return row.id == "gguf"; });
  static const NamedBytes file;
  file.set(data, size);
  attempt([&] {
    importers::Source source;
    source.file = std::make_shared<const io::SourceFile>(io::SourceFile::open(file.path()));
    source.open_sibling = [](const std::string&) { return std::shared_ptr<const io::SourceFile>(); };
    const graph::MetaGraph graph = importer.read(source);
    attempt([&] {
      forward::forward_model(graph, *forward::built_in_assets(), forward::built_in_assets()->profile("ggml"));
    });
    attempt([&] { tokenizer::hugging_face_tokenizer(graph); });
    attempt([&] { exporters::hugging_face_model(graph, {}); });
  });
  return 0;
}
