// BPE after Sennrich, Haddow and Birch, "Neural Machine Translation of Rare Words with Subword Units" (2016);
// WordPiece after Wu et al., "Google's Neural Machine Translation System" (2016); Unigram after Kudo,
// "Subword Regularization" (2018). Ties and unknown characters as the `tokenizers` library of Hugging Face
// has them.
#include "core/tokenizer/word_models.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/tokenizer/byte_trie.h"
#include "core/tokenizer/merge_queue.h"
#include "core/tokenizer/unicode.h"
#include "core/tokenizer/vocabulary.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

namespace loadline {
namespace {

class Bpe final : public WordModel {
 public:
  explicit Bpe(const Tokenizer& tokenizer) : tokenizer_(tokenizer), vocabulary_(tokenizer) {
    if (tokenizer.unknown) unknown_ = vocabulary_.id(*tokenizer.unknown);
    merges_.reserve(tokenizer.merges.size());
    for (std::size_t rank = 0; rank < tokenizer.merges.size(); ++rank) {
      const Merge& merge = tokenizer.merges[rank];
      const std::size_t prefix = tokenizer.subword_prefix.size();
      if (merge.right.size() < prefix) throw no_piece(rank, merge.right);
      const std::uint32_t left = known(rank, merge.left), right = known(rank, merge.right);
      const std::uint32_t joined = known(rank, merge.left + merge.right.substr(prefix));
      // of two rules for a pair the later one counts
      merges_.insert_or_assign(pair_key(left, right), Rule{static_cast<std::uint32_t>(rank), joined});
    }
  }

  void encode(std::string_view word, std::vector<std::uint32_t>& ids) const override {
    if (word.empty()) return;
    if (tokenizer_.ignore_merges) {
      if (const auto id = vocabulary_.id(word)) return ids.push_back(*id);
    }
    std::vector<std::uint32_t> symbols = characters(word);
    merge_pairs(symbols, [&](std::uint32_t left, std::uint32_t right) -> std::optional<MergeRule> {
      const auto rule = merges_.find(pair_key(left, right));
      if (rule == merges_.end()) return std::nullopt;
      return MergeRule{rule->second.rank, rule->second.joined};
    });
    ids.insert(ids.end(), symbols.begin(), symbols.end());
  }

 private:
  struct Rule {
    std::uint32_t rank = 0, joined = 0;
  };
  static std::uint64_t pair_key(std::uint32_t left, std::uint32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | right;
  }
  Error no_piece(std::size_t rank, std::string_view text) const {
    return Error(ErrorCode::malformed, {.file = tokenizer_.file},
                 "model.merges[{}]: the vocabulary has no piece '{}'", rank, safe_display(text, 60));
  }
  std::uint32_t known(std::size_t rank, const std::string& text) const {
    if (const auto id = vocabulary_.id(text)) return *id;
    throw no_piece(rank, text);
  }

  // The ids of a word's characters, before any merge.
  std::vector<std::uint32_t> characters(std::string_view word) const {
    std::vector<std::uint32_t> symbols;
    symbols.reserve(word.size());
    bool unknown = false;  // an unknown character waits: others may join it
    const auto flush = [&] {
      if (unknown) symbols.push_back(*unknown_);
      unknown = false;
    };
    std::string decorated;
    for (std::size_t at = 0; at < word.size();) {
      const bool first = at == 0;
      const std::size_t from = at;
      at += character_bytes(word[at]);
      std::string_view text = word.substr(from, at - from);
      const bool prefixed = !first && !tokenizer_.subword_prefix.empty();
      const bool suffixed = at == word.size() && !tokenizer_.word_suffix.empty();
      if (prefixed || suffixed) {
        decorated = prefixed ? tokenizer_.subword_prefix : "";
        decorated += text;
        if (suffixed) decorated += tokenizer_.word_suffix;
        text = decorated;
      }
      if (const auto id = vocabulary_.id(text)) {
        flush();
        symbols.push_back(*id);
      } else if (tokenizer_.byte_fallback && add_bytes(text, symbols)) {
        // an unknown character before these bytes still waits, and comes behind them
      } else if (tokenizer_.unknown) {
        if (!unknown_)
          throw Error(ErrorCode::malformed, {.file = tokenizer_.file},
                      "model.unk_token: the vocabulary has no piece '{}'",
                      safe_display(*tokenizer_.unknown, 60));
        if (!tokenizer_.fuse_unknown) flush();
        unknown = true;
      }
    }
    flush();
    return symbols;
  }

  bool add_bytes(std::string_view text, std::vector<std::uint32_t>& symbols) const {
    for (const char c : text)
      if (!vocabulary_.byte(static_cast<unsigned char>(c))) return false;
    for (const char c : text) symbols.push_back(*vocabulary_.byte(static_cast<unsigned char>(c)));
    return true;
  }

  const Tokenizer& tokenizer_;
  Vocabulary vocabulary_;
  std::optional<std::uint32_t> unknown_;
  std::unordered_map<std::uint64_t, Rule> merges_;
};

std::uint32_t unknown_piece(const Tokenizer& tokenizer, const Vocabulary& vocabulary) {
  const std::string text =
      tokenizer.unknown.value_or(tokenizer.kind == VocabularyKind::wordpiece ? "[UNK]" : "<unk>");
  if (const auto id = vocabulary.id(text)) return *id;
  throw Error(ErrorCode::malformed, {.file = tokenizer.file},
              "model.unk_token: the vocabulary has no piece '{}', and the text has an unknown word",
              safe_display(text, 60));
}

class WordPiece final : public WordModel {
 public:
  explicit WordPiece(const Tokenizer& tokenizer) : tokenizer_(tokenizer), vocabulary_(tokenizer) {
    // the pieces that continue a word are looked up without their prefix
    for (const VocabularyPiece& piece : tokenizer.pieces) {
      firsts_.add(piece.text, piece.id);
      if (piece.text.starts_with(tokenizer.subword_prefix))
        rests_.add(std::string_view(piece.text).substr(tokenizer.subword_prefix.size()), piece.id);
    }
  }

