// vLLM and SGLang, ExecuTorch, onnxruntime, OpenVINO, LiteRT, numpy.

#include "core/load/methods/builder.h"
#include "core/load/methods/framework_sizes.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace loadline::load {

// --- Serving engines: parameters on the device are filled from mapped files, then fused groups are laid out
// anew.

namespace {

// vLLM and SGLang copy each tensor to its place in a parameter that holds all experts of a layer, and replace
// that parameter after reading by one in the layout of their kernels. `together`: all old parameters live
// until the last new one is made.
plan::Plan load_and_repack(MethodBuilder& b, bool together) {
  const std::vector<ExpertGroup> groups = b.parts().expert_groups(b.order());
  struct Place {
    plan::BlockId block{};
    std::uint64_t at = 0;
  };
  std::vector<Place> places(b.graph().storages.size());
  std::vector<bool> grouped(b.graph().storages.size(), false);
  std::vector<plan::BlockId> fused;
  const auto make = [&](const ExpertGroup& group, plan::BlockUse use) {
    return plan::alloc(b.plan(), {.bytes = group.bytes,
                                  .space = plan::Space::device,
                                  .use = use,
                                  .storage = {},
                                  .extra = group.label});
  };
  for (const ExpertGroup& group : groups) {
    fused.push_back(make(group, plan::BlockUse::temporary));
    std::uint64_t at = 0;
    for (const graph::StorageId id : group.storages) {
      places[graph::index(id)] = {fused.back(), at};
      grouped[graph::index(id)] = true;
      at += b.bytes(id);
    }
  }
  for (const graph::StorageId id : b.order())
    if (!grouped[graph::index(id)]) places[graph::index(id)] = {b.make(plan::Space::device, id), 0};
  plan::mark(b.plan(), "empty model on the device");
  for (const StorageOrder& shard : b.by_shard()) {
    std::vector<plan::BlockId> mapped;
    for (const graph::StorageId id : shard) {
      mapped.push_back(b.load(plan::Space::page_cache, id));
      plan::copy(b.plan(), places[graph::index(id)].block, places[graph::index(id)].at, mapped.back(), 0,
                 b.bytes(id));
    }
    b.drop_all(mapped);
  }
  plan::mark(b.plan(), "files read");
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const plan::BlockId made = make(groups[g], plan::BlockUse::storage);
    b.move(made, fused[g]);
    if (!together) b.drop(fused[g]);
  }
  if (together) b.drop_all(fused);
  return b.finish();
}

}  // namespace

plan::Plan load_engine_repack(MethodBuilder& b) { return load_and_repack(b, false); }

plan::Plan load_engine_repack_all(MethodBuilder& b) { return load_and_repack(b, true); }

// --- ExecuTorch's Vulkan delegate, before and after pytorch/executorch#13501.

namespace {

// A weight with several names has as many consumers. Its host copy is freed with the last of them
// (pytorch/executorch#18906). If prepacked tensors are not cached, each consumer packs its own (#18361).
class StagedPrepack {
 public:
  explicit StagedPrepack(MethodBuilder& b) : b_(b), consumers_(b.graph().storages.size(), 1) {
    for (const std::vector<graph::TensorId>& group : b.parts().tied_groups())
      consumers_[graph::index(b.graph().tensor(group.front()).storage)] =
          static_cast<std::uint32_t>(group.size());
    for (const graph::StorageId id : b_.order()) read_.push_back(b_.load(plan::Space::host, id));
    plan::mark(b_.plan(), "file data on the host");
  }

  // The number of device tensors that a storage becomes.
  std::size_t copies(graph::StorageId id) const {
    return b_.bound().request.doubled_ties ? consumers_[graph::index(id)] : 1;
  }

  // `make` returns the i-th storage's k-th tensor on the device; it is called in packing order. Further
  // consumers of a weight come after all first ones, as a head does.
  template <typename Make>
  void run(Make make) {
    for (std::size_t i = 0; i < read_.size(); ++i) pack(i, 0, make);
    for (std::size_t i = 0; i < read_.size(); ++i) {
      const graph::StorageId id = b_.order()[i];
      for (std::size_t k = 1; k < copies(id); ++k) pack(i, k, make);
      if (consumers_[graph::index(id)] > 1) b_.drop(read_[i]);
    }
    flush();
  }

