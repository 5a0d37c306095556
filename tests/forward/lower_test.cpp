// What a profile makes of an architecture, and the tree of its operators.

#include "core/base/error.h"
#include "core/forward/family/architecture.h"
#include "core/forward/family/operators.h"
#include "core/forward/model/forward_model.h"
#include "core/forward/model/known_models.h"
#include "core/forward/pass/lifetimes.h"
#include "core/forward/pass/lowering.h"
#include "core/graph/meta_graph.h"
#include "core/graph/names/tensor_names.h"
#include "tests/support/builders.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace loadline::tests {

// --- What a profile makes of an architecture: sizes, lifetimes, the cache and the peak.

namespace {

struct Lowered {
  graph::MetaGraph graph;
  graph::ForwardGraph forward;
};

Lowered lowered(std::string_view config_json, const forward::Profile& profile) {
  Lowered result = {forward::config_graph(config_json, "config.json"), {}};
  const forward::ModelConfig config(config_json, "config.json");
  const forward::Architecture& architecture =
      *forward::find_architecture(config, forward::built_in_architectures());
  result.forward =
      forward::lower(forward::bind_architecture(architecture, config, &result.graph, profile.flags), profile);
  return result;
}

const forward::Profile& profile_of(std::string_view id) { return forward::built_in_assets()->profile(id); }

forward::ForwardPeak peak_of(const graph::ForwardGraph& graph, std::uint64_t batch, std::uint64_t sequence,
                             std::uint64_t past) {
  const auto sizes = forward::value_sizes(graph, graph::symbol_values(graph, batch, sequence, past));
  return forward::forward_peak(graph, forward::forward_usage(graph, forward::lifetimes(graph), sizes), sizes);
}

double mib(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// Attention as the notes on architectures count it: nothing is held longer than the operators need it.
forward::Profile plain_eager() {
  return forward::parse_profile(R"json({"profile": "plain_eager", "flags": {"latent": 1},
    "shared": {"mask": {"bytes": "B*S*T*e", "ops": ["attn"]}},
    "ops": {"attn": {"temporaries": ["8*B*heads*S*t", "heads != kv ? 2*B*heads*t*dim*e : 0"]},
            "experts": {"temporaries": ["e*n*k*(c + 2*mid + c)"]}}})json",
                                "plain.json");
}

struct Row {
  const char* preset;
  std::uint64_t cache_per_token;
  double fused, eager;  // MiB at B=1, S=2048, logits of the last token
};

// The figures that the notes on architectures expect, activations and caches of 16 bits.
TEST(Lower, PeaksAndCachesOfKnownModels) {
  const Row rows[] = {
      {"llama-3-8b", 131'072, 185.0, 1113}, {"llama-3.1-70b", 327'680, -1, -1},
      {"qwen2.5-7b", 57'344, 237.0, 975},   {"qwen3-8b", 147'456, 161.0, 1113},
      {"gemma-2-9b", 344'064, 184.0, 600},  {"gpt2", 36'864, 27.0, 407},
      {"gpt2-xl", 307'200, -1, -1},         {"mixtral-8x7b", 131'072, 337.0, 1113},
      {"deepseek-v3", 70'272, 660.7, 4517}, {"bert-base-uncased", 0, 27.0, 407},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.preset);
    const std::string_view config = forward::find_preset(row.preset)->config_json;
    forward::Profile profile = profile_of("fused"), eager_profile = plain_eager();
    for (forward::Profile* const one : {&profile, &eager_profile})
      one->activation = one->cache = graph::DType::bf16;
    const Lowered fused = lowered(config, profile);
    graph::MetaGraph graph = fused.graph;
    graph.forward = fused.forward;
    EXPECT_NO_THROW(graph::validate(graph));
    EXPECT_EQ(peak_of(fused.forward, 1, 1, 0).cache_bytes, row.cache_per_token);
    EXPECT_EQ(peak_of(fused.forward, 3, 7, 4).cache_bytes, 33 * row.cache_per_token);
    if (row.fused < 0) continue;
    EXPECT_NEAR(mib(peak_of(fused.forward, 1, 2048, 0).bytes), row.fused, 0.06);
    const Lowered eager = lowered(config, eager_profile);
    EXPECT_NEAR(mib(peak_of(eager.forward, 1, 2048, 0).bytes), row.eager, 0.6);
  }
}

TEST(Lower, GrowsAsPublishedWithTheSequence) {
  const std::string_view config = forward::find_preset("llama-3-8b")->config_json;
  const Lowered fused = lowered(config, profile_of("fused"));
  const Lowered eager = lowered(config, plain_eager());
  for (const auto& [sequence, small, large] :
       {std::tuple(512, 46.0, 85.0), std::tuple(2048, 185.0, 1113.0), std::tuple(8192, 740.0, 16'836.0)}) {
    const auto s = static_cast<std::uint64_t>(sequence);
    EXPECT_NEAR(mib(peak_of(fused.forward, 1, s, 0).bytes), small, 0.6) << sequence;
    EXPECT_NEAR(mib(peak_of(eager.forward, 1, s, 0).bytes), large, 0.6) << sequence;
  }
  EXPECT_EQ(fused.forward.ops[peak_of(fused.forward, 1, 2048, 0).op].kind, "act");
}

TEST(Lower, AWindowBoundsTheCache) {
  const std::string config = R"({"model_type":"gemma2","hidden_size":8,"num_hidden_layers":4,
    "num_attention_heads":2,"num_key_value_heads":1,"head_dim":4,"intermediate_size":16,"vocab_size":10,
    "sliding_window":32,"torch_dtype":"bfloat16"})";
  const Lowered model = lowered(config, profile_of("fused"));
  const std::uint64_t per_token = 2 * 4 * 2;  // keys and values of one layer
  EXPECT_EQ(peak_of(model.forward, 1, 10, 0).cache_bytes, 4 * 10 * per_token);
  EXPECT_EQ(peak_of(model.forward, 1, 1, 99).cache_bytes, (2 * 32 + 2 * 100) * per_token);
  ASSERT_EQ(model.forward.symbols.size(), 4u);
  EXPECT_EQ(model.forward.symbols[3], "min(S + P, 32)");
}

forward::Profile profile_with(std::string_view ops) {
  return forward::parse_profile(fmt::format(R"({{"profile":"p","ops":{}}})", ops), "p.json");
}

// transformers keeps what a prompt makes whole, whatever the window, and masks its scores.
TEST(Lower, AProfileMayKeepMoreThanTheWindow) {
  const std::string config = R"({"model_type":"mistral","hidden_size":8,"num_hidden_layers":3,
    "num_attention_heads":2,"num_key_value_heads":2,"head_dim":4,"intermediate_size":16,"vocab_size":10,
    "sliding_window":32,"torch_dtype":"float32"})";
  const Lowered model = lowered(config, profile_of("hf_eager"));
  const std::uint64_t per_token = 3 * 2 * 8 * 4;  // keys and values of three layers
  EXPECT_EQ(peak_of(model.forward, 1, 100, 0).cache_bytes, 100 * per_token);
  EXPECT_EQ(peak_of(model.forward, 1, 1, 99).cache_bytes, 32 * per_token);
  EXPECT_GT(peak_of(model.forward, 1, 100, 0).bytes, 2u * 2 * 100 * 100 * 4);  // scores twice, of two heads
  // sdpa needs a mask only once the window is full
  const Lowered windowed = lowered(config, profile_of("hf_sdpa"));
  const auto mask = [](const graph::ForwardGraph& graph, std::uint64_t sequence, std::uint64_t past) {
    const auto found = std::find_if(graph.values.begin(), graph.values.end(),
                                    [](const graph::Value& value) { return value.name == "mask"; });
    const auto sizes = forward::value_sizes(graph, graph::symbol_values(graph, 1, sequence, past));
    return *sizes[static_cast<std::size_t>(found - graph.values.begin())];
  };
  EXPECT_EQ(mask(windowed.forward, 31, 0), 0u);
  EXPECT_EQ(mask(windowed.forward, 32, 0), 32u * 32);
  EXPECT_EQ(mask(windowed.forward, 4, 99), 4u * (31 + 4));
  // and without a window for several tokens behind others
  const Lowered whole = lowered(forward::find_preset("llama-3-8b")->config_json, profile_of("hf_sdpa"));
  EXPECT_EQ(mask(whole.forward, 4, 0), 0u);
  EXPECT_EQ(mask(whole.forward, 1, 10), 0u);
  EXPECT_EQ(mask(whole.forward, 4, 10), 4u * 14);
}