  void encode(std::string_view word, std::vector<std::uint32_t>& ids) const override {
    const std::size_t before = ids.size();
    bool known = count_characters(word) <= tokenizer_.most_word_characters;
    for (std::size_t at = 0; known && at < word.size();) {
      const auto found = (at == 0 ? firsts_ : rests_).longest(word.substr(at));
      known = found.has_value();
      if (!known) break;
      ids.push_back(found->number);
      at += found->bytes;
    }
    if (known) return;
    ids.resize(before);
    ids.push_back(unknown_piece(tokenizer_, vocabulary_));
  }

 private:
  const Tokenizer& tokenizer_;
  Vocabulary vocabulary_;
  ByteTrie firsts_, rests_;
};

class WordLevel final : public WordModel {
 public:
  explicit WordLevel(const Tokenizer& tokenizer) : tokenizer_(tokenizer), vocabulary_(tokenizer) {}

  void encode(std::string_view word, std::vector<std::uint32_t>& ids) const override {
    const auto id = vocabulary_.id(word);
    ids.push_back(id ? *id : unknown_piece(tokenizer_, vocabulary_));
  }

 private:
  const Tokenizer& tokenizer_;
  Vocabulary vocabulary_;
};

class Unigram final : public WordModel {
 public:
  explicit Unigram(const Tokenizer& tokenizer) : tokenizer_(tokenizer), vocabulary_(tokenizer) {
    double least = std::numeric_limits<double>::infinity();
    for (const VocabularyPiece& piece : tokenizer.pieces) {
      least = std::min(least, piece.score);
      // of two pieces with one text the later counts
      if (vocabulary_.id(piece.text) == piece.id) trie_.add(piece.text, piece.id);
    }
    unknown_score_ = least - kUnknownPenalty;
  }

  void encode(std::string_view word, std::vector<std::uint32_t>& ids) const override {
    const std::vector<Node> best = best_paths(word);
    // backwards along the best path; unknown neighbours become one
    std::vector<std::string_view> parts;
    bool joins = false;
    for (std::size_t end = word.size(); end > 0;) {
      const Node& node = best[end];
      const bool unknown = tokenizer_.unknown_id && node.id == *tokenizer_.unknown_id;
      const std::string_view part = word.substr(node.begin, end - node.begin);
      if (unknown && joins) {
        parts.back() = word.substr(node.begin, part.size() + parts.back().size());
      } else {
        parts.push_back(part);
      }
      joins = unknown;
      end = node.begin;
    }
    std::ranges::reverse(parts);
    for (const std::string_view part : parts) add_part(part, ids);
  }

 private:
  static constexpr double kUnknownPenalty = 10;
  struct Node {
    std::uint32_t id = 0;
    bool reached = false;
    std::size_t begin = 0;
    double score = 0;
  };

  Error no_unknown() const {
    return Error(ErrorCode::malformed, {.file = tokenizer_.file},
                 "model.unk_id is missing, and the text has an unknown character");
  }

  // The best way to reach each byte of a word (Viterbi).
  std::vector<Node> best_paths(std::string_view word) const {
    std::vector<Node> best(word.size() + 1);
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t bytes = character_bytes(word[at]);
      const double so_far = best[at].score;
      bool single = false;
      const auto offer = [&](std::size_t end, double score, std::uint32_t id) {
        Node& node = best[end];
        if (!node.reached || score > node.score) node = {id, true, at, score};
      };
      trie_.for_each_prefix(word.substr(at), [&](std::size_t length, std::uint32_t id) {
        offer(at + length, tokenizer_.pieces[id].score + so_far, id);
        single = single || length == bytes;
      });
      if (!single) {
        if (!tokenizer_.unknown_id) throw no_unknown();
        offer(at + bytes, unknown_score_ + so_far, *tokenizer_.unknown_id);
      }
      at += bytes;
    }
    return best;
  }

  void add_part(std::string_view part, std::vector<std::uint32_t>& ids) const {
    if (const auto id = vocabulary_.id(part)) return ids.push_back(*id);
    if (tokenizer_.byte_fallback) {
      const auto has_piece = [&](char c) {
        return vocabulary_.byte(static_cast<unsigned char>(c)).has_value();
      };
      if (std::ranges::all_of(part, has_piece)) {
        for (const char c : part) ids.push_back(*vocabulary_.byte(static_cast<unsigned char>(c)));
        return;
      }
    }
    if (!tokenizer_.unknown_id) throw no_unknown();
    ids.push_back(*tokenizer_.unknown_id);
  }

  const Tokenizer& tokenizer_;
  Vocabulary vocabulary_;
  ByteTrie trie_;
  double unknown_score_ = 0;
};

}  // namespace

std::unique_ptr<WordModel> word_model(const Tokenizer& tokenizer) {
  switch (tokenizer.kind) {
    case VocabularyKind::bpe:
      return std::make_unique<Bpe>(tokenizer);
    case VocabularyKind::wordpiece:
      return std::make_unique<WordPiece>(tokenizer);
    case VocabularyKind::unigram:
      return std::make_unique<Unigram>(tokenizer);
    case VocabularyKind::word_level:
      return std::make_unique<WordLevel>(tokenizer);
    case VocabularyKind::sentencepiece:
      break;
  }
  throw Error(ErrorCode::usage, "a SentencePiece model has no words");
}

}  // namespace loadline
