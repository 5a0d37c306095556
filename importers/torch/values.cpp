// Walks a checkpoint's value, without recursion: dicts, lists and tuples give names, leaves give tensors and
// metadata.
#include "importers/torch/values.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/name.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace loadline::importers {
namespace {

using Kind = PickleValue::Kind;

// Lists may share items and contain themselves, so a walk along every path might never end.
constexpr std::uint64_t kMostVisits = 20'000'000;
constexpr std::uint64_t kMostNames = 128 << 20;  // bytes of all paths together
// Memory limit of the graph's names and tensors: a base, and a factor for each byte of the pickle. Honest
// pickles need a factor of about 3; the rest is for tensors with many names.
constexpr std::uint64_t kFirstKept = 8 << 20;
constexpr std::uint64_t kMostGrowth = 16;
constexpr std::size_t kMostDepth = 500;
constexpr std::size_t kMostPath = 64 << 10;
constexpr std::size_t kMostMetadata = 10'000;
constexpr std::size_t kMostMetadataText = 64 << 10;
constexpr std::size_t kMostMetadataBytes = 4 << 20;  // of all texts together
constexpr std::size_t kMostShown = 16;               // items of a list of scalars

bool is_scalar(PickleValue value) { return value.kind() <= Kind::global && !value.is(Kind::bytes); }

class Walker {
 public:
  Walker(const Pickle& pickle, const TorchStorages& storages, const std::vector<graph::StorageId>& placed,
         graph::MetaGraph& graph)
      : pickle_(pickle), graph_(graph), rebuild_(pickle, storages, placed, graph.files.at(0).path) {}

  void walk() {
    graph_.tensors.reserve(pickle_.persistent_ids().size());
    visit(pickle_.root(), "");
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      const std::span<const PickleValue> items = rebuild_.sequence(frame.value);
      if (frame.waits || frame.next >= items.size()) {
        const Frame done = std::move(frame);
        stack_.pop_back();
        if (done.waits) visit(done.value, done.path);
      } else if (frame.value.is(Kind::dict)) {
        const PickleValue key = items[frame.next], value = items[frame.next + 1];
        const std::string path = joined(frame.path, key_text(key, frame.next / 2));
        frame.next += 2;
        visit(value, path);
      } else {
        const std::string path = joined(frame.path, fmt::format("{}", frame.next));
        visit(items[frame.next++], path);
      }
    }
    pack_names();
    write_notes();
  }

 private:
  // A container whose items are being visited one by one, or a value still to be visited.
  struct Frame {
    PickleValue value;
    std::string path;
    bool waits;
    std::size_t next = 0;
  };
  // Findings about many values, reported in one note each.
  struct Finding {
    graph::Severity severity;
    std::string text;
    std::string first;
    std::uint64_t count = 0;
  };

  template <typename... Values>
  Error limit(fmt::format_string<Values...> detail, const Values&... values) const {
    return Error(ErrorCode::limit, {.file = graph_.files[0].path}, detail, values...);
  }
  template <typename... Values>
  Error at(ErrorCode code, const std::string& path, fmt::format_string<Values...> detail,
           const Values&... values) const {
    ErrorPlace place{.file = graph_.files[0].path};
    if (!path.empty()) place.tensor = path;
    return Error(code, std::move(place), detail, values...);
  }

  std::string_view callee(const PickleObject& object) const { return pickle_.text(object.callee); }

  bool is_container(PickleValue value) const {
    const PickleObject* object = pickle_.object(value);
    return value.is(Kind::dict) || value.is(Kind::list) || value.is(Kind::tuple) || value.is(Kind::set) ||
           (object != nullptr && callee(*object) == "torch.Size");
  }

  std::string joined(const std::string& path, std::string_view key) {
    std::string result = path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
    names_ += result.size();
    if (result.size() > kMostPath) throw limit("a name of {} bytes", result.size());
    if (names_ > kMostNames) throw limit("names of more than {} bytes in all", kMostNames);
    return result;
  }

