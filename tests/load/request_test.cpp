// What a load is asked for: options, saved requests, devices.

#include "core/base/error.h"
#include "core/forward/family/architecture.h"
#include "core/forward/model/known_models.h"
#include "core/load/answer/advice.h"
#include "core/load/request/bind_request.h"
#include "core/load/request/load_options.h"
#include "core/load/request/option_context.h"
#include "tests/support/builders.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace loadline::tests {

// --- The table of load options, and requests as files.

namespace {

// A value that is not the default, for each row.
const std::vector<std::pair<std::string_view, std::string>>& other_values() {
  static const std::vector<std::pair<std::string_view, std::string>> values = {
      {"method", "direct,runai"},
      {"order", "largest,all"},
      {"target", "t4-16gb"},
      {"memory", "unified"},
      {"device_budget", "6GiB"},
      {"host_budget", "7GiB"},
      {"commit_limit", "8GiB"},
      {"reserve", "10%"},
      {"page_cache_budget", "1GiB"},
      {"require_peak", "5GiB"},
      {"mapped_pages", "anonymous"},
      {"gpu_layers", "3"},
      {"auto_map", "1GiB,2GiB"},
      {"place", "name:a, b=host; layer:0-3=disk"},
      {"cast", "q4_k"},
      {"prepack", "four_rows_f16"},
      {"staging", "1MiB"},
      {"slots", "8"},
      {"runai_buffer", "1GiB"},
      {"workers", "2"},
      {"repack", "x86"},
      {"shard_size", "2GiB"},
      {"flush", "3MiB"},
      {"doubled_ties", "on"},
      {"readers", "3"},
      {"reading", "cold"},
      {"activations", "4MiB"},
      {"seq", "16"},
      {"batch", "2"},
      {"past", "5"},
      {"context", "max"},
      {"dim", "height=224; width=3"},
      {"profile", "fused"},
      {"activation_dtype", "bf16"},
      {"cache_dtype", "f8_e4m3"},
      {"logits", "all"},
      {"train", "lora"},
      {"optimizer", "adafactor"},
      {"grad_checkpointing", "on"},
      {"lora_rank", "16"},
      {"lora_targets", "q_proj,v_proj"},
      {"allocator", "torch"},
      {"rates", "assumed"}};
  return values;
}

TEST(LoadOptions, EachRowReadsWhatItPrints) {
  std::set<std::string_view> ids;
  for (const load::LoadOption& option : load::load_options()) {
    EXPECT_TRUE(ids.insert(option.id).second) << option.id;
    EXPECT_FALSE(option.help.empty()) << option.id;
    EXPECT_TRUE(option.help.ends_with('.') || option.help.ends_with(')')) << option.id;
    EXPECT_LE(option.brief.size(), 48u) << option.id;
    EXPECT_NE(option.users, 0u) << option.id;
  }
  for (const auto& [id, text] : other_values()) {
    const load::LoadOption* const option = load::find_load_option(id);
    ASSERT_NE(option, nullptr) << id;
    ids.erase(id);
    load::LoadRequest request;
    load::set_load_option(request, id, text);
    EXPECT_FALSE(same_option(*option, request, load::LoadRequest())) << id;
    load::LoadRequest again;
    load::set_load_option(again, id, load::load_option_text(request, *option));
    EXPECT_EQ(again, request) << id << " " << load::load_option_text(request, *option);
    // it is the only thing that changed
    const auto changed = load::changed_options(request);
    ASSERT_EQ(changed.size(), 1u) << id;
    EXPECT_EQ(changed[0].first, id);
    if (!option->can_be_unset()) continue;
    load::set_load_option(request, id, "none");
    EXPECT_EQ(request, load::LoadRequest()) << id;
  }
  EXPECT_TRUE(ids.empty()) << *ids.begin() << " has no value here";
}

// Layers with experts, so that every kind of placement can be advised.
graph::MetaGraph model_with_experts() {
  graph::MetaGraph graph;
  graph.format = "safetensors";
  graph.files.resize(1);
  std::vector<std::string> names = {"embed_tokens.weight"};
  for (int layer = 0; layer < 4; ++layer)
    for (const char* const part : {"attn.q.weight", "mlp.experts.0.up.weight", "mlp.experts.1.up.weight"})
      names.push_back("layers." + std::to_string(layer) + "." + part);
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    graph.storages.push_back(graph::plain_storage(graph::FileId{0}, i * 4096, 4096));
    graph.tensors.push_back({names[i], graph::DType::f32, {32, 32}, {}, graph::StorageId{i}, 0});
  }
  return graph;
}

