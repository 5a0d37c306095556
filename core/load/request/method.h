// A load method as data: traits, law, function. Also declares the table, make_plan() and the laws, which
// core/load/methods defines.
#pragma once

#include "core/load/request/model_parts.h"
#include "core/load/request/request.h"
#include "core/plan/plan.h"
#include "core/plan/run.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::load {

// --- Load methods: how each framework or recipe moves weights from disk to a device, written as plans.

struct BoundRequest;  // bind_request.h

// Threads of transformers 5 that materialize tensors; without a pool, 1, if weights stay on disk.
std::uint32_t loading_threads(const BoundRequest& bound);

class MethodBuilder;

// What runs the method.
enum class Runtime : std::uint8_t {
  torch,  // Python, with or without a framework above PyTorch
  llama_cpp,
  executorch,
  processor,  // a runtime that keeps its weights on the host: onnxruntime, LiteRT, ExecuTorch's kernels
  own,        // a loader of one's own: no framework loads like this
  any,        // a recipe that can be written for each of them
};

// What a method opens: kinds of files by the reader that they need, as bits. An allow-list: a file of a kind
// that is not here is opened by loaders of one's own only.
namespace opened {
inline constexpr std::uint16_t kSafetensors = 1, kPyTorch = 2, kOldPyTorch = 4, kTorchExport = 8, kGguf = 16,
                               kExecuTorch = 32, kExecuTorchTensors = 64, kLiteRt = 128, kNumpy = 256,
                               kOnnx = 512;
// A configuration alone: its weights may yet be written in any format of weights without a program.
inline constexpr std::uint16_t kNoFile = 1024;
inline constexpr std::uint16_t kCheckpoints = kSafetensors | kPyTorch | kOldPyTorch | kNoFile;
inline constexpr std::uint16_t kMappable = kSafetensors | kPyTorch | kNoFile;
inline constexpr std::uint16_t kAll = 2047;
}  // namespace opened

// The type in which weights are loaded unless the request has a cast.
enum class OwnType : std::uint8_t {
  stored,
  configured,  // that in config.json: from_pretrained() of transformers 5
  f32,         // torch's default: from_pretrained() of transformers 4
};

// Whose heap holds the host's blocks (plan::HeapForecast).
enum class Heap : std::uint8_t {
  own,  // of a program that keeps no freed blocks, or is not understood: what is requested counts
  torch,
  accelerate,
  transformers_v4,
  transformers_v5,  // whose threads have arenas of their own
};

struct MethodTraits {
  bool casts = false;                  // supports LoadRequest::cast
  OwnType own_type = OwnType::stored;  // another with `casts` only
  Runtime runtime = Runtime::torch;
  std::uint16_t opens = opened::kCheckpoints;  // bits of `opened`
  bool offloads = false;                       // supports BoundRequest::placement, by rules
  bool disk = false;                           // supports weights left on disk; with `offloads` only
  bool layers = false;                         // supports LoadRequest::gpu_layers; with `offloads` only
  bool auto_maps = false;                      // supports LoadRequest::auto_map; with `offloads` only
  bool streams = false;                        // weights come and go; they are not on the device at the end
  bool activations_first = false;              // activations are allocated before the weights
  bool ring = false;                           // supports the staging ring's size and slots
  bool limit = false;                          // supports a limit of its buffer
  bool shards = false;                         // depends on shards
  bool views = false;                          // weights off the device stay in their mapped files
  bool workers = false;                        // supports a number of threads that each hold a cast tensor
  bool repacks = false;                        // supports repacking for the CPU
  bool flushes = false;                        // supports a flush threshold and doubled ties
  bool order_free = false;                     // every order has the same peak, for all spaces and options
  // The device reads the files' own pages, which count as staging in the plan. The files must be mappable
  // (mapping_refusal()).
  bool imports = false;
  bool host_only = false;  // the framework runs on the processor: its weights stay on the host
  bool adapts = false;     // supports adapters of a rank, for layers that are named
  Heap heap = Heap::own;
};

// --- The laws of peaks: formulas over the sizes of a load. To compute one gives its value and its text.

struct LawWord {
  std::string_view name;  // as laws are printed
  std::string_view meaning;
};
struct LawSize : LawWord {
  std::uint64_t bytes = 0;
};
struct LawCondition : LawWord {
  bool holds = false;
};

