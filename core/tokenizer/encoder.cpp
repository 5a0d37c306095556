// The stages in their order: added tokens and normalizers, pre-tokenizers, the vocabulary's model,
// post-processor.
#include "core/tokenizer/encoder.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/tokenizer/added_tokens.h"
#include "core/tokenizer/decode.h"
#include "core/tokenizer/pre_tokenize.h"
#include "core/tokenizer/sentencepiece.h"
#include "core/tokenizer/vocabulary.h"
#include "core/tokenizer/word_models.h"

#include <optional>

namespace loadline {

struct Encoder::State {
  // The stages of a tokenizer.json.
  struct Stages {
    explicit Stages(const Tokenizer& tokenizer)
        : normalizers(tokenizer),
          added(tokenizer, normalizers),
          pre_tokenizers(tokenizer),
          model(word_model(tokenizer)),
          decoders(tokenizer) {}
    Normalizers normalizers;
    AddedTokens added;
    PreTokenizers pre_tokenizers;
    std::unique_ptr<WordModel> model;
    Decoders decoders;
  };

  explicit State(const Tokenizer& made_from) : tokenizer(made_from), vocabulary(made_from) {
    if (tokenizer.kind == VocabularyKind::sentencepiece) {
      sentencepiece.emplace(tokenizer);
    } else {
      stages.emplace(tokenizer);
    }
  }

  const Tokenizer& tokenizer;
  Vocabulary vocabulary;
  std::optional<Stages> stages;
  std::optional<SentencePieceModel> sentencepiece;
};

namespace {

std::vector<std::uint32_t> with_special(const std::vector<PostStep>& steps, std::vector<std::uint32_t> ids) {
  for (const PostStep& step : steps) {
    if (step.kind == PostStep::Kind::byte_level) continue;
    std::vector<std::uint32_t> result;
    if (step.kind == PostStep::Kind::templated) {
      for (const TemplatePart& part : step.single) {
        if (!part.special && part.name != "A") continue;
        const std::vector<std::uint32_t>& more = part.special ? part.ids : ids;
        result.insert(result.end(), more.begin(), more.end());
      }
    } else {
      result.push_back(step.cls.second);
      result.insert(result.end(), ids.begin(), ids.end());
      result.push_back(step.sep.second);
    }
    ids = std::move(result);
  }
  return ids;
}

}  // namespace

Encoder::Encoder(const Tokenizer& tokenizer) : state_(std::make_unique<State>(tokenizer)) {}
Encoder::~Encoder() = default;
Encoder::Encoder(Encoder&&) noexcept = default;
Encoder& Encoder::operator=(Encoder&&) noexcept = default;

std::vector<std::uint32_t> Encoder::encode(std::string_view text, bool special) const {
  if (state_->sentencepiece) return state_->sentencepiece->encode(text);
  if (!is_valid_utf8(text)) throw Error(ErrorCode::malformed, "the text to encode is not UTF-8");
  const State::Stages& stages = *state_->stages;
  std::vector<std::uint32_t> ids;
  for (const TextPiece& piece : stages.pre_tokenizers.apply(stages.added.extract(text))) {
    if (piece.token) {
      ids.push_back(*piece.token);
    } else {
      stages.model->encode(piece.text, ids);
    }
  }
  return special ? with_special(state_->tokenizer.post, std::move(ids)) : ids;
}

std::string Encoder::decode(const std::vector<std::uint32_t>& ids) const {
  std::vector<std::string> texts;
  for (const std::uint32_t id : ids) {
    const AddedToken* const added = state_->stages ? state_->stages->added.find(id) : nullptr;
    if (added != nullptr) {
      TextPiece piece = {.text = added->text, .first_bytes = 0, .token = {}};
      // the text looks as it does where the token is found
      if (added->normalized) state_->stages->normalizers.apply(piece);
      texts.push_back(std::move(piece.text));
    } else if (const std::string* const text = state_->vocabulary.text(id)) {
      texts.push_back(*text);
    }
  }
  if (state_->stages) return state_->stages->decoders.join(std::move(texts));
  std::string joined;
  for (const std::string& text : texts) joined += text;
  return joined;
}

}  // namespace loadline
