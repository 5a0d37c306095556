// Tensors whose bytes lie in files beside the ONNX file.
#pragma once

#include "importers/importer.h"
#include "importers/onnx/model.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace loadline {

struct ExternalRange {
  FileId file = kNoFile;  // of a file that is missing
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // from the offset to `length`, or to the end of the file
  bool has_length = false;
};

// The location of external data as a clean relative name ("./a//b" is "a/b"), as open_sibling takes it; names
// that leave the folder stay as they are, for that to refuse. "" if the tensor gives none.
std::string external_location(const OnnxTensor& tensor);

// Opens each file once, adds it to graph.files, and says in notes and graph.missing what is not there.
// `source` and `graph` must outlive it.
class ExternalFiles {
 public:
  ExternalFiles(const Source& source, MetaGraph& graph) : source_(source), graph_(graph) {}

  // Where the tensor's bytes lie. Throws Error{malformed} for what is unsafe or contradictory: see
  // onnx_external.cpp.
  ExternalRange find(const OnnxTensor& tensor, const std::string& name);
  // Call once, after the last find().
  void add_notes();

 private:
  struct Opened {
    FileId file = kNoFile;
    std::uint64_t bytes = 0;
    std::vector<std::string> wanted_by;  // if the file is missing
  };
  Opened& open(const std::string& location, const OnnxTensor& tensor, const std::string& name);

  const Source& source_;
  MetaGraph& graph_;
  std::map<std::string, Opened> files_;
  std::set<std::string> unknown_keys_;
  std::uint64_t checksums_ = 0;
};

}  // namespace loadline
