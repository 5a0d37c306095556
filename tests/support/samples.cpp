// Builds the samples.
#include "tests/support/samples.h"

#include "tests/support/pickles.h"

#include <fmt/format.h>

namespace loadline::testing {
namespace {

using namespace pickle;

// The object of both torch samples; `at` gives a storage in the form of the file.
template <typename Storage>
std::string sample_object(Storage at) {
  const auto utils = [](std::string_view name) { return global("torch._utils", name); };
  const std::string layout = call(global("torch.serialization", "_get_layout"), {text("torch.sparse_coo")});
  const std::string matrix = at("0", "FloatStorage", 6);
  const std::string weight = tensor(matrix, 0, {2, 3}, {3, 1});
  const std::string ones = tensor(at("1", "HalfStorage", 4), 0, {4}, {1});
  const std::string indices = tensor(at("3", "LongStorage", 4), 0, {2, 2}, {2, 1});
  const std::string state = dict({{"mask", tensor(at("6", "BoolStorage", 2), 0, {2}, {1})}});
  const std::string quantised = tuple({global("torch", "per_tensor_affine"), real(0.5), number(3)});
  return dict(
      {{"model", global("collections", "OrderedDict") + ")R(" + text("weight") + weight + text("tied") +
                     weight + text("transposed") + tensor(matrix, 0, {3, 2}, {1, 3}) + text("row") +
                     tensor(matrix, 3, {3}, {1}) + "u}" + text("_metadata") +
                     dict({{"", dict({{"version", number(1)}})}}) + "sb"},
       {"parameter", call(utils("_rebuild_parameter"), {ones, "\x88", "}"})},
       {"float8", tensor_v3(at("2", "FloatStorage", 2), 0, {8}, {1}, "float8_e4m3fn")},
       {"packed", tensor_v3(at("2", "FloatStorage", 2), 0, {2, 4}, {4, 1}, "float4_e2m1fn_x2")},
       {"sparse", call(utils("_rebuild_sparse_tensor"),
                       {layout, tuple({indices, ones, tuple({number(4), number(4)}), "\x88"})})},
       {"quantised",
        call(utils("_rebuild_qtensor"), {at("4", "QInt8Storage", 4), number(0), tuple({number(4)}),
                                         tuple({number(1)}), quantised, "\x89", "}"})},
       {"wrapped", call(global("torch._tensor", "_rebuild_from_type_v2"),
                        {utils("_rebuild_tensor_v2"), global("my", "Class"),
                         tuple({at("5", "DoubleStorage", 1), number(0), ")", ")", "\x89", "}"}), state})},
       {"shape only", call(utils("_rebuild_meta_tensor_no_storage"),
                           {global("torch", "float32"), tuple({number(2), number(3)}),
                            tuple({number(3), number(1)}), "\x89"})},
       {"storage", at("7", "IntStorage", 2)},
       {"list", list({weight, tuple({ones, "N"})})},
       {"epoch", number(3)},
       {"loss", real(0.25)},
       {"big", "\x8A\x09" + std::string(8, '\xFF') + std::string(1, '\x7F')},
       {"negative", number(-5)},
       {"name", text("gr\xC3\xBC\xC3\x9F")},
       {"done", "\x88"},
       {"betas", tuple({real(0.5), real(0.875)})},
       {"size", call(global("torch", "Size"), {tuple({number(2), number(3)})})},
       {"device", call(global("torch", "device"), {text("cuda")})},
       {"bytes", call(global("_codecs", "encode"), {text("abc"), text("latin1")})},
       {"set", call(global("__builtin__", "set"), {list({number(1), number(2)})})},
       {"counter", call(global("collections", "Counter"), {dict({{"a", number(3)}})})},
       {"default", call(global("collections", "defaultdict"), {global("__builtin__", "list")})},
       {"options", global("argparse", "Namespace") + ")\x81" + dict({{"lr", real(1)}}) + "b"},
       {"dtype", global("torch", "float32")}});
}

const std::pair<const char*, std::size_t> kSampleStorages[] = {{"0", 24}, {"1", 8}, {"2", 8}, {"3", 32},
                                                               {"4", 4},  {"5", 8}, {"6", 2}, {"7", 8}};

}  // namespace

std::string pattern(std::size_t count) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += static_cast<char>(i * 7 + 3);
  return bytes;
}

std::vector<ZipSpec> torch_members(std::string pickle, const Records& records) {
  std::vector<ZipSpec> members;
  const auto add = [&](const std::string& name, std::string content) {
    ZipSpec member;
    member.name = "model/" + name;
    member.sizes_follow = !content.empty();
    member.content = std::move(content);
    member.alignment = 64;
    members.push_back(std::move(member));
  };
  add("data.pkl", std::move(pickle));
  for (const auto& [name, content] : records) add(name, content);
  return members;
}

std::string torch_zip(std::string pickle, const Records& records) {
  return zip_bytes(torch_members(std::move(pickle), records), {.zip64 = true});
}

std::string sample_torch() {
  // float8 and float4 need storages without a type
  const auto at = [](std::string_view key, std::string_view type, std::int64_t numel) {
    if (key != "2") return storage(key, type, numel);
    return tuple({text("storage"), global("torch.storage", "UntypedStorage"), text(key), text("cpu"),
                  number(8)}) +
           "Q";
  };
  Records records = {{".format_version", "1"}, {".storage_alignment", "64"}, {"byteorder", "little"}};
  for (const auto& [key, bytes] : kSampleStorages)
    records.emplace_back(std::string("data/") + key, pattern(bytes));
  records.emplace_back("data/8", pattern(5));  // of no tensor
  records.emplace_back("version", "3\n");
  records.emplace_back(".data/serialization_id", std::string(40, '7'));
  return torch_zip(stream(sample_object(at)), records);
}

