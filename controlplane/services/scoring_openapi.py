"""The OpenAPI document of a scoring address, made from the inputs and outputs of its models.

Decides the paths and schemas, in OpenAPI 3.0 and, as Azure ML's ``swagger.json`` by default, in
Swagger 2.0. Must not know routes or where a signature comes from. Sources: Triton's page "KServe
API" (JSON form of tensors), https://spec.openapis.org/oas/v3.0.3,
https://swagger.io/specification/v2
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from amphitrite.controlplane.services.scoring_descriptions import ScoringDescription
from amphitrite.schemas.repository import Signature, Tensor

Schema = dict[str, Any]

#: Triton's types by the JSON type of their values.
_NUMBERS = ("FP16", "FP32", "FP64", "BF16")
_WHOLE = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
_DATATYPES = ("BOOL", *_WHOLE, *_NUMBERS, "BYTES")
_TEXT: Schema = {"type": "string"}
_DESCRIPTION = (
    "Send the endpoint's key or token as a bearer token. The header azureml-model-deployment chooses a deployment."
)


def document(described: ScoringDescription, *, swagger: bool) -> dict[str, Any]:
    """``swagger``: in version 2.0, else OpenAPI 3.0."""
    schemas: dict[str, Schema] = {"Refusal": _refusal(), "ModelFailure": _object(("error",), error=_TEXT)}
    paths: dict[str, Any] = {
        "/v2/health/ready": {"get": _operation("Whether the deployment's instance is ready.", "ready")},
    }
    for name, signature in described.models.items():
        schemas[f"{name}.Request"] = _request(signature, swagger=swagger)
        schemas[f"{name}.Response"] = _response(signature, swagger=swagger)
        paths[f"/v2/models/{name}"] = {"get": _operation(f"Inputs and outputs of {name}.", f"metadata_{name}", {})}
        verb = "generate_stream" if signature and signature.decoupled else "infer"
        paths[f"/v2/models/{name}/{verb}"] = {"post": _inference(name, f"{verb}_{name}", signature)}
    if described.score_path is not None:
        model = described.score_path.removeprefix("/v2/models/").removesuffix("/infer")
        known = described.models.get(model)
        score = _inference(model, "score", known) if model in described.models else _score()
        paths = {"/": {"post": score}, **paths}
    made = _written(paths, swagger=swagger)
    info = {"title": described.endpoint, "version": described.deployment, "description": _DESCRIPTION}
    if not swagger:
        bearer = {"bearer": {"type": "http", "scheme": "bearer"}}
        return {
            "openapi": "3.0.3",
            "info": info,
            "servers": [{"url": described.scoring_uri.rstrip("/")}],
            "paths": made,
            "components": {"schemas": schemas, "securitySchemes": bearer},
            "security": [{"bearer": []}],
        }
    address = urlsplit(described.scoring_uri)
    header = {"type": "apiKey", "name": "Authorization", "in": "header", "description": "Bearer KEY"}
    return {
        "swagger": "2.0",
        "info": info,
        "host": address.netloc,
        "basePath": address.path.rstrip("/") or "/",
        "schemes": ["https"],
        "consumes": ["application/json"],
        "produces": ["application/json"],
        "paths": made,
        "definitions": schemas,
        "securityDefinitions": {"Bearer": header},
        "security": [{"Bearer": []}],
    }


def _operation(summary: str, name: str, answer: Schema | None = None) -> dict[str, Any]:
    """``answer``: the schema of the body; None without one."""
    return {"summary": summary, "operationId": name, "answer": answer}


def _score() -> dict[str, Any]:
    """The scoring route of a container, whose form only the container knows."""
    return {**_operation("The scoring route of the container.", "score", {}), "body": {}}


def _inference(model: str, name: str, signature: Signature | None) -> dict[str, Any]:
    operation = _operation(f"An inference of {model}.", name, {"ref": f"{model}.Response"})
    if signature is not None and signature.decoupled:
        operation |= {"summary": f"The answers of {model}, as server-sent events.", "media": "text/event-stream"}
    return {**operation, "body": {"ref": f"{model}.Request"}}


def _written(paths: Mapping[str, Any], *, swagger: bool) -> dict[str, Any]:
    """The paths in the words of one of the two versions."""
    return {
        path: {method: _write(operation, swagger=swagger) for method, operation in methods.items()}
        for path, methods in paths.items()
    }


def _write(operation: Mapping[str, Any], *, swagger: bool) -> dict[str, Any]:
    made = {"summary": operation["summary"], "operationId": operation["operationId"]}
    answers = {
        "200": ("The answer.", operation["answer"]),
        "424": ("The model refused the request.", {"ref": "ModelFailure"}),
        "default": ("A refusal of the scoring address.", {"ref": "Refusal"}),
    }
    media = operation.get("media", "application/json")
    pin = {"name": "azureml-model-deployment", "in": "header", "required": False}
    if swagger:
        parameters: list[dict[str, Any]] = [{**pin, "type": "string"}]
        if "body" in operation:
            schema = _reference(operation["body"], swagger=True)
            parameters.append({"name": "request", "in": "body", "required": True, "schema": schema})
        responses = {
            code: {"description": text, **({} if schema is None else {"schema": _reference(schema, swagger=True)})}
            for code, (text, schema) in answers.items()
        }
        produces = {} if media == "application/json" else {"produces": [media]}
        return {**made, **produces, "parameters": parameters, "responses": responses}
    body = {}
    if "body" in operation:
        content = {"application/json": {"schema": _reference(operation["body"], swagger=False)}}
        body = {"requestBody": {"required": True, "content": content}}
    contents = {
        code: {}
        if schema is None
        else {
            "content": {media if code == "200" else "application/json": {"schema": _reference(schema, swagger=False)}}
        }
        for code, (_, schema) in answers.items()
    }
    responses = {code: {"description": text, **contents[code]} for code, (text, _) in answers.items()}
    return {**made, "parameters": [{**pin, "schema": _TEXT}], **body, "responses": responses}


def _reference(schema: Mapping[str, Any], *, swagger: bool) -> Schema:
    place = "#/definitions/" if swagger else "#/components/schemas/"
    return {"$ref": f"{place}{schema['ref']}"} if "ref" in schema else dict(schema)


def _request(signature: Signature | None, *, swagger: bool) -> Schema:
    if signature is not None and signature.decoupled:
        values = {one.name: _values(_datatype(one)) for one in signature.inputs}
        return _object([one.name for one in signature.inputs if not one.optional], **values)
    inputs = _tensors(None if signature is None else signature.inputs, signature, swagger=swagger)
    required = [one for one in signature.inputs if not one.optional] if signature is not None else [None]
    inputs["minItems"] = len(required)
    return _object(("inputs",), id=_TEXT, inputs=inputs, outputs=_outputs(signature), parameters={"type": "object"})


def _response(signature: Signature | None, *, swagger: bool) -> Schema:
    if signature is not None and signature.decoupled:
        return _TEXT
    outputs = _tensors(None if signature is None else signature.outputs, signature, swagger=swagger)
    return _object(("model_name", "outputs"), model_name=_TEXT, model_version=_TEXT, id=_TEXT, outputs=outputs)


def _outputs(signature: Signature | None) -> Schema:
    """The outputs to answer: all of them if the request names none."""
    names = _TEXT if signature is None else {**_TEXT, "enum": [one.name for one in signature.outputs]}
    return {"type": "array", "items": _object(("name",), name=names, parameters={"type": "object"})}


def _tensors(tensors: Sequence[Tensor] | None, signature: Signature | None, *, swagger: bool) -> Schema:
    """An array of tensors. Swagger 2.0 has no alternatives: several tensors share one schema."""
    batching = signature is not None and signature.max_batch_size > 0
    made = [_tensor(one, batching) for one in tensors or ()]
    if len(made) == 1:
        return {"type": "array", "items": made[0]}
    if made and not swagger:
        return {"type": "array", "items": {"oneOf": made}}
    shared = _tensor(None, batching)
    if made:
        shared["properties"]["name"] = {**_TEXT, "enum": [one.name for one in tensors or ()]}
        shared["description"] = "; ".join(one["description"] for one in made)
    return {"type": "array", "items": shared}


def _tensor(tensor: Tensor | None, batching: bool) -> Schema:
    """The schema of one tensor in JSON. None: of any."""
    if tensor is None:
        shape: Schema = {"type": "array", "items": {"type": "integer"}}
        fields = {
            "name": _TEXT,
            "datatype": {**_TEXT, "enum": list(_DATATYPES)},
            "data": {"type": "array", "items": {}},
        }
        return _object(("name", "shape", "datatype"), **fields, shape=shape, parameters={"type": "object"})
    datatype, dims = _datatype(tensor), ((-1,) if batching else ()) + tensor.dims
    shape = {
        **{"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": len(dims), "maxItems": len(dims)},
        "example": [max(dim, 1) for dim in dims],
    }
    sizes = ", ".join("any" if dim < 0 else str(dim) for dim in dims)
    made = _object(
        ("name", "shape", "datatype"),
        name={**_TEXT, "enum": [tensor.name]},
        shape=shape,
        datatype={**_TEXT, "enum": [datatype]},
        data=_values(datatype),
        parameters={"type": "object"},
    )
    return {**made, "description": f"{tensor.name}: {datatype} [{sizes}]{', optional' if tensor.optional else ''}"}


def _datatype(tensor: Tensor) -> str:
    """The name of the type in JSON, where TYPE_STRING is BYTES."""
    name = tensor.type.removeprefix("TYPE_")
    return "BYTES" if name == "STRING" else name


def _values(datatype: str) -> Schema:
    """Values in row-major order, flat or nested as the shape."""
    kind = (
        "number"
        if datatype in _NUMBERS
        else "integer"
        if datatype in _WHOLE
        else {"BOOL": "boolean"}.get(datatype, "string")
    )
    return {
        "type": "array",
        "items": {},
        "description": f"{kind} values in row-major order, flat or nested as the shape",
    }


def _refusal() -> Schema:
    return _object(("error",), error=_object(("code", "message"), code=_TEXT, message=_TEXT))


def _object(required: Sequence[str], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}
