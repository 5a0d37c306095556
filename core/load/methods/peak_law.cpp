// Splits a law into parts and evaluates each with the expression reader.
#include "core/assets/expression.h"
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/load/methods/framework_sizes.h"
#include "core/load/request/casts.h"
#include "core/load/request/load_options.h"
#include "core/load/request/method.h"
#include "core/load/request/model_parts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace loadline::load {
namespace {

// Rewrites a law's text for the expression reader: "w*" is a name, "2W" a product, "4 MiB" a number.
std::string as_expression(std::string_view text) {
  std::string result;
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with(" MiB")) {
      result += " * 1048576";
      i += 3;
    } else if (text[i] == '*') {
      result += "_star";
    } else {
      if (i > 0 && letter(text[i]) && std::isdigit(static_cast<unsigned char>(text[i - 1])) != 0)
        result += " * ";
      result += text[i];
    }
  }
  return result;
}

std::int64_t bounded(std::uint64_t value) {
  if (value >> 63 != 0) throw Error(ErrorCode::limit, "a symbol of a law exceeds 63 bits");
  return static_cast<std::int64_t>(value);
}

class Reader {
 public:
  Reader(std::string_view law, const LawValues& values) : law_(law), values_(values) {
    names_ = {{"W", values.W},      {"w_star", values.w}, {"V", values.V},      {"v_star", values.v},
              {"c_star", values.c}, {"S_star", values.S}, {"g_star", values.g}, {"x_star", values.x},
              {"y_star", values.y}, {"H", values.H},      {"D", values.D},      {"T", values.T},
              {"B", values.B},      {"h", values.h},      {"M", values.M},      {"G", values.G},
              {"u_star", values.u}, {"R", values.R},      {"o_star", values.o}, {"N", values.N},
              {"P", values.P},      {"e", values.e}};
    names_.insert(values.options.begin(), values.options.end());
  }

  LawPeaks read() const {
    LawPeaks peaks;
    for (const std::string_view part : split(law_, ", ")) read_part(part, peaks);
    peaks.spaces[plan::index(plan::Space::host)] += values_.host_pass;
    return peaks;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorCode::malformed, "the law '{}': {}", law_, what);
  }

  // Splits at separators outside parentheses.
  static std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
    std::vector<std::string_view> parts;
    int depth = 0;
    std::size_t from = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
      if (depth > 0 || !text.substr(i).starts_with(separator)) continue;
      parts.push_back(text.substr(from, i - from));
      from = i + separator.size();
    }
    parts.push_back(text.substr(from));
    return parts;
  }

  void read_part(std::string_view part, LawPeaks& peaks) const {
    constexpr std::array<std::pair<std::string_view, plan::Space>, 4> kSpaces = {
        {{"device ", plan::Space::device},
         {"host ", plan::Space::host},
         {"page cache ", plan::Space::page_cache},
         {"staging ", plan::Space::staging}}};
    for (const auto& [word, space] : kSpaces)
      if (part.starts_with(word)) {
        peaks.spaces[plan::index(space)] = read_cases(part.substr(word.size()));
        return;
      }
    constexpr std::string_view kUnified = "unified ";
    if (!part.starts_with(kUnified)) fail(fmt::format("'{}' names no space", part));
    peaks.unified = read_cases(part.substr(kUnified.size()));
  }

  // Reads "V + Q (cast: V + max(S*, Q))".
  std::uint64_t read_cases(std::string_view text) const {
    const std::size_t open = text.find(" (");
    std::uint64_t value = evaluate(text.substr(0, open));
    if (open == std::string_view::npos) return value;
    if (!text.ends_with(')')) fail("a parenthesis is not closed");
    for (std::string_view one : split(text.substr(open + 2, text.size() - open - 3), "; ")) {
      const std::size_t colon = one.find(": ");
      if (colon == std::string_view::npos) fail(fmt::format("'{}' is not a case", one));
      const bool holds = holds_for(one.substr(0, colon));
      std::string_view expression = one.substr(colon + 2);
      const bool adds = expression.starts_with("+ ");
      if (adds) expression.remove_prefix(2);
      const std::uint64_t result = evaluate(expression);
      if (holds) value = adds ? value + result : result;
    }
    return value;
  }

  bool holds_for(std::string_view condition) const {
    if (condition == "cast") return values_.cast;
    if (condition == "disk") return values_.disk;
    if (condition == "pickled") return values_.pickled;
    if (condition == "used") return values_.used;
    if (condition == "brought") return values_.used && values_.V > 0 && values_.o > 0;
    if (condition == "partly") return values_.partly;
    if (condition == "kept") return values_.kept;
    if (condition == "repack") return values_.repack;
    if (condition == "fused") return values_.G > 0;
    fail(fmt::format("'{}' is not a condition", condition));
  }

  std::uint64_t evaluate(std::string_view text) const {
    assets::Scope scope;
    scope.name = [this](std::string_view name) {
      const auto found = names_.find(name);
      if (found == names_.end()) fail(fmt::format("'{}' is not a symbol", name));
      return assets::Datum(bounded(found->second));
    };
    scope.call = [this](std::string_view function,
                        std::span<const assets::Datum> arguments) -> std::optional<assets::Datum> {
      if (function != "slots" || arguments.size() != 1 || arguments[0].number() == nullptr)
        return std::nullopt;
      const std::int64_t slot = std::max<std::int64_t>(bounded(values_.slot), 1);
      return assets::Datum((*arguments[0].number() + slot - 1) / slot * slot);
    };
    const assets::AssetPlace place = {std::make_shared<const std::string>("law"), 1, 1};
    const assets::Datum value = assets::Expression::parse(as_expression(text), place).evaluate(scope);
    if (value.number() == nullptr || *value.number() < 0) fail(fmt::format("'{}' is not a size", text));
    return static_cast<std::uint64_t>(*value.number());
  }

  std::string_view law_;
  const LawValues& values_;
  std::map<std::string, std::uint64_t, std::less<>> names_;
};

