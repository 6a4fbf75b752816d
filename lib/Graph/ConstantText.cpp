#include "Graph/ConstantText.h"

#include <cmath>

namespace fusec {

static constexpr int64_t kInlineElements = 16;

std::string constantDataText(const ConstantRef &constant, ConstantStore *store) {
  const Constant &c = *constant;
  bool small = c.numElements() <= kInlineElements;
  for (int64_t i = 0; small && isFloat(c.type) && i < c.numElements(); ++i)
    small = !std::isnan(c.floatAt(i)); // decimal text would lose the payload
  if (!small) {
    if (store)
      (void)store->put(constant); // the store keeps the failure
    return "digest " + quoted(c.digest.hex());
  }
  std::string text = "{";
  for (int64_t i = 0; i < c.numElements(); ++i) {
    text += i ? ", " : "";
    if (!isFloat(c.type))
      text += std::to_string(c.intAt(i));
    else
      text += c.type == DType::F64 ? floatToText(c.floatAt(i))
                                   : floatToText(static_cast<float>(c.floatAt(i)));
  }
  return text + "}";
}

Result<ConstantRef> parseConstantData(TextReader &in, DType type, const Shape &shape,
                                      const ConstantStore &store, const char *what) {
  if (!isStatic(shape))
    return in.error(std::string(what) + " has a fixed shape");
  std::vector<int64_t> dims = staticDims(shape);
  if (in.accept("digest")) {
    FUSEC_TRY(std::string hex, in.string());
    Hash128 digest;
    if (!Hash128::fromHex(hex, digest))
      return in.error("a digest is 32 hexadecimal digits");
    FUSEC_TRY(ConstantRef c, store.get(digest));
    if (c->type != type || c->dims != dims)
      return in.error("the constant with this digest has another type or shape");
    return c;
  }
  FUSEC_CHECK(in.expect("{"));
  std::vector<uint8_t> data;
  while (!in.accept("}")) {
    if (!data.empty())
      FUSEC_CHECK(in.expect(","));
    if (isFloat(type)) {
      FUSEC_TRY(double v, in.floating());
      appendElement(data, type, v);
    } else {
      FUSEC_TRY(int64_t v, in.integer());
      appendElement(data, type, v);
    }
  }
  int64_t expected = sizeInBytes(type);
  for (int64_t d : dims)
    if (d < 0 || __builtin_mul_overflow(expected, d, &expected))
      return in.error("the constant's shape is too large");
  if (static_cast<int64_t>(data.size()) != expected)
    return in.error("the constant has " +
                    std::to_string(static_cast<int64_t>(data.size()) / sizeInBytes(type)) +
                    " elements, its shape " + std::to_string(expected / sizeInBytes(type)));
  return makeConstant(type, std::move(dims), std::move(data));
}

} // namespace fusec
