// Strided tensors against a brute-force gather.
#include "core/base/error.h"
#include "core/graph/meta_graph.h"
#include "core/io/graph_reader.h"
#include "tests/support/builders.h"

#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

namespace loadline {
namespace {

constexpr std::size_t kBytes = 1 << 20;

std::string random_bytes() {
  std::mt19937 random(7);
  std::string bytes(kBytes, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  return bytes;
}

std::string deflated(const std::string& bytes) {
  z_stream stream = {};
  EXPECT_EQ(deflateInit2(&stream, 1, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  std::string in = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// One file: the bytes as they are, then deflated.
class TensorReading : public ::testing::Test {
 protected:
  TensorReading() {
    const std::string packed = deflated(bytes_);
    testing::write_file(folder_ / "raw", bytes_ + packed);
    graph_.files = {{folder_ / "raw", kBytes + packed.size()}};
    Storage encoded = plain_storage(FileId{0}, kBytes, kBytes);
    encoded.stored_bytes = packed.size();
    encoded.encoding = Encoding::deflate;
    graph_.storages = {plain_storage(FileId{0}, 0, kBytes), encoded};
  }

  std::string expected(const Tensor& tensor) const {
    const std::size_t item = dtype_info(tensor.dtype).block_bytes;
    std::string result;
    std::vector<std::uint64_t> at(tensor.shape.size(), 0);
    for (std::uint64_t n = elements(tensor); n-- > 0;) {
      std::uint64_t element = 0;
      for (std::size_t i = 0; i < at.size(); ++i) element += at[i] * tensor.strides[i];
      result += bytes_.substr(tensor.offset + element * item, item);
      for (std::size_t i = at.size(); i-- > 0 && ++at[i] == tensor.shape[i];) at[i] = 0;
    }
    return result;
  }

  std::string read(const Tensor& tensor, std::uint64_t offset, std::size_t count) {
    graph_.tensors = {tensor};
    validate(graph_);
    const StorageReader storages(std::make_shared<const MetaGraph>(graph_));
    std::string result(count, '\0');
    TensorReader(storages).read(TensorId{0}, offset, std::as_writable_bytes(std::span(result)));
    return result;
  }

  void expect_whole(const Tensor& tensor) {
    const std::string wanted = expected(tensor);
    EXPECT_EQ(read(tensor, 0, wanted.size()), wanted)
        << fmt::format("[{}] by [{}]", fmt::join(tensor.shape, ","), fmt::join(tensor.strides, ","));
  }

  const std::string bytes_ = random_bytes();
  testing::TemporaryFolder folder_;
  MetaGraph graph_;
};

TEST_F(TensorReading, TypicalViews) {
  for (const std::uint32_t storage : {0U, 1U})
    for (const Tensor& tensor : {
             Tensor{"transposed", DType::f32, {300, 200}, {1, 300}, StorageId{storage}, 64},
             Tensor{"columns", DType::f16, {100, 7}, {500, 1}, StorageId{storage}, 6},
             Tensor{"one column", DType::f32, {100}, {2000}, StorageId{storage}, 0},
             Tensor{"every other", DType::f64, {50, 40}, {400, 2}, StorageId{storage}, 8},
             Tensor{"expanded rows", DType::i16, {30, 50}, {0, 1}, StorageId{storage}, 2},
             Tensor{"expanded columns", DType::i16, {50, 30}, {1, 0}, StorageId{storage}, 2},
             Tensor{"one element", DType::u8, {1000}, {0}, StorageId{storage}, 9},
             Tensor{"permuted", DType::u8, {5, 13, 11, 7}, {1, 5 * 7 * 11, 5, 5 * 11}, StorageId{storage}, 3},
             Tensor{"overlapping", DType::u8, {10, 10}, {1, 1}, StorageId{storage}, 0},
             Tensor{"ones", DType::c128, {1, 9, 1, 4, 1}, {3, 1, 5, 9, 7}, StorageId{storage}, 16},
         })
      expect_whole(tensor);
}

TEST_F(TensorReading, AnyRangeOfRandomViews) {
  std::mt19937 random(3);
  const auto up_to = [&](std::uint64_t most) { return random() % (most + 1); };
  const DType types[] = {DType::u8, DType::f16, DType::f32, DType::f64, DType::c128};
  for (int round = 0; round < 300; ++round) {
    Tensor tensor{"t", types[up_to(4)], {}, {}, StorageId{0}, 0};
    for (std::uint64_t rank = 1 + up_to(4); rank-- > 0;) {
      tensor.shape.push_back(1 + up_to(8));
      tensor.strides.push_back(up_to(round % 2 == 0 ? 40 : 2000));
    }
    const std::string wanted = expected(tensor);
    expect_whole(tensor);
    const std::uint64_t from = up_to(wanted.size()), count = up_to(wanted.size() - from);
    EXPECT_EQ(read(tensor, from, count), wanted.substr(from, count)) << round;
  }
}

TEST_F(TensorReading, RefusesRangesOutsideAndPackedTypes) {
  const Tensor tensor{"t", DType::f32, {3, 2}, {1, 3}, StorageId{0}, 0};
  EXPECT_THROW(read(tensor, 20, 8), Error);
  EXPECT_THROW(read(tensor, 25, 0), Error);
  EXPECT_EQ(read(tensor, 24, 0), "");
  EXPECT_THROW(read(Tensor{"q", DType::i4, {4, 2}, {1, 4}, StorageId{0}, 0}, 0, 4), Error);
}

}  // namespace
}  // namespace loadline