// Bytes that tied weights hold until their last name is packed: the host copy; if doubled, also the staging
// buffers and device tensors of all names.
std::uint64_t held_for_ties(const graph::MetaGraph& graph, bool doubled) {
  std::uint64_t held = 0;
  for (const std::vector<graph::TensorId>& group : graph::tied_groups(graph))
    held = add_loaded(
        held, graph.storage(graph.tensor(group.front()).storage).bytes * (doubled ? 2 * group.size() : 1));
  return held;
}

// Sizes of the parts that run at once, in forward order; a tied weight counts in each part that uses it.
std::vector<std::uint64_t> unit_bytes(const graph::MetaGraph& graph) {
  std::map<std::tuple<Phase, int, std::uint64_t>, std::set<graph::StorageId>> units;
  for (const graph::Tensor& tensor : graph.tensors)
    units[forward_key(tensor.name.view())].insert(tensor.storage);
  std::vector<std::uint64_t> sizes;
  for (const auto& [key, storages] : units) {
    sizes.push_back(0);
    for (const graph::StorageId id : storages)
      sizes.back() = add_loaded(sizes.back(), graph.storage(id).bytes);
  }
  return sizes;
}

// Weights on the device whose pages stay mapped, because others of their shard stay on the host as views.
std::uint64_t kept_by_views(const graph::MetaGraph& graph, const LoadInputs& inputs,
                            const StorageOrder& storages, const std::vector<std::uint32_t>& shards,
                            const std::vector<std::optional<plan::Cast>>& casts) {
  std::set<std::uint32_t> viewed;
  for (const graph::StorageId id : storages)
    if (inputs.placement.of(id) == Home::host && !casts[graph::index(id)] && graph.storage(id).bytes > 0)
      viewed.insert(shards[graph::index(id)]);
  std::uint64_t kept = 0;
  for (const graph::StorageId id : storages)
    if (inputs.placement.of(id) == Home::device && viewed.contains(shards[graph::index(id)]))
      kept = add_loaded(kept, graph.storage(id).bytes);
  return kept;
}

std::uint64_t sum_of_largest(std::vector<std::uint64_t> sizes, std::uint64_t count) {
  count = std::min<std::uint64_t>(count, sizes.size());
  std::ranges::partial_sort(sizes, sizes.begin() + static_cast<std::ptrdiff_t>(count), std::greater<>());
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) sum = add_loaded(sum, sizes[i]);
  return sum;
}