 private:
  // Packs through a staging buffer of the tensor's size; the host copy is freed once the buffer is filled.
  template <typename Make>
  void pack(std::size_t i, std::size_t k, Make make) {
    const graph::StorageId id = b_.order()[i];
    const plan::BlockId staging = b_.make(plan::Space::staging, id, plan::BlockUse::temporary);
    const plan::BlockId weight = make(i, k);
    b_.move(staging, read_[i]);
    if (consumers_[graph::index(id)] == 1) b_.drop(read_[i]);
    b_.move(weight, staging);
    waiting_.push_back(staging);
    waiting_bytes_ += b_.bytes(id);
    if (waiting_bytes_ >= b_.bound().request.flush_bytes) flush();
  }

  // Frees the staging buffers, which wait until flush_bytes are worth a submission
  // (pytorch/executorch#18816).
  void flush() {
    b_.drop_all(std::exchange(waiting_, {}));
    waiting_bytes_ = 0;
  }

  MethodBuilder& b_;
  std::vector<std::uint32_t> consumers_;  // by storage
  std::vector<plan::BlockId> read_, waiting_;
  std::uint64_t waiting_bytes_ = 0;
};

}  // namespace

bool executorch_waits(const LoadRequest& request) { return request.flush_bytes > 0; }

plan::Plan load_executorch_before(MethodBuilder& b) {
  StagedPrepack staged(b);
  std::vector<plan::BlockId> model;  // the first block of each weight; those of its further copies follow
  for (const graph::StorageId id : b.order()) {
    model.push_back(b.make(plan::Space::device, id));
    for (std::size_t k = 1; k < staged.copies(id); ++k) b.make(plan::Space::device, id);
  }
  b.activations();
  plan::mark(b.plan(), "prepack starts");
  staged.run([&](std::size_t i, std::size_t k) {
    return plan::BlockId{static_cast<std::uint32_t>(graph::index(model[i]) + k)};
  });
  plan::mark(b.plan(), "loaded");
  return std::move(b.plan());
}

plan::Plan load_executorch_after(MethodBuilder& b) {
  StagedPrepack staged(b);
  plan::mark(b.plan(), "prepack starts");
  staged.run([&](std::size_t i, std::size_t) { return b.make(plan::Space::device, b.order()[i]); });
  return b.finish();
}

// --- onnxruntime on a processor, as of 1.32: InferenceSession(path) and InferenceSession(bytes).

namespace {

// What a session does with the weights of its model.
class OnnxSession {
 public:
  OnnxSession(MethodBuilder& b, bool packs)
      : b_(b), weights_(packed_by_onnxruntime(b.graph())), packs_(packs), held_(b.graph().storages.size()) {
    for (const graph::StorageId id : b.order())
      (lies_outside(b.graph(), id) ? outside_ : inside_).push_back(id);
    // the runtime has an order of its own
    std::ranges::sort(inside_);
    std::ranges::sort(outside_);
  }

  // The parsed protobuf holds the weights of the model's own file.
  // `from`: blocks with their bytes, in load order; null: they are read from the file.
  void parse(const std::vector<plan::BlockId>* from = nullptr) {
    for (std::size_t i = 0; i < inside_.size(); ++i) {
      parsed_.push_back(b_.make(plan::Space::host, inside_[i], plan::BlockUse::temporary));
      if (from == nullptr)
        b_.read(parsed_.back(), inside_[i]);
      else
        b_.move(parsed_.back(), (*from)[i]);
    }
    plan::mark(b_.plan(), "model parsed");
  }

  // Each weight becomes a tensor of the session, and its bytes in the protobuf are freed; a kernel that packs
  // it does the same once more. Files beside the model are mapped, and only what is packed is read.
  plan::Plan start() {
    for (std::size_t i = 0; i < inside_.size(); ++i) {
      held_[graph::index(inside_[i])] = b_.make(plan::Space::host, inside_[i]);
      b_.move(*held_[graph::index(inside_[i])], parsed_[i]);
      b_.drop(parsed_[i]);
    }
    plan::mark(b_.plan(), "weights in the session");
    reorder();
    for (const graph::StorageId id : outside_) {
      if (held_[graph::index(id)]) continue;
      if (!packs_ || !weights_.packed[graph::index(id)]) {
        b_.view(id);
        continue;
      }
      const plan::BlockId pages = b_.load(plan::Space::page_cache, id);
      b_.move(b_.make(plan::Space::host, id), pages);
      b_.drop(pages);
    }
    return b_.finish();
  }

