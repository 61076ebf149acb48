#include "requests.h"

#include <cstring>

#include "triton_calls.h"

namespace {

std::string at(const Tensor& tensor) { return "input '" + tensor.name + "' "; }

// Triton's form of strings: for each a length of four bytes, little-endian, and its bytes.
void split(const Tensor& tensor, Given& given) {
  std::string_view rest;
  if (given.pieces.size() == 1) {
    rest = given.pieces[0];
  } else {
    for (std::string_view piece : given.pieces) given.own.insert(given.own.end(), piece.begin(), piece.end());
    rest = std::string_view(given.own.data(), given.own.size());
  }
  int64_t count = elements(given.shape);
  for (int64_t i = 0; i < count; ++i) {
    uint32_t length = 0;
    if (rest.size() < sizeof length) throw Error(at(tensor) + "holds fewer strings than its shape says");
    std::memcpy(&length, rest.data(), sizeof length);
    rest.remove_prefix(sizeof length);
    if (rest.size() < length) throw Error(at(tensor) + "holds a string that is shorter than its length says");
    given.text.push_back(rest.substr(0, length));
    rest.remove_prefix(length);
    if (!is_utf8(given.text.back())) throw Error(at(tensor) + "holds a string that is not UTF-8");
  }
  if (!rest.empty()) throw Error(at(tensor) + "holds more strings than its shape says");
}

void check_shape(const Tensor& tensor, Given& given) {
  if (tensor.shape.empty() && given.shape == std::vector<int64_t>{1}) {
    given.shape.clear();
    return;
  }
  bool fits = given.shape.size() == tensor.shape.size();
  for (size_t i = 0; fits && i < given.shape.size(); ++i) {
    fits = !tensor.shape[i].fixed() || tensor.shape[i].number == given.shape[i];
  }
  if (!fits) throw Error(at(tensor) + "has the shape " + shown(given.shape) + ", expected " + shown(tensor.shape));
}

Given take_input(TRITONBACKEND_Request* triton, const Tensor& tensor) {
  TRITONBACKEND_Input* input = nullptr;
  if (TRITONSERVER_Error* missing = TRITONBACKEND_RequestInput(triton, tensor.name.c_str(), &input)) {
    ignore(missing);
    throw Error(at(tensor) + "is missing");
  }
  Given given;
  TRITONSERVER_DataType datatype = 0;
  const int64_t* shape = nullptr;
  uint32_t dims = 0, buffers = 0;
  uint64_t bytes = 0;
  call(TRITONBACKEND_InputProperties(input, nullptr, &datatype, &shape, &dims, &bytes, &buffers));
  const Type* type = type_of_name(tensor.type);
  if (type == nullptr || type->triton != datatype) throw Error(at(tensor) + "is not " + tensor.type);
  given.shape.assign(shape, shape + dims);
  check_shape(tensor, given);
  for (uint32_t i = 0; i < buffers; ++i) {
    const void* buffer = nullptr;
    uint64_t size = 0;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t memory_id = 0;
    call(TRITONBACKEND_InputBuffer(input, i, &buffer, &size, &memory, &memory_id));
    if (memory == TRITONSERVER_MEMORY_GPU) throw Error(at(tensor) + "lies in a GPU's memory, which is not read here");
    if (size != 0) given.pieces.emplace_back(static_cast<const char*>(buffer), size);
    given.bytes += size;
  }
  if (type->size == 0) {
    split(tensor, given);
  } else if (size_t expected = static_cast<size_t>(elements(given.shape)) * type->size; given.bytes != expected) {
    throw Error(at(tensor) + "has " + std::to_string(given.bytes) + " bytes, expected " + std::to_string(expected));
  }
  return given;
}

// Triton 2.51 would give the control input the length and the first bytes of the string.
void refuse_text(TRITONBACKEND_Request* triton, const Tensor& tensor) {
  const char* text = nullptr;
  TRITONSERVER_Error* is_number = TRITONBACKEND_RequestCorrelationIdString(triton, &text);
  if (is_number == nullptr) throw Error(at(tensor) + "takes numbers, and the sequence's id is a string");
  ignore(is_number);
}

// The id of a request's sequence as a string; a number by its digits. Triton 2.51 gives the control
// input bytes beyond the string, and of a number those that lie behind it in memory.
Given take_id(TRITONBACKEND_Request* triton, const Tensor& tensor) {
  const char* text = nullptr;
  std::string id;
  if (TRITONSERVER_Error* is_number = TRITONBACKEND_RequestCorrelationIdString(triton, &text)) {
    ignore(is_number);
    uint64_t number = 0;
    call(TRITONBACKEND_RequestCorrelationId(triton, &number));
    id = std::to_string(number);
  } else {
    id = text;
  }
  if (!is_utf8(id)) throw Error(at(tensor) + "holds a string that is not UTF-8");
  Given given;
  given.shape.assign(tensor.shape.size(), 1);
  given.own.assign(id.begin(), id.end());
  given.text.emplace_back(given.own.data(), given.own.size());
  return given;
}

}  // namespace

void Given::clear() {
  own.assign(bytes, 0);
  pieces = {std::string_view(own.data(), own.size())};
}

Request take(TRITONBACKEND_Request* triton, const std::vector<Tensor>& inputs, const SequenceInputs& sequences) {
  Request request;
  request.triton = triton;
  try {
    bool cancelled = false;
    ignore(TRITONBACKEND_RequestIsCancelled(triton, &cancelled));
    if (cancelled) {
      request.code = TRITONSERVER_ERROR_CANCELLED;
      throw Error("the request was cancelled before it ran");
    }
    uint32_t count = 0;
    call(TRITONBACKEND_RequestOutputCount(triton, &count));
    request.empty_slot = sequences.batched && count == 0;
    if (request.empty_slot) return request;
    for (const Tensor& tensor : inputs) {
      if (tensor.name == sequences.number_id) refuse_text(triton, tensor);
      bool is_text = tensor.name == sequences.text_id;
      request.inputs.push_back(is_text ? take_id(triton, tensor) : take_input(triton, tensor));
    }
    for (uint32_t i = 0; i < count; ++i) {
      const char* name = nullptr;
      call(TRITONBACKEND_RequestOutputName(triton, i, &name));
      request.wanted.emplace_back(name);
    }
  } catch (const std::exception& error) {
    request.failure = error.what();
  }
  return request;
}

void* add_output(Request& request, const std::string& name, const Type& type, std::vector<int64_t> shape,
                 size_t bytes) {
  if (shape.empty()) shape.push_back(1);  // Triton has no tensors without dimensions.
  if (request.response == nullptr) call(TRITONBACKEND_ResponseNew(&request.response, request.triton));
  TRITONBACKEND_Output* output = nullptr;
  call(TRITONBACKEND_ResponseOutput(request.response, &output, name.c_str(), type.triton, shape.data(),
                                    static_cast<uint32_t>(shape.size())));
  void* buffer = nullptr;
  TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
  int64_t memory_id = 0;
  call(TRITONBACKEND_OutputBuffer(output, &buffer, bytes, &memory, &memory_id));
  if (memory == TRITONSERVER_MEMORY_GPU) throw Error("output '" + name + "' is wanted in the memory of a GPU");
  return buffer;
}