// One request more than are in flight, of the largest size that each may have in any order.
std::uint64_t runai_bound(const graph::MetaGraph& graph, const StorageOrder& storages, std::uint64_t limit) {
  std::vector<std::uint64_t> sizes;
  std::uint64_t all = 0;
  for (const graph::StorageId id : storages) {
    sizes.push_back(graph.storage(id).bytes);
    all = add_loaded(all, sizes.back());
  }
  const RunaiBuffers buffers = runai_buffers(sizes, limit);
  if (all < limit) return all;
  return std::min(all, checked_mul(buffers.count + 1, buffers.bytes).value_or(all));
}

}  // namespace

LawValues law_values(const graph::MetaGraph& graph, const LoadInputs& inputs) {
  LawValues values;
  const LoadRequest& request = inputs.request;
  const std::vector<std::uint64_t> landed = loaded_bytes(graph, request.cast);
  const std::vector<std::uint32_t> shards = shards_of(graph, request.shard_bytes);
  const std::vector<std::optional<plan::Cast>> casts =
      request.cast ? storage_casts(graph, *request.cast)
                   : std::vector<std::optional<plan::Cast>>(graph.storages.size());
  const StorageOrder storages = find_order("file").make(graph);
  std::map<std::uint32_t, std::uint64_t> shard_bytes;
  const auto raise = [](std::uint64_t& most, std::uint64_t bytes) { most = std::max(most, bytes); };
  for (const graph::StorageId id : storages) {
    const std::uint64_t stored = graph.storage(id).bytes, lands = landed[graph::index(id)];
    values.W = add_loaded(values.W, stored);
    raise(values.w, stored);
    raise(values.v, lands);
    raise(values.c, add_loaded(stored, lands));
    raise(values.S, shard_bytes[shards[graph::index(id)]] += stored);
    const Home home = inputs.placement.of(id);
    std::uint64_t& sum = home == Home::device ? values.V : home == Home::host ? values.H : values.D;
    sum = add_loaded(sum, lands);
    if (home != Home::device || inputs.placement.has_twin(id)) raise(values.o, lands);
    if (inputs.placement.has_twin(id)) values.H = add_loaded(values.H, lands);
  }
  values.M = kept_by_views(graph, inputs, storages, shards, casts);
  values.kept = request.cast && (values.H > 0 || values.D > 0);
  if (const auto shared = shared_embedding(graph)) values.h = landed[graph::index(*shared)];
  for (const ExpertGroup& group : expert_groups(graph, storages)) {
    std::uint64_t bytes = 0;
    for (const graph::StorageId id : group.storages) bytes = add_loaded(bytes, landed[graph::index(id)]);
    raise(values.g, bytes);
    values.G = add_loaded(values.G, bytes);
    values.kept = values.kept || inputs.placement.of(group.storages.front()) != Home::device;
  }
  values.N = vocabulary_bytes(graph);
  values.repack = request.repack.has_value();
  if (values.V == 0) values.e = repacked_head(graph, request.repack);
  values.P = values.e;
  const std::vector<bool> repacked = repacked_storages(graph, request.repack);
  for (const graph::StorageId id : storages)
    if (repacked[graph::index(id)] && inputs.placement.of(id) != Home::device)
      values.P = add_loaded(values.P, graph.storage(id).bytes);
  values.R = runai_bound(graph, storages, request.runai_buffer);
  values.u = sum_of_largest(landed, loading_threads(inputs));
  std::uint64_t before = 0;
  for (const std::uint64_t unit : unit_bytes(graph)) {
    raise(values.x, unit);
    raise(values.y, add_loaded(before, unit));
    before = unit;
  }
  values.T = held_for_ties(graph, request.doubled_ties);
  values.slot = request.staging_bytes / request.slots;
  values.B = values.slot * request.slots;
  for (const LoadOption& option : load_options())
    if (const OptionValue value = option.get(request); !option.terms.symbol.empty())
      values.options.emplace(option.terms.symbol, std::get<std::uint64_t>(value));
  values.cast = request.cast.has_value();
  values.disk = values.D > 0;
  values.pickled = is_pickled(graph);
  values.used = uses_weights(request);
  values.partly = request.cast && std::ranges::any_of(storages, [&](graph::StorageId id) {
                    return !casts[graph::index(id)];
                  });
  if (computes_on_host(inputs.placement)) {
    values.host_pass = values.options["Q"];
    values.options["Q"] = 0;
  }
  return values;
}

LawPeaks evaluate_law(std::string_view law, const LawValues& values) { return Reader(law, values).read(); }

}  // namespace loadline::load