// What a module returns lives until its caller forgets it: when the next turn is over.
TEST(Lower, ReturnedValuesLiveThroughTheNextTurn) {
  const std::string_view config = forward::find_preset("demo")->config_json;
  const Lowered model = lowered(config, profile_with(R"({"attn":{"returned":["n*heads*t"]}})"));
  const std::vector<forward::OpRange> lives = forward::lifetimes(model.forward);
  std::vector<std::size_t> attentions, layer_ends;
  for (std::size_t i = 0; i < model.forward.ops.size(); ++i) {
    if (model.forward.ops[i].kind == "attn") attentions.push_back(i);
    if (model.forward.ops[i].name.ends_with("input_layernorm")) layer_ends.push_back(i);
  }
  ASSERT_GE(attentions.size(), 3u);
  const graph::ValueId returned = model.forward.ops[attentions[0]].temporaries.at(0);
  EXPECT_EQ(lives[static_cast<std::size_t>(returned)].end, layer_ends[2]);
}

TEST(Lower, InPlaceOperatorsTakeOverWhatDies) {
  const std::string_view config = forward::find_preset("llama-3-8b")->config_json;
  const Lowered apart = lowered(config, profile_with("{}"));
  const Lowered in_place =
      lowered(config, profile_with(R"({"act":{"in_place":"1"},"mul":{"in_place":"1"}})"));
  // three of the inner width beside the residual; in place two, beside the residual and the norm's output
  const std::uint64_t row = 2048 * 2, table = 2 * 128;
  EXPECT_EQ(peak_of(apart.forward, 1, 2048, 0).bytes, row * (3 * 14'336 + 4096 + table));
  EXPECT_EQ(peak_of(in_place.forward, 1, 2048, 0).bytes, row * (2 * 14'336 + 2 * 4096 + table));
  // the residual is needed after the norm, which may not write over it
  const Lowered norm = lowered(config, profile_with(R"({"norm":{"in_place":"1"}})"));
  for (const graph::Op& op : norm.forward.ops)
    if (op.kind == "norm" && op.name.find("input_layernorm") != std::string::npos)
      EXPECT_FALSE(norm.forward.value(op.outputs[0]).memory_of);
}

TEST(Lower, FaultsOfAProfileNameThePlace) {
  const std::string_view config = forward::find_preset("llama-3-8b")->config_json;
  const auto error_of = [&](std::string_view ops) {
    return testing::facts_of([&] { lowered(config, profile_with(ops)); });
  };
  EXPECT_EQ(error_of(R"({"act":{"temporaries":["n*no_such"]}})"), "malformed p.json 1 47 'no_such'");
  EXPECT_EQ(error_of(R"({"act":{"temporaries":["'text'"]}})"), "malformed p.json 1 46 ''text'");
  EXPECT_EQ(error_of(R"({"act":{"memory":["1"]}})"), "malformed p.json 1 39 'memory'");
}

std::string profile_error(std::string_view json) {
  return testing::facts_of([&] { forward::parse_profile(json, "p.json"); });
}

TEST(Lower, SlipsInAssetsAreTold) {
  EXPECT_EQ(profile_error(R"({"profile":"p","ops":{"atn":{"kept":["1"]}}})"), "malformed p.json 1 29 'atn'");
  EXPECT_EQ(profile_error(R"({"profile":"p","shared":{"m":{"bytes":"1","ops":["atn"]}}})"),
            "malformed p.json 1 49 'atn'");
  // a file's own operators have names that nobody lists
  EXPECT_EQ(profile_error(R"({"profile":"p","operators":"onnx","ops":{"Softmax":{"in_place":"1"}}})"), "");

  const auto error_of = [](std::string_view lines) {
    return testing::facts_of([&] {
      const forward::Architecture architecture = forward::parse_architecture(
          fmt::format(R"({{"family":"a","main":["x = embed ids @w[9, 6]",{}]}})", lines), "a.json");
      const forward::ModelConfig config("{}", "config.json");
      forward::lower(forward::bind_architecture(architecture, config, nullptr), profile_of("fused"));
    });
  };
  EXPECT_EQ(error_of(R"("a = attn x x x heads=1 kv=1 dim=6 casual=1")"),
            "malformed a.json 1 83 'attn' 'casual' position_bias shared_kv");
  EXPECT_EQ(error_of(R"("y = linear x @v[4, 6] rovs='last'")"), "malformed a.json 1 71 'linear' 'rovs'");
  EXPECT_EQ(error_of(R"("y = linear x @v[4, 6] rows='lsat'")"),
            "malformed a.json 1 49 'lsat' 'first' 'last'");
  EXPECT_EQ(error_of(R"("y = linear x @v[4, 6] rows='first'")"), "");
  EXPECT_EQ(error_of(R"("y = linear x @v[4, 5]")"), "malformed a.json 1 49 5 6");
  EXPECT_EQ(error_of(R"("y = norm x @v[4]")"), "malformed a.json 1 49 4 6");
  EXPECT_EQ(error_of(R"("y = norm x @v[3]")"), "");  // each half by itself
  EXPECT_EQ(error_of(R"("y = linear x @v[4, 6]", "z = add x y")"), "malformed a.json 1 74 'add' 6 4");
  EXPECT_EQ(error_of(R"("y = linear x @v[1, 6]", "z = mul x y")"), "");
}

// What goes into the layers is gone once they have run, before the head.
TEST(Lower, AValueMayStayToTheEndOfTheLoop) {
  const Lowered model =
      lowered(forward::find_preset("demo")->config_json, profile_with(R"({"embed":{"until":"'loop'"}})"));
  const auto& ops = model.forward.ops;
  const forward::OpRange life =
      forward::lifetimes(model.forward)[static_cast<std::size_t>(ops[0].outputs[0])];
  EXPECT_EQ(ops[0].kind, "embed");
  EXPECT_EQ(life.end, ops.size() - 2);  // the last norm and the head come after it
}

TEST(Lower, WhatCallersStillReferToStays) {
  const std::string_view config = forward::find_preset("demo")->config_json;
  const Lowered model =
      lowered(config, profile_with(R"({"embed":{"until":"'end'"},"norm":{"until":"c == d ? 'add' : ''"}})"));
  const std::vector<forward::OpRange> lives = forward::lifetimes(model.forward);
  const auto& ops = model.forward.ops;
  const auto life_of = [&](std::size_t op) { return lives[static_cast<std::size_t>(ops[op].outputs[0])]; };
  EXPECT_EQ(life_of(0).end, ops.size());  // the embedding's
  std::size_t norm = 0, add = 0;
  while (ops[norm].kind != "norm") ++norm;
  for (add = norm; ops[add].kind != "add";) ++add;
  EXPECT_EQ(life_of(norm).end, add);
}

// A norm with a bias is one kernel, one without is written as several steps: rules tell them apart by
// weights.
TEST(Lower, RulesSeeHowManyWeightsAnOperatorHas) {
  const forward::Architecture architecture = forward::parse_architecture(
      R"({"family":"f","main":["x = embed ids @w[9, 6]","a = norm x @n[6]","b = norm a @m[6]+b","c = add a b"]})",
      "f.json");
  const forward::BoundModel bound =
      forward::bind_architecture(architecture, forward::ModelConfig("{}", "c.json"), nullptr);
  const graph::ForwardGraph graph =
      forward::lower(bound, profile_with(R"({"norm":{"temporaries":["weights == 1 ? 4*n*c : 0"]},
                                   "add":{"temporaries":["weights == 0 ? 1 : 0"]}})"));
  EXPECT_EQ(graph.ops[1].temporaries.size(), 1u);
  EXPECT_TRUE(graph.ops[2].temporaries.empty());
  EXPECT_EQ(graph.ops[3].temporaries.size(), 1u);
}

TEST(Lower, RulesSeeWhatWasMadeBefore) {
  const forward::Architecture architecture = forward::parse_architecture(
      R"({"family":"f","main":["x = embed ids @w[9, 6]","p = embed pos @p[9, 6]","x = add x p","q = norm x @n[6]",
          "q = rope q","k = norm x @m[3]","k = rope k","x = add x k"]})",
      "f.json");
  const forward::BoundModel bound =
      forward::bind_architecture(architecture, forward::ModelConfig("{}", "c.json"), nullptr);
  const graph::ForwardGraph graph =
      forward::lower(bound, profile_with(R"({"norm":{"temporaries":["parts == 2 ? 8 : 0"]},
                                    "rope":{"temporaries":["in_heads ? 8 : 0"]},
                                    "add":{"temporaries":["input == 'x' and other != 'embed' ? 8 : 0"],
                                           "first":"other == 'rope' ? 2 : 0"}})"));
  std::vector<std::size_t> temporaries;
  for (const graph::Op& op : graph.ops) temporaries.push_back(op.temporaries.size());
  EXPECT_EQ(temporaries, (std::vector<std::size_t>{0, 0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(graph.ops[2].inputs[0], graph.ops[0].outputs[0]);  // as listed
  EXPECT_EQ(graph.ops[7].inputs[0], graph.ops[6].outputs[0]);  // the second input first
  EXPECT_EQ(graph.ops[7].inputs[1], graph.ops[2].outputs[0]);
}

// llama.cpp multiplies the queries by each head's part of kv_b_proj, so that one latent vector per position
// is both key and value.
TEST(Lower, LatentAttentionIsAbsorbed) {
  const std::string_view config = forward::find_preset("deepseek-v2-lite")->config_json;
  const auto widest = [&](const char* profile, std::string_view kind) {
    const Lowered model = lowered(config, profile_of(profile));
    const auto sizes = forward::value_sizes(model.forward, graph::symbol_values(model.forward, 1, 1, 1023));
    std::uint64_t most = 0;
    for (const graph::Op& op : model.forward.ops)
      if (op.kind == kind)
        for (const graph::ValueId id : op.outputs)
          most = std::max(most, sizes[static_cast<std::size_t>(id)].value_or(0));
    return most;
  };
  EXPECT_EQ(widest("ggml", "concat"), 2u * 1024 * 512);        // the latent vectors, as cached in F16
  EXPECT_EQ(widest("fused", "concat"), 2u * 1024 * 16 * 192);  // the keys of 16 heads in BF16
  EXPECT_EQ(widest("ggml", "cache"), widest("fused", "cache") + 2u * 1024 * 64);
}

// transformers copies the keys and values of a layer to append to them: the copied ones are there until then.
TEST(Lower, AppendingToACacheCopiesIt) {
  const std::string config = R"({"model_type":"llama","hidden_size":8,"num_hidden_layers":2,
    "num_attention_heads":2,"head_dim":4,"intermediate_size":16,"vocab_size":10,"torch_dtype":"float32"})";
  for (const char* profile : {"hf_eager", "hf_sdpa"}) {
    const Lowered model = lowered(config, profile_of(profile));
    const auto cache = std::ranges::find(model.forward.ops, "cache", &graph::Op::kind);
    ASSERT_EQ(cache->temporaries.size(), 1u);
    const auto sizes = forward::value_sizes(model.forward, graph::symbol_values(model.forward, 3, 1, 5));
    EXPECT_EQ(sizes[static_cast<std::size_t>(cache->temporaries[0])], 3u * 5 * 8 * 4);  // keys or values
  }
}

// An asset with this main block, over a configuration with nothing in it.
std::string error_of_main(std::string_view main, std::string_view inputs = "{}") {
  return testing::facts_of([&] {
    const forward::Architecture architecture = forward::parse_architecture(
        fmt::format(R"({{"family":"f","inputs":{},"main":[{}]}})", inputs, main), "f.json");
    const forward::ModelConfig config("{}", "c.json");
    const forward::Profile& profile = profile_of("fused");
    const graph::ForwardGraph graph =
        forward::lower(forward::bind_architecture(architecture, config, nullptr, profile.flags), profile);
    peak_of(graph, 1, 1, 0);
  });
}

// The shape and bytes of the last value that an asset with this main block makes, at B=2, S=8, P=3.
std::vector<std::uint64_t> shape_of_main(std::string_view main) {
  const forward::Architecture architecture =
      forward::parse_architecture(fmt::format(R"({{"family":"f","main":[{}]}})", main), "f.json");
  const graph::ForwardGraph graph =
      forward::lower(forward::bind_architecture(architecture, forward::ModelConfig("{}", "c.json"), nullptr),
                     profile_of("fused"));
  const auto symbols = graph::symbol_values(graph, 2, 8, 3);
  std::vector<std::uint64_t> sizes;
  for (const graph::SizePoly& size : *graph.value(graph.outputs.back()).shape)
    sizes.push_back(*size.evaluate(symbols));
  return sizes;
}

TEST(Lower, AttributesSeeWhatThePassIsOf) {
  using Sizes = std::vector<std::uint64_t>;
  EXPECT_EQ(shape_of_main(R"("x = table ids dims=[1, 4, S, T]")"), (Sizes{1, 4, 8, 11}));
  EXPECT_EQ(shape_of_main(R"("x = embed ids @w[9, 6]", "x = cache x fixed=S")"), (Sizes{2, 8, 6}));
  EXPECT_EQ(shape_of_main(R"("x = embed ids @w[9, 6]", "x = cache x")"), (Sizes{2, 11, 6}));
}

TEST(Lower, RowsOfConvolutionsAndOfWhatIsPutInFront) {
  using Sizes = std::vector<std::uint64_t>;
  EXPECT_EQ(shape_of_main(R"("x = embed ids @w[9, 6]", "x = conv x @c[6, 1, 4]")"), (Sizes{2, 8, 6}));
  EXPECT_EQ(shape_of_main(R"("x = embed ids @w[9, 6]", "x = conv x @c[5, 6, 3] rows=S*4")"),
            (Sizes{2, 32, 5}));
  EXPECT_EQ(shape_of_main(R"("x = embed ids @w[9, 6]", "x = concat x @cls[1, 1, 6]! rows=S + 1")"),
            (Sizes{2, 9, 6}));
  EXPECT_EQ(shape_of_main(R"("x = embed ids @w[9, 6]", "x = concat x cols=7")"), (Sizes{2, 8, 7}));
}

// Where each operator looked at all that follow, this took as long as there are pairs.
TEST(Lower, LongListsOfOperatorsTakeNoLongerThanTheyAre) {
  const forward::Architecture architecture = forward::parse_architecture(
      R"({"family":"f","main":["x = embed ids @w[9, 6]","each i in 3000: turn"],
          "turn":["x = norm x","x = split x by=[6]","x = act x","y = norm x","x = act x","x = act x","x = act x"]})",
      "f.json");
  const forward::Profile profile = forward::parse_profile(
      R"({"profile":"p","hold_block_inputs":"1","ops":{"norm":{"until":"'end'"},"act":{"in_place":"1","until":"'route'"}}})",
      "p.json");
  const graph::ForwardGraph graph = forward::lower(
      forward::bind_architecture(architecture, forward::ModelConfig("{}", "c.json"), nullptr), profile);
  ASSERT_EQ(graph.ops.size(), 1u + 7 * 3000);
  EXPECT_EQ(graph.ops.back().held.size(), 3000u * 6 - 1);  // all but the last operator's own
}

