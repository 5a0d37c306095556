// Turns a user's path into a Source: a file, a model folder, a Hugging Face cache, or org/name.
#pragma once

#include "importers/importer.h"

#include <string>

namespace loadline {

struct ResolveOptions {
  // The hub cache's folder (HF_HUB_CACHE or its default). If empty, org/name is not looked up.
  std::string hub_cache;
  // Follow the user's own links out of the model's folder.
  bool follow_links = false;
  // Architecture descriptions, for models given by a configuration alone.
  AssetsLoader assets = {};
};

// An existing path beats org/name. A folder opens the first of: *.safetensors.index.json, model.safetensors,
// other *.safetensors, *.gguf, *.bin.index.json, *.bin, *.pt, *.pth and *.ckpt, *.onnx, *.pte, *.ptd,
// *.tflite, *.pt2, *.npz, *.npy, config.json alone, training state such as optimizer.pt. A Note names the
// other candidates. A shard whose index lies beside it opens the whole model. Throws Error.
Source resolve(const std::string& path, const ResolveOptions& options);

// resolve(), then import_source().
MetaGraph open_model(const std::string& path, const ResolveOptions& options);

}  // namespace loadline