  // Charges the memory of a name and of the entry that has it.
  void keep(std::string_view name, std::size_t beside) {
    kept_ += name.size() + beside;
    if (kept_ > kFirstKept + kMostGrowth * pickle_.bytes())
      throw limit("{} tensors and all names together take more than {} bytes for each byte of the pickle",
                  graph_.tensors.size(), kMostGrowth);
  }

  std::string key_text(PickleValue key, std::size_t position) const {
    return is_scalar(key) || key.is(Kind::tuple) ? scalar_text(key) : fmt::format("key {}", position);
  }

  // The value as Python prints it, texts without quotes.
  std::string scalar_text(PickleValue value) const {
    switch (value.kind()) {
      case Kind::none:
        return "None";
      case Kind::boolean:
        return value.number() != 0 ? "True" : "False";
      case Kind::integer:
        return fmt::format("{}", pickle_.integer(value));
      case Kind::big_integer:
        return "a large number";
      case Kind::real:
        return fmt::format("{}", pickle_.real(value));
      case Kind::text:
      case Kind::global:
        return std::string(
            pickle_.text(value).substr(0, kMostPath + 1));  // longer ones are left out or refused
      default:
        return list_text(value);
    }
  }

  std::string list_text(PickleValue value) const {
    const std::span<const PickleValue> items = rebuild_.sequence(value);
    std::string text = "[";
    for (std::size_t i = 0; i < std::min(items.size(), kMostShown) && text.size() < kMostMetadataText; ++i) {
      if (i > 0) text += ", ";
      text += is_scalar(items[i]) ? scalar_text(items[i]) : "...";
    }
    text.resize(std::min(text.size(), kMostMetadataText));
    if (items.size() > kMostShown) text += fmt::format(", ... {} in all", items.size());
    return text + "]";
  }

  // Charged to the metadata even if it is then left out: one long text may be listed at every reference.
  void add_list(PickleValue value, const std::string& path) {
    const std::string text = metadata_bytes_ < kMostMetadataBytes ? list_text(value) : "";
    metadata_bytes_ += text.size();
    add_text(path, text);
  }

  void visit(PickleValue value, const std::string& path) {
    if (++visits_ > kMostVisits)
      throw limit("its values refer to each other in more than {} ways", kMostVisits);
    if (is_container(value)) return visit_container(value, path);
    if (is_scalar(value)) return add_metadata(value, path);
    if (value.is(Kind::persistent)) return add(rebuild_.whole_storage(tensor_name(path), value));
    if (const PickleObject* object = pickle_.object(value)) return visit_object(*object, path);
  }

  void visit_container(PickleValue value, const std::string& path) {
    const std::span<const PickleValue> items = rebuild_.sequence(value);
    visits_ += items.size() / 64;  // looking through the items costs time too
    if (!value.is(Kind::dict) && std::ranges::all_of(items, is_scalar)) {
      if (!items.empty()) add_list(value, path);
      return;
    }
    push(value, path, false);
  }

  void push(PickleValue value, const std::string& path, bool waits) {
    if (stack_.size() == kMostDepth) throw limit("values nested more than {} deep", kMostDepth);
    stack_.push_back({value, path, waits, 0});
  }

  // Parts wait on the stack, so the last one goes first.
  void push_parts(const std::string& path, std::span<const PickleValue> parts,
                  std::span<const std::string_view> names) {
    for (std::size_t i = std::min(parts.size(), names.size()); i-- > 0;)
      push(parts[i], joined(tensor_name(path), names[i]), true);
  }

  static std::string tensor_name(const std::string& path) { return path.empty() ? "tensor" : path; }

  void add(graph::Tensor tensor) {
    if (tensor.dtype == graph::DType::opaque)
      find(graph::Severity::warning, "of a type without a name here: shown as bytes", tensor.name);
    keep(tensor.name, sizeof(graph::Tensor));
    if (graph_.tensors.size() - packed_ >= kNamesAtOnce) pack_names();
    graph_.tensors.push_back(std::move(tensor));
  }