// The options that a change is about; all others must keep the value that was asked for.
std::set<std::string_view> options_of(load::ChangeKind kind) {
  switch (kind) {
    case load::ChangeKind::buffer:
      return {"staging", "slots", "runai_buffer", "flush"};
    case load::ChangeKind::shards:
      return {"shard_size"};
    case load::ChangeKind::type:
      return {"cast"};
    case load::ChangeKind::off_device:
      return {"gpu_layers", "auto_map", "place"};
    default:
      return {};
  }
}

TEST(Advice, KeepsEveryOptionThatItDoesNotName) {
  const graph::MetaGraph graph = model_with_experts();
  std::set<std::string> placed;
  for (const auto& [id, text] : other_values()) {
    load::AdviceRequest request;
    load::set_load_option(request.bound.request, id, text);
    for (const load::Method& method : load::methods()) request.bound.methods.push_back(&method);
    request.bound.orders = {{"file", &load::find_order("file"), {}}};
    request.bound.memory.budget = {.device = 20'000, .host = 1 << 20};
    for (std::size_t row = 0; row < request.bound.methods.size(); ++row) request.rows.push_back(row);
    const load::AdviceSpace space(graph, request);
    std::size_t candidates = 0;
    for (const load::AdviceStage stage :
         {load::AdviceStage::one_change, load::AdviceStage::two_changes, load::AdviceStage::streaming,
          load::AdviceStage::streaming_and_another})
      for (const load::AdviceCandidate& candidate : space.candidates(stage)) {
        ++candidates;
        std::set<std::string_view> named;
        for (const load::Change& change : candidate.changes) named.merge(options_of(change.kind));
        if (candidate.placement != nullptr) placed.insert(candidate.placement->text);
        for (const load::LoadOption& option : load::load_options())
          if (!named.contains(option.id)) {
            EXPECT_TRUE(same_option(option, candidate.request, request.bound.request))
                << option.id << " is lost by " << candidate.changes.front().text << " where " << id
                << " is set";
          }
      }
    EXPECT_GT(candidates, 100u) << id;
  }
  for (const char* const text : {"all experts on the host", "the experts of layers 0 to 1 on the host"})
    EXPECT_TRUE(placed.contains(text)) << text;
  EXPECT_TRUE(std::ranges::any_of(
      placed, [](const std::string& text) { return text.ends_with("on the device, the rest on the host"); }));
}

TEST(LoadOptions, TypesHavePyTorchsNamesToo) {
  for (const char* const id : {"cast", "activation_dtype", "cache_dtype"}) {
    load::LoadRequest ours, torchs;
    load::set_load_option(ours, id, "bf16");
    load::set_load_option(torchs, id, "torch.bfloat16");
    EXPECT_EQ(ours, torchs) << id;
    EXPECT_EQ(load::load_option_text(torchs, *load::find_load_option(id)), "bf16") << id;
    EXPECT_THROW(load::set_load_option(ours, id, "torch.int8_t"), Error) << id;
  }
}

// A model with operators of its own symbols: batch, new tokens, a cache that does not matter, and a height.
struct ModelInContext {
  graph::MetaGraph graph;
  forward::ForwardModel model;
  std::vector<bool> symbols_matter = {true, true, false, true};
  load::LoadContext context;

  ModelInContext() {
    model.source = forward::ForwardSource::architecture;
    model.profile = "fused";
    model.bound = std::make_shared<forward::BoundModel>(
        forward::BoundModel{nullptr, forward::ModelConfig("{}", "config.json"), graph::DType::bf16});
    model.graph.emplace().sizes = {{"height", graph::SizePoly::symbol(graph::SymbolId{3})},
                                   {"tokens", graph::SizePoly::symbol(graph::kSequence)}};
    context.memory = load::bind_memory({}, load::built_in_targets());
    context.targets = load::built_in_targets();
    context.layers = 32;
    context.weight_bytes = 1 << 30;
    context.pass.emplace(load::PassContext{graph, model, *forward::built_in_assets(), symbols_matter});
  }
};

const load::OptionInContext& in_context(std::string_view id) {
  return *load::find_load_option(id)->terms.in_context;
}

TEST(LoadOptions, StandInTheContextOfAModel) {
  ModelInContext of;
  EXPECT_TRUE(in_context("seq").applies(of.context));
  EXPECT_FALSE(in_context("past").applies(of.context));
  EXPECT_EQ(in_context("dim").names(of.context), std::vector<std::string>{"height"});
  EXPECT_EQ(in_context("profile").in_force(of.context), "fused");
  for (const load::OptionWord& word : in_context("profile").words(of.context))
    EXPECT_NE(word.word, "onnxruntime") << "a profile of files";
  EXPECT_EQ(in_context("activation_dtype").in_force(of.context), "BF16");
  EXPECT_EQ(in_context("cache_dtype").shown("f8_e4m3"), "F8_E4M3");
  EXPECT_FALSE(in_context("cache_dtype").applies(of.context)) << "it has no cache";
  EXPECT_FALSE(in_context("logits").applies(of.context));
  of.context.pass->has_cache = of.context.pass->has_logits = true;
  EXPECT_TRUE(in_context("cache_dtype").applies(of.context));
  EXPECT_EQ(in_context("logits").in_force(of.context), "last");
  EXPECT_EQ(in_context("gpu_layers").most(of.context), 33u);
  EXPECT_EQ(in_context("gpu_layers").first_value(of.context), "16");
  EXPECT_EQ(in_context("auto_map").first_value(of.context), "512MiB");
  EXPECT_TRUE(in_context("activations").applies(of.context));
  of.context.pass_follows = true;
  EXPECT_FALSE(in_context("activations").applies(of.context));
  EXPECT_EQ(in_context("memory").in_force(of.context), "discrete");
  EXPECT_EQ(in_context("device_budget").in_force(of.context), "no budget");
  of.context.memory.kind = plan::MemoryKind::unified;
  EXPECT_FALSE(in_context("host_budget").applies(of.context));
  EXPECT_EQ(in_context("target").words(of.context).size(), load::built_in_targets().size());
}

TEST(LoadOptions, StandWithoutAModelToo) {
  load::LoadContext none;
  none.weight_bytes = 2 << 20;  // half of it is a size
  std::size_t depend = 0;
  for (const load::LoadOption& option : load::load_options()) {
    const load::OptionInContext* const in = option.terms.in_context;
    if (in == nullptr) continue;
    SCOPED_TRACE(option.id);
    ++depend;
    const bool applies = in->applies == nullptr || in->applies(none);
    if (applies && in->in_force != nullptr) EXPECT_NE(in->in_force(none), "");
    if (in->words != nullptr) EXPECT_TRUE(in->words(none).empty());
    if (in->names != nullptr) EXPECT_TRUE(in->names(none).empty());
    if (in->most != nullptr) EXPECT_GT(in->most(none), 0u);
    if (in->shown != nullptr) EXPECT_EQ(in->shown("no type"), "no type");
    // what it begins with can be set
    load::LoadRequest request;
    if (in->first_value != nullptr) load::set_load_option(request, option.id, in->first_value(none));
  }
  EXPECT_GT(depend, 10u);
}

TEST(LoadOptions, WaysToPlaceWeightsTakeEachOthersPlace) {
  load::LoadRequest request;
  load::set_load_option(request, "gpu_layers", "3");
  load::set_load_option(request, "auto_map", "1GiB");
  EXPECT_FALSE(request.gpu_layers);
  load::set_load_option(request, "place", "a=host");
  EXPECT_FALSE(request.auto_map);
  load::set_load_option(request, "gpu_layers", "none");
  EXPECT_EQ(request.place.size(), 1u);
}

TEST(LoadOptions, TellTheNearestName) {
  load::LoadRequest request;
  const std::string refused = testing::error_of([&] { load::set_load_option(request, "stagin", "1MiB"); });
  EXPECT_EQ(testing::facts(refused), "'stagin'");
  EXPECT_TRUE(refused.ends_with(" staging?")) << refused;
}

TEST(SavedRequests, GiveBackEveryOption) {
  load::LoadRequest request;
  for (const auto& [id, text] : other_values())
    if (id != "gpu_layers" && id != "auto_map") load::set_load_option(request, id, text);
  const load::SavedRequest saved =
      load::parse_request(load::request_text(request, "some/model"), "folder/r.json");
  EXPECT_EQ(saved.request, request);
  EXPECT_EQ(saved.model, "some/model");
  EXPECT_EQ(load::parse_request(load::request_text(load::LoadRequest()), "r.json").request,
            load::LoadRequest());
  EXPECT_EQ(load::request_text(load::LoadRequest()), "{\n  \"schema_version\": 2,\n  \"options\": {}\n}\n");
}

TEST(SavedRequests, RefuseTextThatJsonCannotHold) {
  load::LoadRequest request;
  request.orders = {"a\xAC.txt"};
  EXPECT_EQ(testing::facts_of([&] { load::request_text(request); }), "usage UTF-8");
}

TEST(SavedRequests, NameAModelBesideThem) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "m.npy", "x");
  const std::string text = R"({"schema_version": 2, "model": "m.npy", "options": {}})";
  EXPECT_EQ(load::parse_request(text, folder / "r.json").model, folder / "m.npy");
}

