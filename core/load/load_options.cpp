// The table: one row for each thing that can be chosen about a load.
#include "core/load/load_options.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/assets.h"
#include "core/load/orders.h"
#include "core/load/storage_cast.h"
#include "core/load/targets.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <type_traits>

#include <fmt/format.h>

namespace loadline {
namespace {

using Request = LoadRequest;
using Words = std::vector<std::string>;

// How members of the plain types are read and set.
template <auto member>
OptionValue number_of(const Request& request) {
  return std::uint64_t{request.*member};
}
template <auto member>
void set_number(Request& request, const OptionValue& value) {
  using Number = std::remove_cvref_t<decltype(request.*member)>;
  request.*member = static_cast<Number>(std::get<std::uint64_t>(value));
}
// Not set where it is 0.
template <auto member>
OptionValue number_or_none(const Request& request) {
  return request.*member == 0 ? OptionValue() : OptionValue(std::uint64_t{request.*member});
}
template <auto member>
void set_number_or_none(Request& request, const OptionValue& value) {
  const auto* const number = std::get_if<std::uint64_t>(&value);
  request.*member = number == nullptr ? 0 : *number;
}
template <auto member>
OptionValue optional_number(const Request& request) {
  return request.*member ? OptionValue(*(request.*member)) : OptionValue();
}
template <auto member>
void set_optional_number(Request& request, const OptionValue& value) {
  const auto* const number = std::get_if<std::uint64_t>(&value);
  request.*member = number == nullptr ? std::nullopt : std::optional(*number);
}
template <auto member>
OptionValue flag_of(const Request& request) {
  return request.*member;
}
template <auto member>
void set_flag(Request& request, const OptionValue& value) {
  request.*member = std::get<bool>(value);
}
OptionValue text_or_none(const std::string& text) { return text.empty() ? OptionValue() : OptionValue(text); }
std::string text_in(const OptionValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text == nullptr ? std::string() : *text;
}
template <auto member>
OptionValue text_of(const Request& request) {
  return text_or_none(request.*member);
}
template <auto member>
void set_text(Request& request, const OptionValue& value) {
  request.*member = text_in(value);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}
OptionValue dtype_value(const std::optional<DType>& dtype) {
  return dtype ? OptionValue(lower(dtype_info(*dtype).name)) : OptionValue();
}

template <typename Row>
Words ids_of(std::span<const Row> table) {
  Words ids;
  for (const Row& row : table) ids.emplace_back(row.id);
  return ids;
}

Words method_words() {
  Words words = ids_of(methods());
  words.emplace_back("all");
  return words;
}
Words order_words() {
  Words words = ids_of(orders());
  words.emplace_back("all");
  return words;
}
Words allocator_words() {
  Words words;
  for (const AllocatorRow& row : allocators())
    if (row.of_loads) words.emplace_back(row.id);
  return words;
}
Words target_words() { return ids_of(built_in_targets()); }
Words memory_words() { return {"discrete", "unified"}; }
Words logits_words() { return {"last", "all"}; }
// The types whose elements have a size of their own.
Words value_type_words() { return {"f32", "f16", "bf16", "f8_e4m3", "f8_e5m2", "i8"}; }
Words profile_words() {
  Words words;
  for (const Profile& profile : built_in_assets()->profiles) words.push_back(profile.id);
  return words;
}

std::optional<DType> value_type(const OptionValue& value) {
  const std::string name = lower(text_in(value));
  if (name.empty()) return std::nullopt;
  check_option_choice(name, value_type_words());
  for (const DTypeInfo& row : dtype_table())
    if (lower(row.name) == name) return row.id;
  return std::nullopt;
}

void set_methods(Request& request, const OptionValue& value) {
  request.methods.clear();
  if (const auto* const names = std::get_if<Words>(&value))
    for (const std::string& name : *names) {
      check_option_choice(name, method_words());
      request.methods.push_back(name);
    }
}

OptionValue auto_map_of(const Request& request) {
  if (!request.auto_map) return {};
  const auto size = [](std::uint64_t bytes) { return print_option(OptionKind::bytes, bytes); };
  const MemoryMap& map = *request.auto_map;
  return size(map.device) + (map.host ? "," + size(*map.host) : "");
}
void set_auto_map(Request& request, const OptionValue& value) {
  const std::string text = text_in(value);
  request.auto_map = text.empty() ? std::nullopt : std::optional(parse_memory_map(text));
}

// "512MiB" or "10%".
OptionValue reserve_of(const Request& request) {
  if (!request.reserve) return {};
  if (request.reserve->percent > 0) return fmt::format("{}%", request.reserve->percent);
  return print_option(OptionKind::bytes, request.reserve->bytes);
}
void set_reserve(Request& request, const OptionValue& value) {
  const std::string text = text_in(value);
  request.reserve.reset();
  if (text.empty()) return;
  if (!text.ends_with('%')) {
    request.reserve = Reserve{.bytes = parse_size(text, "")};
    return;
  }
  const OptionValue share =
      parse_option(OptionKind::count, std::string_view(text).substr(0, text.size() - 1));
  check_option_number(std::get<std::uint64_t>(share), 1, 99, false);
  request.reserve = Reserve{.percent = static_cast<std::uint32_t>(std::get<std::uint64_t>(share))};
}

OptionValue place_of(const Request& request) {
  if (request.place.empty()) return {};
  Words rules;
  for (const PlaceRule& rule : request.place)
    rules.push_back(fmt::format("{}={}", rule.filter, home_id(rule.place)));
  return rules;
}
void set_place(Request& request, const OptionValue& value) {
  std::vector<PlaceRule> rules;
  if (const auto* const texts = std::get_if<Words>(&value))
    for (const std::string& text : *texts) rules.push_back(parse_place_rule(text));
  request.place = std::move(rules);
}

OptionValue sizes_of(const Request& request) {
  if (request.sizes.empty()) return {};
  Words texts;
  for (const SizeChoice& size : request.sizes) texts.push_back(fmt::format("{}={}", size.name, size.size));
  return texts;
}
SizeChoice parse_size_choice(const std::string& text) {
  constexpr std::size_t kMostDigits = 12;
  const std::size_t at = text.rfind('=');
  const std::string number = at == std::string::npos ? "" : text.substr(at + 1);
  std::uint64_t size = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), size);
  if (at == 0 || number.empty() || number.size() > kMostDigits || read.ptr != number.data() + number.size())
    throw Error(ErrorCode::usage,
                fmt::format("'{}' is no NAME=N, such as height=224", safe_display(text, 80)));
  return {text.substr(0, at), size};
}
void set_sizes(Request& request, const OptionValue& value) {
  std::vector<SizeChoice> sizes;
  if (const auto* const texts = std::get_if<Words>(&value))
    for (const std::string& text : *texts) sizes.push_back(parse_size_choice(text));
  request.sizes = std::move(sizes);
}