std::string legacy_preamble() {
  return "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19." + stream("M\xe9\x03") +
         stream(dict({{"protocol_version", "M\xe9\x03"}, {"little_endian", "\x88"}}));
}

std::string sample_torch_legacy() {
  const auto at = [](std::string_view key, std::string_view type, std::int64_t numel) {
    if (key == "2")
      return tuple({text("storage"), global("torch.storage", "UntypedStorage"), text(key), text("cpu"),
                    number(8), "N"}) +
             "Q";
    // the second half of a larger storage, as torch before 0.4 wrote views
    if (key == "7") return legacy_storage(key, type, 2 * numel, tuple({text("view"), number(2), number(2)}));
    return legacy_storage(key, type, numel);
  };
  std::string file = legacy_preamble() + stream(sample_object(at));
  std::string keys = "](", payload;
  for (const auto& [key, bytes] : kSampleStorages) {
    const std::size_t widths[] = {4, 2, 1, 8, 1, 8, 1, 4};
    const std::size_t size = *key == '7' ? 2 * bytes : bytes;
    keys += text(key);
    payload += little_endian(size / widths[*key - '0'], 8) + pattern(size);
  }
  return file + stream(keys + "e") + payload;
}

std::string npy_header(std::string_view descr, std::string_view shape, std::string_view fortran) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}", descr, fortran, shape);
}

std::string npy_bytes(std::string_view header, std::size_t data) {
  std::string text(header);
  text.append((64 - (10 + text.size() + 1) % 64) % 64, ' ');
  text += '\n';
  return "\x93NUMPY" + std::string("\1\0", 2) + little_endian(text.size(), 2) + text + pattern(data);
}

std::string sample_npy() { return npy_bytes(npy_header("<f4", "(2, 3)"), 24); }

std::string sample_npz() {
  const auto member = [](const char* name, std::string content, bool deflate) {
    ZipSpec spec;
    spec.name = name;
    spec.content = std::move(content);
    spec.deflate = deflate;
    return spec;
  };
  return zip_bytes({member("w.npy", npy_bytes(npy_header("<f2", "(2, 3)"), 12), false),
                    member("W.npy", npy_bytes(npy_header(">i8", "(2,)"), 16), false),
                    member("packed.npy", npy_bytes(npy_header("<f8", "(4, 5)", "True"), 160), true),
                    member("text.npy", npy_bytes(npy_header("<U2", "(3,)"), 24), true),
                    member("readme.txt", "hello", false)});
}

std::string pt2_entry(std::string_view name, std::string_view path, std::string_view sizes,
                      std::string_view strides, int offset, int dtype) {
  const auto as_ints = [](std::string_view numbers) {
    std::string all;
    for (std::size_t at = 0; at < numbers.size();) {
      const std::size_t end = std::min(numbers.find(',', at), numbers.size());
      all += fmt::format(R"({}{{"as_int": {}}})", all.empty() ? "" : ", ", numbers.substr(at, end - at));
      at = end + 1;
    }
    return all;
  };
  return fmt::format(
      R"("{}": {{"path_name": "{}", "is_param": true, "use_pickle": false, "tensor_meta": {{"dtype": {}, "sizes": [{}], "requires_grad": true, "device": {{"type": "cpu", "index": null}}, "strides": [{}], "storage_offset": {{"as_int": {}}}, "layout": 7}}}})",
      name, path, dtype, as_ints(sizes), as_ints(strides), offset);
}

std::string pt2_zip(const std::string& weights_config, const Records& records) {
  std::vector<ZipSpec> members =
      torch_members(fmt::format(R"({{"config": {{{}}}}})", weights_config), records);
  members[0].name = "model/data/weights/model_weights_config.json";
  return zip_bytes(members, {.zip64 = true});
}

std::string sample_pt2() {
  const std::string weights = pt2_entry("a.weight", "weight_0", "2,3", "3,1") + ", " +
                              pt2_entry("b.weight", "weight_0", "2,3", "3,1") + ", " +
                              pt2_entry("a.weight_t", "weight_0", "3,2", "1,3") + ", " +
                              pt2_entry("half", "weight_1", "", "", 1, 6);
  const std::string constants =
      pt2_entry("k", "tensor_0", "2", "1", 0, 5) +
      R"(, "obj": {"path_name": "custom_obj_0", "is_param": false, "use_pickle": true, "tensor_meta": null})";
  return pt2_zip(weights, {{"data/weights/weight_0", pattern(24)},
                           {"data/weights/weight_1", pattern(4)},
                           {"data/weights/weight_2", pattern(3)},
                           {"data/constants/tensor_0", pattern(16)},
                           {"data/constants/custom_obj_0", "?"},
                           {"data/constants/model_constants_config.json",
                            fmt::format(R"({{"config": {{{}}}}})", constants)},
                           {"models/model.json", "{}"},
                           {"archive_format", "pt2"},
                           {"archive_version", "0"},
                           {".data/version", "6\n"},
                           {"byteorder", "little"}});
}

std::vector<std::string> format_samples() {
  return {sample_torch(), sample_torch_legacy(), sample_npy(), sample_npz(), sample_pt2()};
}

}  // namespace loadline::testing