TEST(SavedRequests, SayWhereAFaultIs) {
  const auto fault = [](const std::string& text) {
    return testing::facts_of([&] { (void)load::parse_request(text, "r.json"); });
  };
  const auto with = [](const std::string& options) {
    return "{\"schema_version\": 2,\n \"options\": {" + options + "}}";
  };
  EXPECT_EQ(fault("{"), "malformed r.json 1 2");
  EXPECT_EQ(fault("{}"), "malformed r.json 1 1 'schema_version'");
  EXPECT_EQ(fault(R"({"schema_version": 1})"), "malformed r.json 1 20 'schema_version' 1 2");
  EXPECT_EQ(fault(R"({"schema_version": 2, "extra": 1})"), "malformed r.json 1 32 'extra'");
  EXPECT_EQ(fault(with("\"slotz\": 4")), "malformed r.json 2 23 'slotz'");
  EXPECT_EQ(fault(with("\"slots\": 0")), "malformed r.json 2 23 'slots' 0 1");
  EXPECT_EQ(fault(with("\"slots\": [4, 5]")), "malformed r.json 2 23 'slots'");
  EXPECT_EQ(fault(with("\"method\": [\"nope\"]")), "malformed r.json 2 24 'method' 'nope'");
  EXPECT_NE(fault(with("\"place\": [[\"a\"]]")), "");
  EXPECT_EQ(fault(with("\"method\": [\"direct\"], \"staging\": \"64MiB\", \"doubled_ties\": true")), "");
}

}  // namespace