// An encoder runs without the mask of its decoder, and a second attention's scores take the place of the
// first's.
TEST(Lower, APartHoldsWhatItHasMade) {
  const forward::Architecture architecture = forward::parse_architecture(
      R"({"family":"f","main":["x = embed ids @w[9, 6]","each i in 2: first @a.{i}","x = act x","each i in 2: second @b.{i}"],
          "first":["x = act x"],
          "second":["y = attn x x heads=2 dim=3","x = add x y","y = attn x x heads=2 dim=3","x = add x y","x = act x"]})",
      "f.json");
  const auto graph_of = [&](std::string_view order) {
    const forward::Profile profile = forward::parse_profile(
        fmt::format(R"({{"profile":"p",{}"shared":{{"mask":{{"bytes":"100","ops":["attn"]}}}},
                        "ops":{{"attn":{{"temporaries":["7"]{}}}}}}})",
                    order, order.empty() ? R"(,"kept":["9"])" : ""),
        "p.json");
    return forward::lower(
        forward::bind_architecture(architecture, forward::ModelConfig("{}", "c.json"), nullptr), profile);
  };
  const graph::ForwardGraph graph = graph_of("");
  const std::vector<forward::OpRange> lives = forward::lifetimes(graph);
  const auto life = [&](graph::ValueId id) {
    const forward::OpRange& range = lives[static_cast<std::size_t>(id)];
    return std::pair(range.first, range.end);
  };
  ASSERT_EQ(graph.ops.size(), 14u);  // 0: embed, 1 and 2: first, 3: act, 4 to 8 and 9 to 13: second
  using Range = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_EQ(life(graph.ops[4].inputs.back()), (Range{3, 12}));     // the mask
  EXPECT_EQ(life(graph.ops[4].temporaries.at(1)), (Range{4, 7}));  // of the first attention in its turn
  EXPECT_EQ(life(graph.ops[6].temporaries.at(1)), (Range{6, 9}));  // of the second
  EXPECT_EQ(std::ranges::count(graph.inputs, graph.ops[4].inputs.back()), 0);
  const graph::ForwardGraph ggml = graph_of(R"("order":"inputs_first",)");
  EXPECT_EQ(ggml.inputs.size(), graph.inputs.size() + 1);
}