 private:
  // The optimizer copies the weight, reorders the copy into another, and hands that to the graph by way of a
  // protobuf of its own. What it was stays until all are done; pages of a mapped file go at once.
  void reorder() {
    std::vector<plan::BlockId> originals;
    for (const graph::StorageId id : weights_.reordered) {
      if (b_.bytes(id) == 0) continue;
      std::optional<plan::BlockId>& held = held_[graph::index(id)];
      std::vector<plan::BlockId> copies = {held ? *held : b_.load(plan::Space::page_cache, id)};
      const plan::BlockId original = copies.front();
      for (int copy = 0; copy < 3; ++copy) copies.push_back(copy_of(copies.back(), id));
      if (held)
        originals.push_back(original);
      else
        b_.drop(original);
      held = b_.make(plan::Space::host, id);
      b_.move(*held, copies.back());
      copies.erase(copies.begin());
      b_.drop_all(copies);
    }
    if (originals.empty()) return;
    b_.drop_all(originals);
    plan::mark(b_.plan(), "weights of convolutions reordered");
  }

  plan::BlockId copy_of(plan::BlockId from, graph::StorageId id) {
    const plan::BlockId made = b_.make(plan::Space::host, id, plan::BlockUse::temporary);
    b_.move(made, from);
    return made;
  }

  MethodBuilder& b_;
  const PackedWeights weights_;
  const bool packs_;
  StorageOrder inside_, outside_;
  std::vector<plan::BlockId> parsed_;
  std::vector<std::optional<plan::BlockId>> held_;  // by storage
};

}  // namespace

plan::Plan load_onnxruntime(MethodBuilder& b) {
  OnnxSession session(b, true);
  session.parse();
  return session.start();
}

plan::Plan load_onnxruntime_unpacked(MethodBuilder& b) {
  OnnxSession session(b, false);
  session.parse();
  return session.start();
}

// Python keeps the bytes that it was given, and copies them into a string while they are parsed.
plan::Plan load_onnxruntime_bytes(MethodBuilder& b) {
  std::vector<plan::BlockId> copied;
  std::vector<graph::StorageId> inside;
  for (const graph::StorageId id : b.order())
    if (!lies_outside(b.graph(), id)) inside.push_back(id);
  std::ranges::sort(inside);
  std::vector<plan::BlockId> given;
  for (const graph::StorageId id : inside) {
    given.push_back(b.make(plan::Space::host, id));
    b.read(given.back(), id);
  }
  for (std::size_t i = 0; i < inside.size(); ++i) {
    copied.push_back(b.make(plan::Space::host, inside[i], plan::BlockUse::temporary));
    b.move(copied.back(), given[i]);
  }
  OnnxSession session(b, true);
  session.parse(&copied);
  b.drop_all(copied);
  return session.start();
}

// --- OpenVINO on a processor, as of 2026.4: read_model() and compile_model().

