// SentencePiece's model file, protobuf, sentencepiece_model.proto of version 0.2:
//   1 pieces           {1 piece, 2 score (float), 3 type (1 normal by default)}, in the order of their ids
//   2 trainer_spec     {3 model_type (1 unigram by default), 24 treat_whitespace_as_suffix}
//   3 normalizer_spec  {2 precompiled_charsmap, 3 add_dummy_prefix, 4 remove_extra_whitespaces,
//                       5 escape_whitespaces; the last three are true by default}
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/protobuf_wire.h"
#include "core/tokenizer/model_tokenizer.h"

#include <bit>
#include <cmath>
#include <string_view>

namespace loadline::tokenizer {
namespace {

constexpr std::uint64_t kMostPiece = 64 << 10;
constexpr std::uint64_t kMostCharsmap = 64 << 20;
constexpr std::uint64_t kMostFile = 256 << 20;

// Numbers of enumerations and flags; a varint may hold more than their type.
bool flag(const io::WireField& field) { return field.value != 0; }

VocabularyPiece read_piece(io::WireReader& reader, const io::WireField& at) {
  VocabularyPiece piece;
  reader.enter(at);
  while (const auto field = reader.next()) {
    switch (field->tag) {
      case io::wire_tag(1, io::WireType::length):
        piece.text = reader.text(*field, kMostPiece, "a piece");
        break;
      case io::wire_tag(2, io::WireType::fixed32):
        piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(field->value));
        break;
      case io::wire_tag(3, io::WireType::varint):
        if (field->value < 1 || field->value > 6)
          throw reader.malformed(field->at, "no piece has type {}", field->value);
        piece.type = static_cast<PieceType>(field->value);
        break;
      default:
        break;
    }
  }
  reader.leave();
  if (piece.text.empty()) throw reader.malformed(at.at, "a piece has no text");
  if (!is_valid_utf8(piece.text)) throw reader.malformed(at.at, "a piece is not UTF-8");
  if (std::isnan(piece.score)) throw reader.malformed(at.at, "a piece's score is not a number");
  return piece;
}

void read_trainer(io::WireReader& reader, const io::WireField& at, SentencePieceSpec& spec) {
  reader.enter(at);
  while (const auto field = reader.next()) {
    switch (field->tag) {
      case io::wire_tag(3, io::WireType::varint):
        if (field->value < 1 || field->value > 4)
          throw reader.malformed(field->at, "no model has type {}", field->value);
        spec.model = static_cast<SentencePieceSpec::Model>(field->value);
        break;
      case io::wire_tag(24, io::WireType::varint):
        spec.treat_whitespace_as_suffix = flag(*field);
        break;
      default:
        break;
    }
  }
  reader.leave();
}

void read_normalizer(io::WireReader& reader, const io::WireField& at, SentencePieceSpec& spec) {
  reader.enter(at);
  while (const auto field = reader.next()) {
    switch (field->tag) {
      case io::wire_tag(2, io::WireType::length):
        spec.charsmap = reader.text(*field, kMostCharsmap, "precompiled_charsmap");
        break;
      case io::wire_tag(3, io::WireType::varint):
        spec.add_dummy_prefix = flag(*field);
        break;
      case io::wire_tag(4, io::WireType::varint):
        spec.remove_extra_whitespaces = flag(*field);
        break;
      case io::wire_tag(5, io::WireType::varint):
        spec.escape_whitespaces = flag(*field);
        break;
      default:
        break;
    }
  }
  reader.leave();
}

}  // namespace

Tokenizer read_sentencepiece(const io::SourceFile& file) {
  if (file.size() > kMostFile)
    throw Error(ErrorCode::limit, {.file = file.path()}, "has {}; a SentencePiece model may have {}",
                format_bytes(file.size()), format_bytes(kMostFile));
  Tokenizer tokenizer;
  tokenizer.file = file.path();
  tokenizer.kind = VocabularyKind::sentencepiece;
  io::WireReader reader(file, 0, file.size());
  while (const auto field = reader.next()) {
    switch (field->tag) {
      case io::wire_tag(1, io::WireType::length):
        if (tokenizer.pieces.size() >= kMostTokens)
          throw Error(ErrorCode::limit, {.file = file.path(), .byte = field->at}, "has more than {} pieces",
                      format_grouped(kMostTokens));
        tokenizer.pieces.push_back(read_piece(reader, *field));
        tokenizer.pieces.back().id = static_cast<std::uint32_t>(tokenizer.pieces.size() - 1);
        break;
      case io::wire_tag(2, io::WireType::length):
        read_trainer(reader, *field, tokenizer.sentencepiece);
        break;
      case io::wire_tag(3, io::WireType::length):
        read_normalizer(reader, *field, tokenizer.sentencepiece);
        break;
      default:
        break;
    }
  }
  if (tokenizer.pieces.empty()) throw Error(ErrorCode::malformed, {.file = file.path()}, "has no pieces");
  for (const VocabularyPiece& piece : tokenizer.pieces)
    if (piece.type == PieceType::unknown && !tokenizer.unknown_id) tokenizer.unknown_id = piece.id;
  if (!tokenizer.unknown_id)
    throw Error(ErrorCode::malformed, {.file = file.path()}, "has no piece of type unknown");
  return tokenizer;
}

}  // namespace loadline::tokenizer