TEST(Lower, OperatorsThatDoNotFitAreErrors) {
  EXPECT_EQ(error_of_main(R"("x = embed ids @w[10,4]")"), "");
  const std::pair<const char*, const char*> rows[] = {
      {R"("x = embed ids @w[]")", "malformed f.json 1 36 'embed' 'w.weight'"},
      {R"("x = embed ids @w[]+b")", "malformed c.json f.json 1 51"},
      {R"("x = split by=[1]")", "malformed f.json 1 36 'split' 1"},
      {R"("x = embed ids @w[10,4]", "a b = split x by=[4,4]")", "malformed f.json 1 62 'by'"},
      {R"("x = embed ids @w[10,4]", "a b = add x x")", "malformed f.json 1 62 'add'"},
      {R"("x = fly ids")", "malformed f.json 1 36 'fly'"},
      {R"("x = add y y")", "malformed c.json 'y' f.json 1 36"},
      {R"("x = embed ids @w[9, 6]", "x = table x dims=7")", "malformed f.json 1 62 7 8"},
      {R"("x = embed ids @w[9, 6]", "x = concat x")", "malformed f.json 1 62 'concat'"},
      {R"("x = embed ids @w[S, 6]")", "malformed c.json 'S' 1 1099511627776 f.json 1 53 'S'"},
      {R"("each i in 5000: a"],"a":["x = embed ids @w[9, 6]","y = act x","y = act x","y = act x","y = act x","y = act x")",
       "malformed c.json 25,000 f.json 1 123"},
      {R"("x = experts ids @w.{e}[2,2] count=9999999")",
       "malformed c.json '9999999' 9999999 0 10000 f.json 1 70"},
  };
  for (const auto& [main, message] : rows) EXPECT_EQ(error_of_main(main), message) << main;
  EXPECT_EQ(error_of_main(R"("x = conv s @w[1] rows=1")", R"({"s":"[]:I64"})"), "malformed f.json 1 48");
  EXPECT_EQ(error_of_main(R"("x = table s cols=1")", R"({"s":"[S*1-5]:I64"})"), "limit 's' 64");
  // loops in loops end
  const std::string loops =
      R"json({"family":"f","main":["each i in 100000: a"],"a":["each j in 100000: b"],"b":[]})json";
  const forward::Architecture architecture = forward::parse_architecture(loops, "f.json");
  EXPECT_THROW(forward::bind_architecture(architecture, forward::ModelConfig("{}", "c.json"), nullptr),
               Error);
}