// The words of laws, and what they stand for with one model and request.
struct LawSizes {
  LawSize weights = {{"weights", "all weights as they are stored, each once"}};
  LawSize largest_weight = {{"largest_weight", "the largest weight as it is stored"}};
  LawSize device_weights = {{"device_weights",
                             "the weights that stay on the device, as they are loaded; without a cast and a "
                             "placement these are all"}};
  LawSize host_weights = {{"host_weights", "the weights that a placement keeps on the host"}};
  LawSize disk_weights = {{"disk_weights", "the weights that a placement leaves on disk"}};
  LawSize largest_loaded = {{"largest_loaded", "the largest weight as it is loaded, after a cast"}};
  LawSize largest_stored_and_loaded = {
      {"largest_stored_and_loaded",
       "the most that one weight takes as it is stored and as it is loaded, together"}};
  LawSize largest_per_thread = {
      {"largest_per_thread", "the largest weights as they are loaded, one for each loading thread"}};
  LawSize largest_off_device = {{"largest_off_device", "the largest weight off the device"}};
  LawSize largest_shard = {{"largest_shard", "the largest shard as it is stored"}};
  LawSize still_mapped = {
      {"still_mapped",
       "weights on the device whose pages stay mapped, because others of their file stay on the host"}};
  LawSize untied_head = {
      {"untied_head", "a head that is built before it is tied to the embedding; 0 if the two are not tied"}};
  LawSize tied_copies = {{"tied_copies", "what ExecuTorch holds for weights with two names"}};
  LawSize largest_fused_group = {
      {"largest_fused_group",
       "the largest group of tensors that become one tensor (fused experts), as they are loaded"}};
  LawSize fused_groups = {
      {"fused_groups", "all groups of tensors that become one tensor (fused experts), as they are loaded"}};
  LawSize largest_streamed_part = {
      {"largest_streamed_part",
       "the largest part that is streamed at once: a layer, an embedding or a head"}};
  LawSize two_streamed_parts = {
      {"two_streamed_parts",
       "the most that two parts in sequence take together: layers, an embedding or a head"}};
  LawSize vocabulary = {{"vocabulary", "the vocabulary of a GGUF file in llama.cpp's memory"}};
  LawSize repacked_weights = {{"repacked_weights",
                               "the weights on the host that llama.cpp repacks for the CPU, a copy of the "
                               "embedding as head among them"}};
  LawSize mapped_weights = {
      {"mapped_weights",
       "the weights that llama.cpp maps and reads at once: all but embeddings of layers "
       "on the host of more than 4 GiB, whose rows it reads as they are looked up"}};
  LawSize read_weights = {{"read_weights", "of the mapped_weights those off the device"}};
  LawSize repacked_head = {
      {"repacked_head", "the copy of an embedding that llama.cpp repacks to serve as the head"}};
  LawSize inside = {{"inside", "the weights that the model's own file holds"}};
  LawSize largest_inside = {{"largest_inside", "the largest of the weights that the model's own file holds"}};
  LawSize outside = {{"outside", "the weights in files beside the model"}};
  LawSize outside_mapped = {{"outside_mapped", "of the weights outside those that no kernel packs"}};
  LawSize outside_packed = {
      {"outside_packed", "of the weights outside those that a kernel packs or reorders"}};
  LawSize reordered = {
      {"reordered", "the weights of convolutions that onnxruntime reorders for its kernels"}};
  LawSize largest_reordered = {{"largest_reordered", "the largest of the reordered"}};
  LawSize largest_outside_packed = {{"largest_outside_packed", "the largest of the outside_packed"}};
  LawSize outside_unordered = {{"outside_unordered", "of the weights outside those that are not reordered"}};
  LawSize largest_outside_reordered = {
      {"largest_outside_reordered", "the largest of the weights outside that are reordered"}};
  LawSize bf16_matrices = {
      {"bf16_matrices", "the F32 matrices that OpenVINO packs, in BF16: half of what they are"}};
  LawSize planned = {{"planned", "the arenas that an ExecuTorch program plans for its values"}};
  LawSize delegated = {{"delegated", "what an ExecuTorch program holds for its delegates"}};
  LawSize unpacked = {{"unpacked", "the weights of a GGUF file as numbers of one type, F32 without a cast"}};
  LawSize largest_unpacked_f32 = {{"largest_unpacked_f32", "the largest weight of a GGUF file in F32"}};
  LawSize adapters = {
      {"adapters", "peft's adapters in F32, of the rank and for the layers that are asked for"}};
  LawSize adapted = {{"adapted", "the weights of layers that have an adapter"}};
  LawSize largest_adapted = {{"largest_adapted", "the largest weight of a layer that has an adapter"}};
  LawSize largest_merge = {{"largest_merge",
                            "the most that merging one adapter takes: its product in F32, twice for a weight "
                            "in F32, else thrice"}};
  LawSize requests = {{"requests", "the requests that the Run:ai streamer has in flight, and one more"}};
  LawSize ring = {{"ring", "the staging ring: its slots times the bytes of one slot"}};
  LawSize own_ring = {{"own_ring", "the staging ring, at most the weights in pages: each slot has its part"}};
  LawSize weights_in_slots = {
      {"weights_in_slots", "all weights, rounded up to whole slots of the staging ring"}};
  LawSize flush_threshold = {{"flush_threshold", "what ExecuTorch collects before it sends it"}};
  LawSize pass = {{"pass", "activations and caches: those that were stated, or those of the forward pass"}};

