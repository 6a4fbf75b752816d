#include "Graph/OpAttributes.h"

#include <cassert>

namespace fusec {

/// "name:kind" separated by spaces; kinds: i int, f float, s string, I ints, F floats, S strings, t type,
/// c constant; "?" marks an optional one. Operators without a row have no attributes.
static std::string_view rulesText(OpKind op) {
  using enum OpKind;
  switch (op) {
  case BitCast: return "to:t";
  case Cast: return "to:t saturate:i";
  case Celu:
  case Elu:
  case LeakyRelu:
  case Swish:
  case ThresholdedRelu: return "alpha:f";
  case Gelu: return "approximate:s";
  case HardSigmoid: return "alpha:f beta:f";
  case IsInf: return "detect_negative:i detect_positive:i";
  case Selu: return "alpha:f gamma:f";
  case Shrink: return "bias:f lambd:f";
  case BitShift: return "direction:s";
  case Mod: return "fmod:i";
  case ReduceL1:
  case ReduceL2:
  case ReduceLogSum:
  case ReduceLogSumExp:
  case ReduceMax:
  case ReduceMean:
  case ReduceMin:
  case ReduceProd:
  case ReduceSum:
  case ReduceSumSquare: return "axes:I keepdims:i";
  case ArgMax:
  case ArgMin: return "axis:i keepdims:i select_last_index:i";
  case CumSum:
  case CumProd: return "exclusive:i reverse:i";
  case Softmax: return "axis:i zero_masked:i?";
  case LogSoftmax:
  case Hardmax: return "axis:i";
  case Gemm: return "alpha:f beta:f transA:i transB:i";
  case Einsum: return "equation:s";
  case Conv:
  case ConvInteger:
  case QLinearConv: return "pads:I strides:I dilations:I group:i kernel_shape:I";
  case ConvTranspose: return "pads:I strides:I dilations:I group:i kernel_shape:I output_padding:I";
  case AveragePool:
    return "kernel_shape:I strides:I pads:I dilations:I ceil_mode:i count_include_pad:i";
  case MaxPool: return "kernel_shape:I strides:I pads:I dilations:I ceil_mode:i storage_order:i";
  case LpPool: return "kernel_shape:I strides:I pads:I dilations:I ceil_mode:i p:i";
  case GlobalLpPool: return "p:i";
  case BatchNormalization:
  case InstanceNormalization: return "epsilon:f";
  case GroupNormalization: return "epsilon:f num_groups:i";
  case LayerNormalization:
  case RMSNormalization: return "axis:i epsilon:f";
  case LpNormalization: return "axis:i p:i";
  case LRN: return "alpha:f beta:f bias:f size:i";
  case MeanVarianceNormalization: return "axes:I";
  case Concat:
  case Flatten:
  case Gather:
  case GatherElements:
  case OneHot:
  case Split:
  case Compress: return "axis:i";
  case ConstantOfShape: return "value:c";
  case DepthToSpace:
  case SpaceToDepth: return "blocksize:i mode:s";
  case EyeLike: return "k:i dtype:t";
  case GatherND: return "batch_dims:i";
  case Pad: return "mode:s pads:I";
  case Resize:
    return "antialias:i axes:I coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i "
           "extrapolation_value:f keep_aspect_ratio_policy:s mode:s nearest_mode:s";
  case ReverseSequence: return "batch_axis:i time_axis:i";
  case ScatterElements: return "axis:i reduction:s";
  case ScatterND: return "reduction:s";
  case Shape: return "start:i end:i";
  case Slice: return "starts:I ends:I axes:I steps:I";
  case Squeeze:
  case Unsqueeze:
  case CenterCropPad: return "axes:I";
  case Transpose: return "perm:I";
  case Trilu: return "upper:i";
  case Col2Im: return "dilations:I pads:I strides:I";
  case GridSample: return "align_corners:i mode:s padding_mode:s";
  case RoiAlign:
    return "output_height:i output_width:i sampling_ratio:i spatial_scale:f mode:s half_pixel:i";
  case DequantizeLinear: return "axis:i block_size:i";
  case QuantizeLinear: return "axis:i block_size:i saturate:i";
  case LSTM:
    return "direction:s hidden_size:i layout:i activations:S activation_alpha:F activation_beta:F "
           "clip:f input_forget:i";
  case GRU:
    return "direction:s hidden_size:i layout:i activations:S activation_alpha:F activation_beta:F "
           "clip:f linear_before_reset:i";
  case RNN:
    return "direction:s hidden_size:i layout:i activations:S activation_alpha:F activation_beta:F "
           "clip:f";
  case TopK: return "axis:i largest:i sorted:i";
  case Scan:
    return "num_scan_inputs:i scan_input_axes:I scan_input_directions:I scan_output_axes:I "
           "scan_output_directions:I";
  case NegativeLogLikelihoodLoss:
  case SoftmaxCrossEntropyLoss: return "ignore_index:i? reduction:s";
  case HannWindow:
  case HammingWindow:
  case BlackmanWindow: return "periodic:i output_datatype:t";
  case RotaryEmbedding: return "interleaved:i num_heads:i rotary_embedding_dim:i";
  case TensorScatter: return "axis:i mode:s";
  default: return "";
  }
}

std::vector<AttributeRule> attributeRules(OpKind op) {
  constexpr std::string_view kinds = "ifsIFStc"; // in the order of Attribute's alternatives
  std::vector<AttributeRule> rules;
  std::string_view text = rulesText(op);
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    size_t colon = word.find(':');
    assert(colon != std::string_view::npos &&
           kinds.find(word[colon + 1]) != std::string_view::npos);
    rules.push_back({word.substr(0, colon), kinds.find(word[colon + 1]), word.back() == '?'});
  }
  return rules;
}

} // namespace fusec