  // Names made together take less memory.
  void pack_names() {
    std::vector<std::string_view> texts;
    for (std::size_t i = packed_; i < graph_.tensors.size(); ++i)
      texts.push_back(graph_.tensors[i].name.view());
    std::vector<graph::Name> names = graph::Name::many(texts);
    for (graph::Name& name : names) graph_.tensors[packed_++].name = std::move(name);
  }

  // A tensor whose bytes the file does not hold.
  void add_without_bytes(graph::Tensor tensor) {
    const auto bytes = graph::packed_byte_size(tensor.dtype, graph::elements(tensor));
    if (!bytes) throw at(ErrorCode::malformed, tensor.name, "has no size in bytes");
    tensor.strides.clear();
    tensor.storage = graph_.add_storage(graph::shapes_only_storage(*bytes));
    keep(tensor.name, sizeof(graph::Tensor) + sizeof(graph::Storage));
    find(graph::Severity::warning, "without bytes in the file: shape only", tensor.name);
    graph_.tensors.push_back(std::move(tensor));
  }

  void visit_object(const PickleObject& object, const std::string& path) {
    const std::string_view name = callee(object);
    const std::span<const PickleValue> arguments = pickle_.items(object.arguments);
    if (name.starts_with("torch._utils._rebuild_") || name.starts_with("torch._tensor._rebuild_"))
      return rebuild(name, arguments, path);
    if ((name == "torch.nn.parameter.Parameter" || name == "torch.nn.parameter.Buffer" ||
         name == "torch.autograd.variable.Variable") &&
        !arguments.empty())
      return push(arguments[0], path, true);
    if ((name == "torch.device" || name == "torch.serialization._get_layout") && !arguments.empty() &&
        arguments[0].is(Kind::text))
      return add_metadata(arguments[0], path);
    if (name == "builtins.complex") return add_list(object.arguments, path);
    if (name == "builtins.bytearray") return;
    leave_out(object, path);
  }

  void rebuild(std::string_view function, std::span<const PickleValue> arguments, const std::string& path) {
    const std::string name = tensor_name(path);
    const std::string_view last = function.substr(function.rfind('.') + 1);
    const auto require = [&](std::size_t least) {
      if (arguments.size() < least)
        throw at(ErrorCode::malformed, name, "{} with {} values", last, arguments.size());
    };
    if (last == "_rebuild_tensor") return add(rebuild_.on_storage(name, arguments, {}));
    if (last == "_rebuild_tensor_v2") {
      check_bits(arguments, 6, name);
      return add(rebuild_.on_storage(name, arguments, {}));
    }
    if (last == "_rebuild_tensor_v3") {
      require(7);
      check_bits(arguments, 7, name);
      return add(rebuild_.on_storage(name, arguments, rebuild_.type_of(name, arguments[6])));
    }
    if (last == "_rebuild_parameter" || last == "_rebuild_parameter_with_state" ||
        last == "_rebuild_device_tensor_from_cpu_tensor") {
      require(1);
      if (last == "_rebuild_parameter_with_state" && arguments.size() > 3) push_state(arguments[3], path);
      return push(arguments[0], path, true);
    }
    if (last == "_rebuild_meta_tensor_no_storage") {
      require(3);
      return add_without_bytes(rebuild_.without_storage(name, arguments[0], arguments[1], arguments[2]));
    }
    rebuild_special(last, arguments, path);
  }

