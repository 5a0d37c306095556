// The table of load options: one row for each setting of a load.
#include "core/load/request/load_options.h"

#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text.h"
#include "core/forward/model/known_models.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/casts.h"
#include "core/load/request/model_parts.h"
#include "core/load/request/option_context.h"
#include "core/load/request/request.h"

#include <algorithm>
#include <array>

namespace loadline::load {
namespace {

using Request = LoadRequest;
using Words = std::vector<std::string>;

template <typename Row>
Words ids_of(std::span<const Row> table, Words more = {}) {
  Words ids;
  for (const Row& row : table) ids.emplace_back(row.id);
  ids.insert(ids.end(), more.begin(), more.end());
  return ids;
}

Words method_words() { return ids_of(methods(), {"all"}); }
Words order_words() { return ids_of(orders(), {"all"}); }
Words allocator_words() {
  Words words;
  for (const allocators::AllocatorRow& row : allocators::allocators())
    if (row.of_loads) words.emplace_back(row.id);
  return words;
}
Words target_words() {
  Words words = ids_of(built_in_targets());
  words.insert(words.begin(), std::string(kThisMachine));
  return words;
}
Words memory_words() { return {"discrete", "unified"}; }
Words logits_words() { return {"last", "all"}; }
// The types whose size is fixed per element.
Words value_type_words() { return {"f32", "f16", "bf16", "f8_e4m3", "f8_e5m2", "i8"}; }
Words profile_words() {
  return ids_of(std::span<const forward::Profile>(forward::built_in_assets()->profiles));
}

graph::DType parse_value_type(const std::string& name) {
  const std::optional<graph::DType> type = graph::dtype_named(name);
  check_option_choice(type ? graph::dtype_word(*type) : name, value_type_words());
  return *type;
}
constexpr std::string_view kMaxContext = "max";
Words context_words() { return {std::string(kMaxContext)}; }
bool all_logits(const std::string& rows) { return rows == "all"; }
std::string_view logits_word(bool all) { return all ? "all" : "last"; }

Words reader_words() { return {"1", "2", "4", "8", "16", "32", "64"}; }

void set_methods(Request& request, const OptionValue& value) {
  const auto* const names = std::get_if<Words>(&value);
  request.methods = names == nullptr ? Words() : *names;
  for (const std::string& name : request.methods) check_option_choice(name, method_words());
}

constexpr unsigned bit(LoadUser user) { return 1u << static_cast<unsigned>(user); }
constexpr unsigned kPlan = bit(LoadUser::plan);
constexpr unsigned kPack = kPlan | bit(LoadUser::pack);
constexpr unsigned kUpload = bit(LoadUser::upload);
constexpr unsigned kOnGpu = kPack | kUpload;
constexpr unsigned kAll = kOnGpu | bit(LoadUser::rehearse);

using load_groups::kFit;
using load_groups::kPass;
using load_groups::kPlaces;
using load_groups::kReads;
using load_groups::kSettings;
using load_groups::kSimulated;
using load_groups::kWhich;
constexpr std::uint64_t kMostCount = INT64_MAX;

constexpr std::array<LoadOption, 37> kOptions = {{
    {{.id = "method",
      .group = kWhich,
      .kind = OptionKind::names,
      .title = "Methods",
      .value_name = "ID,...|all",
      .brief = "load methods to compare",
      .help = "Load methods to compare.",
      .choices = method_words,
      .access = {[](const Request& r) { return r.methods.empty() ? OptionValue() : OptionValue(r.methods); },
                 set_methods, true}},
     kAll,
     {},
     {"ID", "how the model is loaded"}},
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
      .access = {[](const Request& r) { return OptionValue(r.orders); },
                 [](Request& r, const OptionValue& value) { r.orders = std::get<Words>(value); }}},
     kAll,
     {},
     {"ID|FILE", "sequence in which tensors are loaded"}},
    {{.id = "target",
      .group = kFit,
      .kind = OptionKind::text,
      .title = "Target",
      .value_name = "ID",
      .brief = "`this` machine, or a device's data sheet",
      .help = "Where the load has to fit: `this` machine with the memory that it can give now, or the data "
              "sheet of a device. Sets the budgets and the kind of memory.",
      .choices = target_words,
      .access = access::text<&Request::target>},
     kPlan,
     {.in_context = &in_context::target}},
    {{.id = "memory",
      .group = kFit,
      .kind = OptionKind::choice,
      .title = "Memory",
      .value_name = "KIND",
      .brief = "discrete, or unified: one memory for both",
      .help = "discrete: the device has its own memory. unified: device and host share one memory.",
      .default_text = "the target's, or discrete",
      .choices = memory_words,
      .access = access::word<plan::memory_kind, plan::memory_kind_name, &Request::memory>},
     kPlan | bit(LoadUser::rehearse),
     {.in_context = &in_context::memory}},
    {{.id = "device_budget",
      .group = kFit,
      .kind = OptionKind::bytes,
      .title = "Device budget",
      .value_name = "SIZE",
      .brief = "most device memory (unified: most of all)",
      .help = "Most device memory that a load may take; of unified memory, most of all that it holds.",
      .access = access::optional_number<&Request::device_budget>},
     kPlan,
     {.in_context = &in_context::device_budget}},
    {{.id = "host_budget",
      .group = kFit,
      .kind = OptionKind::bytes,
      .title = "Host budget",
      .value_name = "SIZE",
      .brief = "most host and staging memory together",
      .help = "Most host and staging memory together that a load may take.",
      .access = access::optional_number<&Request::host_budget>},
     kPlan,
     {.in_context = &in_context::host_budget}},
    {{.id = "reserve",
      .group = kFit,
      .kind = OptionKind::text,
      .title = "Reserve",
      .value_name = "SIZE|PERCENT",
      .brief = "memory kept free for the system",
      .help =
          "Memory that the system needs for itself, as a size or a percentage. It is taken off the device "
          "budget, or off the one budget of unified memory.",
      .default_text = "the target's",
      .access = access::word<parse_reserve, print_reserve, &Request::reserve>},
     kPlan,
     {.needs = "target,device_budget"}},
    {{.id = "page_cache_budget",
      .group = kFit,
      .kind = OptionKind::bytes,
      .title = "Page cache budget",
      .value_name = "SIZE",
      .brief = "most file pages that the system keeps",
      .help = "Most file pages that the system keeps; pages beyond it are dropped and read again.",
      .access = access::optional_number<&Request::page_cache_budget>},
     kPlan},
    {{.id = "mapped_pages",
      .group = kFit,
      .kind = OptionKind::choice,
      .title = "Mapped pages",
      .value_name = "KIND",
      .brief = "unified memory: can copied-from pages be dropped",
      .help = "Whether unified memory can drop mapped file pages that the driver pins or copies from: "
              "droppable, or anonymous as on GB10, where a load may need them twice.",
      .default_text = "the target's, or droppable",
      .choices = mapped_pages_words,
      .access = access::word<find_mapped_pages, mapped_pages_word, &Request::mapped_pages>},
     kPlan,
     {.needs = "memory,target"}},
    {{.id = "require_peak",
      .group = kFit,
      .kind = OptionKind::bytes,
      .title = "Required peak",
      .value_name = "SIZE",
      .brief = "fail unless the deciding peak is at most SIZE",
      .help = "Fails unless the deciding peak of some row is at most SIZE.",
      .access = access::optional_number<&Request::require_peak>},
     kPlan},
    {{.id = "gpu_layers",
      .group = kPlaces,
      .kind = OptionKind::count,
      .title = "Layers on the device",
      .value_name = "N",
      .brief = "the last N layers on the device, the rest not",
      .help = "The last N layers go to the device, as in llama.cpp: norm and head count as one; the rest "
              "stays on the host.",
      .access = access::optional_number<&Request::gpu_layers>,
      .most = kMostCount},
     kAll,
     {.supported_by = &MethodTraits::layers, .excludes = "placement", .in_context = &in_context::layers}},
    {{.id = "auto_map",
      .group = kPlaces,
      .kind = OptionKind::text,
      .title = "Automatic map",
      .value_name = "DEVICE[,HOST]",
      .brief = "fill device, host, disk, as accelerate does",
      .help = "Fills the device up to a size, then the host, then disk, as accelerate's "
              "device_map=\"auto\". The word auto stands for 90 % of each budget.",
      .access = access::word<parse_memory_map, print_memory_map, &Request::auto_map>},
     kAll,
     {.supported_by = &MethodTraits::auto_maps,
      .excludes = "placement",
      .in_context = &in_context::automatic_map}},
    {{.id = "place",
      .group = kPlaces,
      .kind = OptionKind::names,
      .title = "Placement rules",
      .value_name = "EXPR=HOME",
      .brief = "tensors that match go to device, host or disk",
      .help = "Tensors that match a filter go to device, host or disk; the first match counts. May be "
              "repeated.",
      .access = access::words<parse_place_rule, print_place_rule, &Request::place>,
      .separator = ';'},
     kAll,
     {.supported_by = &MethodTraits::offloads, .excludes = "placement"}},
    {{.id = "cast",
      .group = kSettings,
      .kind = OptionKind::text,
      .title = "Cast",
      .value_name = "TYPE",
      .brief = "cast floating point weights while loading",
      .help = "Type that floating point weights are cast to on their way: f32, f16, bf16, or one that can "
              "only be projected, such as q4_k.",
      .access = access::word<find_cast, graph::dtype_word, &Request::cast>},
     kAll,
     {.supported_by = &MethodTraits::casts, .excludes = "conversion"}},
    {{.id = "prepack",
      .group = kSettings,
      .kind = OptionKind::choice,
      .title = "Prepack",
      .value_name = "ID",
      .brief = "pack weights on the device as they arrive",
      .help =
          "Converts and rearranges weights on the device as they arrive, without memory on the host: f32, "
          "f16 (also from q8_0, q4_0 and q4_k), bf16, transposed, four_rows (four rows interleaved), "
          "transposed_f16 or four_rows_f16. Layouts apply to matrices.",
      .default_text = "none",
      .choices = prepacking_ids,
      .access = access::word<find_prepacking, prepacking_id, &Request::prepack>},
     kAll,
     {.excludes = "conversion"}},
    {{.id = "staging",
      .group = kSettings,
      .kind = OptionKind::bytes,
      .title = "Staging ring",
      .value_name = "SIZE",
      .brief = "size of the whole staging ring",
      .help = "Size of the whole staging ring. The ring of staged_ring is no larger than the weights.",
      .default_text = "64MiB",
      .access = access::number<&Request::staging_bytes>,
      .most = std::uint64_t{1} << 40},
     kAll,
     {.supported_by = &MethodTraits::ring}},
    {{.id = "slots",
      .group = kSettings,
      .kind = OptionKind::count,
      .title = "Ring slots",
      .value_name = "N",
      .brief = "slots of the staging ring",
      .help = "Slots of the staging ring.",
      .default_text = "4",
      .access = access::number<&Request::slots>,
      .least = 1,
      .most = 1024},
     kAll,
     {.supported_by = &MethodTraits::ring}},
    {{.id = "repack",
      .group = kSettings,
      .kind = OptionKind::choice,
      .title = "Repack for the CPU",
      .value_name = "CPU",
      .brief = "llama.cpp: repack matrices used on the host",
      .help =
          "llama.cpp repacks matrices that stay on the host for the CPU: none, x86 (AVX2) or arm. It does "
          "so by default where no GPU is in use.",
      .default_text = "none",
      .choices = cpu_repack_ids,
      .access = access::word<find_cpu_repack, cpu_repack_id, &Request::repack>},
     kAll,
     {.supported_by = &MethodTraits::repacks, .needs = "gpu_layers,place"}},
    {{.id = "workers",
      .group = kSettings,
      .kind = OptionKind::count,
      .title = "Loading threads",
      .value_name = "N",
      .brief = "transformers 5: threads that cast tensors",
      .help = "Threads of transformers 5 that bring tensors to the device; each holds one cast tensor.",
      .default_text = "4",
      .access = access::number<&Request::workers>,
      .least = 1,
      .most = 1024},
     kAll,
     {.supported_by = &MethodTraits::workers}},
    {{.id = "runai_buffer",
      .group = kSettings,
      .kind = OptionKind::bytes,
      .title = "Run:ai buffer",
      .value_name = "SIZE",
      .brief = "host buffer of the Run:ai streamer",
      .help = "Size of the host buffer that the Run:ai streamer reads ahead into.",
      .default_text = "40GB",
      .access = access::number<&Request::runai_buffer>},
     kAll,
     {.supported_by = &MethodTraits::limit}},
    {{.id = "shard_size",
      .group = kSettings,
      .kind = OptionKind::bytes,
      .title = "Shard size",
      .value_name = "SIZE",
      .brief = "as if saved in shards of at most SIZE",
      .help = "Projects the load as if the model had been saved in shards of at most SIZE.",
      .default_text = "the files as they are",
      .access = access::number_or_none<&Request::shard_bytes>,
      .least = 1},
     kAll,
     {.supported_by = &MethodTraits::shards}},
    {{.id = "flush",
      .group = kSettings,
      .kind = OptionKind::bytes,
      .title = "Flush threshold",
      .value_name = "SIZE",
      .brief = "ExecuTorch: bytes collected before a transfer",
      .help = "ExecuTorch sends its staging buffers once they hold SIZE together.",
      .default_text = "0, after every tensor",
      .access = access::number<&Request::flush_bytes>},
     kAll,
     {.supported_by = &MethodTraits::flushes}},
    {{.id = "doubled_ties",
      .group = kSettings,
      .kind = OptionKind::flag,
      .title = "Doubled ties",
      .brief = "ExecuTorch: pack tied weights once per name",
      .help = "ExecuTorch packs a weight with two names once for each name.",
      .access = access::flag<&Request::doubled_ties>},
     kAll,
     {.supported_by = &MethodTraits::flushes}},
    {{.id = "readers",
      .group = kReads,
      .kind = OptionKind::count,
      .title = "Readers",
      .value_name = "N",
      .brief = "threads that read the files",
      .help = "Threads that read the files.",
      .default_text = "the free cores",
      .choices = reader_words,
      .access = access::number_or_none<&Request::reads, &io::FileReads::threads>,
      .least = 1,
      .most = 64},
     kUpload},
    {{.id = "reading",
      .group = kReads,
      .kind = OptionKind::choice,
      .title = "Reading",
      .value_name = "HOW",
      .brief = "cache, direct (past the cache) or cold",
      .help = "How files are read: through the page cache (cache), past it (direct), or past it for files of "
              "which the cache holds less than half (cold).",
      .default_text = "cache",
      .choices = reading_words,
      .access = {[](const Request& r) { return OptionValue(std::string(reading_id(r.reads.reading))); },
                 [](Request& r, const OptionValue& value) {
                   r.reads.reading = find_reading(std::get<std::string>(value));
                 }}},
     kUpload},
    {{.id = "activations",
      .group = kPass,
      .kind = OptionKind::bytes,
      .title = "Activations",
      .value_name = "SIZE",
      .brief = "activations and caches as one block",
      .help = "Activations and caches as one block on the device.",
      .default_text = "0",
      .access = access::number<&Request::activation_bytes>,
      .most = std::uint64_t{1} << 60},
     kOnGpu,
     {.in_context = &in_context::activations}},
    {{.id = "seq",
      .group = kPass,
      .kind = OptionKind::count,
      .title = "New tokens",
      .value_name = "N",
      .brief = "add a forward pass over N new tokens",
      .help = "Adds a forward pass over N new tokens of each sequence.",
      .access = access::number_or_none<&Request::sequence>,
      .least = 1,
      .most = kMostTokens},
     kPack,
     {.in_context = &in_context::sequence}},
    {{.id = "batch",
      .group = kPass,
      .kind = OptionKind::count,
      .title = "Batch",
      .value_name = "N",
      .brief = "sequences in the forward pass",
      .help = "Sequences in the forward pass.",
      .default_text = "1",
      .access = access::number<&Request::batch>,
      .least = 1,
      .most = kMostTokens},
     kPack,
     {.needs = "seq,context", .in_context = &in_context::batch}},
    {{.id = "past",
      .group = kPass,
      .kind = OptionKind::count,
      .title = "Tokens before",
      .value_name = "N",
      .brief = "tokens of each sequence in the cache already",
      .help = "Tokens of each sequence that the cache already holds; an encoder has run over as many.",
      .default_text = "0",
      .access = access::number<&Request::past>,
      .most = kMostTokens},
     kPack,
     {.needs = "seq", .in_context = &in_context::past}},
    {{.id = "context",
      .group = kPass,
      .kind = OptionKind::choice,
      .title = "Largest context",
      .value_name = "max",
      .brief = "find the largest context that fits",
      .help =
          "max: finds the largest context that each load leaves room for in the budgets, read in pieces of "
          "as many new tokens as are given, or as the profile reads at once.",
      .choices = context_words,
      .access = {[](const Request& r) {
                   return r.max_context ? OptionValue(std::string(kMaxContext)) : OptionValue();
                 },
                 [](Request& r, const OptionValue& value) {
                   r.max_context = !std::holds_alternative<std::monostate>(value);
                 },
                 true}},
     kPlan},
    {{.id = "dim",
      .group = kPass,
      .kind = OptionKind::names,
      .title = "Named sizes",
      .value_name = "NAME=N",
      .brief = "size of a dimension that an ONNX file names",
      .help = "Size of a dimension that an ONNX file calls NAME. May be repeated.",
      .access = access::words<parse_size_choice, print_size_choice, &Request::sizes>,
      .separator = ';'},
     kPack,
     {.in_context = &in_context::named_sizes}},
    {{.id = "profile",
      .group = kPass,
      .kind = OptionKind::text,
      .title = "Profile",
      .value_name = "ID",
      .brief = "how a framework runs operators",
      .help = "How a framework runs operators: fused, ggml, hf_eager, hf_sdpa, onnxruntime, or your own.",
      .default_text = "onnxruntime for an ONNX file's own operators, ggml for GGUF, else fused",
      .choices = profile_words,
      .access = access::text<&Request::forward, &forward::ForwardOptions::profile>},
     kPack,
     {.needs = "seq,dim,context", .in_context = &in_context::profile}},
    {{.id = "activation_dtype",
      .group = kPass,
      .kind = OptionKind::choice,
      .title = "Type of activations",
      .value_name = "TYPE",
      .brief = "type of activations",
      .help = "Type of activations: f32, f16, bf16, f8_e4m3, f8_e5m2 or i8.",
      .default_text = "the profile's",
      .choices = value_type_words,
      .access = access::word<parse_value_type, graph::dtype_word, &Request::forward,
                             &forward::ForwardOptions::activation>,
      .spelled = graph::spelled_dtype},
     kPack,
     {.needs = "seq,dim,context", .in_context = &in_context::activation_type}},
    {{.id = "cache_dtype",
      .group = kPass,
      .kind = OptionKind::choice,
      .title = "Type of the cache",
      .value_name = "TYPE",
      .brief = "type of cached keys and values",
      .help = "Type of cached keys and values.",
      .default_text = "the profile's",
      .choices = value_type_words,
      .access = access::word<parse_value_type, graph::dtype_word, &Request::forward,
                             &forward::ForwardOptions::cache>,
      .spelled = graph::spelled_dtype},
     kPack,
     {.in_context = &in_context::cache_type}},
    {{.id = "logits",
      .group = kPass,
      .kind = OptionKind::choice,
      .title = "Logits",
      .value_name = "ROWS",
      .brief = "rows that the head computes: last or all",
      .help = "Rows that the head computes: last (of each sequence) or all.",
      .default_text = "the profile's",
      .choices = logits_words,
      .access =
          access::word<all_logits, logits_word, &Request::forward, &forward::ForwardOptions::all_logits>},
     kPack,
     {.needs = "seq,context", .in_context = &in_context::logits}},
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
      .access = {
          [](const Request& r) { return OptionValue(std::string(allocators::allocator_id(r.allocator))); },
          [](Request& r, const OptionValue& value) {
            r.allocator = allocators::load_allocator(std::get<std::string>(value));
          }}},
     kPlan},
    {{.id = "rates",
      .group = kSimulated,
      .kind = OptionKind::text,
      .title = "Rates",
      .value_name = "FILE|assumed",
      .brief = "rates that times are estimated with",
      .help = "Rates that times are estimated with: a file of measured rates, or assumed ones.",
      .default_text = "those measured on this machine, if any",
      .access = access::text<&Request::rates>},
     kPlan | kUpload},
}};

}  // namespace

std::span<const LoadOption> load_options() { return kOptions; }

}  // namespace loadline::load