// Every lifetime and peak against the definition, one operator after the other.
TEST(Lifetimes, AgreeWithTheDefinition) {
  for (const char* preset : {"demo", "gpt2-xl"}) {
    const Lowered model = lowered(forward::find_preset(preset)->config_json, profile_of("hf_eager"));
    const graph::ForwardGraph& graph = model.forward;
    const auto sizes = forward::value_sizes(graph, graph::symbol_values(graph, 2, 64, 10));
    std::uint64_t worst = 0;
    const auto owner = [&](graph::ValueId id) {
      while (graph.value(id).memory_of) id = *graph.value(id).memory_of;
      return static_cast<std::size_t>(id);
    };
    for (std::size_t at = 0; at < graph.ops.size(); ++at) {
      std::vector<bool> alive(graph.values.size(), false);
      const auto made = [&](std::size_t value) {
        bool found = std::find(graph.inputs.begin(), graph.inputs.end(),
                               graph::ValueId{static_cast<std::uint32_t>(value)}) != graph.inputs.end();
        for (std::size_t earlier = 0; earlier <= at; ++earlier)
          for (const std::vector<graph::ValueId>* list :
               {&graph.ops[earlier].outputs, &graph.ops[earlier].temporaries})
            for (const graph::ValueId id : *list) found |= owner(id) == value;
        return found;
      };
      for (std::size_t later = at; later < graph.ops.size(); ++later)
        for (const std::vector<graph::ValueId>* list : {&graph.ops[later].inputs, &graph.ops[later].held})
          for (const graph::ValueId id : *list)
            if (made(owner(id))) alive[owner(id)] = true;
      for (const graph::ValueId id : graph.ops[at].outputs) alive[owner(id)] = true;
      for (const graph::ValueId id : graph.ops[at].temporaries) alive[owner(id)] = true;
      for (std::size_t earlier = 0; earlier <= at; ++earlier)
        for (const graph::ValueId id : graph.ops[earlier].outputs)
          if (std::find(graph.outputs.begin(), graph.outputs.end(), id) != graph.outputs.end())
            alive[owner(id)] = true;
      std::uint64_t sum = 0;
      for (std::size_t i = 0; i < alive.size(); ++i)
        if (alive[i] && graph.values[i].lane != graph::Lane::cache) sum += *sizes[i];
      worst = std::max(worst, sum);
    }
    EXPECT_EQ(
        forward::forward_peak(graph, forward::forward_usage(graph, forward::lifetimes(graph), sizes), sizes)
            .bytes,
        worst)
        << preset;
  }
}

