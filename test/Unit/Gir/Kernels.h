#pragma once
// Kernels that several tests use, as text.
#include "Gir/Passes.h"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <vector>

namespace fusec::test {

inline std::vector<Symbol> oneSymbol() { return {{"n", 1, 100, 4096, 1}}; }

inline GirKernel kernelFrom(const std::string &text,
                            const std::vector<Symbol> &symbols = oneSymbol()) {
  TextReader in(text, "test");
  auto kernel = parseGirKernel(in, symbols);
  if (!kernel.ok())
    FAIL(format(kernel.errors().front()));
  return std::move(*kernel);
}

/// relu(x) + 1 over n elements, 8 lanes, masked in the last block.
inline const char *const kElementwise = R"(kernel @relu units 1 lanes 8 for ("relu") {
  symbol n = 1..4096 opt 100 divisor 1
  param %x f32[n]
  param out %y f32[n]
  phase (b: floordiv(n + 7, 8)) {
    lane l in 8 {
      if lt(b*8 + l, dim(n)) {
        %y[b*8 + l] = add(max(%x[b*8 + l], 0.0), 1.0)
      }
    }
  }
}
)";

/// y[r] = sum over 100 columns of x[r, c] times (softmax-like) exp-free weight; 32 lanes stride over a row.
inline const char *const kRowSum = R"(kernel @rowsum units 2 lanes 32 {
  param %x f32[6,100]
  param out %y f32[6]
  register %acc f32[]
  phase (b: 3) {
    unit u in 2 {
      %acc[] = 0.0
      seq c in 4 {
        lane l in 32 {
          if lt(c*32 + l, 100) {
            %acc[] sum= %x[b*2 + u, c*32 + l]
          }
        }
      }
      lanereduce sum %acc[]
      %y[b*2 + u] = %acc[]
    }
  }
}
)";

/// c = a b with 32 x 32 tiles: 4 units of 32 lanes, 8 rows a unit, one column a lane; a and b are staged
/// through shared memory 16 columns of k at a time. Without barriers.
inline const char *const kStagedMatmul =
    R"(kernel @mm units 4 lanes 32 {
  param %a f32[64,48]
  param %b f32[48,32]
  param out %c f32[64,32]
  register %acc f32[8]
  shared %as f32[32,16]
  shared %bs f32[16,32]
  phase (bm: 2) {
    unroll i in 8 {
      %acc[i] = 0.0
    }
    seq k in 3 {
      unit u in 4 {
        seq r in 4 {
          lane l in 32 {
            %as[u*8 + r*2 + floordiv(l, 16), floormod(l, 16)] = )"
    R"(%a[bm*32 + u*8 + r*2 + floordiv(l, 16), k*16 + floormod(l, 16)]
            %bs[u*4 + r, l] = %b[k*16 + u*4 + r, l]
          }
        }
      }
      unit u in 4 {
        seq kk in 16 {
          unroll i in 8 {
            lane l in 32 {
              %acc[i] sum= mul(%as[u*8 + i, kk], %bs[kk, l])
            }
          }
        }
      }
    }
    unit u in 4 {
      unroll i in 8 {
        lane l in 32 {
          %c[bm*32 + u*8 + i, l] = %acc[i]
        }
      }
    }
  }
}
)";

} // namespace fusec::test
