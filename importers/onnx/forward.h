// The forward graph: shape inference, sizes of dimensions, operators.
#pragma once

#include "core/graph/forward_graph.h"
#include "core/graph/meta_graph.h"
#include "core/graph/name.h"
#include "importers/importer.h"
#include "importers/onnx/model.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace loadline::importers {

// --- Runs the onnx library's shape inference in a separate process, because it may crash.

// A side of a picture that the file leaves open.
struct PictureSide {
  std::string input;
  std::size_t position = 0;  // in the shape of the input
  std::string name;          // of the dimension in the file; may be empty
  std::int64_t pixels = 0;
};

struct OpenPictures {
  std::vector<PictureSide> sides;
  // The values whose shape is known by numbers and names alone, before the sides are numbers: what a runtime
  // knows that has seen no picture yet.
  std::set<std::string, std::less<>> known;
};
// The names of values of the main graph whose shape has a number or a name for each size.
std::vector<std::string> values_with_shapes(const OnnxModel& model);

struct InferenceLimits {
  std::chrono::milliseconds time{5000};
  std::uint64_t memory = std::uint64_t{1} << 30;       // bytes beyond the use of this process
  std::uint64_t most_model = std::uint64_t{64} << 20;  // bytes; a larger model is not tried
  std::uint64_t most_answer = std::uint64_t{64} << 20;
};

struct Inference {
  // A ModelProto with the value_info and output of graphs only; empty after a failure. The keys of its
  // metadata_props are attributes that the library does not know ("Resize.axes"), and kUnfollowed with the
  // name of each value whose shape onnxruntime does not infer.
  std::string model;
  std::string failure;  // why there is no model: "it took more than 5 s"; empty on success
};

inline constexpr std::string_view kUnfollowed = "not followed: ";

// The library is not safe on hostile models: it divides by strides of zero, recurses through functions that
// call each other, and uses unlimited memory. So a forked child runs it, with limits on time, memory and core
// dumps. The child can open neither files nor the network. Its answer comes back over a pipe and
// is trusted no more than the model. A failure of the child never throws. The onnx checker is not used.
//
// Cost: about 8 ms for the library to set up its operators, and 0.07 ms for fork() per MiB that this process
// has resident (measured on Debian 12).
//
// fork() in a program with threads: the child touches only its own copy of the heap (glibc's malloc is usable
// after fork), the library and the pipe. If anything else blocks it, the time limit ends it.
//
// The sides of pictures become numbers before, also where the file names them elsewhere: the library has no
// arithmetic for names, and the shapes of convolutions would stay unknown.
Inference infer_shapes(std::string_view model, const InferenceLimits& limits,
                       std::span<const PictureSide> sides = {});

// --- A process that may only compute.

// What `work` returns in a forked child under limits, or what it throws, as Inference::failure.
Inference run_confined(const std::function<std::string()>& work, const InferenceLimits& limits);

// From now on the process may only use memory, the clock and already open files, and exit. Every other system
// call fails with EPERM, in child processes too. This cannot be undone. Best effort: does nothing on a system
// without seccomp or on a processor whose call numbers are not known here.
void confine_to_memory();

// --- Turns names of dimensions into polynomials: "past_sequence_length + 1" becomes P + 1.

// The usual names of the batch, the sequence and the past become the symbols B, S and P. Every other name
// becomes its own symbol. ForwardGraph::sizes records the meaning of each name.
// Whether operators of this domain are ONNX's own.
inline bool is_onnx_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

// The name of a size that the file leaves open, or gives as a negative number: "x[0]".
std::string open_size_name(std::string_view input, std::size_t position);
// Gives such names to the open sizes of the graph's inputs.
void name_open_sizes(OnnxModel& model);

// The sides of pictures among the inputs of the graph: of a floating-point input of rank 4 with one, three or
// four channels that comes to a convolution or the like: the sides that have no number. They become `pixels`
// in `model` (0: usual ones), or what `named` says; a shape that is computed from their names is forgotten.
std::vector<PictureSide> take_picture_sides(OnnxModel& model, std::uint64_t pixels,
                                            std::span<const NamedSide> named = {});
// Whether an input is a picture of which a side is open.
bool has_open_pictures(const OnnxModel& model);
// The first operator that cannot take the inferred shapes of its inputs: a product or a sum of other sides, a
// Reshape to another number of elements; if `strict`, also a weight that would stretch a side of 1. Empty if
// there is none.
std::string shape_conflict(const OnnxModel& model, const OnnxModel& inferred, bool strict = false);
// Whether the text of a dimension has this name in it, as "height" is in "floor(height/2)".
bool mentions(std::string_view dimension, std::string_view name);

class OnnxSymbols {
 public:
  // Appends to `graph`, which must outlive it.
  explicit OnnxSymbols(graph::ForwardGraph& graph) : graph_(graph) {}

  // Guesses which meaningless names ("s77" of torch, "T", those of open sizes) are the batch and the
  // sequence, if no other name of the inputs' dimensions says so. It takes the two dimensions of token
  // numbers (an input with such a name, or the only input) and of masks, and the first dimension of
  // floating-point inputs. Call it before all else.
  void guess(std::span<const OnnxValue* const> inputs);

  // Records what was taken for the sides of pictures.
  void take(std::span<const PictureSide> sides);

  // Parses sums, differences and products of whole numbers and names; any other text is one name. Nothing for
  // an empty text, or when kMostSymbols is reached.
  std::optional<graph::SizePoly> parse(std::string_view text);
  // Nothing for a dimension that is unknown or negative.
  std::optional<graph::SizePoly> size(const OnnxDim& dim);
  // Nothing unless every dimension is known.
  std::optional<std::vector<graph::SizePoly>> shape(const OnnxType& type);

  static constexpr std::size_t kMostSymbols = 4096;

 private:
  std::optional<graph::SizePoly> symbol(std::string_view name);

  void take(std::string_view name, const graph::SizePoly& as, bool guessed, bool open = false);

  graph::ForwardGraph& graph_;
  graph::TextMap<graph::SizePoly> known_;
};

// --- Builds a ForwardGraph from the operators of an ONNX graph.

// Whether shape inference can add information: some operator's output has no shape in the file, or some
// operator contains a graph.
bool needs_inference(const OnnxModel& model);

// Sets graph.forward. `tensor_of` gives the graph's tensor for each OnnxTensorId. `inferred` is the result of
// shape inference: types of values, with stand-in element types, and only those nodes that contain graphs.
// Types in the file take precedence. A nested graph becomes a body of the operator that contains it, down to
// kMostBodyDepth levels. If nodes are not in topological order, use unknown names or define a value twice,
// graph.forward stays empty and a Note says so.
void add_forward(const OnnxModel& model, const std::vector<std::optional<graph::TensorId>>& tensor_of,
                 const OnnxModel& inferred, const OnnxStandIns& stand_ins, const OpenPictures& pictures,
                 graph::MetaGraph& graph);

}  // namespace loadline::importers