  void rebuild_special(std::string_view last, std::span<const PickleValue> arguments,
                       const std::string& path) {
    const std::string name = tensor_name(path);
    if (last == "_rebuild_qtensor") return add_quantized(arguments, name);
    if (last == "_rebuild_sparse_tensor" && arguments.size() == 2) return add_sparse(arguments, path);
    if (last == "_rebuild_nested_tensor" && arguments.size() == 4) {
      find(graph::Severity::warning, "a nested tensor: shown as its parts", name);
      constexpr std::string_view kParts[] = {"buffer", "sizes", "strides", "storage_offsets"};
      return push_parts(path, arguments, kParts);
    }
    if (last == "_rebuild_wrapper_subclass") {
      // the wrapped value is state, which only _rebuild_from_type_v2 carries
      find(graph::Severity::error, "a wrapper of other tensors, which are not in the file", name);
      return;
    }
    if (last == "_rebuild_from_type_v2" && arguments.size() == 4 && arguments[0].is(Kind::global)) {
      push_state(arguments[3], path);
      const std::string_view inner = pickle_.text(arguments[0]);
      if (inner == "torch._utils._rebuild_wrapper_subclass")
        return find(graph::Severity::warning,
                    fmt::format("of class '{}': shown as the tensors it wraps",
                                safe_display(pickle_.text(arguments[1]), 100)),
                    name);
      // one inside another would be rebuilt without end: the arguments of a list may be the list itself
      const bool nested = inner.ends_with("._rebuild_from_type_v2");
      if (inner.starts_with("torch._utils._rebuild_") && !nested)
        return rebuild(inner, pickle_.items(arguments[2]), path);
      throw at(ErrorCode::unsupported, name, "is made by '{}', which this version does not know",
               safe_display(inner, 100));
    }
    if (last == "_rebuild_device_tensor_from_numpy") {
      find(graph::Severity::error, "a numpy array inside the pickle: not read", name);
      return;
    }
    throw at(ErrorCode::unsupported, name,
             "is made by 'torch._utils.{}' from {} values, which this version does not know",
             safe_display(last, 100), arguments.size());
  }

  // The attributes of a tensor's subclass, where they may hold tensors: {name: value}, or with slots two.
  void push_state(PickleValue state, const std::string& path) {
    if (state.is(Kind::dict) || state.is(Kind::tuple))
      if (!pickle_.items(state).empty()) push(state, tensor_name(path), true);
  }

  // {"conj": True}: the numbers in the file are not the tensor's.
  void check_bits(std::span<const PickleValue> arguments, std::size_t position, const std::string& name) {
    if (arguments.size() <= position) return;
    const std::span<const PickleValue> bits = pickle_.items(arguments[position]);
    for (std::size_t i = 0; i + 1 < bits.size(); i += 2)
      if (bits[i + 1].is(Kind::boolean) && bits[i + 1].number() != 0)
        find(graph::Severity::error, "a conjugated or negated view: the bytes in the file are not its values",
             name);
  }

  // Integers with a scale: (scheme, scale, zero point) or (scheme, scales, zero points, axis).
  void add_quantized(std::span<const PickleValue> arguments, const std::string& name) {
    if (arguments.size() < 5) throw at(ErrorCode::malformed, name, "_rebuild_qtensor with too few values");
    graph::Tensor codes = rebuild_.on_storage(name, arguments, {});
    const std::span<const PickleValue> parameters = pickle_.items(arguments[4]);
    const std::string_view scheme = parameters.empty() ? "" : pickle_.text(parameters[0]);
    constexpr std::string_view kParts[] = {"scale", "zero_point", "axis"};
    if (auto weight = quantized_weight(codes, parameters)) {
      const bool single = weight->companions.empty();
      keep(name, sizeof(graph::LogicalTensor) + weight->state.size());
      graph_.logical.push_back(std::move(*weight));
      add(std::move(codes));
      return single ? void() : push_parts(name, parameters.subspan(1), std::span(kParts).first(2));
    }
    add(std::move(codes));
    find(graph::Severity::error,
         fmt::format("quantized by the scheme '{}', whose numbers are not known here",
                     safe_display(scheme, 60)),
         name);
    if (!parameters.empty()) push_parts(name, parameters.subspan(1), kParts);
  }

