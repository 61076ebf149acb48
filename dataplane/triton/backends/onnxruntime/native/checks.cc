// What this library answers without a server: whether an ONNX Runtime is as declared, the completion
// of configurations, as JSON, and what a CPU needs. An answer is valid until the same thread asks
// again.
#include <cstring>
#include <sstream>

#include "completion.h"
#include "ort_api.h"
#include "session.h"

#define EXPORTED_CHECK extern "C" __attribute__((visibility("default")))

// Writes and reads a tensor by functions from the first to the last place of the API that is used.
// Returns what is wrong; empty: nothing.
EXPORTED_CHECK const char* amphitrite_check(const char* runtime) {
  static thread_local std::string answer;
  answer.clear();
  try {
    const char text[] = "text";
    const size_t length = sizeof text - 1;
    const int64_t shape[] = {1};
    Ort ort(runtime);
    Value value(ort);
    char* buffer = nullptr;
    char read[length];
    size_t size = 0, offset = 1;
    ort.check(ort.CreateTensorAsOrtValue(ort.allocator, shape, 1, type_of_name("tensor(string)")->onnx, value.out()));
    ort.check(ort.GetResizedStringTensorElementBuffer(value.get(), 0, length, &buffer));
    std::memcpy(buffer, text, length);
    ort.check(ort.GetStringTensorDataLength(value.get(), &size));
    if (size != length) throw Error("ONNX Runtime's functions are not where they are expected");
    ort.check(ort.GetStringTensorContent(value.get(), read, size, &offset, 1));
    if (offset != 0 || std::memcmp(read, text, length) != 0) throw Error("ONNX Runtime gave back another text");
  } catch (const std::exception& error) {
    answer = error.what();
  }
  return answer.c_str();
}

EXPORTED_CHECK bool amphitrite_overflows(const char* cpuinfo) {
  std::istringstream text(cpuinfo);
  return overflows(text);
}

EXPORTED_CHECK const char* amphitrite_complete(const char* config, const char* tensors) {
  static thread_local std::string answer;
  Json made = Json::object();
  try {
    std::vector<Tensor> declared;
    const Json list = Json::parse(tensors);
    for (const Json& given : list.items()) {
      Tensor tensor{given["kind"].string() == "input", given["name"].string(), given["type"].string(), {}};
      for (const Json& d : given["shape"].items()) {
        Dimension dimension;
        if (d.kind() == Json::kNumber) dimension.number = d.integer();
        else dimension.symbol = d.string();
        tensor.shape.push_back(dimension);
      }
      declared.push_back(std::move(tensor));
    }
    Completion completion = complete(Json::parse(config), declared);
    made.set("max_batch_size", Json::number(completion.max_batch_size));
    made.set("inputs", completion.inputs);
    made.set("outputs", completion.outputs);
    made.set("remark", Json::text(completion.remark));
    Json states = Json::list();
    for (const State& state : completion.sequences.states) {
      Json one = Json::object();
      one.set("input", Json::text(state.input));
      one.set("output", Json::text(state.output));
      one.set("zero", Json::number(state.zero));
      states.add(one);
    }
    made.set("states", states);
  } catch (const std::exception& error) {
    made.set("error", Json::text(error.what()));
  }
  answer = made.dump();
  return answer.c_str();
}