std::string llama_config(std::uint64_t d, std::uint64_t layers, std::uint64_t heads, std::uint64_t kv,
                         std::uint64_t ffn, std::uint64_t vocabulary) {
  return fmt::format(
      R"({{"model_type":"llama","hidden_size":{},"num_hidden_layers":{},"num_attention_heads":{},
          "num_key_value_heads":{},"intermediate_size":{},"vocab_size":{},"torch_dtype":"float16"}})",
      d, layers, heads, kv, ffn, vocabulary);
}

// llama.cpp (of xllamacpp 2026.10.11549) prints these for sparse files of the shapes, 512 tokens at a time
// and without flash attention. tests/interop/test_llama_memory.py asks it again.
TEST(Ggml, ComputeBuffersAreThoseThatLlamaCppPrints) {
  struct Printed {
    const char* name;
    std::uint64_t d, layers, heads, kv, ffn, vocabulary, context;
    double cache, compute;  // MiB
  };
  const Printed rows[] = {
      {"Llama-2-7B", 4096, 32, 32, 32, 11'008, 32'000, 2048, 1024.00, 196.02},
      {"Llama-2-7B", 4096, 32, 32, 32, 11'008, 32'000, 8192, 4096.00, 592.02},
      {"Llama-3-8B", 4096, 32, 32, 8, 14'336, 128'256, 512, 64.00, 295.52},
      {"Llama-3-8B", 4096, 32, 32, 8, 14'336, 128'256, 2048, 256.00, 298.52},
      {"Llama-3-8B", 4096, 32, 32, 8, 14'336, 128'256, 8192, 1024.00, 580.02},
      {"Mistral-7B", 4096, 32, 32, 8, 14'336, 32'000, 512, 64.00, 129.02},
      {"Mistral-7B", 4096, 32, 32, 8, 14'336, 32'000, 2048, 256.00, 184.02},
      {"Qwen2.5-7B", 3584, 28, 28, 4, 18'944, 152'064, 2048, 112.00, 338.02},
  };
  for (const Printed& row : rows) {
    const Lowered model = lowered(llama_config(row.d, row.layers, row.heads, row.kv, row.ffn, row.vocabulary),
                                  profile_of("ggml"));
    constexpr std::uint64_t kBatch = 512;
    const auto lives = forward::lifetimes(model.forward);
    const auto sizes = forward::value_sizes(
        model.forward, graph::symbol_values(model.forward, 1, kBatch, row.context - kBatch));
    EXPECT_NEAR(mib(forward::forward_peak(model.forward, {}, sizes).cache_bytes), row.cache, 0.005)
        << row.name << " " << row.context;
    const std::uint64_t compute = allocators::reserved_bytes(
        forward::allocations_of(model.forward, lives, sizes), allocators::AllocatorModel::ggml);
    EXPECT_NEAR(mib(compute), row.compute, 0.1) << row.name << " " << row.context;
  }
}

}  // namespace