  // The weight that integers stand for; nothing for other schemes and for several numbers in a byte. Its
  // parts are found by their names when all tensors are in their places (bind_quantized). The state is that
  // of convert::Unpacker: a scale and a zero point, or the dimension whose positions have their own.
  std::optional<graph::LogicalTensor> quantized_weight(const graph::Tensor& codes,
                                                       std::span<const PickleValue> parameters) const {
    const std::string_view scheme = parameters.empty() ? "" : pickle_.text(parameters[0]);
    const bool whole = scheme == "torch.per_tensor_affine" || scheme == "torch.per_tensor_symmetric";
    const bool channels = scheme == "torch.per_channel_affine" || scheme == "torch.per_channel_symmetric";
    const bool known = codes.dtype == graph::DType::i8 || codes.dtype == graph::DType::u8 ||
                       codes.dtype == graph::DType::i32;
    if (!known || parameters.size() != (channels ? 4 : 3)) return std::nullopt;
    graph::LogicalTensor weight;
    weight.name = codes.name;
    weight.packing = graph::WeightPacking::scaled;
    weight.shape = weight.block = codes.shape;
    weight.bits = 8 * graph::dtype_info(codes.dtype).block_bytes;
    const PickleValue last = parameters.back();
    if (!last.is(Kind::integer)) return std::nullopt;
    if (whole && parameters[1].is(Kind::real)) {
      weight.set_state(fmt::format(R"({{"scale":{},"zero_point":{}}})", pickle_.real(parameters[1]),
                                   pickle_.integer(last)));
      return weight;
    }
    const std::int64_t axis = pickle_.integer(last);
    if (!channels || axis < 0 || static_cast<std::uint64_t>(axis) >= codes.shape.size()) return std::nullopt;
    weight.block[static_cast<std::size_t>(axis)] = 1;
    weight.set_state(fmt::format(R"({{"axis":{}}})", axis));
    weight.companions = {{graph::Companion::scales, {}}, {graph::Companion::zeros, {}}};
    return weight;
  }

  // (layout, (indices, values, size[, coalesced])) or (layout, (compressed, plain, values, size)).
  void add_sparse(std::span<const PickleValue> arguments, const std::string& path) {
    find(graph::Severity::warning, "sparse: shown as its parts", tensor_name(path));
    const PickleObject* layout = pickle_.object(arguments[0]);
    const std::span<const PickleValue> names = layout ? pickle_.items(layout->arguments) : arguments.first(0);
    const std::string_view kind = names.empty() ? "" : pickle_.text(names[0]);
    const std::span<const PickleValue> data = pickle_.items(arguments[1]);
    constexpr std::string_view kCoo[] = {"indices", "values", "size"};
    constexpr std::string_view kCompressed[] = {"compressed_indices", "plain_indices", "values", "size"};
    if (kind == "torch.sparse_coo")
      push_parts(path, data, kCoo);
    else
      push_parts(path, data, kCompressed);
  }

  // An object of an unknown class. If it holds tensors, it needs the model's own code.
  void leave_out(const PickleObject& object, const std::string& path) {
    const std::string name = safe_display(class_name(object), 100);
    if (holds_storage(object))
      throw at(ErrorCode::unsupported, path,
               "holds tensors inside an object of class '{}', which only its own code can read; "
               "save a state_dict instead",
               name);
    find(graph::Severity::warning, fmt::format("an object of class '{}': left out", name), path);
  }

  // copyreg._reconstructor(class, base, state) stands for the class.
  std::string_view class_name(const PickleObject& object) const {
    const std::span<const PickleValue> arguments = pickle_.items(object.arguments);
    const bool stands_in = callee(object) == "copyreg._reconstructor" && !arguments.empty();
    return stands_in ? pickle_.text(arguments[0]) : callee(object);
  }

  // Whether holds_storage sees this object, tuple or other container for the first time.
  bool search_first(PickleValue value) {
    std::vector<bool>& seen = searched_[value.is(Kind::object) ? 0 : value.is(Kind::tuple) ? 1 : 2];
    if (value.number() >= seen.size()) seen.resize(value.number() + std::size_t{1});
    if (seen[value.number()]) return false;
    return seen[value.number()] = true;
  }

