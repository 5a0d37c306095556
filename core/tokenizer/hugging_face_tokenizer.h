// The tokenizer of a GGUF file as the files that transformers reads.
#pragma once

#include "core/graph/meta_graph.h"

#include <string>
#include <vector>

namespace loadline {

struct HuggingFaceTokenizer {
  struct File {
    std::string name;  // "tokenizer.json"
    std::string text;
  };
  std::vector<File> files = {};        // tokenizer.json, tokenizer_config.json, generation_config.json
  std::vector<std::string> lost = {};  // sentences: what the keys do not say
};

// Reads the keys tokenizer.* of the graph and their arrays from its file. Without a vocabulary there are no
// files. Throws Error{malformed | limit} naming the file and the key, and Error{io}.
HuggingFaceTokenizer hugging_face_tokenizer(const MetaGraph& gguf);

}  // namespace loadline