constexpr unsigned bit(LoadUser user) { return 1u << static_cast<unsigned>(user); }
constexpr unsigned kPlan = bit(LoadUser::plan);
constexpr unsigned kPack = kPlan | bit(LoadUser::pack);
constexpr unsigned kOnGpu = kPack | bit(LoadUser::upload);
constexpr unsigned kAll = kOnGpu | bit(LoadUser::rehearse);

using load_groups::kFit;
using load_groups::kPass;
using load_groups::kPlaces;
using load_groups::kSettings;
using load_groups::kSimulated;
using load_groups::kWhich;
constexpr std::uint64_t kMostCount = INT64_MAX;

constexpr std::array<LoadOption, 30> kOptions = {{
    {{.id = "method",
      .group = kWhich,
      .kind = OptionKind::names,
      .title = "Methods",
      .value_name = "ID,...|all",
      .brief = "load methods to compare",
      .help = "Load methods to compare.",
      .choices = method_words,
      .get = [](const Request& r) { return r.methods.empty() ? OptionValue() : OptionValue(r.methods); },
      .set = set_methods,
      .can_be_unset = true},
     kAll},
    {{.id = "order",
      .group = kWhich,
      .kind = OptionKind::names,
      .title = "Order",
      .value_name = "ID,...|all|FILE",
      .brief = "sequence in which tensors are loaded",
      .help = "Orders in which tensors are loaded: file, name, forward, heads_first, largest, smallest, "
              "optimal, or a text file that names one tensor a line.",
      .default_text = "file",
      .choices = order_words,
      .get = [](const Request& r) { return OptionValue(r.orders); },
      .set = [](Request& r, const OptionValue& value) { r.orders = std::get<Words>(value); }},
     kAll},
    {{.id = "target",
      .group = kFit,
      .kind = OptionKind::text,
      .title = "Target",
      .value_name = "ID",
      .brief = "device whose data sheet sets the budgets",
      .help = "Device whose data sheet sets the budgets and the kind of memory.",
      .choices = target_words,
      .get = text_of<&Request::target>,
      .set = set_text<&Request::target>,
      .can_be_unset = true},
     kPlan},
    {{.id = "memory",
      .group = kFit,
      .kind = OptionKind::choice,
      .title = "Memory",
      .value_name = "KIND",
      .brief = "discrete, or unified: one memory for both",
      .help = "discrete: the device has its own memory. unified: device and host share one memory.",
      .default_text = "the target's, or discrete",
      .choices = memory_words,
      .get =
          [](const Request& r) {
            return r.memory ? OptionValue(std::string(memory_kind_name(*r.memory))) : OptionValue();
          },
      .set =
          [](Request& r, const OptionValue& value) {
            const std::string name = text_in(value);
            r.memory = name.empty() ? std::nullopt : std::optional(memory_kind(name));
          },
      .can_be_unset = true},
     kPlan | bit(LoadUser::rehearse)},
    {{.id = "device_budget",
      .group = kFit,
      .kind = OptionKind::bytes,
      .title = "Device budget",
      .value_name = "SIZE",
      .brief = "most device memory (unified: most of all)",
      .help = "Most device memory that a load may take; of unified memory, most of all that it holds.",
      .get = optional_number<&Request::device_budget>,
      .set = set_optional_number<&Request::device_budget>,
      .can_be_unset = true},
     kPlan},
    {{.id = "host_budget",
      .group = kFit,
      .kind = OptionKind::bytes,
      .title = "Host budget",
      .value_name = "SIZE",
      .brief = "most host and staging memory together",
      .help = "Most host and staging memory together that a load may take.",
      .get = optional_number<&Request::host_budget>,
      .set = set_optional_number<&Request::host_budget>,
      .can_be_unset = true},
     kPlan},
    {{.id = "reserve",
      .group = kFit,
      .kind = OptionKind::text,
      .title = "Reserve",
      .value_name = "SIZE|PERCENT",
      .brief = "taken off the budget for the system",
      .help =
          "Memory that the system needs for itself, as a size or a percentage. It is taken off the device "
          "budget, or off the one budget of unified memory.",
      .default_text = "the target's",
      .get = reserve_of,
      .set = set_reserve,
      .can_be_unset = true},
     kPlan,
     nullptr,
     "target,device_budget"},
    {{.id = "page_cache_budget",
      .group = kFit,
      .kind = OptionKind::bytes,
      .title = "Page cache budget",
      .value_name = "SIZE",
      .brief = "most file pages that the system keeps",
      .help = "Most file pages that the system keeps; pages beyond it are dropped and read again.",
      .get = optional_number<&Request::page_cache_budget>,
      .set = set_optional_number<&Request::page_cache_budget>,
      .can_be_unset = true},
     kPlan},
    {{.id = "require_peak",
      .group = kFit,
      .kind = OptionKind::bytes,
      .title = "Required peak",
      .value_name = "SIZE",
      .brief = "fail unless the deciding peak is at most SIZE",
      .help = "Fails unless the deciding peak of some row is at most SIZE.",
      .get = optional_number<&Request::require_peak>,
      .set = set_optional_number<&Request::require_peak>,
      .can_be_unset = true},
     kPlan},
    {{.id = "gpu_layers",
      .group = kPlaces,
      .kind = OptionKind::count,
      .title = "Layers on the device",
      .value_name = "N",
      .brief = "the last N layers on the device, the rest not",
      .help = "The last N layers go to the device, as in llama.cpp: norm and head count as one; the rest "
              "stays on the host.",
      .get = optional_number<&Request::gpu_layers>,
      .set = set_optional_number<&Request::gpu_layers>,
      .most = kMostCount,
      .can_be_unset = true},
     kAll,
     &MethodTraits::offloads,
     "",
     "placement"},
    {{.id = "auto_map",
      .group = kPlaces,
      .kind = OptionKind::text,
      .title = "Automatic map",
      .value_name = "DEVICE[,HOST]",
      .brief = "fill device, host, disk, as accelerate does",
      .help = "Fills the device up to a size, then the host, then disk, as accelerate's "
              "device_map=\"auto\".",
      .get = auto_map_of,
      .set = set_auto_map,
      .can_be_unset = true},
     kAll,
     &MethodTraits::offloads,
     "",
     "placement"},
    {{.id = "place",
      .group = kPlaces,
      .kind = OptionKind::names,
      .title = "Placement rules",
      .value_name = "EXPR=HOME",
      .brief = "tensors that match go to device, host or disk",
      .help = "Tensors that match a filter go to device, host or disk; the first match counts. May be "
              "repeated.",
      .get = place_of,
      .set = set_place,
      .can_be_unset = true,
      .separator = ';'},
     kAll,
     &MethodTraits::offloads,
     "",
     "placement"},
    {{.id = "cast",
      .group = kSettings,
      .kind = OptionKind::text,
      .title = "Cast",
      .value_name = "TYPE",
      .brief = "cast floating point weights on their way",
      .help = "Type that floating point weights are cast to on their way: f32, f16, bf16, or one that can "
              "only be projected, such as q4_k.",
      .get = [](const Request& r) { return dtype_value(r.cast); },
      .set =
          [](Request& r, const OptionValue& value) {
            const std::string name = text_in(value);
            r.cast = name.empty() ? std::nullopt : std::optional(find_cast(name));
          },
      .can_be_unset = true},
     kAll,
     &MethodTraits::casts},
    {{.id = "staging",
      .group = kSettings,
      .kind = OptionKind::bytes,
      .title = "Staging ring",
      .value_name = "SIZE",
      .brief = "size of the whole staging ring",
      .help = "Size of the whole staging ring.",
      .default_text = "64MiB",
      .get = number_of<&Request::staging_bytes>,
      .set = set_number<&Request::staging_bytes>,
      .most = std::uint64_t{1} << 40},
     kAll,
     &MethodTraits::ring},
    {{.id = "slots",
      .group = kSettings,
      .kind = OptionKind::count,
      .title = "Ring slots",
      .value_name = "N",
      .brief = "slots of the staging ring",
      .help = "Slots of the staging ring.",
      .default_text = "4",
      .get = number_of<&Request::slots>,
      .set = set_number<&Request::slots>,
      .least = 1,
      .most = 1024},
     kAll,
     &MethodTraits::ring},
    {{.id = "runai_buffer",
      .group = kSettings,
      .kind = OptionKind::bytes,
      .title = "Run:ai buffer",
      .value_name = "SIZE",
      .brief = "host buffer of the Run:ai streamer",
      .help = "Size of the host buffer that the Run:ai streamer reads ahead into.",
      .default_text = "40GB",
      .get = number_of<&Request::runai_buffer>,
      .set = set_number<&Request::runai_buffer>},
     kAll,
     &MethodTraits::limit,
     "",
     "",
     "limit"},
    {{.id = "shard_size",
      .group = kSettings,
      .kind = OptionKind::bytes,
      .title = "Shard size",
      .value_name = "SIZE",
      .brief = "as if saved in shards of at most SIZE",
      .help = "Projects the load as if the model had been saved in shards of at most SIZE.",
      .default_text = "the files as they are",
      .get = number_or_none<&Request::shard_bytes>,
      .set = set_number_or_none<&Request::shard_bytes>,
      .least = 1,
      .can_be_unset = true},
     kAll,
     &MethodTraits::shards},
    {{.id = "flush",
      .group = kSettings,
      .kind = OptionKind::bytes,
      .title = "Flush threshold",
      .value_name = "SIZE",
      .brief = "ExecuTorch: bytes collected before a transfer",
      .help = "ExecuTorch sends its staging buffers once they hold SIZE together.",
      .default_text = "0, after every tensor",
      .get = number_of<&Request::flush_bytes>,
      .set = set_number<&Request::flush_bytes>},
     kAll,
     &MethodTraits::flushes,
     "",
     "",
     "F"},
    {{.id = "doubled_ties",
      .group = kSettings,
      .kind = OptionKind::flag,
      .title = "Doubled ties",
      .brief = "ExecuTorch: pack tied weights once per name",
      .help = "ExecuTorch packs a weight with two names once for each name.",
      .get = flag_of<&Request::doubled_ties>,
      .set = set_flag<&Request::doubled_ties>},
     kAll,
     &MethodTraits::flushes},
    {{.id = "activations",
      .group = kPass,
      .kind = OptionKind::bytes,
      .title = "Activations",
      .value_name = "SIZE",
      .brief = "activations and caches as one block",
      .help = "Activations and caches as one block on the device.",
      .default_text = "0",
      .get = number_of<&Request::activation_bytes>,
      .set = set_number<&Request::activation_bytes>,
      .most = std::uint64_t{1} << 60},
     kOnGpu,
     nullptr,
     "",
     "",
     "Q"},
    {{.id = "seq",
      .group = kPass,
      .kind = OptionKind::count,
      .title = "New tokens",
      .value_name = "N",
      .brief = "add a forward pass over N new tokens",
      .help = "Adds a forward pass over N new tokens of each sequence.",
      .get = number_or_none<&Request::sequence>,
      .set = set_number_or_none<&Request::sequence>,
      .least = 1,
      .most = kMostTokens,
      .can_be_unset = true},
     kPack},
    {{.id = "batch",
      .group = kPass,
      .kind = OptionKind::count,
      .title = "Batch",
      .value_name = "N",
      .brief = "sequences in the forward pass",
      .help = "Sequences in the forward pass.",
      .default_text = "1",
      .get = number_of<&Request::batch>,
      .set = set_number<&Request::batch>,
      .least = 1,
      .most = kMostTokens},
     kPack,
     nullptr,
     "seq"},
    {{.id = "past",
      .group = kPass,
      .kind = OptionKind::count,
      .title = "Tokens before",
      .value_name = "N",
      .brief = "tokens of each sequence in the cache already",
      .help = "Tokens of each sequence that the cache already holds; an encoder has run over as many.",
      .default_text = "0",
      .get = number_of<&Request::past>,
      .set = set_number<&Request::past>,
      .most = kMostTokens},
     kPack,
     nullptr,
     "seq"},
    {{.id = "dim",
      .group = kPass,
      .kind = OptionKind::names,
      .title = "Named sizes",
      .value_name = "NAME=N",
      .brief = "size of a dimension that an ONNX file names",
      .help = "Size of a dimension that an ONNX file calls NAME. May be repeated.",
      .get = sizes_of,
      .set = set_sizes,
      .can_be_unset = true,
      .separator = ';'},
     kPack},
    {{.id = "profile",
      .group = kPass,
      .kind = OptionKind::text,
      .title = "Profile",
      .value_name = "ID",
      .brief = "how a framework runs operators",
      .help = "How a framework runs operators: fused, ggml, hf_eager, hf_sdpa, onnxruntime, or your own.",
      .default_text = "onnxruntime for an ONNX file's own operators, else fused",
      .choices = profile_words,
      .get = [](const Request& r) { return text_or_none(r.forward.profile); },
      .set = [](Request& r, const OptionValue& value) { r.forward.profile = text_in(value); },
      .can_be_unset = true},
     kPack,
     nullptr,
     "seq,dim"},
    {{.id = "activation_dtype",
      .group = kPass,
      .kind = OptionKind::choice,
      .title = "Type of activations",
      .value_name = "TYPE",
      .brief = "type of activations",
      .help = "Type of activations: f32, f16, bf16, f8_e4m3, f8_e5m2 or i8.",
      .default_text = "the profile's",
      .choices = value_type_words,
      .get = [](const Request& r) { return dtype_value(r.forward.activation); },
      .set = [](Request& r, const OptionValue& value) { r.forward.activation = value_type(value); },
      .can_be_unset = true},
     kPack,
     nullptr,
     "seq,dim"},
    {{.id = "cache_dtype",
      .group = kPass,
      .kind = OptionKind::choice,
      .title = "Type of the cache",
      .value_name = "TYPE",
      .brief = "type of cached keys and values",
      .help = "Type of cached keys and values.",
      .default_text = "the profile's",
      .choices = value_type_words,
      .get = [](const Request& r) { return dtype_value(r.forward.cache); },
      .set = [](Request& r, const OptionValue& value) { r.forward.cache = value_type(value); },
      .can_be_unset = true},
     kPack},
    {{.id = "logits",
      .group = kPass,
      .kind = OptionKind::choice,
      .title = "Logits",
      .value_name = "ROWS",
      .brief = "rows that the head computes: last or all",
      .help = "Rows that the head computes: last (of each sequence) or all.",
      .default_text = "the profile's",
      .choices = logits_words,
      .get =
          [](const Request& r) {
            if (!r.forward.all_logits) return OptionValue();
            return OptionValue(std::string(*r.forward.all_logits ? "all" : "last"));
          },
      .set =
          [](Request& r, const OptionValue& value) {
            const std::string rows = text_in(value);
            r.forward.all_logits = rows.empty() ? std::nullopt : std::optional(rows == "all");
          },
      .can_be_unset = true},
     kPack,
     nullptr,
     "seq"},
    {{.id = "allocator",
      .group = kSimulated,
      .kind = OptionKind::choice,
      .title = "Allocator",
      .value_name = "ID",
      .brief = "exact, torch, malloc, vulkan or arena",
      .help = "Memory allocator to simulate: exact, torch, malloc, vulkan or arena. Budgets are checked "
              "against what it reserves.",
      .default_text = "exact",
      .choices = allocator_words,
      .get = [](const Request& r) { return OptionValue(std::string(allocator_id(r.allocator))); },
      .set = [](Request& r, const OptionValue& value) { r.allocator = load_allocator(text_in(value)); }},
     kPlan},
    {{.id = "rates",
      .group = kSimulated,
      .kind = OptionKind::text,
      .title = "Rates",
      .value_name = "FILE|assumed",
      .brief = "rates that times are estimated with",
      .help = "Rates that times are estimated with: a file of measured rates, or assumed ones.",
      .default_text = "those measured on this machine, if any",
      .get = text_of<&Request::rates>,
      .set = set_text<&Request::rates>,
      .can_be_unset = true},
     kPlan},
}};