  LawCondition cast = {{"if cast", "weights are cast"}};
  LawCondition partly_cast = {{"if partly_cast", "the cast leaves some weights as they are stored"}};
  LawCondition disk = {{"if disk", "weights are placed on the disk"}};
  LawCondition pickled = {
      {"if pickled", "the files are PyTorch checkpoints, which cannot be mapped tensor by tensor"}};
  LawCondition used = {{"if used", "a forward pass or activations follow the load"}};
  LawCondition brought = {{"if brought", "the pass brings weights to the device that are not there"}};
  LawCondition converted_on_host = {
      {"if converted_on_host", "weights that stay off the device are cast or fused on the host"}};
  LawCondition fused_experts = {{"if fused_experts", "the model has experts that become one tensor"}};
  LawCondition by_rows = {{"if by_rows", "the rows of embeddings of layers are read as they are looked up"}};
  LawCondition repacked = {{"if repacked", "matrices on the host are repacked for the CPU"}};

  std::uint64_t host_pass = 0;  // the pass, where it runs on the host: then `pass` is 0
};

// A formula: its value, its text, and the words in it.
struct LawBytes {
  LawBytes() = default;
  // Implicit, as laws are written as formulas.
  LawBytes(const LawSize& size) : bytes(size.bytes), text(size.name), words{size} {}

  std::uint64_t bytes = 0;
  std::string text = {};
  std::vector<LawWord> words = {};
};

// An upper bound for the peak of a space in every order.
struct LawPart {
  std::optional<plan::Space> space = {};  // none: unified memory, which is device, host and staging together
  LawBytes bytes = {};                    // the text is that of no case
  std::string cases = {};                 // " (if cast: 0; if disk: + largest_loaded)"
};
// A space without a part holds nothing. A law for unified memory bounds no single space.
using PeakLaw = std::vector<LawPart>;

// `summary` fits a table cell.
struct Method {
  std::string_view id;
  std::string_view summary;
  PeakLaw (*law)(const LawSizes& s);
  // Called by make_plan() only. May throw Error{limit} for options that make the plan itself too large.
  plan::Plan (*make)(MethodBuilder& builder);
  MethodTraits traits = {};
  bool common = false;  // shown when the request names no method
  // Whether a buffer collects bytes of several tensors before it moves on, so that a turn depends on earlier
  // turns.
  bool (*waits)(const LoadRequest& request) = nullptr;
};

// Who loads like this: "PyTorch", "llama.cpp", "any framework".
std::string_view framework_of(const Method& method);

// Whether the method can cast weights to this type: PyTorch has no types of blocks.
bool can_cast_to(const Method& method, graph::DType type);
// Whether the method supports the kind of placement that a request asks for.
bool supports_placement(const Method& method, const LoadRequest& request);

std::span<const Method> methods();
// Throws Error{usage} that lists the ids.
const Method& find_method(std::string_view id);
// The method's plan. Throws Error{unsupported} for a cast or a placement that the method does not support,
// Error{limit} if the plan itself would be too large. The plan takes over
// the memory of `used`, whose contents are dropped, and its taker: that gets the steps, but for the last few.
// `pass_bytes`: of a forward pass whose memory is allocated with the activations.
plan::Plan make_plan(const graph::MetaGraph& graph, const Method& method, const StorageOrder& order,
                     const BoundRequest& bound, plan::Plan used = {}, std::uint64_t pass_bytes = 0);

// "device: max(2 * weights, weights + pass); host: largest_weight (if cast: 0; if disk: + largest_loaded)".
std::string law_text(const Method& method);
// The part about a space, or about unified memory, without its cases: "max(2 * weights, weights + pass)".
// Empty if there is none.
std::string law_text(const Method& method, std::optional<plan::Space> space);
// The words in the laws of these methods, each once, conditions last.
std::vector<LawWord> law_words(std::span<const Method* const> methods);

// What laws count with, for a model and a request. `pass_bytes` are those of a forward pass, besides the
// activations of the request. Throws Error{limit} if a sum does not fit in 64 bits.
LawSizes law_sizes(const graph::MetaGraph& graph, const BoundRequest& bound, std::uint64_t pass_bytes = 0);

struct LawPeaks {
  plan::PerSpace<std::uint64_t> spaces = {};
  std::optional<std::uint64_t> unified = {};
};
// Throws Error{limit} if a sum does not fit in 64 bits.
LawPeaks law_peaks(const Method& method, const LawSizes& sizes);

}  // namespace loadline::load
