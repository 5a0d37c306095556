// Figures that are published of models that have no preset: a preset's configuration with other sizes.
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/forward_model.h"
#include "core/forward/model/known_models.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace loadline {
namespace {

constexpr std::uint64_t kUnpublished = 0;

struct Published {
  const char* model;
  const char* preset;
  const char* sizes;         // over the preset's config.json
  std::uint64_t parameters;  // kUnpublished, or what its page says
  std::uint64_t bytes;       // of the weights
  std::uint64_t cache;       // of keys and values a token, 16 bits each
};

// Sources: the models' index files and Hub pages; for caches the sizes in their config.json.
constexpr Published kPublished[] = {
    {"Llama-2-13B", "llama-3-8b",
     R"({"hidden_size":5120,"num_hidden_layers":40,"num_attention_heads":40,"num_key_value_heads":40,
         "intermediate_size":13824,"vocab_size":32000})",
     13'015'864'320, 26'031'728'640, 819'200},
    {"Llama-2-70B", "llama-3.1-70b", R"({"vocab_size":32000})", kUnpublished, kUnpublished, 327'680},
    {"Llama-3-70B", "llama-3.1-70b", "{}", 70'553'706'496, 141'107'412'992, 327'680},
    {"Llama-3.1-405B", "llama-3.1-70b",
     R"({"hidden_size":16384,"num_hidden_layers":126,"num_attention_heads":128,"intermediate_size":53248})",
     405'853'388'800, 811'706'777'600, 516'096},
    {"Llama-3.2-1B", "llama-3.2-1b", "{}", 1'235'814'400, 2 * 1'235'814'400ull, 32'768},
    {"Llama-3.2-3B", "llama-3.2-1b",
     R"({"hidden_size":3072,"num_hidden_layers":28,"num_attention_heads":24,"head_dim":128})", 3'212'749'824,
     2 * 3'212'749'824ull, 114'688},
    {"Mistral-7B-v0.3", "mistral-7b", R"({"vocab_size":32768})", 7'248'023'552, 2 * 7'248'023'552ull,
     131'072},
    {"Mistral-Nemo", "mistral-7b",
     R"({"hidden_size":5120,"num_hidden_layers":40,"head_dim":128,"vocab_size":131072,"sliding_window":null})",
     12'247'782'400, 2 * 12'247'782'400ull, 163'840},
    {"Mixtral-8x7B", "mixtral-8x7b", "{}", 46'702'792'704, 93'405'585'408, 131'072},
    {"Qwen2.5-1.5B", "qwen2.5-7b",
     R"({"hidden_size":1536,"num_attention_heads":12,"num_key_value_heads":2,"intermediate_size":8960,
         "vocab_size":151936,"tie_word_embeddings":true})",
     1'543'714'304, 2 * 1'543'714'304ull, 28'672},
    {"Qwen2.5-72B", "qwen2.5-7b",
     R"({"hidden_size":8192,"num_hidden_layers":80,"num_attention_heads":64,"num_key_value_heads":8,
         "intermediate_size":29568})",
     72'706'203'648, 145'412'407'296, 327'680},
    {"Qwen3-32B", "qwen3-8b",
     R"({"hidden_size":5120,"num_hidden_layers":64,"num_attention_heads":64,"intermediate_size":25600})",
     32'762'123'264, 2 * 32'762'123'264ull, 262'144},
    {"Gemma-7B", "gemma-2-9b",
     R"({"architectures":["GemmaForCausalLM"],"model_type":"gemma","hidden_size":3072,"num_hidden_layers":28,
         "num_attention_heads":16,"num_key_value_heads":16,"intermediate_size":24576,"sliding_window":null,
         "attn_logit_softcapping":null,"final_logit_softcapping":null,"layer_types":null})",
     8'537'680'896, 2 * 8'537'680'896ull, 458'752},
    {"Gemma-2-27B", "gemma-2-9b",
     R"({"hidden_size":4608,"num_hidden_layers":46,"num_attention_heads":32,"num_key_value_heads":16,
         "head_dim":128,"intermediate_size":36864,"layer_types":null})",
     27'227'128'320, 2 * 27'227'128'320ull, 376'832},
    {"GPT-2 medium", "gpt2", R"({"n_embd":1024,"n_layer":24,"n_head":16})", 354'823'168, kUnpublished,
     98'304},
    {"GPT-2 large", "gpt2", R"({"n_embd":1280,"n_layer":36,"n_head":20})", 774'030'080, kUnpublished,
     184'320},
    {"GPT-2", "gpt2", "{}", 124'439'808, 548'090'880, 36'864},
    {"GPT-2 XL", "gpt2-xl", "{}", 1'557'611'200, kUnpublished, 307'200},
    {"Pythia-1.4B", "pythia-6.9b",
     R"({"hidden_size":2048,"num_hidden_layers":24,"num_attention_heads":16,"intermediate_size":8192})",
     kUnpublished, kUnpublished, 196'608},
    {"Phi-3-mini", "phi-3-mini", "{}", 3'821'079'552, kUnpublished, 393'216},
    {"Gemma-2-9B", "gemma-2-9b", "{}", 9'241'705'984, 2 * 9'241'705'984ull, 344'064},
    {"DeepSeek-V3", "deepseek-v3", "{}", 671'026'419'200, 688'574'839'360, 70'272},
    {"Falcon-7B", "falcon-7b", "{}", kUnpublished, kUnpublished, 8'192},
    {"Falcon-40B", "falcon-40b", "{}", kUnpublished, kUnpublished, 122'880},
};

MetaGraph graph_of(const Published& model) {
  auto config = nlohmann::json::parse(find_preset(model.preset)->config_json);
  config.merge_patch(nlohmann::json::parse(model.sizes));
  return config_graph(config.dump(), "config.json");
}

TEST(Published, ParametersBytesAndCaches) {
  const ForwardAssets& assets = *built_in_assets();
  for (const Published& model : kPublished) {
    SCOPED_TRACE(model.model);
    const MetaGraph graph = graph_of(model);
    if (model.parameters != kUnpublished) EXPECT_EQ(model_claims(graph, assets).parameters, model.parameters);
    if (model.bytes != kUnpublished) EXPECT_EQ(storage_bytes(graph), model.bytes);
    const Profile profile = chosen_profile(assets, graph, {.cache = DType::f16});
    EXPECT_EQ(forward_model(graph, assets, profile).cache_bytes_per_token, model.cache);
  }
}

TEST(Published, CachesThatAnotherFrameworkKeeps) {
  const ForwardAssets& assets = *built_in_assets();
  const auto cache = [&](const char* preset, const Profile& profile) {
    const MetaGraph graph = config_graph(find_preset(preset)->config_json, "config.json");
    return forward_model(graph, assets, profile).cache_bytes_per_token;
  };
  EXPECT_EQ(cache("falcon-40b", assets.profile("hf_eager")), 1'966'080u);  // keys and values of every head
  // keys and values instead of what they are made of, as DeepSeek's own code keeps them
  EXPECT_EQ(cache("deepseek-v3", parse_profile(R"({"profile":"naive","cache":"F16"})", "naive.json")),
            4'997'120u);
}

}  // namespace
}  // namespace loadline
