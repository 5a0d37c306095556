// External data of ONNX: tensors whose bytes lie in files beside the ONNX file.
#pragma once

#include "importers/importer.h"
#include "importers/onnx/model.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace loadline {

struct ExternalRange {
  FileId file = kNoFile;  // kNoFile: the file is missing
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // from the offset to `length`, or to the end of the file
  bool has_length = false;
};

// The location of external data as a clean relative name for open_sibling ("./a//b" becomes "a/b"). A name
// that leaves the folder stays as it is, and open_sibling refuses it. "" if the tensor gives no location.
std::string external_location(const OnnxTensor& tensor);

// Opens each external file once and adds it to graph.files. Reports missing files as notes and their tensors
// in graph.missing. `source` and `graph` must outlive it.
class ExternalFiles {
 public:
  ExternalFiles(const Source& source, MetaGraph& graph) : source_(source), graph_(graph) {}

  // The place of the tensor's bytes. Throws Error{malformed} for unsafe or contradictory external data; the
  // rules are in external.cpp.
  ExternalRange find(const OnnxTensor& tensor, const std::string& name);
  // Call once, after the last find().
  void add_notes();

 private:
  struct Opened {
    FileId file = kNoFile;
    std::uint64_t bytes = 0;
    std::vector<std::string> wanted_by;  // names of the tensors in it, if the file is missing
  };
  Opened& open(const std::string& location, const OnnxTensor& tensor, const std::string& name);

  const Source& source_;
  MetaGraph& graph_;
  std::map<std::string, Opened> files_;
  std::set<std::string> unknown_keys_;
  std::uint64_t checksums_ = 0;
};

}  // namespace loadline