  // Every value is looked at once in all calls together.
  bool holds_storage(const PickleObject& object) {
    std::vector<PickleValue> waiting = {object.arguments, object.state};
    while (!waiting.empty()) {
      const PickleValue value = waiting.back();
      waiting.pop_back();
      if (value.is(Kind::persistent)) return true;
      const PickleObject* inner = pickle_.object(value);
      const std::span<const PickleValue> items = pickle_.items(value);
      if (inner == nullptr && items.empty()) continue;
      if (!search_first(value)) continue;
      if (inner != nullptr) waiting.insert(waiting.end(), {inner->arguments, inner->state});
      waiting.insert(waiting.end(), items.begin(), items.end());
    }
    return false;
  }

  void add_metadata(PickleValue value, const std::string& path) {
    switch (value.kind()) {
      case Kind::none:
      case Kind::big_integer:
        return;
      case Kind::boolean:
        return add_entry(path, value.number() != 0);
      case Kind::integer:
        return add_entry(path, pickle_.integer(value));
      case Kind::real:
        return add_entry(path, pickle_.real(value));
      default:
        return add_text(path, pickle_.text(value));
    }
  }

  void add_text(const std::string& path, std::string_view text) {
    if (text.size() > kMostMetadataText)
      return find(graph::Severity::info,
                  fmt::format("a text of more than {} bytes: left out", kMostMetadataText), path);
    if (metadata_bytes_ >= kMostMetadataBytes)
      return find(graph::Severity::info,
                  fmt::format("texts beyond {} bytes in all: left out", kMostMetadataBytes), path);
    metadata_bytes_ += text.size();
    add_entry(path, std::string(text));
  }

  void add_entry(const std::string& path, graph::MetaValue value) {
    if (path == graph::kConfigKey)  // reserved for the model's own configuration
      return find(graph::Severity::warning, "left out of the metadata", path);
    if (graph_.metadata.size() >= kMostMetadata)
      return find(graph::Severity::info, fmt::format("beyond the first {} values: left out", kMostMetadata),
                  path);
    const std::string& key = path.empty() ? kRootKey : path;
    if (!keys_.insert(key).second)
      return find(graph::Severity::warning, "a second value of this name: left out", key);
    keep(key, key.size() + sizeof(graph::MetaEntry));  // twice: see keys_
    graph_.metadata.push_back({key, std::move(value)});
  }

  void find(graph::Severity severity, std::string text, const std::string& path) {
    const auto known = std::ranges::find(findings_, text, &Finding::text);
    if (known != findings_.end()) {
      ++known->count;
      return;
    }
    if (findings_.size() < kMostFindings || severity == graph::Severity::error)
      findings_.push_back({severity, std::move(text), path, 1});
  }

  void write_notes() {
    for (Finding& finding : findings_) {
      std::string text = finding.text;
      if (finding.count > 1) text += fmt::format("; {} more like it", finding.count - 1);
      graph_.notes.push_back({finding.severity, std::move(finding.first), std::move(text)});
    }
  }

  static constexpr std::size_t kMostFindings = 100;
  static constexpr std::size_t kNamesAtOnce = 1024;
  inline static const std::string kRootKey = "value";

  const Pickle& pickle_;
  graph::MetaGraph& graph_;
  TorchRebuilder rebuild_;
  std::vector<Frame> stack_;
  std::uint64_t visits_ = 0;
  std::uint64_t names_ = 0;  // bytes of all paths
  std::uint64_t kept_ = 0;   // see keep
  std::size_t packed_ = 0;   // tensors whose names are packed
  std::size_t metadata_bytes_ = 0;
  std::array<std::vector<bool>, 3> searched_;  // objects, tuples, others, by number
  graph::TextSet keys_;                        // of the metadata
  std::vector<Finding> findings_;
};

}  // namespace

void add_torch_values(const Pickle& pickle, const TorchStorages& storages,
                      const std::vector<graph::StorageId>& placed, graph::MetaGraph& graph) {
  Walker(pickle, storages, placed, graph).walk();
}

}  // namespace loadline::importers
