#include "execution.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "triton_calls.h"

namespace {

// Kernels may rely on this alignment of numbers.
constexpr size_t kAlignment = 64;
// A larger buffer is released after its use.
constexpr size_t kKeptBytes = 32 << 20;

uint64_t now() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

std::vector<int64_t> shape_of(const Ort& ort, const OrtValue* value) {
  ShapeInfo info(ort);
  ort.check(ort.GetTensorTypeAndShape(value, info.out()));
  size_t count = 0;
  ort.check(ort.GetDimensionsCount(info.get(), &count));
  std::vector<int64_t> shape(count);
  ort.check(ort.GetDimensions(info.get(), shape.data(), count));
  return shape;
}

// Whether two requests differ only in the first dimension.
bool fit(const Request& one, const Request& other) {
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    const auto &a = one.inputs[i].shape, &b = other.inputs[i].shape;
    if (a.size() != b.size() || a.empty() || !std::equal(a.begin() + 1, a.end(), b.begin() + 1)) return false;
  }
  return true;
}

// The elements of an output, divided among the responses; strings in Triton's form.
class Content {
 public:
  Content(const Ort& ort, OrtValue* value, const std::vector<int64_t>& shape) {
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

  size_t bytes(size_t from, size_t count) const {
    if (type->size != 0) return count * type->size;
    return offsets_[from + count] - offsets_[from] + count * sizeof(uint32_t);
  }

  void write(size_t from, size_t count, char* to) const {
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

  const Type* type;

 private:
  const char* data_ = nullptr;
  std::string text_;
  std::vector<size_t> offsets_;
};

}  // namespace

void Execution::run(TRITONBACKEND_Request** requests, uint32_t count) {
  times_ = {now()};
  buffers_.resize(model_.inputs.size());
  std::vector<Request> taken;
  taken.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    taken.push_back(take(requests[i], model_.inputs));
    if (taken.back().wanted.empty()) taken.back().wanted = model_.outputs;
  }
  refuse_beyond_bound(taken);
  std::vector<bool> done(count, false);
  for (uint32_t i = 0; i < count; ++i) {
    if (done[i]) continue;
    if (!taken[i].failure.empty()) {
      finish(taken[i], times_);
      continue;
    }
    std::vector<Request*> group{&taken[i]};
    for (uint32_t j = i + 1; model_.max_batch_size > 0 && j < count; ++j) {
      if (done[j] || !taken[j].failure.empty() || !fit(taken[i], taken[j])) continue;
      group.push_back(&taken[j]);
      done[j] = true;
    }
    if (group.size() > 1 && run_group(group)) continue;
    for (Request* request : group) run_alone(*request);
  }
  for (auto& buffer : buffers_) {
    if (buffer.capacity() > kKeptBytes) std::vector<char>().swap(buffer);
  }
}

void Execution::refuse_beyond_bound(std::vector<Request>& requests) {
  int64_t rows = 0;
  for (const Request& request : requests) rows += request.failure.empty() ? request.rows() : 0;
  if (model_.max_batch_size == 0 || rows <= model_.max_batch_size) return;
  const char* name = "";
  ignore(TRITONBACKEND_ModelInstanceName(instance_, &name));
  for (Request& request : requests) {
    if (!request.failure.empty()) continue;
    request.failure = "batch size " + std::to_string(rows) + " for '" + name + "', max allowed is " +
                      std::to_string(model_.max_batch_size);
    request.code = TRITONSERVER_ERROR_INVALID_ARG;
  }
}

std::vector<Value> Execution::compute(const std::vector<Request*>& group, const std::vector<std::string>& wanted) {
  std::vector<Value> inputs;
  for (size_t i = 0; i < model_.inputs.size(); ++i) inputs.push_back(joined(i, group));
  std::vector<const char*> names;
  for (const std::string& name : wanted) names.push_back(name.c_str());
  times_.compute_start = now();
  std::vector<Value> outputs = model_.session->run(inputs, names);
  times_.compute_end = now();
  return outputs;
}

