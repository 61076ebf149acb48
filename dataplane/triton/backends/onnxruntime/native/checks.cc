// What a check can ask of this library without a server: the completion of configurations, as JSON.
#include "completion.h"

#define EXPORTED_CHECK extern "C" __attribute__((visibility("default")))

// The answer stays valid until the same thread asks again.
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
  } catch (const std::exception& error) {
    made.set("error", Json::text(error.what()));
  }
  answer = made.dump();
  return answer.c_str();
}