// --- The tree of a forward graph's operators, and what is folded together in it.

namespace {

using ::testing::ElementsAre;

struct Model {
  graph::MetaGraph graph;
  forward::ForwardModel forward;
  graph::OpTree tree;
};

Model model_of(std::string_view preset) {
  Model model = {forward::config_graph(forward::find_preset(preset)->config_json, "config.json"), {}, {}};
  model.forward = forward::forward_model(model.graph, *forward::built_in_assets(),
                                         forward::built_in_assets()->profile("fused"));
  model.tree = graph::op_tree(model.graph, *model.forward.graph);
  return model;
}

graph::OpNodeId node_at(const graph::OpTree& tree, std::string_view path) {
  for (std::uint32_t i = 0; i < tree.nodes.size(); ++i)
    if (graph::op_path(tree, graph::OpNodeId{i}) == path) return graph::OpNodeId{i};
  ADD_FAILURE() << "no node " << path;
  return graph::kRootOpNode;
}

std::vector<std::string> groups_of(const graph::OpTree& tree, graph::OpNodeId node) {
  std::vector<std::string> names;
  for (const graph::OpGroup& group : graph::folded_children(tree, node))
    names.push_back(graph::group_name(tree, group));
  return names;
}

// A graph of operators with these names and nothing else.
graph::ForwardGraph named(const std::vector<std::string>& names) {
  graph::ForwardGraph graph;
  for (const std::string& name : names)
    graph.ops.push_back({.kind = "MatMul", .name = name, .inputs = {}, .weights = {}, .outputs = {}});
  return graph;
}

TEST(OpTree, EveryOperatorIsInItOnce) {
  for (const char* preset : {"demo", "deepseek-v3", "whisper-tiny", "gemma-3-1b"}) {
    if (forward::find_preset(preset) == nullptr) continue;
    const Model model = model_of(preset);
    std::vector<int> seen(model.forward.graph->ops.size(), 0);
    for (const graph::OpNode& node : model.tree.nodes)
      for (const std::uint32_t op : node.ops) ++seen[op];
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(seen.size())) << preset;
    EXPECT_EQ(model.tree.nodes.front().all_ops, seen.size()) << preset;
    const auto& stored = model.forward.bound->stored;  // DeepSeek's last layer is in the files alone
    if (stored.empty())
      EXPECT_EQ(model.tree.nodes.front().weight_bytes, graph::storage_bytes(model.graph)) << preset;
  }
}

TEST(OpTree, LayersThatAreAlikeAreOneGroup) {
  const Model llama = model_of("llama-3-8b");
  EXPECT_THAT(groups_of(llama.tree, node_at(llama.tree, "model.layers")), ElementsAre("0 - 31"));
  // the first three layers of DeepSeek-V3 are dense
  const Model deepseek = model_of("deepseek-v3");
  EXPECT_THAT(groups_of(deepseek.tree, node_at(deepseek.tree, "model.layers")),
              ElementsAre("0 - 2", "3 - 60"));
}

TEST(OpTree, ATiedWeightCountsOnce) {
  const Model tied = model_of("llama-3.2-1b");
  EXPECT_EQ(tied.tree.nodes.front().weight_bytes, graph::storage_bytes(tied.graph));
}

TEST(OpTree, SlashesDivideWhereMostNamesHaveThem) {
  const graph::OpTree tree =
      graph::op_tree({}, named({"Identity_8", "/model/layers.0/MatMul", "/model/layers.0/Add",
                                "/model/layers.1/MatMul", "/model/layers.1/Add", "", "a.b"}));
  EXPECT_EQ(graph::op_path(tree, node_at(tree, "model/layers.0/MatMul")), "model/layers.0/MatMul");
  EXPECT_EQ(tree.nodes.front().ops, (std::vector<std::uint32_t>{5}));
  EXPECT_THAT(groups_of(tree, graph::kRootOpNode), ElementsAre("Identity_8", "model", "a.b"));
  EXPECT_THAT(groups_of(tree, node_at(tree, "model")), ElementsAre("layers.0 - layers.1"));
}

TEST(OpTree, GroupsNameTheirRuns) {
  std::vector<std::string> names;
  for (const char* number : {"0", "1", "2", "4", "6", "7", "9", "11", "12345678901", "x"})
    for (const char* part : {".norm", ".linear"}) names.push_back("h." + std::string(number) + part);
  const graph::OpTree tree = graph::op_tree({}, named(names));
  EXPECT_THAT(groups_of(tree, node_at(tree, "h")), ElementsAre("0 - 2, 4, 6 - 7 and 3 more", "x"));
}

TEST(OpTree, SingleOperatorsAreNotFolded) {
  const graph::OpTree tree =
      graph::op_tree({}, named({"Constant_1", "MatMul_2", "Constant_3", "Constant_4"}));
  EXPECT_THAT(groups_of(tree, graph::kRootOpNode),
              ElementsAre("Constant_1", "MatMul_2", "Constant_3", "Constant_4"));
}