// --- Data sheets of devices: those built in, a folder over them, and what is wrong in a file.

namespace {

TEST(Targets, HaveIdsAndFiguresOfTheirKind) {
  std::set<std::string> ids;
  for (const load::Target& preset : load::built_in_targets()) {
    SCOPED_TRACE(preset.id);
    EXPECT_TRUE(ids.insert(preset.id).second);
    EXPECT_EQ(preset.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos);
    const bool unified = preset.memory == plan::MemoryKind::unified;
    if (preset.device_class == "phone" || preset.device_class == "board") EXPECT_TRUE(unified);
    EXPECT_TRUE(unified ? preset.host_bytes.has_value() : preset.device_bytes.has_value());
    EXPECT_EQ(preset.link_bandwidth.has_value(), !unified);  // one memory has no bus in between
    if (preset.device_bandwidth && preset.link_bandwidth)
      EXPECT_GT(*preset.device_bandwidth, *preset.link_bandwidth);
    const load::Budget budget = load::target_budget(preset, preset.memory);
    EXPECT_EQ(budget.unified.has_value(), unified);
    EXPECT_FALSE(budget.host.has_value());
  }
  EXPECT_GE(ids.size(), 20u);
  EXPECT_EQ(load::find_target(load::load_targets("").rows, "rtx-4060-8gb").device_bytes, 8ull << 30);
}

TEST(Targets, TakeMemoryAsAsked) {
  const load::Targets presets = load::load_targets("");
  const load::Target& laptop = load::find_target(presets.rows, "windows-laptop-16gb");
  EXPECT_EQ(load::target_budget(laptop, plan::MemoryKind::unified).unified, 16ull << 30);
  EXPECT_EQ(load::target_budget(laptop, plan::MemoryKind::unified).device, 8ull << 30);
  EXPECT_EQ(load::target_budget(laptop, plan::MemoryKind::discrete).device, 8ull << 30);
  EXPECT_EQ(
      load::target_budget(load::find_target(presets.rows, "t4-16gb"), plan::MemoryKind::unified).unified,
      16ull << 30);
  EXPECT_EQ(
      load::target_budget(load::find_target(presets.rows, "pixel-8-pro"), plan::MemoryKind::discrete).device,
      12ull << 30);
  plan::CostModel measured;
  measured.host_pages = measured.staging_pages = measured.device_pages = 3e9;
  const plan::CostModel pages = load::target_costs(load::find_target(presets.rows, "t4-16gb"), measured);
  EXPECT_EQ(pages.host_pages, 3e9);
  EXPECT_EQ(pages.staging_pages, plan::CostModel::kUncounted);
  EXPECT_EQ(pages.device_pages, plan::CostModel::kUncounted);
  const plan::CostModel costs = load::target_costs(load::find_target(presets.rows, "t4-16gb"), {});
  EXPECT_EQ(costs.link, 15.75e9);
  EXPECT_EQ(costs.device_copy, 150e9);
}

TEST(Targets, OfAFolderGoBeforeThoseBuiltIn) {
  const testing::TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "targets");
  testing::write_file((folder.path() / "targets/a.json").string(),
                      R"({"id": "t4-16gb", "name": "Mine", "class": "server", "memory": "discrete",
                          "device_bytes": "15GB", "source": "measured"})");
  testing::write_file((folder.path() / "targets/b.json").string(), "{");
  const load::Targets presets = load::load_targets(folder.path().string());
  EXPECT_EQ(presets.rows.size(), load::built_in_targets().size());
  EXPECT_EQ(load::find_target(presets.rows, "t4-16gb").device_bytes, 15'000'000'000u);
  ASSERT_EQ(presets.faults.size(), 1u);
  EXPECT_NE(presets.faults[0].find("b.json"), std::string::npos);
  try {
    load::find_target(presets.rows, "x\x1b[2J");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    EXPECT_NE(std::string(error.what()).find("t4-16gb"), std::string::npos);
    EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos);
  }
}