// The protobuf of a file is parsed, each weight becomes a constant, and the protobuf is freed. Files beside
// the model are mapped, and compiling reads them whole. Where the processor computes in BF16, each matrix is
// packed in it, once as the model is compiled and once more as a pass first uses it.
plan::Plan load_openvino(MethodBuilder& b) {
  const std::vector<bool> matrices = packed_by_onnxruntime(b.graph()).packed;
  StorageOrder order = b.order();
  std::ranges::sort(order);  // the runtime has an order of its own
  std::vector<plan::BlockId> parsed;
  for (const graph::StorageId id : order)
    if (!lies_outside(b.graph(), id)) parsed.push_back(b.load(plan::Space::host, id));
  plan::mark(b.plan(), "model parsed");
  std::size_t next = 0;
  for (const graph::StorageId id : order)
    if (!lies_outside(b.graph(), id)) b.move(b.make(plan::Space::host, id), parsed[next++]);
  b.drop_all(parsed);
  plan::mark(b.plan(), "model read");
  for (const graph::StorageId id : order)
    if (lies_outside(b.graph(), id)) b.read(b.make(plan::Space::page_cache, id), id);
  const auto pack = [&](std::string_view when) {
    for (const graph::StorageId id : order)
      if (matrices[graph::index(id)] && b.bytes(id) >= 2)
        plan::alloc(b.plan(), {.bytes = b.bytes(id) / 2,
                               .space = plan::Space::host,
                               .use = plan::BlockUse::temporary,
                               .storage = {},
                               .extra = std::string(when)});
  };
  pack("matrix packed in BF16");
  plan::mark(b.plan(), "model compiled");
  if (uses_weights(b.bound().request)) pack("matrix packed for the pass");
  return b.finish();
}

// --- ExecuTorch on a processor, as of 1.5: load_program() and load_method(). The values of a method lie in
// arenas that the compiler has planned.

namespace {

plan::Plan start_method(MethodBuilder& b) {
  if (const std::uint64_t bytes = planned_bytes(b.graph()); bytes > 0)
    plan::alloc(b.plan(), {.bytes = bytes,
                           .space = plan::Space::host,
                           .use = plan::BlockUse::value,
                           .storage = {},
                           .extra = "planned arenas"});
  return b.finish();
}

}  // namespace

// The file is mapped and its pages are locked.
plan::Plan load_executorch_mapped(MethodBuilder& b) {
  for (const graph::StorageId id : b.order()) b.read(b.make(plan::Space::page_cache, id), id);
  plan::mark(b.plan(), "program mapped");
  return start_method(b);
}

// Weights are views of the bytes that the caller has read.
plan::Plan load_executorch_bytes(MethodBuilder& b) {
  for (const graph::StorageId id : b.order()) b.read(b.make(plan::Space::host, id), id);
  plan::mark(b.plan(), "program read");
  return start_method(b);
}

// XNNPACK packs the weights that were lowered for it into memory of its own, and their pages are given back.
plan::Plan load_executorch_xnnpack(MethodBuilder& b) {
  const std::vector<bool> delegated = delegated_storages(b.graph());
  std::vector<plan::BlockId> pages, packed;
  for (const graph::StorageId id : b.order()) {
    pages.push_back(b.make(plan::Space::page_cache, id));
    b.read(pages.back(), id);
  }
  plan::mark(b.plan(), "program mapped");
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (!delegated[graph::index(b.order()[i])]) continue;
    b.move(b.make(plan::Space::host, b.order()[i]), pages[i]);
    packed.push_back(pages[i]);
  }
  b.drop_all(packed);
  plan::mark(b.plan(), "weights packed");
  return start_method(b);
}

// --- LiteRT on a processor, as of 2.3: the file is mapped. XNNPACK, which the interpreter uses by default,
// packs every weight into memory of its own; the pages that it read stay.

plan::Plan load_litert(MethodBuilder& b) {
  for (const graph::StorageId id : b.order()) {
    const plan::BlockId pages = b.load(plan::Space::page_cache, id);
    b.move(b.make(plan::Space::host, id), pages);
  }
  return b.finish();
}

plan::Plan load_litert_plain(MethodBuilder& b) {
  for (const graph::StorageId id : b.order()) b.view(id);
  return b.finish();
}

// --- Arrays on the host: numpy, torch.export, safetensors.

plan::Plan load_arrays(MethodBuilder& b) {
  for (const graph::StorageId id : b.order()) b.read(b.make(plan::Space::host, id), id);
  return b.finish();
}

// Each file is mapped, its arrays are copied out, and it is unmapped.
plan::Plan load_arrays_by_file(MethodBuilder& b) {
  for (const StorageOrder& file : b.by_shard()) {
    std::vector<plan::BlockId> mapped;
    for (const graph::StorageId id : file) {
      mapped.push_back(b.load(plan::Space::page_cache, id));
      b.move(b.make(plan::Space::host, id), mapped.back());
    }
    b.drop_all(mapped);
  }
  return b.finish();
}

}  // namespace loadline::load
