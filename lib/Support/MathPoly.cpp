#include "Support/MathPoly.h"

#include "Support/MathDispatch.h"

namespace fusec {

double evaluateMath(MathFn fn, double x, double y) {
  NativeNumber<double> n;
  return mathpoly::evaluateF64(fn, n, x, y);
}

float evaluateMath(MathFn fn, float x, float y) {
  if (!mathpoly::hasF32Code(fn))
    return static_cast<float>(evaluateMath(fn, static_cast<double>(x), static_cast<double>(y)));
  NativeNumber<float> n;
  return mathpoly::evaluateF32(fn, n, x);
}

} // namespace fusec