TEST(Targets, TellFileLineAndKeyOfAFault) {
  const std::string whole = R"({"id": "x", "name": "X", "class": "phone", "memory": "unified",
 "host_bytes": "8GiB", "source": "s"})";
  EXPECT_EQ(load::parse_target(whole, "x.json").host_bytes, 8ull << 30);
  struct Case {
    const char* from;
    const char* to;
    const char* facts;
  };
  for (const Case& row : {
           Case{"\"8GiB\"", "\"8G\"", "malformed x.json 2 17 'host_bytes' '8G' 1024 1000"},
           Case{"\"8GiB\"", "-8", "malformed x.json 2 16 'host_bytes' '-8' 64MiB 5GB 4096"},
           Case{"\"8GiB\"", "0", "malformed x.json 2 16 'host_bytes' 0"},
           Case{"\"8GiB\"", "18446744073709551615",
                "malformed x.json 2 16 'host_bytes' 18,446,744,073,709,551,615"},
           Case{"\"8GiB\"", "[8]", "malformed x.json 2 16 x.json 2 16 'host_bytes'"},
           Case{"phone", "watch", "malformed x.json 1 36 'class' 'watch'"},
           Case{"unified", "shared", "malformed x.json 1 55 'memory' 'shared'"},
           Case{"unified", "discrete", "malformed x.json 1 1 'device_bytes'"},
           Case{"\"source\"", "\"sauce\"", "malformed x.json 2 34 'sauce'"},
           Case{"\"X\"", "\"\"", "malformed x.json 1 22 'name'"},
           Case{", \"source\": \"s\"", "", "malformed x.json 1 1 'source'"},
           Case{", \"source\"", ", \"device_bytes\": \"9GiB\", \"source\"",
                "malformed x.json 2 41 'device_bytes' 9,663,676,416 'host_bytes' 8,589,934,592"},
       }) {
    std::string text = whole;
    text.replace(text.find(row.from), std::string(row.from).size(), row.to);
    EXPECT_EQ(testing::facts_of([&] { load::parse_target(text, "x.json"); }), row.facts) << text;
  }
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(load::parse_target(whole.substr(0, length), "x.json"), Error) << length;
}

