#include "tensors.h"

namespace {

const Type kTypes[] = {
    {9, "tensor(bool)", "TYPE_BOOL", 1, 1},       {11, "tensor(double)", "TYPE_FP64", 12, 8},
    {1, "tensor(float)", "TYPE_FP32", 11, 4},     {10, "tensor(float16)", "TYPE_FP16", 10, 2},
    {5, "tensor(int16)", "TYPE_INT16", 7, 2},     {6, "tensor(int32)", "TYPE_INT32", 8, 4},
    {7, "tensor(int64)", "TYPE_INT64", 9, 8},     {3, "tensor(int8)", "TYPE_INT8", 6, 1},
    {8, "tensor(string)", "TYPE_STRING", 13, 0},  {4, "tensor(uint16)", "TYPE_UINT16", 3, 2},
    {12, "tensor(uint32)", "TYPE_UINT32", 4, 4},  {13, "tensor(uint64)", "TYPE_UINT64", 5, 8},
    {2, "tensor(uint8)", "TYPE_UINT8", 2, 1},
};

// ONNXTensorElementDataType from 14 on.
const char* const kOthers[] = {"complex64",      "complex128", "bfloat16",       "float8e4m3fn", "float8e4m3fnuz",
                               "float8e5m2",     "float8e5m2fnuz", "uint4",      "int4",         "float4e2m1",
                               "uint2",          "int2"};

}  // namespace

const Type* type_of_onnx(int onnx) {
  for (const Type& type : kTypes) {
    if (type.onnx == onnx) return &type;
  }
  return nullptr;
}

const Type* type_of_name(const std::string& name) {
  for (const Type& type : kTypes) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

std::string element_name(int onnx) {
  if (const Type* type = type_of_onnx(onnx)) {
    std::string name = type->name;
    return name.substr(7, name.size() - 8);
  }
  size_t place = static_cast<size_t>(onnx - 14);
  return place < sizeof(kOthers) / sizeof(*kOthers) ? kOthers[place] : "undefined";
}

std::string triton_type(const Tensor& tensor) {
  if (const Type* type = type_of_name(tensor.type)) return type->config;
  throw Error(std::string(tensor.kind()) + " '" + tensor.name + "' has the type " + tensor.type +
              ", which cannot be served");
}

std::string Tensor::shown() const { return std::string(kind()) + " '" + name + "' " + type + " " + ::shown(shape); }

std::string shown(const Shape& shape) {
  std::string out;
  for (const Dimension& d : shape) {
    out += out.empty() ? "" : ",";
    out += d.fixed() ? std::to_string(d.number) : d.symbol.empty() ? "?" : d.symbol;
  }
  return "[" + out + "]";
}

std::string shown(const std::vector<int64_t>& shape, const char* between) {
  std::string out;
  for (int64_t d : shape) out += (out.empty() ? "" : between) + std::to_string(d);
  return "[" + out + "]";
}

int64_t elements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t d : shape) count *= d;
  return count;
}

bool is_utf8(std::string_view text) {
  auto at = reinterpret_cast<const unsigned char*>(text.data());
  auto end = at + text.size();
  while (at != end) {
    unsigned char first = *at++;
    if (first < 0x80) continue;
    int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    if (first < 0xC2 || first > 0xF4 || end - at < more) return false;
    // Overlong forms, surrogates and values beyond the last code point.
    unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (*at < low || *at > high) return false;
    for (++at; --more > 0; ++at) {
      if (*at < 0x80 || *at > 0xBF) return false;
    }
  }
  return true;
}