TEST(OpTree, DeepAndEmptyNamesStayBounded) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "a.";
  const graph::OpTree tree = graph::op_tree({}, named({deep, "...", ".", "a..b"}));
  EXPECT_LT(tree.nodes.size(), 70u);
  EXPECT_EQ(tree.nodes.front().ops.size(), 2u);
  EXPECT_EQ(tree.nodes.front().all_ops, 4u);
}

}  // namespace

// --- A training step.

namespace {

constexpr std::string_view kSmallLlama = R"json({"model_type": "llama", "architectures": ["LlamaForCausalLM"],
  "hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 704,
  "num_hidden_layers": 4, "vocab_size": 1000, "dtype": "float32"})json";

graph::ForwardGraph step_of(const forward::Training& training, std::optional<graph::DType> type = {},
                            std::string_view config = kSmallLlama, std::string_view profile_id = "hf_sdpa") {
  forward::Profile profile = profile_of(profile_id);
  profile.training = training;
  profile.all_logits = true;
  profile.activation = type;
  return lowered(config, profile).forward;
}

using forward::Optimizer;
using forward::TrainedWeights;

}  // namespace

// Traced steps of transformers 5.23, torch 2.13 and peft 0.21 on a CPU (tests/interop/test_training.py).
TEST(TrainingStep, TakesWhatTracedStepsTook) {
  struct Traced {
    forward::Training training;
    std::optional<graph::DType> type;
    std::uint64_t bytes;
  };
  const Traced rows[] = {
      {{.weights = TrainedWeights::full}, {}, 53'317'788},
      {{.weights = TrainedWeights::full, .optimizer = Optimizer::adamw_fused}, {}, 51'039'396},
      {{.weights = TrainedWeights::full, .optimizer = Optimizer::sgd}, {}, 24'380'424},
      {{.weights = TrainedWeights::full, .optimizer = Optimizer::sgd, .checkpoints = true}, {}, 17'065'992},
      {{.weights = TrainedWeights::full, .optimizer = Optimizer::sgd}, graph::DType::bf16, 14'926'856},
      {{.weights = TrainedWeights::full, .optimizer = Optimizer::momentum}, graph::DType::bf16, 21'591'560},
      {{.weights = TrainedWeights::full, .optimizer = Optimizer::adafactor}, {}, 24'472'548},
      {{.weights = TrainedWeights::lora}, {}, 23'470'312},
      {{.weights = TrainedWeights::lora, .optimizer = Optimizer::sgd}, graph::DType::bf16, 20'848'648},
      {{.weights = TrainedWeights::lora, .optimizer = Optimizer::adafactor, .checkpoints = true},
       {},
       7'858'152}};
  for (const Traced& row : rows) {
    const auto bytes = static_cast<double>(peak_of(step_of(row.training, row.type), 2, 128, 0).bytes);
    EXPECT_NEAR(bytes / static_cast<double>(row.bytes), 1, 0.01) << row.bytes;
  }
}

TEST(TrainingStep, CountsWhatIsTrained) {
  const graph::ForwardGraph full = step_of({.weights = TrainedWeights::full});
  constexpr std::uint64_t kLayer = 2 * 256 * 256 + 2 * 64 * 256 + 3 * 704 * 256 + 2 * 256;
  constexpr std::uint64_t kAll = 4 * kLayer + 2 * 1000 * 256 + 256;
  ASSERT_TRUE(full.training);
  EXPECT_EQ(full.training->parameters, kAll);
  EXPECT_EQ(full.training->gradient_bytes, 4 * kAll);
  constexpr std::uint64_t kWeights = 4 * 9 + 3;  // each counts its steps
  EXPECT_EQ(full.training->state_bytes, 8 * kAll + 4 * kWeights);

  const graph::ForwardGraph lora =
      step_of({.weights = TrainedWeights::lora, .rank = 3, .targets = {"q_proj", "v_proj"}});
  EXPECT_EQ(lora.training->parameters, 4u * 3 * ((256 + 256) + (256 + 64)));
  EXPECT_EQ(lora.training->adapter_bytes, lora.training->gradient_bytes);

  // bitsandbytes keeps small weights in F32, others in a byte with a factor for each 256
  const graph::ForwardGraph bytes =
      step_of({.weights = TrainedWeights::full, .optimizer = Optimizer::adamw_8bit});
  constexpr std::uint64_t kNorms = 9 * 256;
  EXPECT_EQ(bytes.training->state_bytes, 8 * kNorms + 2 * (kAll - kNorms) + 8 * ((kAll - kNorms) / 256));
}

TEST(TrainingStep, NamesDropoutAndRefusesWhatItDoesNotKnow) {
  EXPECT_TRUE(step_of({.weights = TrainedWeights::full}).unaccounted.empty());
  std::string dropped(kSmallLlama);
  dropped.insert(1, R"("attention_dropout": 0.1, "resid_pdrop": 0.0, "classifier_dropout": 0.2, )");
  EXPECT_THAT(step_of({.weights = TrainedWeights::full}, {}, dropped).unaccounted,
              ElementsAre("attention_dropout 0.1"));
  EXPECT_THROW(step_of({.weights = TrainedWeights::full}, {}, kSmallLlama, "ggml"), Error);
  EXPECT_THROW(step_of({.weights = TrainedWeights::lora, .targets = {"no_such_layer"}}), Error);
}

}  // namespace loadline::tests