// False: these requests must run one by one.
bool Execution::run_group(std::vector<Request*>& group) {
  std::vector<std::string> wanted;
  int64_t rows = 0;
  for (const Request* request : group) {
    rows += request->rows();
    for (const std::string& name : request->wanted) {
      if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) wanted.push_back(name);
    }
  }
  try {
    std::vector<Value> outputs = compute(group, wanted);
    std::vector<std::vector<int64_t>> shapes;
    for (const Value& output : outputs) {
      shapes.push_back(shape_of(model_.session->ort(), output.get()));
      if (shapes.back().empty() || shapes.back()[0] != rows) return false;
    }
    respond(group, wanted, outputs, shapes);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

void Execution::run_alone(Request& request) {
  std::vector<Request*> group{&request};
  try {
    std::vector<Value> outputs = compute(group, request.wanted);
    std::vector<std::vector<int64_t>> shapes;
    for (size_t i = 0; i < outputs.size(); ++i) {
      shapes.push_back(shape_of(model_.session->ort(), outputs[i].get()));
      if (model_.max_batch_size > 0 && (shapes[i].empty() || shapes[i][0] != request.rows())) {
        throw Error("output '" + request.wanted[i] + "' has the shape " + shown(shapes[i], ", ") + " for a batch of " +
                    std::to_string(request.rows()) +
                    ": this model does not keep the batch, so it needs a config.pbtxt without max_batch_size "
                    "that gives the dims of its tensors in full");
      }
    }
    respond(group, request.wanted, outputs, shapes);
  } catch (const std::exception& error) {
    request.failure = error.what();
    finish(request, times_);
  }
}

// The value of one input for a group of requests: in place, or copied into one buffer.
Value Execution::joined(size_t index, const std::vector<Request*>& group) {
  const Ort& ort = model_.session->ort();
  const Type& type = *type_of_name(model_.inputs[index].type);
  std::vector<int64_t> shape = group[0]->inputs[index].shape;
  if (group.size() > 1) {
    shape[0] = 0;
    for (const Request* request : group) shape[0] += request->inputs[index].shape[0];
  }
  Value value(ort);
  if (type.size == 0) {
    ort.check(ort.CreateTensorAsOrtValue(ort.allocator, shape.data(), shape.size(), type.onnx, value.out()));
    size_t place = 0;
    for (const Request* request : group) {
      for (std::string_view text : request->inputs[index].text) {
        char* buffer = nullptr;
        ort.check(ort.GetResizedStringTensorElementBuffer(value.get(), place++, text.size(), &buffer));
        if (!text.empty()) std::memcpy(buffer, text.data(), text.size());
      }
    }
    return value;
  }
  size_t bytes = 0;
  for (const Request* request : group) bytes += request->inputs[index].bytes;
  const auto& first = group[0]->inputs[index].pieces;
  char* data = first.size() == 1 ? const_cast<char*>(first[0].data()) : nullptr;
  if (group.size() > 1 || data == nullptr || reinterpret_cast<uintptr_t>(data) % kAlignment != 0) {
    std::vector<char>& buffer = buffers_[index];
    if (buffer.size() < bytes + kAlignment) buffer.resize(bytes + kAlignment);
    auto address = reinterpret_cast<uintptr_t>(buffer.data());
    data = buffer.data() + (kAlignment - address % kAlignment) % kAlignment;
    char* to = data;
    for (const Request* request : group) {
      for (std::string_view piece : request->inputs[index].pieces) {
        std::memcpy(to, piece.data(), piece.size());
        to += piece.size();
      }
    }
  }
  ort.check(ort.CreateTensorWithDataAsOrtValue(ort.memory, data, bytes, shape.data(), shape.size(), type.onnx,
                                               value.out()));
  return value;
}

// Each request of the group gets its rows of the outputs that it wants, and its response. Throws
// only before the first response is begun.
void Execution::respond(std::vector<Request*>& group, const std::vector<std::string>& wanted,
                        const std::vector<Value>& outputs, const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<Content> contents;
  for (size_t i = 0; i < outputs.size(); ++i) contents.emplace_back(model_.session->ort(), outputs[i].get(), shapes[i]);
  int64_t rows = 0;
  for (const Request* request : group) rows += request->rows();
  for (size_t i = 0; i < outputs.size(); ++i) {
    size_t from = 0;
    for (Request* request : group) {
      std::vector<int64_t> shape = shapes[i];
      if (group.size() > 1) shape[0] = request->rows();
      auto count = static_cast<size_t>(elements(shape)), begin = from;
      from += count;
      bool asked = std::find(request->wanted.begin(), request->wanted.end(), wanted[i]) != request->wanted.end();
      if (!asked || !request->failure.empty()) continue;
      try {
        size_t bytes = contents[i].bytes(begin, count);
        void* to = add_output(*request, wanted[i], *contents[i].type, shape, bytes);
        if (bytes != 0) contents[i].write(begin, count, static_cast<char*>(to));
      } catch (const std::exception& error) {
        request->failure = error.what();
      }
    }
  }
  auto batch = static_cast<uint64_t>(model_.max_batch_size > 0 ? std::max<int64_t>(rows, 1) : 1);
  ignore(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance_, batch, times_.start, times_.compute_start,
                                                          times_.compute_end, now()));
  for (Request* request : group) finish(*request, times_);
}

// Counts, answers and releases a request. The counters are right before the client has its
// response.
void Execution::finish(Request& request, const Times& times) {
  TRITONSERVER_Error* error = nullptr;
  if (!request.failure.empty()) {
    error = TRITONSERVER_ErrorNew(request.code, request.failure.c_str());
  }
  if (request.response == nullptr) ignore(TRITONBACKEND_ResponseNew(&request.response, request.triton));
  ignore(TRITONBACKEND_ModelInstanceReportStatistics(instance_, request.triton, error == nullptr, times.start,
                                                     times.compute_start, times.compute_end, now()));
  if (request.response != nullptr) ignore(TRITONBACKEND_ResponseSend(request.response, kResponseFinal, error));
  if (error != nullptr) TRITONSERVER_ErrorDelete(error);
  ignore(TRITONBACKEND_RequestRelease(request.triton, kReleaseAll));
}
