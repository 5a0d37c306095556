// From what a user typed to a Source: files, model folders, HF caches, org/name.
#pragma once

#include "importers/importer.h"

#include <string>

namespace loadline {

struct ResolveOptions {
  // The hub cache (HF_HUB_CACHE or what it defaults to); empty: org/name is not looked up.
  std::string hub_cache;
  // Follow the user's own links out of the model's folder.
  bool follow_links = false;
  // The architectures that a configuration may be of.
  AssetsLoader assets = {};
};

// An existing path beats org/name. In a folder, in this order: *.safetensors.index.json,
// model.safetensors, other *.safetensors, *.gguf, *.bin.index.json, *.bin, *.pt, *.pth and *.ckpt, *.onnx,
// *.pte, *.ptd, *.tflite, *.pt2, *.npz, *.npy, config.json alone, and last what training leaves beside a
// model (optimizer.pt); other candidates are named in a Note.
// A shard whose index lies beside it opens the whole model. Throws Error.
Source resolve(const std::string& path, const ResolveOptions& options);

// resolve() and import_source().
MetaGraph open_model(const std::string& path, const ResolveOptions& options);

}  // namespace loadline
