#include "content.h"

#include <cstring>

Content::Content(const Ort& ort, OrtValue* value, const std::vector<int64_t>& shape) {
  ShapeInfo info(ort);
  int element = 0;
  ort.check(ort.GetTensorTypeAndShape(value, info.out()));
  ort.check(ort.GetTensorElementType(info.get(), &element));
  type = type_of_onnx(element);
  if (type == nullptr) throw Error("an output has the type " + element_name(element) + ", which cannot be served");
  if (type->size != 0) {
    void* data = nullptr;
    ort.check(ort.GetTensorMutableData(value, &data));
    data_ = static_cast<const char*>(data);
    return;
  }
  auto count = static_cast<size_t>(elements(shape));
  size_t length = 0;
  ort.check(ort.GetStringTensorDataLength(value, &length));
  text_.resize(length);
  offsets_.resize(count + 1);
  if (count != 0) ort.check(ort.GetStringTensorContent(value, text_.data(), length, offsets_.data(), count));
  offsets_[count] = length;
}

size_t Content::bytes(size_t from, size_t count) const {
  if (type->size != 0) return count * type->size;
  return offsets_[from + count] - offsets_[from] + count * sizeof(uint32_t);
}

void Content::write(size_t from, size_t count, char* to) const {
  if (type->size != 0) {
    std::memcpy(to, data_ + from * type->size, count * type->size);
    return;
  }
  for (size_t i = from; i < from + count; ++i) {
    auto length = static_cast<uint32_t>(offsets_[i + 1] - offsets_[i]);
    std::memcpy(to, &length, sizeof length);
    std::memcpy(to + sizeof length, text_.data() + offsets_[i], length);
    to += sizeof length + length;
  }
}
