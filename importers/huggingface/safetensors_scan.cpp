// The fast path through a safetensors header: one pass over text in the form that the usual writers give it.
#include "importers/huggingface/safetensors.h"
#include "importers/wire/plain_json.h"

#include <array>
#include <utility>

namespace loadline {
namespace {

bool scan_shape(PlainJson& json, Shape& shape) {
  std::array<std::uint64_t, 8> sizes = {};  // a header with more goes to the JSON parser
  std::size_t rank = 0;
  if (!json.take('[')) return false;
  if (!json.take(']')) {
    do {
      if (rank == sizes.size() || !json.number(sizes[rank++])) return false;
    } while (json.take(','));
    if (!json.take(']')) return false;
  }
  shape = Shape(std::span(sizes).first(rank));
  return true;
}

bool scan_entry(PlainJson& json, SafetensorsEntry& entry) {
  return json.take('{') && json.string_is("dtype") && json.take(':') && json.string(entry.dtype) &&
         json.take(',') && json.string_is("shape") && json.take(':') && scan_shape(json, entry.shape) &&
         json.take(',') && json.string_is("data_offsets") && json.take(':') && json.take('[') &&
         json.number(entry.begin) && json.take(',') && json.number(entry.end) && json.take(']') &&
         json.take('}');
}

bool scan_metadata(PlainJson& json, std::vector<SafetensorsMetadata>& metadata) {
  if (!json.take('{')) return false;
  if (json.take('}')) return true;
  do {
    SafetensorsMetadata& pair = metadata.emplace_back();
    if (!json.string(pair.key) || !json.take(':') || !json.string(pair.value)) return false;
  } while (json.take(','));
  return json.take('}');
}

}  // namespace

bool scan_safetensors_header(std::string_view text, SafetensorsFields& fields) {
  constexpr std::size_t kUsualEntry = 110;  // bytes, so that the list seldom grows
  fields.entries.reserve(text.size() / kUsualEntry);
  PlainJson json(text);
  if (!json.take('{')) return false;
  if (json.take('}')) return json.at_end();
  bool metadata = false;
  do {
    std::string_view name;
    if (!json.string(name) || !json.take(':')) return false;
    if (name == "__metadata__") {
      if (std::exchange(metadata, true) || !scan_metadata(json, fields.metadata)) return false;
    } else {
      SafetensorsEntry& entry = fields.entries.emplace_back();
      entry.name = name;
      if (!scan_entry(json, entry)) return false;
    }
  } while (json.take(','));
  return json.take('}') && json.at_end();
}

}  // namespace loadline