TEST(Targets, TakeWhatTheSystemNeedsOff) {
  constexpr std::uint64_t kMiB = 1 << 20;
  load::LoadRequest request = {.target = "rtx-4060-8gb"};
  const auto bound = [&] { return load::bind_memory(request, load::built_in_targets()); };
  EXPECT_EQ(bound().budget.device, 8192 * kMiB - 400 * kMiB);
  ASSERT_EQ(bound().notes.size(), 1u);
  EXPECT_EQ(bound().notes[0], "400.00 MiB reserved for the system, 7.61 GiB left");
  // asked for otherwise
  load::set_load_option(request, "reserve", "1GiB");
  EXPECT_EQ(bound().budget.device, 7168 * kMiB);
  load::set_load_option(request, "reserve", "0");
  EXPECT_EQ(bound().budget.device, 8192 * kMiB);
  // a budget that was given is somebody's own figure
  load::set_load_option(request, "reserve", "none");
  request.device_budget = 1000 * kMiB;
  EXPECT_EQ(bound().budget.device, 1000 * kMiB);
  load::set_load_option(request, "reserve", "10%");
  EXPECT_EQ(bound().budget.device, 900 * kMiB);
  load::set_load_option(request, "reserve", "2GiB");
  EXPECT_THROW(bound(), Error);
  for (const char* wrong : {"0%", "100%", "x%", "%", "1.5%", "-1"})
    EXPECT_THROW(load::set_load_option(request, "reserve", wrong), Error) << wrong;
}

// In unified memory it comes off the one memory, and the device cannot have more than is left.
TEST(AutomaticMaps, TakeTheirSizesFromTheBudgets) {
  EXPECT_EQ(load::print_memory_map(load::parse_memory_map("auto")), "auto");
  graph::MetaGraph graph;
  graph.files.resize(1);
  load::LoadRequest request{.auto_map = load::parse_memory_map("auto")};
  const auto map = [&] { return load::bind_request(graph, request, {}).placement.map; };
  EXPECT_THROW(map(), Error);
  request.device_budget = 100;
  EXPECT_EQ(map(), (load::MemoryMap{90, std::nullopt}));
  request.host_budget = 50;
  EXPECT_EQ(map(), (load::MemoryMap{90, 45}));
  request.host_budget.reset();
  request.memory = plan::MemoryKind::unified;
  EXPECT_EQ(map(), (load::MemoryMap{90, 90}));
}

TEST(Targets, TakeTheReserveOffUnifiedMemory) {
  constexpr std::uint64_t kGiB = 1 << 30;
  const std::vector<load::Target> targets = {{.id = "x",
                                              .name = "X",
                                              .memory = plan::MemoryKind::unified,
                                              .device_bytes = 15 * kGiB,
                                              .host_bytes = 16 * kGiB,
                                              .options = {{"reserve", "4GiB"}}}};
  const load::BoundRequest bound =
      load::bind_request(graph::MetaGraph(), {.target = "x"}, {.targets = targets});
  EXPECT_EQ(bound.memory.budget.unified, 12 * kGiB);
  EXPECT_EQ(bound.memory.budget.device, 12 * kGiB);
  EXPECT_EQ(bound.request.reserve, load::Reserve{.bytes = 4 * kGiB});
}

}  // namespace

}  // namespace loadline::tests