// The words of a list such as "seq,dim".
std::vector<std::string_view> listed(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

}  // namespace

std::span<const LoadOption> load_options() { return kOptions; }

const LoadOption* find_load_option(std::string_view id) {
  const auto found =
      std::find_if(kOptions.begin(), kOptions.end(), [&](const LoadOption& row) { return row.id == id; });
  return found == kOptions.end() ? nullptr : &*found;
}

void set_load_option(LoadRequest& request, std::string_view id, std::string_view word) {
  const LoadOption* const option = find_load_option(id);
  if (option == nullptr) {
    std::vector<std::string_view> ids;
    for (const LoadOption& row : kOptions) ids.push_back(row.id);
    const std::string_view meant = nearest_word(id, ids);
    throw Error(ErrorCode::usage, fmt::format("no option of a load is called '{}'{}", safe_display(id, 60),
                                              meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
  }
  set_option(*option, request, word);
  if (option->excludes.empty() || std::holds_alternative<std::monostate>(option->get(request))) return;
  for (const LoadOption& other : kOptions)
    if (&other != option && other.excludes == option->excludes) other.set(request, {});
}

std::string load_option_text(const LoadRequest& request, const LoadOption& option) {
  return print_option(option.kind, option.get(request), option.separator);
}

bool supports(const Method& method, const LoadOption& option) {
  return option.supported_by == nullptr || method.traits.*option.supported_by;
}

std::vector<const LoadOption*> supported_options(const Method& method) {
  std::vector<const LoadOption*> options;
  for (const LoadOption& option : kOptions)
    if (option.supported_by != nullptr && supports(method, option)) options.push_back(&option);
  return options;
}

std::vector<std::pair<std::string_view, std::string>> changed_options(const LoadRequest& request) {
  const LoadRequest defaults;
  std::vector<std::pair<std::string_view, std::string>> changed;
  for (const LoadOption& option : kOptions)
    if (!same_option(option, request, defaults))
      changed.emplace_back(option.id, load_option_text(request, option));
  return changed;
}

std::vector<UnusedOption> unused_options(const LoadRequest& request, std::span<const Method* const> chosen,
                                         const std::vector<std::string_view>& given) {
  const LoadRequest defaults;
  const auto is_set = [&](const LoadOption& option) {
    return std::find(given.begin(), given.end(), option.id) != given.end() ||
           !same_option(option, request, defaults);
  };
  std::vector<UnusedOption> unused;
  for (const LoadOption& option : kOptions) {
    if (!is_set(option)) continue;
    if (std::none_of(chosen.begin(), chosen.end(), [&](const Method* m) { return supports(*m, option); })) {
      unused.push_back({&option, {}, {}});
      for (const Method& method : methods())
        if (supports(method, option)) unused.back().supported_by.push_back(method.id);
      continue;
    }
    const std::vector<std::string_view> needs = listed(option.needs);
    if (!needs.empty() && std::none_of(needs.begin(), needs.end(),
                                       [&](std::string_view id) { return is_set(*find_load_option(id)); }))
      unused.push_back({&option, {}, needs});
  }
  return unused;
}

}  // namespace loadline
