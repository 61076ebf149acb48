"""What the client of Azure ML's public Triton example does, with numbers in place of a picture."""

import argparse

import gevent.ssl
import numpy as np
import tritonclient.http

parser = argparse.ArgumentParser()
parser.add_argument("--base_url")
parser.add_argument("--token")
given = parser.parse_args()

client = tritonclient.http.InferenceServerClient(
    url=given.base_url[8:], ssl=True, ssl_context_factory=gevent.ssl._create_default_https_context
)
headers = {"Authorization": f"Bearer {given.token}"}
print(f"Is server ready - {client.is_server_ready(headers=headers)}")
print("Is model ready - {}".format(client.is_model_ready("model_1", "1", headers)))

picture = np.full((1, 3, 224, 224), [[[[1.0]], [[2.0]], [[3.0]]]], np.float32)
asked = tritonclient.http.InferInput("data_0", picture.shape, "FP32")
asked.set_data_from_numpy(picture)
wanted = [tritonclient.http.InferRequestedOutput("fc6_1")]
answer = client.infer("model_1", [asked], outputs=wanted, headers=headers)
print("label: {}".format(np.argmax(answer.as_numpy("fc6_1"))))
